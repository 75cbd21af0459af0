//! What came of a call, as one JSON object in the words of the provider's own API.

use haversack_agent_core::message::{Block, ToolCall};
use haversack_agent_core::model::{ModelError, ModelErrorKind, ModelEvent};
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Value, json};

/// The APIs that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiName {
    /// OpenAI Chat Completions.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl ApiName {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];
}

/// Collects the events of one call.
#[derive(Debug)]
pub struct Outcome {
    api: ApiName,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    stop: Option<(StopReason, Option<String>)>,
    error: Option<ModelError>,
}

/// What the blocks of an answer hold, each kind joined.
#[derive(Default)]
struct Content {
    text: String,
    reasoning: String,
    refusal: Option<String>,
    calls: Vec<Value>,
    order: Vec<String>,
}

impl Outcome {
    /// Nothing yet, of a call to this API.
    pub fn new(api: ApiName) -> Self {
        Self { api, blocks: Vec::new(), usage: None, stop: None, error: None }
    }

    /// Takes an event. Only blocks that are whole count; deltas were a preview of them.
    pub fn add(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::BlockDone(block) => self.blocks.push(block),
            ModelEvent::Usage(usage) => self.usage.get_or_insert_default().merge(usage),
            ModelEvent::Stop { reason, raw } => self.stop = Some((reason, raw)),
            _ => {}
        }
    }

    /// Takes the failure that ended the call.
    pub fn fail(&mut self, error: ModelError) {
        self.error = Some(error);
    }

    fn content(&self) -> Content {
        let mut content = Content::default();
        for (at, block) in self.blocks.iter().enumerate() {
            let refused = self.blocks.get(at + 1).is_some_and(is_refusal_mark);
            match block {
                Block::Text { text } if refused => content.refusal.get_or_insert_default().push_str(text),
                Block::Text { text } => content.text.push_str(text),
                Block::Reasoning(reasoning) => content.reasoning.push_str(&reasoning.text),
                Block::ToolCall(call) => content.calls.push(call_of(call)),
                _ => {}
            }
            // On Chat's wire a refusal is a field and no content.
            if refused && self.api != ApiName::OpenAiResponses {
                continue;
            }
            let Some(kind) = self.kind(block) else { continue };
            // Two blocks of one kind in a row are one, on wires that have no marks between blocks.
            let has_marks = matches!(self.api, ApiName::Anthropic | ApiName::OpenAiResponses);
            if has_marks || kind == "tool_use" || content.order.last() != Some(&kind) {
                content.order.push(kind);
            }
        }
        content
    }

    /// What a block is called by its API; some of ours are no block there.
    fn kind(&self, block: &Block) -> Option<String> {
        let kind = match block {
            Block::Text { .. } => "text",
            Block::Reasoning(reasoning) => match self.api {
                ApiName::Anthropic => {
                    let data = reasoning.seal.as_ref().map(|seal| &seal.data);
                    let is_redacted = data.is_some_and(|data| data.get("redacted_thinking").is_some());
                    if is_redacted { "redacted_thinking" } else { "thinking" }
                }
                ApiName::OpenAiChat | ApiName::Ollama if reasoning.text.is_empty() => return None,
                _ => "reasoning",
            },
            Block::ToolCall(_) => "tool_use",
            Block::Image(_) => "inlineData",
            block if is_refusal_mark(block) => return None,
            Block::Opaque(opaque) if self.api == ApiName::Gemini => {
                let kinds = ["executableCode", "codeExecutionResult", "inlineData"];
                kinds.into_iter().find(|kind| opaque.raw.get(*kind).is_some())?
            }
            Block::Opaque(opaque) => opaque.raw["type"].as_str().filter(|kind| *kind != "text")?,
            _ => return None,
        };
        Some(kind.to_owned())
    }

    /// The object.
    pub fn to_json(&self) -> Value {
        let content = self.content();
        let (stop, stop_raw) = self.stop_words(content.refusal.is_some());
        json!({
            "text": content.text,
            "reasoning": content.reasoning,
            "refusal": content.refusal,
            "tool_calls": content.calls,
            "stop_raw": stop_raw,
            "stop": stop,
            "usage": self.usage.map(|usage| usage_of(self.api, usage)),
            "block_order": content.order,
            "error": self.error.as_ref().map(error_of),
        })
    }

    fn stop_words(&self, refused: bool) -> (Option<&'static str>, Option<String>) {
        let Some((reason, raw)) = &self.stop else { return self.stop_beside_error() };
        let word = match reason {
            // A refusal is an answer that was withheld, to us; the wire calls it an ordinary end.
            StopReason::Filtered if refused && matches!(raw.as_deref(), Some("stop" | "completed")) => {
                Some("end")
            }
            StopReason::EndTurn => raw.as_deref().filter(|raw| !raw.is_empty()).map(|_| "end"),
            StopReason::ToolUse => Some("tool_use"),
            StopReason::MaxTokens => Some("max_tokens"),
            StopReason::StopSequence => Some("stop_sequence"),
            StopReason::Filtered => Some("filtered"),
            StopReason::Pause => Some("pause"),
            StopReason::ContextWindow => Some("context_window"),
            StopReason::Other(word) if word == "error" => Some("error"),
            _ => Some("other"),
        };
        // One vocabulary for both of OpenAI's APIs: a completed response stopped.
        let is_completed = self.api == ApiName::OpenAiResponses && raw.as_deref() == Some("completed");
        (word, if is_completed { Some("stop".into()) } else { raw.clone() })
    }

    /// A stop that the server reported together with an error.
    fn stop_beside_error(&self) -> (Option<&'static str>, Option<String>) {
        let reply = self.error.as_ref().and_then(|error| error.reply.as_deref());
        let body =
            reply.and_then(|reply| serde_json::from_str::<Value>(&reply.body).ok()).unwrap_or_default();
        let key = if self.api == ApiName::OpenAiResponses { "status" } else { "finish_reason" };
        match body.get(key).and_then(Value::as_str) {
            Some("error") => (Some("error"), Some("error".into())),
            Some(word) if self.api == ApiName::OpenAiResponses => (Some("other"), Some(word.into())),
            _ => (None, None),
        }
    }
}

