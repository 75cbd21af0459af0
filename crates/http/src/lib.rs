//! One method to send a request with, and a decoder for what streams back.
//!
//! What a model provider and an MCP client both need, and nothing else:
//!
//! - [`HttpClient`]: one method, bodies streamed in both directions. A host brings its own stack by implementing it, tests
//!   answer from memory, and feature `reqwest` holds a ready-made one, `ReqwestClient` (feature `tls` lets it speak
//!   HTTPS: rustls with ring, certificates from the platform).
//! - [`SseDecoder`]: bytes of a `text/event-stream` in, events out. It does no I/O, keeps no clock, copies only
//!   what is split over two reads, and takes linear time whatever the bytes are.
//! - [`Secret`]: a key or token in a type that does not show it.
//!
//! ```
//! use haversack_http::{SseDecoder, SseItem};
//!
//! let mut decoder = SseDecoder::new();
//! let mut events = Vec::new();
//! for piece in ["event: greeting\r\nda", "ta: hello\r\n\r\n: still here\n", "data: last words"] {
//!     decoder.feed(piece.as_bytes().to_vec());
//!     while let Some(item) = decoder.next() {
//!         if let SseItem::Event(event) = item? {
//!             events.push((event.name_str().into_owned(), event.data_str().into_owned()));
//!         }
//!     }
//! }
//! decoder.finish();
//! while let Some(item) = decoder.next() {
//!     if let SseItem::Event(event) = item? {
//!         assert!(!event.closed); // no blank line came after it
//!         events.push((event.name_str().into_owned(), event.data_str().into_owned()));
//!     }
//! }
//! assert_eq!(events, [("greeting".into(), "hello".into()), ("".into(), "last words".into())]);
//! # Ok::<(), haversack_http::SseError>(())
//! ```
//!
//! # Your own client
//!
//! ```
//! use haversack_http::{HttpClient, HttpError, HttpRequest, HttpResponse, ResponseBody, StatusCode};
//!
//! /// Answers every request with the same text.
//! #[derive(Debug)]
//! struct Parrot;
//!
//! #[async_trait::async_trait]
//! impl HttpClient for Parrot {
//!     async fn send(&self, _request: HttpRequest) -> Result<HttpResponse, HttpError> {
//!         Ok(HttpResponse::new(StatusCode::OK, ResponseBody::from("hello")))
//!     }
//! }
//! ```
//!
//! # Features
//!
//! None is on by default. `reqwest`: the ready-made client, HTTP only. `tls`: HTTPS for it.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod secret;
mod body;
mod client;
mod sse;
#[cfg(feature = "reqwest")]
mod reqwest_client;

pub use body::{RequestBody, ResponseBody};
pub use bytes::Bytes;
pub use client::{HttpClient, HttpRequest, HttpResponse, without_secrets};
pub use error::{HttpError, HttpErrorKind};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
#[cfg(feature = "reqwest")]
pub use reqwest_client::{ReqwestClient, ReqwestOptions};
pub use secret::Secret;
pub use sse::{SseDecoder, SseError, SseEvent, SseItem, SseLimits};
