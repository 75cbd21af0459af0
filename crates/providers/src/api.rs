//! What an API has to know for the one driver to speak it.

use std::sync::Arc;

use haversack_agent_core::model::{ModelError, ModelRequest, PromptSection};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::{HeaderName, HeaderValue, Secret};
use serde_json::{Map, Value};

use crate::accumulate::Accumulator;
use crate::encode::EncodeMessage;
use crate::endpoint::Endpoint;
use crate::listing::{self, Page};

/// How a stream is cut into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-Sent Events.
    Sse,
    /// One JSON object a line.
    Lines,
}

/// The form of a request. A server that refuses the first form is sent a second one, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Without sealed reasoning, because the server no longer reads its own seals.
    pub(crate) without_seals: bool,
    /// With the other name of the output limit.
    pub(crate) other_limit_field: bool,
}

/// One wire API. Everything in here is a pure function: the driver does the rest.
pub(crate) trait Api: Send + Sync + Sized + 'static {
    /// Writes messages.
    type Encoder<'a>: EncodeMessage
    where
        Self: 'a;
    /// Reads answers.
    type Accumulator: Accumulator;

    /// The API's name in seals, for example `chat`.
    const NAME: &'static str;
    /// How its streams are cut.
    const FRAMING: Framing;
    /// The field that holds the conversation.
    const LIST: &'static str;

    /// The address of a call.
    fn url(&self, endpoint: &Endpoint) -> String;

    /// How the key goes into a header.
    fn authorize(&self, key: &Secret) -> (HeaderName, String) {
        (haversack_http::header::AUTHORIZATION, format!("Bearer {}", key.expose()))
    }

    /// Further headers of every call.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    /// The fields of the body but `tools` and the conversation. What the host put into
    /// [`extra_body`](Endpoint::extra_body) and the request's options is laid over them by the driver.
    fn fields(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        form: Form,
    ) -> Result<Map<String, Value>, Box<ModelError>>;

    /// The value of the field `tools`, as JSON. With `marked` its end is marked as a border of the cached prefix.
    /// Kept by the identity of the list.
    fn tools(&self, tools: &[Arc<ToolSpec>], marked: bool) -> Vec<u8>;

    /// Items that stand in the conversation before the first message, each preceded by a comma: the system prompt, where
    /// the API has it there. Kept by the identity of the sections.
    fn opening(&self, system: &[PromptSection]) -> Vec<u8> {
        let _ = system;
        Vec::new()
    }

    /// The writer of messages for one call.
    fn encoder<'a>(&'a self, endpoint: &'a Endpoint, form: Form) -> Self::Encoder<'a>;

    /// What closes the last item, for writers that leave it open to be added to.
    fn closing(&self, endpoint: &Endpoint, request: &ModelRequest, form: Form, out: &mut Vec<u8>) {
        let _ = (endpoint, request, form, out);
    }

    /// The messages whose end is marked, by index, ascending: as many as the API takes.
    fn marks<'a>(&self, request: &'a ModelRequest) -> &'a [usize] {
        &request.cache.messages
    }

    /// The reader of one answer.
    fn accumulator(&self, endpoint: &Endpoint, request: &ModelRequest) -> Self::Accumulator;

    /// The address of the list of models, from a page on.
    fn list_url(&self, endpoint: &Endpoint, from: Option<&str>) -> String {
        let _ = from;
        format!("{}/models", endpoint.base_url)
    }

    /// Reads a page of the list of models.
    fn list_page(&self, body: &Value) -> Page {
        Page::read(body, "data", listing::openai_shape)
    }

    /// Another form of the request, if that is what the server's refusal asks for.
    fn adapt(&self, request: &ModelRequest, error: &ModelError, form: Form) -> Option<Form> {
        let _ = (request, error, form);
        None
    }
}

/// Who issues the seals of this API at this endpoint. The model is part of it: reasoning is sealed for one model.
pub(crate) fn issuer<A: Api>(endpoint: &Endpoint) -> Arc<str> {
    format!("{}/{}:{}", endpoint.provider(), A::NAME, endpoint.model()).into()
}
