//! Model providers over the wire.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod secret;
mod lenient;
mod json;
mod media;
mod names;
mod fault;
mod memo;
pub mod ndjson;
mod accumulate;
mod error;
mod encode;
mod endpoint;
mod listing;
mod api;
mod call;
mod provider;
mod profile;
mod stop;
mod schema;
mod think;
mod openai_chat;
mod openai_responses;
mod anthropic;
mod ollama;
mod gemini;
pub mod presets;

pub use anthropic::{Anthropic, AnthropicMessages, CacheTtl, ThinkingForm};
pub use endpoint::{Limits, Timeouts};
pub use gemini::{Gemini, GeminiApi, SchemaForm};
pub use listing::ListedModel;
pub use names::ToolIdFormat;
pub use ollama::{KeepAlive, Ollama, OllamaApi, OllamaDetails};
pub use openai_chat::{ChatApi, OpenAiChat};
pub use openai_responses::{OpenAiResponses, ResponsesApi};
pub use profile::{
    EmptyContent, ImageForm, MaxTokensField, Profile, ReasoningParam, ReplayReasoning, SystemRole,
    ToolChoiceForm, ToolImages,
};
pub use provider::Provider;
pub use secret::Secret;