/// What says that the text before it is a refusal.
fn is_refusal_mark(block: &Block) -> bool {
    matches!(block, Block::Opaque(opaque) if opaque.raw["type"] == "refusal")
}

fn call_of(call: &ToolCall) -> Value {
    // What is no object is kept as the model wrote it; it may be JSON of another kind.
    let written = call.malformed.as_deref().map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
    json!({
        "id": call.wire_id.as_deref().unwrap_or(call.id.as_str()),
        "name": &*call.name,
        "arguments": written.unwrap_or_else(|| call.arguments.clone()),
        "arguments_valid": call.malformed.is_none(),
    })
}

/// Usage as the provider counts it: ours holds the whole prompt and the whole answer, whoever counts.
fn usage_of(api: ApiName, usage: Usage) -> Value {
    match api {
        ApiName::Anthropic => {
            let cached = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
            json!({
                "input": usage.input.map(|input| input.saturating_sub(cached)),
                "output": usage.output,
                "cached": usage.cached,
                "cache_write": usage.cache_write,
            })
        }
        ApiName::Gemini => {
            // Thoughts alone leave the count of the answer open.
            let thoughts = usage.reasoning.unwrap_or(0);
            let output = usage.output.map(|output| output.saturating_sub(thoughts));
            let output = output.filter(|output| *output > 0 || thoughts == 0);
            json!({"input": usage.input, "output": output, "cached": usage.cached, "reasoning": usage.reasoning})
        }
        ApiName::Ollama => json!({"input": usage.input, "output": usage.output}),
        _ => {
            json!({"input": usage.input, "output": usage.output, "cached": usage.cached, "reasoning": usage.reasoning})
        }
    }
}

fn error_of(error: &ModelError) -> Value {
    let Some(reply) = &error.reply else {
        // Nothing that a server said: our own word and text.
        let kind = match &error.kind {
            ModelErrorKind::Timeout(_) => "timeout".to_owned(),
            kind => format!("{kind:?}").split([' ', '(']).next().unwrap_or_default().to_lowercase(),
        };
        return json!({"status": error.status, "type": kind, "code": null, "message": error.message});
    };
    json!({
        "status": error.status,
        "type": error.error_type,
        "code": reply.code,
        "message": reply.message,
    })
}
