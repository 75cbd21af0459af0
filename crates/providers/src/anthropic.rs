//! Anthropic Messages, and the servers that imitate it.

mod wire;
mod draft;
mod decode;
mod encode;
mod thinking;

use std::sync::Arc;

use haversack_agent_core::message::{Message, Role};
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::{HeaderName, HeaderValue, HttpClient, Secret, header};
use serde_json::{Map, Value, json};

use crate::anthropic::decode::Decoder;
use crate::anthropic::encode::Voice;
pub use crate::anthropic::thinking::ThinkingForm;
use crate::api::{self, Api, Form, Framing};
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::json as write;
use crate::listing::{self, Page};
use crate::names;
use crate::provider::Provider;

/// Where Anthropic serves its API.
pub(crate) const BASE_URL: &str = "https://api.anthropic.com";

/// The version that every imitation understands too. A newer one can be set.
const VERSION: &str = "2023-06-01";

/// Tokens of an answer when neither the request nor the model's info says how many: the API wants a number. Every
/// model of the last generations can write as much.
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// Cache markers that one request may have.
const MAX_MARKERS: usize = 4;

/// Anthropic Messages.
///
/// ```
/// # fn doc(http: impl haversack_http::HttpClient) {
/// use haversack_agent_core::model::Model;
/// use haversack_providers::{Anthropic, CacheTtl};
///
/// let model = Anthropic::new(http, "https://api.anthropic.com", "claude-sonnet-4-5")
///     .with_key("sk-ant-…")
///     .with_cache_ttl(CacheTtl::OneHour);
/// # let _ = model.info();
/// # }
/// ```
pub type Anthropic = Provider<AnthropicMessages>;

/// The API behind [`Anthropic`], with its own settings.
#[derive(Clone, Debug)]
pub struct AnthropicMessages {
    version: HeaderValue,
    bearer: bool,
    ttl: CacheTtl,
    thinking: ThinkingForm,
    strict_tools: bool,
    foreign_reasoning_as_text: bool,
}

impl Default for AnthropicMessages {
    fn default() -> Self {
        Self {
            version: HeaderValue::from_static(VERSION),
            bearer: false,
            ttl: CacheTtl::default(),
            thinking: ThinkingForm::default(),
            strict_tools: false,
            foreign_reasoning_as_text: false,
        }
    }
}

/// How long Anthropic keeps a cached prefix that is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheTtl {
    /// Five minutes. Writing costs a quarter more than plain input.
    #[default]
    FiveMinutes,
    /// An hour. Writing costs twice as much as plain input.
    OneHour,
}

impl CacheTtl {
    /// The marker's value.
    fn control(self) -> &'static str {
        match self {
            Self::FiveMinutes => r#"{"type":"ephemeral"}"#,
            Self::OneHour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}

impl Provider<AnthropicMessages> {
    /// A model behind Anthropic's API or an imitation of it. The address is the part before `/v1/messages`; one that
    /// ends in `/v1` is fine too.
    pub fn new(http: impl HttpClient, base_url: impl AsRef<str>, model: impl Into<Arc<str>>) -> Self {
        let info = ModelInfo::new("anthropic", model);
        Self::from_parts(http, base_url.as_ref(), info, AnthropicMessages::default())
    }

    /// Sets the header `anthropic-version`: `2023-06-01` unless set, which every imitation knows. What HTTP cannot
    /// carry is ignored.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        self.with_api(|api| {
            if let Ok(version) = HeaderValue::from_str(version) {
                api.version = version;
            }
        })
    }

    /// Sends the key as `Authorization: Bearer` instead of `x-api-key`, as newer SDKs and many gateways do.
    #[must_use]
    pub fn with_bearer_key(self, key: impl Into<Secret>) -> Self {
        self.with_api(|api| api.bearer = true).with_key(key)
    }

    /// Sets how long a marked prefix stays in the cache. What is marked is the request's to say.
    #[must_use]
    pub fn with_cache_ttl(self, ttl: CacheTtl) -> Self {
        self.with_api(|api| api.ttl = ttl)
    }

    /// Sets how thinking is asked for, where the model's name does not tell it.
    #[must_use]
    pub fn with_thinking_form(self, form: ThinkingForm) -> Self {
        self.with_api(|api| api.thinking = form)
    }

    /// Has the server hold the model to the tools' schemas. The schemas then have to keep to its subset.
    #[must_use]
    pub fn with_strict_tools(self, strict: bool) -> Self {
        self.with_api(|api| api.strict_tools = strict)
    }

    /// Sends the readable reasoning of other models as text instead of leaving it out.
    #[must_use]
    pub fn with_foreign_reasoning_as_text(self, as_text: bool) -> Self {
        self.with_api(|api| api.foreign_reasoning_as_text = as_text)
    }
}

impl Model for Provider<AnthropicMessages> {
    fn info(&self) -> ModelInfo {
        Self::info(self)
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        self.call(request)
    }
}

impl Api for AnthropicMessages {
    type Encoder<'a> = Encoder;
    type Accumulator = Decoder;

    const NAME: &'static str = "messages";
    const FRAMING: Framing = Framing::Sse;
    const LIST: &'static str = "messages";

    fn url(&self, endpoint: &Endpoint) -> String {
        let base = &endpoint.base_url;
        format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
    }

