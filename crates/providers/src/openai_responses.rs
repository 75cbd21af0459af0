//! OpenAI's Responses API, used without state on the server.

mod encode;
mod decode;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haversack_agent_core::message::Message;
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, ResponseFormat, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::HttpClient;
use serde_json::{Map, Value, json};

use crate::api::{Api, Form, Framing, issuer};
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::error;
use crate::json::float;
use crate::names;
use crate::openai_chat::effort_word;
use crate::openai_responses::decode::ResponsesAccumulator;
use crate::openai_responses::encode::Writer;
use crate::profile::Profile;
use crate::provider::Provider;
use crate::schema;

/// A model behind OpenAI's Responses API, at OpenAI or at a server that imitates it.
///
/// Nothing is stored at the server (`store: false`): the history is the host's. Reasoning comes sealed
/// (`encrypted_content`) and goes back in its place, so that a model goes on thinking where it was after a tool call.
/// The base address ends where `/responses` begins, so at most servers in `/v1`.
///
/// Two refusals are followed once: a model that does not reason wants no `include`, and seals that the server can no
/// longer open are left out. Stop sequences do not exist in this API; a request with some is refused here.
pub type OpenAiResponses = Provider<ResponsesApi>;

/// The API behind [`OpenAiResponses`].
#[derive(Debug)]
pub struct ResponsesApi {
    strict: bool,
    summaries: bool,
    /// Whether the server is OpenAI's own, which finds sealed reasoning only by its seal.
    is_openai: bool,
    /// The server refused to seal reasoning: this model has none.
    has_no_reasoning: AtomicBool,
}

impl Clone for ResponsesApi {
    fn clone(&self) -> Self {
        let has_no_reasoning = AtomicBool::new(self.has_no_reasoning.load(Ordering::Relaxed));
        Self { strict: self.strict, summaries: self.summaries, is_openai: self.is_openai, has_no_reasoning }
    }
}

impl OpenAiResponses {
    /// A model at an address.
    pub fn new(http: impl HttpClient, base_url: impl AsRef<str>, model: impl Into<Arc<str>>) -> Self {
        let base_url = base_url.as_ref();
        let provider = Profile::for_base_url(base_url).provider;
        let is_openai = matches!(provider.as_str(), "openai" | "azure");
        let api = ResponsesApi {
            strict: false,
            summaries: true,
            is_openai,
            has_no_reasoning: AtomicBool::new(false),
        };
        Self::from_parts(http, base_url, ModelInfo::new(provider, model), api)
    }

    /// Marks tools and response formats as strict, where their schema can be brought into the strict subset.
    #[must_use]
    pub fn with_strict_schemas(self) -> Self {
        self.with_api(|api| api.strict = true)
    }

    /// Asks for no summaries of the reasoning. (OpenAI gives them to verified organisations only; without them a
    /// sealed reasoning block has no text.)
    #[must_use]
    pub fn without_reasoning_summaries(self) -> Self {
        self.with_api(|api| api.summaries = false)
    }
}

impl Model for OpenAiResponses {
    fn info(&self) -> ModelInfo {
        self.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        self.call(request)
    }
}

impl ResponsesApi {
    fn tool(&self, tool: &ToolSpec) -> Value {
        let strict = if self.strict { schema::strict(&tool.input_schema) } else { None };
        // Absent means true in this API: it has to be said.
        let is_strict = strict.is_some();
        json!({
            "type": "function",
            "name": names::on_wire(&tool.name),
            "description": &*tool.description,
            "parameters": strict.unwrap_or_else(|| schema::plain(&tool.input_schema)),
            "strict": is_strict,
        })
    }

    fn text_format(&self, format: &ResponseFormat) -> Value {
        let strict = if self.strict { schema::strict(&format.schema) } else { None };
        let is_strict = strict.is_some();
        let schema = strict.unwrap_or_else(|| (*format.schema).clone());
        json!({"format": {"type": "json_schema", "name": &*format.name, "strict": is_strict, "schema": schema}})
    }

    fn tool_fields(request: &ModelRequest, fields: &mut Map<String, Value>) {
        if request.tools.is_empty() {
            return;
        }
        let choice = match &request.tool_choice {
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => Some(json!({"type": "function", "name": names::on_wire(name)})),
            _ => None,
        };
        fields.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
        let parallel = request.options.parallel_tool_calls;
        fields.extend(parallel.map(|parallel| ("parallel_tool_calls".to_owned(), parallel.into())));
    }
}

