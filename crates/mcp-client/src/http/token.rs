//! Bearer tokens: where they come from, and what happens when a server refuses one.

use async_trait::async_trait;
use haversack_http::Secret;

use crate::protocol::Challenge;

/// A token that a server takes as proof of who asks.
pub type BearerToken = Secret;

/// A server has refused a request: 401, or 403 with a challenge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TokenRefusal {
    /// The server's address, as the host wrote it.
    pub server_url: String,
    /// 401: the token is missing or not valid. 403: it does not allow enough.
    pub status: u16,
    /// What the server wants, if it says so.
    pub challenge: Option<Challenge>,
    /// The token that was refused, if there was one.
    pub token: Option<Secret>,
    /// How often this same request has been refused, this time included: 1 to 3.
    pub attempt: u32,
}

impl TokenRefusal {
    /// A refusal, for tests of a [`TokenSource`].
    pub fn new(server_url: impl Into<String>, status: u16, challenge: Option<Challenge>) -> Self {
        Self { server_url: server_url.into(), status, challenge, token: None, attempt: 1 }
    }
}

/// Why no token can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(String);

impl TokenError {
    /// The reason, in words for people: lower case, no full stop, no secrets.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Where bearer tokens come from.
///
/// # Contract
///
/// - It is asked for one thing at a time per connection; while it is asked, requests wait, and their time limits run.
/// - `Ok(None)` means that there is no token to be had: the request fails with
///   [`Error::AuthorizationRequired`](crate::Error::AuthorizationRequired), which holds the challenge.
/// - A request is sent again with what [`renew`](Self::renew) gives, at most three times.
/// - A panic is taken as an error. Dropping the connection drops the future.
/// - A token goes to the server's own address only, never to where a redirect points.
#[async_trait]
pub trait TokenSource: Send + Sync + 'static {
    /// The token to begin with: one that is stored, for example. Asked once, before the first request.
    ///
    /// # Errors
    ///
    /// Why there is none; then requests go out without one, and the reason is in the error if the server refuses them.
    async fn token(&self, server_url: &str) -> Result<Option<Secret>, TokenError>;

    /// A better token, after the server has refused a request.
    ///
    /// # Errors
    ///
    /// Why there is none; the reason becomes part of the request's error.
    async fn renew(&self, refusal: TokenRefusal) -> Result<Option<Secret>, TokenError>;
}

/// A token that the host has, and no way to another one.
pub(crate) struct FixedToken(pub(crate) Secret);

#[async_trait]
impl TokenSource for FixedToken {
    async fn token(&self, _: &str) -> Result<Option<Secret>, TokenError> {
        Ok(Some(self.0.clone()))
    }

    async fn renew(&self, _: TokenRefusal) -> Result<Option<Secret>, TokenError> {
        Ok(None)
    }
}
