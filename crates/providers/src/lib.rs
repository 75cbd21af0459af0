//! Model providers over the wire.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![expect(dead_code, reason = "the APIs that use the frame follow")]

mod secret;
mod lenient;
mod names;
mod fault;
mod memo;
pub mod ndjson;
mod accumulate;
mod error;
mod encode;
mod endpoint;
mod api;
mod call;
mod provider;

pub use endpoint::{Limits, Timeouts};
pub use names::ToolIdFormat;
pub use provider::Provider;
pub use secret::Secret;
