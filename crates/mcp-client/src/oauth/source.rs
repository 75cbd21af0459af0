//! Tokens for the transport over HTTP.

use std::error::Error as _;

use async_trait::async_trait;

use crate::http::{BearerToken, TokenError, TokenRefusal, TokenSource};
use crate::oauth::error::OAuthError;
use crate::oauth::flow::{OAuth, Refused};

#[async_trait]
impl TokenSource for OAuth {
    async fn token(&self, server_url: &str) -> Result<Option<BearerToken>, TokenError> {
        Ok(Self::token(self, server_url).await)
    }

    async fn renew(&self, refusal: TokenRefusal) -> Result<Option<BearerToken>, TokenError> {
        let challenge = refusal.challenge.as_ref();
        let text = |value: Option<&str>| value.map(ToOwned::to_owned);
        let refused = Refused {
            resource_metadata: text(challenge.and_then(|challenge| challenge.resource_metadata())),
            scope: text(challenge.and_then(|challenge| challenge.scope())),
            insufficient_scope: challenge.is_some_and(|c| c.error() == Some("insufficient_scope"))
                && refusal.token.is_some(),
            token: refusal.token,
        };
        // A plain 403 is about what the user may do, and no token changes that.
        if refusal.status == 403 && !refused.insufficient_scope {
            return Ok(None);
        }
        Self::renew(self, &refusal.server_url, &refused).await.map(Some).map_err(|error| in_words(&error))
    }
}

/// An error with all that is behind it, in one line.
fn in_words(error: &OAuthError) -> TokenError {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        // The HTTP client's chain is in the text already.
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        behind = error.source();
    }
    TokenError::new(text)
}
