//! Model providers over the wire: OpenAI Chat Completions and Responses, Anthropic Messages, Gemini, Ollama, and the many
//! servers that imitate them.
//!
//! Each is a [`Model`](haversack_agent_core::model::Model): a request in, a stream of events out. A model is made from an
//! HTTP client, an address and a name; [`presets`] know the addresses.
//!
//! ```
//! # use haversack_http::{HttpClient, HttpError, HttpRequest, HttpResponse, StatusCode};
//! # #[derive(Debug)]
//! # struct Canned;
//! # #[async_trait::async_trait]
//! # impl HttpClient for Canned {
//! #     async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
//! #         let body = "data: {\"choices\":[{\"delta\":{\"content\":\"4\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! #         Ok(HttpResponse::new(StatusCode::OK, body))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), haversack_agent_core::model::ModelError> {
//! use futures_util::TryStreamExt;
//! use haversack_agent_core::message::Message;
//! use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
//! use haversack_providers::presets;
//!
//! # let http = Canned;
//! // let http = haversack_http::ReqwestClient::new()?; (feature `reqwest`)
//! let model = presets::groq(http, "the key", "qwen3-32b");
//! let request = ModelRequest::new([Message::user("2 + 2?")].into_iter().collect());
//! let mut events = model.stream(request);
//! while let Some(event) = events.try_next().await? {
//!     match event {
//!         ModelEvent::Text(delta) => assert_eq!(delta, "4"),                 // a preview
//!         ModelEvent::BlockDone(block) => assert_eq!(block.as_text(), Some("4")), // what counts
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What it takes care of
//!
//! - **What servers really send.** Tool calls without index, id or name, in any pieces; finish reasons that lie or come
//!   twice; errors inside answers of status 200; streams that are no streams. A call is given on as whole only when it is,
//!   and an answer that breaks off is an error of kind `Interrupted`, never a short success.
//! - **Both directions.** A history written with one provider goes on with another. Sealed reasoning goes back word for word
//!   to the model that wrote it, and to nobody else.
//! - **Only what is new is encoded.** The encoded form of a message is kept for as long as the message is; a request goes out
//!   as chunks, and a step of a long session costs what was added to it.
//! - **Bounds.** On the time to the first byte and between two ([`Timeouts`]), and on what is read of one answer
//!   ([`Limits`]). Dropping a stream closes its connection.
//! - **Keys.** A [`Secret`] shows itself to nobody; it is taken out of what servers quote in their errors, and
//!   redirects are not followed. See [Secrets](#secrets).
//!
//! How a server differs from OpenAI is data: a [`Profile`], found by its address and open to be changed.
//!
//! # Secrets
//!
//! A key is in the headers of its requests and nowhere else: not in an address, a `Debug` text or an error, even when a
//! server quotes it in what it answers (headers of the host's own whose name says that they are secret are treated the
//! same). **Text that a model writes is left as it is**: a model, or a server posing as one, that prints the key prints it
//! into the answer, and so into the history and wherever the host stores it. Taking it out would hand on something that
//! was not said. A host that stores histories of servers it does not trust should look for its keys there.
//!
//! No compression is asked for, since it holds streams back. A body that comes compressed all the same is named as such
//! and not guessed at.
//!
//! # Features
//!
//! `reqwest` and `tls`, both on: the ready-made HTTP client, and HTTPS for it. Without them the host brings its own
//! [`HttpClient`](haversack_http::HttpClient).
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

#![cfg_attr(docsrs, feature(doc_cfg))]

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
mod refusal;
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
pub use haversack_http::Secret;
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
