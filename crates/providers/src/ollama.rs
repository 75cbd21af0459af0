//! Ollama's own API: the one that knows `num_ctx`, `keep_alive` and `think`.

pub(crate) mod decode;
mod encode;

use std::sync::Arc;
use std::time::Duration;

use haversack_agent_core::message::Message;
use haversack_agent_core::model::{
    Model, ModelError, ModelInfo, ModelRequest, ModelStream, PromptSection, ReasoningEffort, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::HttpClient;
use serde_json::{Map, Value, json};

use crate::api::{self, Api, Form, Framing};
use crate::call::list;
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::json as write;
use crate::listing::{self, ListedModel, Page};
use crate::ollama::decode::Decoder;
use crate::provider::Provider;

/// Where Ollama listens on this machine unless told otherwise.
pub(crate) const BASE_URL: &str = "http://127.0.0.1:11434";

/// Ollama's own API.
///
/// The OpenAI shape that Ollama also has ignores the window's size, and cuts a prompt that is longer without a word, the
/// instructions and tools first. So a host that runs an agent on Ollama wants this one, and sets the window:
///
/// ```
/// # fn doc(http: impl haversack_http::HttpClient) {
/// use std::time::Duration;
/// use haversack_providers::{KeepAlive, Ollama};
///
/// let model = Ollama::new(http, "http://127.0.0.1:11434", "qwen3:8b")
///     .with_num_ctx(32_768)
///     .with_keep_alive(KeepAlive::For(Duration::from_secs(1800)));
/// # drop(model);
/// # }
/// ```
///
/// # What Ollama does not have
///
/// There is no choice of tools: without tools being allowed none are sent, a single tool that is asked for is the only one sent,
/// and a call that is merely required is up to the model.
pub type Ollama = Provider<OllamaApi>;

/// The API behind [`Ollama`], with its own settings.
#[derive(Clone, Debug, Default)]
pub struct OllamaApi {
    num_ctx: Option<u32>,
    keep_alive: Option<KeepAlive>,
    allows_truncation: bool,
}

/// How long a model stays in memory after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeepAlive {
    /// This long, in whole seconds. Zero unloads it at once.
    For(Duration),
    /// Until it is unloaded or the server ends.
    Forever,
}

impl KeepAlive {
    fn value(self) -> Value {
        match self {
            Self::For(time) => time.as_secs().into(),
            Self::Forever => (-1).into(),
        }
    }
}

impl Provider<OllamaApi> {
    /// A model of an Ollama server. The address is the part before `/api/chat`.
    pub fn new(http: impl HttpClient, base_url: impl AsRef<str>, model: impl Into<Arc<str>>) -> Self {
        let info = ModelInfo::new("ollama", model);
        Self::from_parts(http, base_url.as_ref(), info, OllamaApi::default())
    }

    /// Sets the size of the window in tokens, also as the model's known window. Without it the server takes its own default,
    /// which depends on its memory and is small. A change makes the server load the model again.
    #[must_use]
    pub fn with_num_ctx(self, tokens: u32) -> Self {
        self.with_api(|api| api.num_ctx = Some(tokens)).with_context_window(u64::from(tokens))
    }

    /// Sets how long the model stays in memory after a call; five minutes unless the server is set otherwise.
    #[must_use]
    pub fn with_keep_alive(self, keep_alive: KeepAlive) -> Self {
        self.with_api(|api| api.keep_alive = Some(keep_alive))
    }

    /// Lets the server cut a prompt that is too long, and forget its start while it writes. Off unless set: then a
    /// prompt that does not fit is an error of kind `ContextOverflow`, on servers that know the switch.
    #[must_use]
    pub fn with_truncation(self, allowed: bool) -> Self {
        self.with_api(|api| api.allows_truncation = allowed)
    }
}

impl Provider<OllamaApi> {
    /// Asks the server what this model can do. A host that sees no tools there saves itself a call that fails.
    ///
    /// # Errors
    ///
    /// As a call has them; kind `NotFound` when the server does not have the model.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the request up; nothing else happens.
    pub async fn details(&self) -> Result<OllamaDetails, ModelError> {
        let url = format!("{}/api/show", root(&self.endpoint));
        let question = json!({"model": self.endpoint.model()});
        let answer =
            list::ask(&*self.api, &self.endpoint, url, Some(&question)).await.map_err(|error| *error)?;
        Ok(OllamaDetails::read(&answer))
    }
}

/// What an Ollama server tells of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OllamaDetails {
    /// What it can do, in Ollama's words: `completion`, `tools`, `thinking`, `vision` and so on. Empty on servers that do
    /// not tell.
    pub capabilities: Vec<String>,
    /// Tokens that the model was made for. The server's window is smaller unless `num_ctx` says otherwise.
    pub context_length: Option<u64>,
}

impl OllamaDetails {
    fn read(answer: &Value) -> Self {
        let texts = answer.get("capabilities").and_then(Value::as_array).into_iter().flatten();
        let info = answer.get("model_info").and_then(Value::as_object);
        Self {
            capabilities: texts.filter_map(Value::as_str).map(str::to_owned).collect(),
            context_length: info
                .into_iter()
                .flatten()
                .find_map(|(key, value)| key.ends_with(".context_length").then(|| value.as_u64())?),
        }
    }

