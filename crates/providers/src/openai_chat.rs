//! OpenAI's Chat Completions, and the many servers that imitate it.

mod content;
mod encode;
mod wire;
mod reasoning;
mod rescue;
mod decode;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haversack_agent_core::message::Message;
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, PromptSection, ReasoningEffort,
    ResponseFormat, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::HttpClient;
use serde_json::{Map, Value, json};

use crate::api::{Api, Form, Framing, issuer};
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::json::float;
use crate::names;
use crate::openai_chat::decode::ChatAccumulator;
use crate::openai_chat::encode::Writer;
use crate::profile::{MaxTokensField, Profile, ReasoningParam, SystemRole, ToolChoiceForm};
use crate::provider::Provider;
use crate::schema;

/// A model behind OpenAI's Chat Completions API, at OpenAI or at one of the many servers that imitate it.
///
/// How the server differs from OpenAI is in its [`Profile`], found by the address and settable. The base address ends
/// where `/chat/completions` begins, so at most servers in `/v1`.
///
/// ```
/// # use haversack_http::{HttpClient, HttpError, HttpRequest, HttpResponse, StatusCode};
/// # #[derive(Debug)]
/// # struct Canned;
/// # #[async_trait::async_trait]
/// # impl HttpClient for Canned {
/// #     async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
/// #         let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello!\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// #         Ok(HttpResponse::new(StatusCode::OK, body))
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), haversack_agent_core::model::ModelError> {
/// use futures_util::TryStreamExt;
/// use haversack_agent_core::message::Message;
/// use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
/// use haversack_providers::OpenAiChat;
///
/// # let http = Canned;
/// // let http = haversack_http::ReqwestClient::new()?;
/// let model = OpenAiChat::new(http, "http://127.0.0.1:8080/v1", "qwen3");
/// let request = ModelRequest::new([Message::user("Say hello.")].into_iter().collect());
/// let mut answer = String::new();
/// let mut events = model.stream(request);
/// while let Some(event) = events.try_next().await? {
///     if let ModelEvent::Text(delta) = event {
///         answer.push_str(&delta);
///     }
/// }
/// assert_eq!(answer, "Hello!");
/// # Ok(())
/// # }
/// ```
pub type OpenAiChat = Provider<ChatApi>;

/// The API behind [`OpenAiChat`].
#[derive(Debug)]
pub struct ChatApi {
    profile: Profile,
    /// The server refused the profile's name of the output limit and wants the other one.
    wants_other_limit: AtomicBool,
}

impl Clone for ChatApi {
    fn clone(&self) -> Self {
        Self {
            profile: self.profile.clone(),
            wants_other_limit: AtomicBool::new(self.wants_other_limit.load(Ordering::Relaxed)),
        }
    }
}

impl OpenAiChat {
    /// A model at an address. The profile is [`Profile::for_base_url`]'s.
    pub fn new(http: impl HttpClient, base_url: impl AsRef<str>, model: impl Into<Arc<str>>) -> Self {
        let base_url = base_url.as_ref();
        let profile = Profile::for_base_url(base_url);
        let info = ModelInfo::new(profile.provider.as_str(), model);
        Self::from_parts(http, base_url, info, ChatApi { profile, wants_other_limit: AtomicBool::new(false) })
    }

    /// Sets the profile, and with it the provider's name.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        let name = profile.provider.clone();
        self.with_provider_name(name).with_api(|api| api.profile = profile)
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.api.profile
    }
}

impl Model for OpenAiChat {
    fn info(&self) -> ModelInfo {
        self.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        self.call(request)
    }
}

