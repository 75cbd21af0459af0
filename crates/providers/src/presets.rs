//! Ready-made providers: the address and the habits of each, one call away.
//!
//! Keys are handed in by the host; nothing here reads the environment.

use std::sync::Arc;

use haversack_http::HttpClient;

use crate::anthropic::{self, Anthropic};
use crate::gemini::{self, Gemini};
use crate::ollama::{self, Ollama};
use crate::secret::Secret;

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
