//! Gemini's `generateContent`.

pub(crate) mod decode;
mod encode;
mod partial;
mod schema;

use std::sync::Arc;

use haversack_agent_core::message::{Message, Role};
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ModelStream, ReasoningEffort, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::{HeaderName, HttpClient, Secret};
use serde_json::{Map, Value, json};

use crate::api::{self, Api, Form, Framing};
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::gemini::decode::Decoder;
pub use crate::gemini::encode::SchemaForm;
use crate::gemini::encode::Voice;
use crate::json as write;
use crate::listing::{self, ListedModel, Page};
use crate::names;
use crate::provider::Provider;

/// Where Google serves its developer API.
pub(crate) const BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// Gemini.
///
/// ```
/// # fn doc(http: impl haversack_http::HttpClient) {
/// use haversack_providers::Gemini;
///
/// let model = Gemini::new(http, "https://generativelanguage.googleapis.com", "gemini-2.5-flash")
///     .with_key("AIza…");
/// # drop(model);
/// # }
/// ```
pub type Gemini = Provider<GeminiApi>;

/// The API behind [`Gemini`], with its own settings.
#[derive(Clone, Debug, Default)]
pub struct GeminiApi {
    schema: SchemaForm,
    hides_thoughts: bool,
    foreign_reasoning_as_text: bool,
}

impl Provider<GeminiApi> {
    /// A model behind Google's developer API, Vertex, or an imitation. The address is the part before `/v1beta/models/…`;
    /// one that names a version already, such as Vertex's `…/v1/projects/p/locations/l/publishers/google`, is the part
    /// before `/models/…`.
    pub fn new(http: impl HttpClient, base_url: impl AsRef<str>, model: impl Into<Arc<str>>) -> Self {
        let info = ModelInfo::new("gemini", model);
        Self::from_parts(http, base_url.as_ref(), info, GeminiApi::default())
    }

    /// Sets how tools' schemas are written, for endpoints that do not take JSON Schema.
    #[must_use]
    pub fn with_schema_form(self, form: SchemaForm) -> Self {
        self.with_api(|api| api.schema = form)
    }

    /// Leaves thoughts out of the answers. They are asked for when a request asks for reasoning, unless this is set.
    #[must_use]
    pub fn without_thoughts(self) -> Self {
        self.with_api(|api| api.hides_thoughts = true)
    }

    /// Sends the readable reasoning of other models as text instead of leaving it out.
    #[must_use]
    pub fn with_foreign_reasoning_as_text(self, as_text: bool) -> Self {
        self.with_api(|api| api.foreign_reasoning_as_text = as_text)
    }
}

impl Model for Provider<GeminiApi> {
    fn info(&self) -> ModelInfo {
        Self::info(self)
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        self.call(request)
    }
}

impl Api for GeminiApi {
    type Encoder<'a> = Encoder;
    type Accumulator = Decoder;

    const NAME: &'static str = "gemini";
    const FRAMING: Framing = Framing::Sse;
    const LIST: &'static str = "contents";

    fn url(&self, endpoint: &Endpoint) -> String {
        let base = models_url(&endpoint.base_url);
        let model = endpoint.model();
        let model = model.strip_prefix("models/").unwrap_or(model);
        if endpoint.streaming {
            format!("{base}/{model}:streamGenerateContent?alt=sse")
        } else {
            format!("{base}/{model}:generateContent")
        }
    }

    /// In a header of its own: as a query parameter it would land in logs.
    fn authorize(&self, key: &Secret) -> (HeaderName, String) {
        (HeaderName::from_static("x-goog-api-key"), key.expose().to_owned())
    }

    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        _form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        let system = request.system_text();
        if !system.trim().is_empty() {
            set("systemInstruction", json!({"parts": [{"text": system}]}));
        }
        if let (false, Some(config)) = (request.tools.is_empty(), function_calling(&request.tool_choice)) {
            set("toolConfig", json!({"functionCallingConfig": config}));
        }
        let generation = self.generation(endpoint, request);
        if !generation.is_empty() {
            set("generationConfig", generation.into());
        }
        Ok(fields)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], _marked: bool) -> Vec<u8> {
        encode::tools(tools, self.schema)
    }

    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, form: Form) -> Encoder {
        Encoder(Voice {
            issuer: if form.without_seals { None } else { Some(api::issuer::<Self>(endpoint)) },
            foreign_reasoning_as_text: self.foreign_reasoning_as_text,
            needs_signatures: generation(endpoint.model()) >= 3,
        })
    }

    fn closing(&self, endpoint: &Endpoint, request: &ModelRequest, form: Form, out: &mut Vec<u8>) {
        if self.encoder(endpoint, form).role_before(&request.messages, request.messages.len()).is_some() {
            out.extend_from_slice(b"]}");
        }
    }

    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> Decoder {
        Decoder::new(
            api::issuer::<Self>(endpoint),
            endpoint.limits.max_answer_bytes,
            Arc::clone(&request.tools),
        )
    }

    fn list_url(&self, endpoint: &Endpoint, from: Option<&str>) -> String {
        let from = from.map(|token| format!("&pageToken={}", listing::query(token))).unwrap_or_default();
        format!("{}?pageSize=1000{from}", models_url(&endpoint.base_url))
    }

    fn list_page(&self, body: &Value) -> Page {
        let mut page = Page::read(body, "models", listed);
        page.next = listing::text(body, "nextPageToken");
        page
    }

    /// Signatures that the server cannot verify are left out once, and calls go with the stand-in for them.
    fn adapt(&self, _request: &ModelRequest, error: &ModelError, form: Form) -> Option<Form> {
        let message = error.message.to_ascii_lowercase();
        let is_about_signatures = matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
            && (message.contains("thought signature") || message.contains("thought_signature"));
        (is_about_signatures && !form.without_seals).then_some(Form { without_seals: true, ..form })
    }
}

