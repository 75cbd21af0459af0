//! Authorization of an MCP server over OAuth 2.1 (feature `oauth`).
//!
//! A server that answers `401` says where it is described; there its authorization server is found, the user agrees in a
//! browser, and the token that comes of it goes with each request to that server and to no other. This module does all of
//! it but showing the browser, by the authorization pages of the MCP revisions 2025-03-26 to 2026-07-28:
//!
//! | step | rule |
//! | --- | --- |
//! | which document describes the server | the challenge's, else the one for its path, else the root's ([RFC 9728]); its `resource` has to cover the server |
//! | which authorization server | the first that it lists; found by [RFC 8414] and `OpenID` Connect Discovery; its `issuer` has to be the one asked for |
//! | which client | one the host has there, else the host's metadata address, else one kept from before, else dynamic registration ([RFC 7591]) |
//! | which scopes | the challenge's, else all that the resource lists, else none; after `insufficient_scope` also those asked for before |
//! | the request | PKCE with S256, or refused; `resource` word for word ([RFC 8707]) |
//! | the answer | `state` and `iss` ([RFC 9207]) compared as plain text |
//! | afterwards | refreshed silently; asked anew at most three times in ten minutes |
//!
//! Requests, PKCE and the token endpoint's forms are those of the `oauth2` crate; what MCP adds to OAuth is here.
//!
//! ```no_run
//! use haversack_mcp_client::oauth::{LoopbackBrowser, OAuth, OAuthOptions};
//! # async fn run(http: impl haversack_http::HttpClient) -> std::io::Result<()> {
//! let browser = LoopbackBrowser::bind(|request| {
//!     println!("{} asks you to agree: {}", request.issuer, request.url);
//!     Ok(())
//! })
//! .await?;
//! // The source of tokens for connections over HTTP.
//! let tokens = OAuth::new(http, browser, OAuthOptions::new("My Editor"));
//! # Ok(())
//! # }
//! ```
//!
//! [RFC 9728]: https://www.rfc-editor.org/rfc/rfc9728
//! [RFC 8414]: https://www.rfc-editor.org/rfc/rfc8414
//! [RFC 7591]: https://www.rfc-editor.org/rfc/rfc7591
//! [RFC 8707]: https://www.rfc-editor.org/rfc/rfc8707
//! [RFC 9207]: https://www.rfc-editor.org/rfc/rfc9207

mod error;
mod address;
mod metadata;
mod scopes;
mod redirect;
mod store;
mod options;
mod fetch;
mod discover;
mod registration;
mod tokens;
mod browser;
mod loopback;
mod flow;
mod source;
#[cfg(test)]
mod tests;

pub use browser::{AuthorizationRequest, Browser};
pub use error::OAuthError;
pub use flow::{OAuth, Refused};
pub use loopback::LoopbackBrowser;
pub use options::OAuthOptions;
pub use store::{ClientCredentials, CredentialStore, IssuerCredentials, MemoryCredentialStore, Tokens};