impl ChatApi {
    fn limit_field(&self, form: Form) -> &'static str {
        let other = form.other_limit_field || self.wants_other_limit.load(Ordering::Relaxed);
        match (self.profile.max_tokens_field, other) {
            (MaxTokensField::MaxTokens, false) | (MaxTokensField::MaxCompletionTokens, true) => "max_tokens",
            (MaxTokensField::MaxCompletionTokens, false) | (MaxTokensField::MaxTokens, true) => {
                "max_completion_tokens"
            }
        }
    }

    fn tool_fields(&self, request: &ModelRequest, fields: &mut Map<String, Value>) {
        if request.tools.is_empty() {
            return;
        }
        match &request.tool_choice {
            ToolChoice::None => {
                fields.insert("tool_choice".into(), "none".into());
            }
            ToolChoice::Required => {
                fields.insert("tool_choice".into(), "required".into());
            }
            ToolChoice::Tool(name) => {
                let alone = self.profile.tool_choice == ToolChoiceForm::RequiredAlone;
                let choice = if alone {
                    let only: Vec<_> = request.tools.iter().filter(|tool| tool.name == *name).collect();
                    fields.insert("tools".into(), only.into_iter().map(|tool| self.tool(tool)).collect());
                    "required".into()
                } else {
                    json!({"type": "function", "function": {"name": names::on_wire(name)}})
                };
                fields.insert("tool_choice".into(), choice);
            }
            _ => {}
        }
        if let (Some(parallel), true) =
            (request.options.parallel_tool_calls, self.profile.send_parallel_tool_calls)
        {
            fields.insert("parallel_tool_calls".into(), parallel.into());
        }
    }

    fn tool(&self, tool: &ToolSpec) -> Value {
        let strict = if self.profile.send_strict { schema::strict(&tool.input_schema) } else { None };
        let is_strict = strict.is_some();
        let parameters = strict.unwrap_or_else(|| schema::plain(&tool.input_schema));
        let mut function = json!({
            "name": names::on_wire(&tool.name),
            "description": &*tool.description,
            "parameters": parameters,
        });
        if let (true, Some(function)) = (is_strict, function.as_object_mut()) {
            function.insert("strict".into(), true.into());
        }
        json!({"type": "function", "function": function})
    }

    fn response_format(&self, format: &ResponseFormat) -> Value {
        let strict = if self.profile.send_strict { schema::strict(&format.schema) } else { None };
        let mut inner = Map::from_iter([("name".to_owned(), Value::from(&*format.name))]);
        if strict.is_some() {
            inner.insert("strict".into(), true.into());
        }
        inner.insert("schema".into(), strict.unwrap_or_else(|| (*format.schema).clone()));
        json!({"type": "json_schema", "json_schema": inner})
    }

    fn reasoning_field(&self, effort: ReasoningEffort) -> Option<(&'static str, Value)> {
        let is_on = effort != ReasoningEffort::Off;
        Some(match self.profile.reasoning_param {
            ReasoningParam::Nothing => return None,
            ReasoningParam::Effort => ("reasoning_effort", effort_word(effort).into()),
            ReasoningParam::Object => {
                let value = match effort {
                    ReasoningEffort::Tokens(tokens) => json!({"max_tokens": tokens}),
                    ReasoningEffort::Off => json!({"enabled": false}),
                    _ => json!({"effort": effort_word(effort)}),
                };
                ("reasoning", value)
            }
            ReasoningParam::Thinking => {
                ("thinking", json!({"type": if is_on { "enabled" } else { "disabled" }}))
            }
            ReasoningParam::EnableThinking => ("enable_thinking", is_on.into()),
            ReasoningParam::ChatTemplate => ("chat_template_kwargs", json!({"enable_thinking": is_on})),
        })
    }
}

/// The word for an effort. A number of tokens becomes the word that stands nearest to it.
pub(crate) fn effort_word(effort: ReasoningEffort) -> &'static str {
    /// Up to here a budget in tokens is low, and up to there medium: the borders that OpenRouter's budgets imply for
    /// a model of 16,384 output tokens.
    const LOW: u32 = 3_276;
    const MEDIUM: u32 = 8_192;
    match effort {
        ReasoningEffort::Off => "none",
        ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low | ReasoningEffort::Tokens(0..=LOW) => "low",
        ReasoningEffort::High => "high",
        ReasoningEffort::Tokens(tokens) if tokens > MEDIUM => "high",
        _ => "medium",
    }
}