    /// Whether the model can do this.
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|has| has == capability)
    }
}

impl Model for Provider<OllamaApi> {
    fn info(&self) -> ModelInfo {
        Self::info(self)
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        self.call(request)
    }
}

impl Api for OllamaApi {
    type Encoder<'a> = Encoder;
    type Accumulator = Decoder;

    const NAME: &'static str = "ollama";
    const FRAMING: Framing = Framing::Lines;
    const LIST: &'static str = "messages";

    fn url(&self, endpoint: &Endpoint) -> String {
        format!("{}/api/chat", root(endpoint))
    }

    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        _form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("model", endpoint.model().into());
        // Streaming is what the server does when nothing is said, so it is always said.
        set("stream", endpoint.streaming.into());
        if let Some(effort) = request.options.reasoning {
            set("think", think(effort, endpoint.model()));
        }
        if let Some(format) = &request.response_format {
            set("format", (*format.schema).clone());
        }
        if let Some(keep_alive) = self.keep_alive {
            set("keep_alive", keep_alive.value());
        }
        if !self.allows_truncation {
            set("truncate", false.into());
            set("shift", false.into());
        }
        let options = self.options(request);
        if !options.is_empty() {
            set("options", options.into());
        }
        match &request.tool_choice {
            ToolChoice::None if !request.tools.is_empty() => {
                set("tools", Value::Array(Vec::new()));
            }
            ToolChoice::Tool(name) => {
                let only: Vec<_> = request.tools.iter().filter(|tool| tool.name == *name).cloned().collect();
                if let Ok(only) = serde_json::from_slice(&encode::tools(&only)) {
                    set("tools", only);
                }
            }
            _ => {}
        }
        Ok(fields)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], _marked: bool) -> Vec<u8> {
        encode::tools(tools)
    }

    fn opening(&self, system: &[PromptSection]) -> Vec<u8> {
        let text = system.iter().map(|s| &*s.text).collect::<Vec<_>>().join("\n\n");
        if text.trim().is_empty() { Vec::new() } else { [b",", &*encode::system(&text)].concat() }
    }

    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, _form: Form) -> Encoder {
        Encoder { issuer: api::issuer::<Self>(endpoint) }
    }

    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> Decoder {
        Decoder::new(
            api::issuer::<Self>(endpoint),
            endpoint.limits.max_answer_bytes,
            Arc::clone(&request.tools),
        )
    }

    fn list_url(&self, endpoint: &Endpoint, _from: Option<&str>) -> String {
        format!("{}/api/tags", root(endpoint))
    }

    fn list_page(&self, body: &Value) -> Page {
        Page::read(body, "models", listed)
    }
}

/// The address of the server, which may have been given with the folder of its API.
fn root(endpoint: &Endpoint) -> &str {
    let base = &endpoint.base_url;
    base.strip_suffix("/api").unwrap_or(base)
}

/// A model of `/api/tags`. It does not tell the window; `num_ctx` decides that anyway.
fn listed(model: &Value) -> Option<ListedModel> {
    let id = listing::text(model, "model").or_else(|| listing::text(model, "name"))?;
    Some(ListedModel { id, name: listing::text(model, "name"), ..ListedModel::default() })
}

impl OllamaApi {
    fn options(&self, request: &ModelRequest) -> Map<String, Value> {
        let asked = &request.options;
        let stop = Some(&asked.stop_sequences).filter(|stop| !stop.is_empty());
        let options = [
            ("num_ctx", self.num_ctx.map(Value::from)),
            ("num_predict", asked.max_output_tokens.map(Value::from)),
            ("temperature", asked.temperature.map(write::float)),
            ("top_p", asked.top_p.map(write::float)),
            ("stop", stop.map(|stop| stop.clone().into())),
        ];
        options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Most models take a yes or no; gpt-oss thinks always and wants a level.
fn think(effort: ReasoningEffort, model: &str) -> Value {
    let wants_level = model.contains("gpt-oss");
    match effort {
        ReasoningEffort::Off => false.into(),
        _ if !wants_level => true.into(),
        ReasoningEffort::Minimal | ReasoningEffort::Low => "low".into(),
        ReasoningEffort::High => "high".into(),
        _ => "medium".into(),
    }
}

/// Writes messages, each by itself.
#[derive(Debug)]
pub(crate) struct Encoder {
    issuer: Arc<str>,
}

impl EncodeMessage for Encoder {
    fn encode(&self, messages: &[Arc<Message>], index: usize, _marked: bool, out: &mut Vec<u8>) {
        let written =
            messages.get(index).map(|message| encode::message(message, &self.issuer)).unwrap_or_default();
        if !written.is_empty() {
            out.push(b',');
            out.extend_from_slice(&written);
        }
    }
}

const _: () = {
    const fn shareable<T: Send + Sync>() {}
    shareable::<Ollama>();
};
