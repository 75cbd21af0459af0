//! Servers over Streamable HTTP, of all revisions.
//!
//! The host brings what sends requests, an [`HttpClient`]: `haversack-http` has a ready-made one over reqwest.
//!
//! ```no_run
//! use std::sync::Arc;
//! use haversack_http::{ReqwestClient, Secret};
//! use haversack_mcp_client::http::HttpOptions;
//! use haversack_mcp_client::{Client, ClientOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let http = HttpOptions::new("https://mcp.example.com/mcp", Arc::new(ReqwestClient::new()?))
//!     .with_bearer_token(Secret::new("…"));
//! let client = Client::connect_http(http, ClientOptions::new("my-host", "1.0.0")).await?;
//! let tools = client.list_tools().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is done when
//!
//! - **Opening.** Modern first: `server/discover`. A server that refuses it in any way that is not a modern one's is asked
//!   to `initialize`.
//! - **Sessions** (legacy). A server that has forgotten its session gets one new handshake, and what it did not take is
//!   sent again. Closing the connection ends the session.
//! - **Streams** (legacy). One that ends without the answer is asked for again from its last event on, after the pause
//!   that the server wants. In the modern revisions what was lost is lost, and is an error: only the caller knows whether
//!   asking again is safe.
//! - **Cancelling.** A dropped call closes its stream, and legacy servers are told as well.
//! - **Authorization.** A [`TokenSource`] is asked when a server refuses a request, and the request is sent again with
//!   what it gives. Without one, the call fails with
//!   [`Error::AuthorizationRequired`](crate::Error::AuthorizationRequired), which holds the challenge.
//!
//! # What is never done
//!
//! Redirects are not followed, credentials go to the server's own address only, addresses that the host's
//! [`AddressPolicy`] does not allow are not connected to, and no text of a tool's arguments can break out of its header.
//!
//! [`HttpClient`]: haversack_http::HttpClient

pub(crate) mod place;
mod address;
mod value;
mod marks;
mod token;
mod exchange;
mod outgoing;
mod machine;
mod options;
mod access;
mod driver;

pub use access::HttpAccess;
pub use address::AddressPolicy;
pub use options::HttpOptions;
pub use token::{BearerToken, TokenError, TokenRefusal, TokenSource};

pub(crate) use driver::{HttpDriver, HttpLink};
pub(crate) use machine::HttpMachine;
pub(crate) use marks::{Marks, ToolMarks};
