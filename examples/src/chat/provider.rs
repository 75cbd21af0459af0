//! Which model: a provider by name, an address, a key from the environment.

use std::sync::Arc;
use std::time::Duration;

use haversack::http::ReqwestClient;
use haversack::mcp::environment::Environment;
use haversack::prelude::Model;
use haversack::providers::{
    Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses, Profile, Provider, Secret,
};

use crate::rehearsal::{MODEL, Rehearsal};

/// The name of the provider that needs nothing.
pub const REHEARSAL: &str = "rehearsal";

/// The pause between two pieces of the rehearsal's answers, so that one can watch.
const PACE: Duration = Duration::from_millis(15);

/// What the user chose. What is absent comes from the provider.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Choice {
    /// One of [`names`].
    pub provider: Option<String>,
    /// The model's name there.
    pub model: Option<String>,
    /// Another address than the provider's usual one.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key.
    pub key_variable: Option<String>,
    /// Tokens that the model takes, when its server does not say.
    pub context_window: Option<u64>,
}

/// A model, ready to be asked.
pub struct Chosen {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What it is called, with where it is.
    pub title: String,
    /// The server of the rehearsal, which ends with this.
    pub rehearsal: Option<Rehearsal>,
}

/// The protocols that are spoken.
#[derive(Clone, Copy)]
enum Wire {
    Chat(fn() -> Option<Profile>),
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

/// Each provider: its name, its protocol, its usual address, the usual name of the variable with its key.
const PROVIDERS: &[(&str, Wire, &str, &str)] = &[
    ("anthropic", Wire::Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("openai", Wire::Responses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("openai-chat", Wire::Chat(|| None), "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("gemini", Wire::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ("ollama", Wire::Ollama, "http://127.0.0.1:11434", ""),
    ("openrouter", Wire::Chat(|| None), "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("groq", Wire::Chat(|| None), "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("deepseek", Wire::Chat(|| None), "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("mistral", Wire::Chat(|| None), "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ("llama-cpp", Wire::Chat(|| Some(Profile::llama_cpp())), "http://127.0.0.1:8080/v1", ""),
    ("lm-studio", Wire::Chat(|| Some(Profile::lm_studio())), "http://127.0.0.1:1234/v1", ""),
    ("vllm", Wire::Chat(|| Some(Profile::vllm())), "http://127.0.0.1:8000/v1", ""),
    ("compatible", Wire::Chat(|| None), "", ""),
];

/// The names of all providers.
pub fn names() -> Vec<&'static str> {
    std::iter::once(REHEARSAL).chain(PROVIDERS.iter().map(|(name, ..)| *name)).collect()
}

impl Choice {
    /// Fills what the flags left open from `CHAT_PROVIDER`, `CHAT_MODEL` and `CHAT_BASE_URL`.
    pub fn or_environment(mut self, environment: &Environment) -> Self {
        let variable =
            |name: &str| environment.text(name).filter(|value| !value.is_empty()).map(str::to_owned);
        self.provider = self.provider.or_else(|| variable("CHAT_PROVIDER"));
        self.model = self.model.or_else(|| variable("CHAT_MODEL"));
        self.base_url = self.base_url.or_else(|| variable("CHAT_BASE_URL"));
        self
    }

    /// Makes the model. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// One line that says what is missing.
    pub async fn make(self, environment: &Environment) -> Result<Chosen, String> {
        let name = match (&self.provider, &self.base_url) {
            (Some(name), _) => name.clone(),
            // An address alone says enough: nearly every server speaks this.
            (None, Some(_)) => "compatible".to_owned(),
            (None, None) => REHEARSAL.to_owned(),
        };
        if name == REHEARSAL {
            return rehearsed().await;
        }
        let (_, wire, usual_url, usual_key) = PROVIDERS
            .iter()
            .find(|(known, ..)| *known == name)
            .ok_or_else(|| format!("there is no provider {name:?}: {}", names().join(", ")))?;
        let url = self.base_url.clone().unwrap_or_else(|| (*usual_url).to_owned());
        if url.is_empty() {
            return Err("give the address of the server with --base-url".to_owned());
        }
        let model =
            self.model.clone().ok_or_else(|| format!("give the name of a model of {name} with --model"))?;
        let key = self.key(usual_key, environment)?;
        let http = || ReqwestClient::new().map_err(|e| format!("no HTTP client: {}", e.chain()));
        let title = format!("{model} ({name}, {})", haversack::http::without_secrets(&url));
        let model = match wire {
            Wire::Chat(profile) => {
                let made = OpenAiChat::new(http()?, &url, model);
                let made = profile().into_iter().fold(made, |made, profile| made.with_profile(profile));
                self.finish(made, key)
            }
            Wire::Responses => self.finish(OpenAiResponses::new(http()?, &url, model), key),
            Wire::Anthropic => self.finish(Anthropic::new(http()?, &url, model), key),
            Wire::Gemini => self.finish(Gemini::new(http()?, &url, model), key),
            Wire::Ollama => self.finish(Ollama::new(http()?, &url, model), key),
        };
        Ok(Chosen { model, title, rehearsal: None })
    }

    fn finish<A>(&self, made: Provider<A>, key: Option<Secret>) -> Arc<dyn Model>
    where
        Provider<A>: Model,
    {
        let made = key.into_iter().fold(made, Provider::with_key);
        Arc::new(self.context_window.into_iter().fold(made, Provider::with_context_window))
    }

    /// The key, from the variable that the user or the provider names.
    fn key(&self, usual: &str, environment: &Environment) -> Result<Option<Secret>, String> {
        let name = self.key_variable.as_deref().unwrap_or(usual);
        match environment.text(name).filter(|key| !key.is_empty()) {
            Some(key) => Ok(Some(key.to_owned().into())),
            // At another address than the usual one a server may want none, and says so if it does.
            None if name.is_empty() || (self.key_variable.is_none() && self.base_url.is_some()) => Ok(None),
            None => Err(format!("put the key into the variable {name}, or name another with --api-key-env")),
        }
    }
}

async fn rehearsed() -> Result<Chosen, String> {
    let rehearsal = Rehearsal::start(PACE).await.map_err(|e| format!("the rehearsal does not start: {e}"))?;
    let http = ReqwestClient::new().map_err(|e| format!("no HTTP client: {}", e.chain()))?;
    let model = Arc::new(OpenAiChat::new(http, rehearsal.base_url(), MODEL));
    let title = "the rehearsal, plain rules in the place of a model (--provider and --model for a real one)";
    Ok(Chosen { model, title: title.to_owned(), rehearsal: Some(rehearsal) })
}
