//! Ready-made providers: the address and the habits of each, one call away.
//!
//! Keys are handed in by the host; nothing here reads the environment.

use std::sync::Arc;

use haversack_http::{HttpClient, Secret};

use crate::anthropic::{self, Anthropic};
use crate::gemini::{self, Gemini};
use crate::ollama::{self, Ollama};
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::profile::Profile;

/// Anthropic at `https://api.anthropic.com`.
pub fn anthropic(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> Anthropic {
    Anthropic::new(http, anthropic::BASE_URL, model).with_key(key)
}

/// Gemini at `https://generativelanguage.googleapis.com`.
pub fn gemini(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> Gemini {
    Gemini::new(http, gemini::BASE_URL, model).with_key(key)
}

/// Ollama on this machine, at `http://127.0.0.1:11434`, through its own API.
pub fn ollama(http: impl HttpClient, model: impl Into<Arc<str>>) -> Ollama {
    Ollama::new(http, ollama::BASE_URL, model)
}

/// Any server that speaks OpenAI's Chat Completions, by its address up to and with `/v1`. Add a key with
/// [`with_key`](crate::Provider::with_key) where it wants one. The profile is found by the address.
pub fn openai_compatible(
    http: impl HttpClient,
    base_url: impl AsRef<str>,
    model: impl Into<Arc<str>>,
) -> OpenAiChat {
    OpenAiChat::new(http, base_url, model)
}

/// OpenAI at `https://api.openai.com/v1`, through the Responses API, in which a model goes on reasoning after a tool call.
pub fn openai(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiResponses {
    OpenAiResponses::new(http, "https://api.openai.com/v1", model).with_key(key)
}

/// OpenAI at `https://api.openai.com/v1`, through Chat Completions.
pub fn openai_chat(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "https://api.openai.com/v1", model).with_key(key)
}

/// OpenRouter at `https://openrouter.ai/api/v1`.
pub fn openrouter(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "https://openrouter.ai/api/v1", model).with_key(key)
}

/// Groq at `https://api.groq.com/openai/v1`.
pub fn groq(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "https://api.groq.com/openai/v1", model).with_key(key)
}

/// DeepSeek at `https://api.deepseek.com/v1`.
pub fn deepseek(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "https://api.deepseek.com/v1", model).with_key(key)
}

/// Mistral at `https://api.mistral.ai/v1`.
pub fn mistral(http: impl HttpClient, key: impl Into<Secret>, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "https://api.mistral.ai/v1", model).with_key(key)
}

/// llama.cpp's server on this machine, at `http://127.0.0.1:8080/v1`.
pub fn llama_cpp(http: impl HttpClient, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "http://127.0.0.1:8080/v1", model).with_profile(Profile::llama_cpp())
}

/// LM Studio on this machine, at `http://127.0.0.1:1234/v1`.
pub fn lm_studio(http: impl HttpClient, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "http://127.0.0.1:1234/v1", model).with_profile(Profile::lm_studio())
}

/// vLLM on this machine, at `http://127.0.0.1:8000/v1`.
pub fn vllm(http: impl HttpClient, model: impl Into<Arc<str>>) -> OpenAiChat {
    OpenAiChat::new(http, "http://127.0.0.1:8000/v1", model).with_profile(Profile::vllm())
}
