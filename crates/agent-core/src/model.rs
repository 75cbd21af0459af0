//! The seam to a model: a request in, a stream of events out.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::history::History;
use crate::message::{Block, CallId};
use crate::tool::ToolSpec;
use crate::usage::{StopReason, Usage};

mod error;

pub use error::{ModelError, ModelErrorKind, ServerReply, TimeoutPhase};

/// A boxed stream of model events. Dropping it ends the call: an implementation closes its connection.
pub type ModelStream<'a> = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send + 'a>>;

/// A model that the loop can call.
///
/// # Contract
///
/// - A call starts when the stream is first polled. Nothing is retried inside: the loop retries, visibly.
/// - The stream yields at most one [`ModelEvent::Stop`], as its last event; or an error, after which it ends. A
///   stream that ends with neither counts as cut off, and nothing of it is executed.
/// - Deltas are a preview. A block counts only when [`ModelEvent::BlockDone`] gives it whole, in the order in
///   which it stands in the message.
/// - Dropping the stream at any point is safe and frees everything that belongs to the call.
pub trait Model: Send + Sync + 'static {
    /// Who and what the model is.
    fn info(&self) -> ModelInfo;

    /// Starts one call.
    fn stream(&self, request: ModelRequest) -> ModelStream<'_>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        (**self).stream(request)
    }
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        (**self).stream(request)
    }
}

/// Who and what a model is, as far as is known. Unknown limits are absent and then not enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider's name, for example `openai`.
    pub provider: Arc<str>,
    /// The model's name as the provider writes it.
    pub model: Arc<str>,
    /// Tokens of prompt and answer together.
    pub context_window: Option<u64>,
    /// Tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// Whether images in messages and tool results can be sent; absent when unknown.
    pub images: Option<bool>,
}

impl ModelInfo {
    /// A model with unknown limits.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            context_window: None,
            max_output_tokens: None,
            images: None,
        }
    }

    /// Sets the context window in tokens.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }
}

/// One named piece of the system prompt. The order of sections is the order of the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptSection {
    /// A name for reports and for replacing a section; not sent.
    pub name: Arc<str>,
    /// The text, sent as it is. Sections are joined by one blank line.
    pub text: Arc<str>,
}

impl PromptSection {
    /// A section from its parts.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// Everything that one model call depends on. Cloning copies a few pointers.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The system prompt.
    pub system: Arc<[PromptSection]>,
    /// The conversation.
    pub messages: History,
    /// The tools on offer, in a fixed order.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Whether and which tools the model may call.
    pub tool_choice: ToolChoice,
    /// A schema that the final answer has to follow, natively enforced where the provider can.
    pub response_format: Option<ResponseFormat>,
    /// Sampling and limits.
    pub options: ModelOptions,
    /// Where a provider with explicit cache markers should place them.
    pub cache: CacheMarkers,
}

impl ModelRequest {
    /// A request for these messages, with everything else at its default.
    pub fn new(messages: History) -> Self {
        Self { messages, ..Self::default() }
    }

    /// The system prompt as one text: its sections, joined by one blank line.
    pub fn system_text(&self) -> String {
        self.system.iter().map(|s| &*s.text).collect::<Vec<_>>().join("\n\n")
    }
}

/// Whether and which tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// As the model likes.
    #[default]
    Auto,
    /// None, although they stay listed, so that the cached prefix stays the same.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(Arc<str>),
}

/// A schema for the answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResponseFormat {
    /// A name for the schema, of `[A-Za-z0-9_-]`.
    pub name: Arc<str>,
    /// The JSON Schema.
    pub schema: Arc<Value>,
}

impl ResponseFormat {
    /// A format from its parts.
    pub fn new(name: impl Into<Arc<str>>, schema: impl Into<Arc<Value>>) -> Self {
        Self { name: name.into(), schema: schema.into() }
    }
}

/// Sampling and limits of one call. What is absent is not sent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Tokens of the answer.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature, as the provider scales it.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// Texts at which the model stops.
    pub stop_sequences: Vec<String>,
    /// How much the model should reason.
    pub reasoning: Option<ReasoningEffort>,
    /// Whether one answer may hold several tool calls.
    pub parallel_tool_calls: Option<bool>,
    /// Further fields, put into the body as they are; they win over the fields above.
    pub extra: Map<String, Value>,
}

/// How much a model should reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all.
    Off,
    /// As little as the model allows.
    Minimal,
    /// A little.
    Low,
    /// The provider's idea of normal.
    Medium,
    /// Much.
    High,
    /// Up to this many tokens, where the provider counts them.
    Tokens(u32),
}

/// Stable borders of a request, for providers that cache only where they are told to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheMarkers {
    /// After the tools and the system prompt.
    pub prefix: bool,
    /// After these messages, by index, ascending.
    pub messages: Vec<usize>,
}

/// What happens while a model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The answer began; both names as the server gives them.
    Started {
        /// The server's id of the answer.
        response_id: Option<String>,
        /// The model that answers, which may differ from the one asked for.
        model: Option<String>,
    },
    /// More text of the open text block.
    Text(String),
    /// More of the open reasoning block.
    Reasoning(String),
    /// A tool call began.
    ToolCallStarted {
        /// Tells calls of one answer apart while they stream.
        index: u32,
        /// The call's id.
        id: CallId,
        /// The tool's name.
        name: Arc<str>,
    },
    /// More argument text of a call.
    ToolArguments {
        /// The call, as in [`ToolCallStarted`](Self::ToolCallStarted).
        index: u32,
        /// A piece of JSON text, cut anywhere.
        delta: String,
    },
    /// A block is whole. This is what counts; the deltas before it were a preview of it.
    BlockDone(Block),
    /// Counts so far; a later event replaces an earlier one field by field.
    Usage(Usage),
    /// The answer is over.
    Stop {
        /// Why, in our words.
        reason: StopReason,
        /// Why, in the provider's word.
        raw: Option<String>,
    },
}