    fn authorize(&self, key: &Secret) -> (HeaderName, String) {
        if self.bearer {
            (header::AUTHORIZATION, format!("Bearer {}", key.expose()))
        } else {
            (HeaderName::from_static("x-api-key"), key.expose().to_owned())
        }
    }

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        vec![(HeaderName::from_static("anthropic-version"), self.version.clone())]
    }

    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>> {
        let options = &request.options;
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("model", endpoint.model().into());
        let thinking = self.thinking.of(endpoint, request, form.without_seals);
        set("max_tokens", thinking.max_tokens.into());
        if let Some(system) =
            encode::system(&request.system, request.cache.prefix.then(|| self.ttl.control()))
        {
            set("system", system);
        }
        if let Some(choice) = tool_choice(request) {
            set("tool_choice", choice);
        }
        if !options.stop_sequences.is_empty() {
            set("stop_sequences", options.stop_sequences.clone().into());
        }
        // With thinking on, the API refuses both.
        if !thinking.is_on() {
            if let Some(temperature) = options.temperature {
                set("temperature", write::float(temperature));
            }
            if let Some(top_p) = options.top_p {
                set("top_p", write::float(top_p));
            }
        }
        if let Some(value) = thinking.field {
            set("thinking", value);
        }
        let mut output = Map::new();
        if let Some(effort) = thinking.effort {
            output.insert("effort".to_owned(), effort.into());
        }
        if let Some(format) = &request.response_format {
            output.insert("format".to_owned(), json!({"type": "json_schema", "schema": *format.schema}));
        }
        if !output.is_empty() {
            set("output_config", output.into());
        }
        if endpoint.streaming {
            set("stream", true.into());
        }
        Ok(fields)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], marked: bool) -> Vec<u8> {
        encode::tools(tools, marked.then(|| self.ttl.control()), self.strict_tools)
    }

    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, form: Form) -> Encoder {
        let issuer = if form.without_seals { None } else { Some(api::issuer::<Self>(endpoint)) };
        let voice = Voice { issuer, foreign_reasoning_as_text: self.foreign_reasoning_as_text };
        Encoder { voice, cache_control: self.ttl.control() }
    }

    fn closing(&self, endpoint: &Endpoint, request: &ModelRequest, form: Form, out: &mut Vec<u8>) {
        if self.encoder(endpoint, form).role_before(&request.messages, request.messages.len()).is_some() {
            out.extend_from_slice(b"]}");
        }
    }

    fn marks<'a>(&self, request: &'a ModelRequest) -> &'a [usize] {
        // Two are taken by the tools and the system prompt; of the rest the last ones reach furthest.
        let taken = if request.cache.prefix { 2 } else { 0 };
        let marks = &*request.cache.messages;
        marks.get(marks.len().saturating_sub(MAX_MARKERS - taken)..).unwrap_or_default()
    }

    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> Decoder {
        Decoder::new(
            api::issuer::<Self>(endpoint),
            endpoint.limits.max_answer_bytes,
            Arc::clone(&request.tools),
        )
    }

    fn list_url(&self, endpoint: &Endpoint, from: Option<&str>) -> String {
        let base = &endpoint.base_url;
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let from = from.map(|id| format!("&after_id={}", listing::query(id))).unwrap_or_default();
        format!("{base}/v1/models?limit=1000{from}")
    }

    fn list_page(&self, body: &Value) -> Page {
        let mut page = Page::read(body, "data", listing::openai_shape);
        if body.get("has_more") == Some(&Value::Bool(true)) {
            page.next = listing::text(body, "last_id");
        }
        page
    }

    /// A signature that the server cannot verify is a refusal for good: the history goes out once without thinking.
    fn adapt(&self, _request: &ModelRequest, error: &ModelError, form: Form) -> Option<Form> {
        let is_about_thinking = matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
            && error.message.contains("thinking")
            && (error.message.contains("signature") || error.message.contains("cannot be modified"));
        (is_about_thinking && !form.without_seals).then_some(Form { without_seals: true, ..form })
    }
}

/// Which tools may be called. Left out for what is the default anyway.
fn tool_choice(request: &ModelRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let one_at_a_time = request.options.parallel_tool_calls == Some(false);
    let mut choice = match &request.tool_choice {
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": names::on_wire(name)}),
        _ if one_at_a_time => json!({"type": "auto"}),
        _ => return None,
    };
    if let (true, Value::Object(choice)) = (one_at_a_time, &mut choice) {
        choice.insert("disable_parallel_tool_use".to_owned(), true.into());
    }
    Some(choice)
}

/// Writes messages. Neighbours of one role become one: a message is left open for the next to be added.
#[derive(Debug)]
pub(crate) struct Encoder {
    voice: Voice,
    cache_control: &'static str,
}

impl Encoder {
    /// The role of the last message before this one of which something is sent.
    fn role_before(&self, messages: &[Arc<Message>], index: usize) -> Option<&'static str> {
        let before = messages.get(..index).unwrap_or_default();
        before
            .iter()
            .rev()
            .find(|message| encode::has_blocks(message, &self.voice))
            .map(|message| role(message))
    }
}

impl EncodeMessage for Encoder {
    fn encode(&self, messages: &[Arc<Message>], index: usize, marked: bool, out: &mut Vec<u8>) {
        let Some(message) = messages.get(index) else { return };
        let blocks = encode::message(message, &self.voice, marked.then_some(self.cache_control));
        if blocks.is_empty() {
            return;
        }
        let role = role(message);
        match self.role_before(messages, index) {
            Some(before) if before == role => out.push(b','),
            before => {
                let closing = if before.is_some() { "]}" } else { "" };
                out.extend_from_slice(format!("{closing},{{\"role\":\"{role}\",\"content\":[").as_bytes());
            }
        }
        out.extend_from_slice(&blocks);
    }
}

fn role(message: &Message) -> &'static str {
    if message.role == Role::Assistant { "assistant" } else { "user" }
}

const _: () = {
    const fn shareable<T: Send + Sync>() {}
    shareable::<Anthropic>();
};