impl Api for ResponsesApi {
    type Encoder<'a> = Writer;
    type Accumulator = ResponsesAccumulator;

    const NAME: &'static str = "responses";
    const FRAMING: Framing = Framing::Sse;
    const LIST: &'static str = "input";

    fn url(&self, endpoint: &Endpoint) -> String {
        format!("{}/responses", endpoint.base_url)
    }

    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>> {
        let options = &request.options;
        if !options.stop_sequences.is_empty() {
            return Err(error::invalid(format!(
                "{}: the Responses API has no stop sequences; use Chat Completions for them",
                endpoint.provider()
            )));
        }
        let mut fields = Map::new();
        fields.insert("model".into(), endpoint.model().into());
        fields.insert("stream".into(), endpoint.streaming.into());
        fields.insert("store".into(), false.into());
        if endpoint.streaming && self.is_openai {
            // Filler against measuring tokens by length, which costs a third of the bytes; TLS records are padded
            // by nobody, so hosts that need it set the field themselves.
            fields.insert("stream_options".into(), json!({"include_obfuscation": false}));
        }
        if !form.without_seals && !self.has_no_reasoning.load(Ordering::Relaxed) {
            fields.insert("include".into(), json!(["reasoning.encrypted_content"]));
        }
        if !request.system.is_empty() {
            fields.insert("instructions".into(), request.system_text().into());
        }
        if let Some(tokens) = options.max_output_tokens {
            fields.insert("max_output_tokens".into(), tokens.into());
        }
        for (name, value) in [("temperature", options.temperature), ("top_p", options.top_p)] {
            fields.extend(value.map(|value| (name.to_owned(), float(value))));
        }
        if let Some(effort) = options.reasoning {
            let mut reasoning = json!({"effort": effort_word(effort)});
            if let (true, Some(reasoning)) = (self.summaries, reasoning.as_object_mut()) {
                reasoning.insert("summary".into(), "auto".into());
            }
            fields.insert("reasoning".into(), reasoning);
        }
        fields.extend(request.response_format.as_ref().map(|f| ("text".to_owned(), self.text_format(f))));
        Self::tool_fields(request, &mut fields);
        Ok(fields)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], _marked: bool) -> Vec<u8> {
        let tools: Vec<Value> = tools.iter().map(|tool| self.tool(tool)).collect();
        Value::from(tools).to_string().into_bytes()
    }

    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, form: Form) -> Writer {
        let issuer = if form.without_seals { "".into() } else { issuer::<Self>(endpoint) };
        Writer { issuer, needs_seal: self.is_openai }
    }

    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> ResponsesAccumulator {
        let tools = Arc::clone(&request.tools);
        ResponsesAccumulator::new(issuer::<Self>(endpoint), tools, endpoint.limits.max_answer_bytes)
    }

    fn adapt(&self, _: &ModelRequest, error: &ModelError, form: Form) -> Option<Form> {
        if form.without_seals
            || !matches!(error.kind, ModelErrorKind::InvalidRequest { .. } | ModelErrorKind::NotFound)
        {
            return None;
        }
        let says = |text: &str| {
            error.message.to_ascii_lowercase().contains(text)
                || error.code.as_deref() == Some(text)
                || matches!(&error.kind, ModelErrorKind::InvalidRequest { param: Some(param) } if param == text)
        };
        let wants_no_include = says("encrypted content is not supported")
            || says("include")
            || says("reasoning.encrypted_content");
        if wants_no_include {
            self.has_no_reasoning.store(true, Ordering::Relaxed);
        }
        let lost_seals = says("invalid_encrypted_content")
            || says("encrypted content could not be")
            || (says("item with id") && says("not found"));
        (wants_no_include || lost_seals).then_some(Form { without_seals: true, ..form })
    }
}

impl EncodeMessage for Writer {
    fn encode(&self, messages: &[Arc<Message>], index: usize, _marked: bool, out: &mut Vec<u8>) {
        if let Some(message) = messages.get(index) {
            self.write(message, out);
        }
    }
}