impl GeminiApi {
    fn generation(&self, endpoint: &Endpoint, request: &ModelRequest) -> Map<String, Value> {
        let asked = &request.options;
        let stop = Some(&asked.stop_sequences).filter(|stop| !stop.is_empty());
        let format = request.response_format.as_ref();
        let config = [
            ("maxOutputTokens", asked.max_output_tokens.map(Value::from)),
            ("temperature", asked.temperature.map(write::float)),
            ("topP", asked.top_p.map(write::float)),
            ("stopSequences", stop.map(|stop| stop.clone().into())),
            ("responseMimeType", format.map(|_| "application/json".into())),
            ("responseJsonSchema", format.map(|format| (*format.schema).clone())),
            ("thinkingConfig", asked.reasoning.map(|effort| self.thinking(effort, endpoint.model()))),
        ];
        config.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Levels from the third generation on, budgets in tokens before.
    fn thinking(&self, effort: ReasoningEffort, model: &str) -> Value {
        use ReasoningEffort as E;
        let has_levels = generation(model) >= 3;
        let mut config = match effort {
            E::Tokens(tokens) => json!({"thinkingBudget": tokens}),
            E::Off => json!({"thinkingBudget": 0}),
            E::Minimal if has_levels => json!({"thinkingLevel": "minimal"}),
            E::Low if has_levels => json!({"thinkingLevel": "low"}),
            E::Medium if has_levels => json!({"thinkingLevel": "medium"}),
            E::High if has_levels => json!({"thinkingLevel": "high"}),
            E::Low => json!({"thinkingBudget": 2048}),
            E::Medium => json!({"thinkingBudget": 8192}),
            E::High => json!({"thinkingBudget": 24_576}),
            _ => json!({"thinkingBudget": 512}),
        };
        if let (false, false, Value::Object(config)) = (self.hides_thoughts, effort == E::Off, &mut config) {
            config.insert("includeThoughts".to_owned(), true.into());
        }
        config
    }
}

/// A model that generates: the list holds those for embedding and others too.
fn listed(model: &Value) -> Option<ListedModel> {
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent")) {
        return None;
    }
    let id = listing::text(model, "name")?;
    Some(ListedModel {
        id: id.strip_prefix("models/").map_or_else(|| id.clone(), str::to_owned),
        name: listing::text(model, "displayName"),
        context_window: model.get("inputTokenLimit").and_then(Value::as_u64),
        max_output_tokens: model.get("outputTokenLimit").and_then(Value::as_u64),
    })
}

/// The address under which models are.
fn models_url(base: &str) -> String {
    let names_version =
        base.split('/').skip(3).any(|part| matches!(part, "v1" | "v1beta" | "v1alpha" | "v1beta1"));
    if names_version { format!("{base}/models") } else { format!("{base}/v1beta/models") }
}

/// The generation in a model's name: 3 for `gemini-3-flash-preview`, 0 where there is none.
fn generation(model: &str) -> u32 {
    let number = model.split_once("gemini-").map(|(_, rest)| rest.split(['-', '.']).next().unwrap_or(rest));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn function_calling(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => {
            Some(json!({"mode": "ANY", "allowedFunctionNames": [names::on_wire(name)]}))
        }
        _ => None,
    }
}

/// Writes messages. Neighbours of one role become one: a message is left open for the next to be added.
#[derive(Debug)]
pub(crate) struct Encoder(Voice);

impl Encoder {
    /// The role of the last message before this one of which something is sent.
    fn role_before(&self, messages: &[Arc<Message>], index: usize) -> Option<&'static str> {
        let before = messages.get(..index).unwrap_or_default();
        before.iter().rev().find(|message| encode::has_parts(message, &self.0)).map(|message| role(message))
    }
}

impl EncodeMessage for Encoder {
    fn encode(&self, messages: &[Arc<Message>], index: usize, _marked: bool, out: &mut Vec<u8>) {
        let Some(message) = messages.get(index) else { return };
        let parts = encode::message(message, &self.0);
        if parts.is_empty() {
            return;
        }
        let role = role(message);
        match self.role_before(messages, index) {
            Some(before) if before == role => out.push(b','),
            before => {
                let closing = if before.is_some() { "]}" } else { "" };
                out.extend_from_slice(format!("{closing},{{\"role\":\"{role}\",\"parts\":[").as_bytes());
            }
        }
        out.extend_from_slice(&parts);
    }
}

fn role(message: &Message) -> &'static str {
    if message.role == Role::Assistant { "model" } else { "user" }
}

const _: () = {
    const fn shareable<T: Send + Sync>() {}
    shareable::<Gemini>();
};
