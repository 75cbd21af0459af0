//! One call: which model, asked what, and what came of it.

use futures_util::StreamExt as _;
use haversack_agent_core::model::{Model, ModelError, ModelEvent, ModelRequest};
use haversack_http::{HttpClient, Secret};
use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses, Provider};

use crate::inspect_model::outcome::{ApiName, Outcome};

/// A model behind one of the APIs.
#[derive(Clone, Debug)]
pub struct Target {
    /// The API.
    pub api: ApiName,
    /// The address, up to where the path of the API begins.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The key, where the server wants one.
    pub key: Option<Secret>,
    /// Whether the answer is streamed.
    pub streams: bool,
}

impl Target {
    fn set_up<A>(&self, provider: Provider<A>) -> Provider<A> {
        let provider = match &self.key {
            Some(key) => provider.with_key(key.clone()),
            None => provider,
        };
        if self.streams { provider } else { provider.without_streaming() }
    }

    fn model(&self, http: impl HttpClient) -> Box<dyn Model> {
        let (base, model) = (self.base_url.as_str(), self.model.as_str());
        match self.api {
            ApiName::OpenAiChat => Box::new(self.set_up(OpenAiChat::new(http, base, model))),
            ApiName::OpenAiResponses => Box::new(self.set_up(OpenAiResponses::new(http, base, model))),
            ApiName::Anthropic => Box::new(self.set_up(Anthropic::new(http, base, model))),
            ApiName::Gemini => Box::new(self.set_up(Gemini::new(http, base, model))),
            ApiName::Ollama => Box::new(self.set_up(Ollama::new(http, base, model))),
        }
    }

    /// Sends the request, shows each event as it comes, and gives what came of it all.
    pub async fn ask(
        &self,
        http: impl HttpClient,
        request: ModelRequest,
        mut show: impl FnMut(&Result<ModelEvent, ModelError>),
    ) -> Outcome {
        let model = self.model(http);
        let mut outcome = Outcome::new(self.api);
        let mut events = model.stream(request);
        while let Some(event) = events.next().await {
            show(&event);
            match event {
                Ok(event) => outcome.add(event),
                Err(error) => outcome.fail(error),
            }
        }
        outcome
    }
}