impl Api for ChatApi {
    type Encoder<'a> = Writer<'a>;
    type Accumulator = ChatAccumulator;

    const NAME: &'static str = "chat";
    const FRAMING: Framing = Framing::Sse;
    const LIST: &'static str = "messages";

    fn url(&self, endpoint: &Endpoint) -> String {
        format!("{}/chat/completions", endpoint.base_url)
    }

    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>> {
        let options = &request.options;
        let mut fields = Map::new();
        fields.insert("model".into(), endpoint.model().into());
        fields.insert("stream".into(), endpoint.streaming.into());
        if endpoint.streaming && self.profile.send_stream_usage {
            fields.insert("stream_options".into(), json!({"include_usage": true}));
        }
        if let Some(tokens) = options.max_output_tokens {
            fields.insert(self.limit_field(form).into(), tokens.into());
        }
        for (name, value) in [("temperature", options.temperature), ("top_p", options.top_p)] {
            if let Some(value) = value {
                fields.insert(name.into(), float(value));
            }
        }
        if !options.stop_sequences.is_empty() {
            fields.insert("stop".into(), options.stop_sequences.clone().into());
        }
        if let Some((name, value)) = options.reasoning.and_then(|effort| self.reasoning_field(effort)) {
            fields.insert(name.into(), value);
        }
        if let Some(format) = &request.response_format {
            fields.insert("response_format".into(), self.response_format(format));
        }
        self.tool_fields(request, &mut fields);
        Ok(fields)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], _marked: bool) -> Vec<u8> {
        let tools: Vec<Value> = tools.iter().map(|tool| self.tool(tool)).collect();
        Value::from(tools).to_string().into_bytes()
    }

    fn opening(&self, system: &[PromptSection]) -> Vec<u8> {
        let text = system.iter().map(|section| &*section.text).collect::<Vec<_>>().join("\n\n");
        let role = match self.profile.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        let content = if self.profile.cache_control_parts {
            json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
        } else {
            text.into()
        };
        format!(",{}", json!({"role": role, "content": content})).into_bytes()
    }

    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, form: Form) -> Writer<'a> {
        let issuer = if form.without_seals { "".into() } else { issuer::<Self>(endpoint) };
        Writer { profile: &self.profile, issuer }
    }

    fn closing(&self, _: &Endpoint, request: &ModelRequest, _: Form, out: &mut Vec<u8>) {
        encode::close(&self.profile, &request.messages, out);
    }

    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> ChatAccumulator {
        ChatAccumulator::new(
            issuer::<Self>(endpoint),
            &self.profile,
            Arc::clone(&request.tools),
            endpoint.limits,
        )
    }

    fn adapt(&self, request: &ModelRequest, error: &ModelError, form: Form) -> Option<Form> {
        let refused = self.limit_field(form);
        let names_field = error.message.contains(refused)
            || matches!(&error.kind, ModelErrorKind::InvalidRequest { param: Some(param) } if param == refused);
        let is_refusal = matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
            && error.status.is_some_and(|status| (400..500).contains(&status))
            // A limit that is too large for the model is refused by name too, and has the right name.
            && ["unsupported", "not supported", "unknown", "unrecognized", "extra", "not permitted", "instead"]
                .iter()
                .any(|word| error.message.to_ascii_lowercase().contains(word));
        if request.options.max_output_tokens.is_none() || !names_field || !is_refusal {
            return None;
        }
        self.wants_other_limit.fetch_xor(true, Ordering::Relaxed);
        Some(Form { other_limit_field: self.wants_other_limit.load(Ordering::Relaxed), ..form })
    }
}

impl EncodeMessage for Writer<'_> {
    fn encode(&self, messages: &[Arc<Message>], index: usize, marked: bool, out: &mut Vec<u8>) {
        self.write(messages, index, marked, out);
    }
}
