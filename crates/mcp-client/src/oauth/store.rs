//! What is kept of an authorization server: who we are there, and the tokens it gave.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use haversack_http::Secret;
use serde::{Deserialize, Serialize};

/// Keeps credentials, one record for each authorization server.
///
/// Keyed by the issuer and by nothing else: what one authorization server gave is never shown to another. A record holds
/// secrets; write it with [`IssuerCredentials::expose_json`] to a place that only the user can read, best a keyring.
///
/// An error ends the request that needed the token, and is reported with it. A slow store makes that request slow. Dropping
/// a future may lose that one write.
#[async_trait]
pub trait CredentialStore: Send + Sync + 'static {
    /// What is kept for this issuer.
    ///
    /// # Errors
    ///
    /// When it cannot be told.
    async fn load(&self, issuer: &str) -> Result<Option<IssuerCredentials>, Box<dyn Error + Send + Sync>>;

    /// Keeps this for the issuer, in the place of what was kept.
    ///
    /// # Errors
    ///
    /// When it could not be kept.
    async fn save(
        &self,
        issuer: &str,
        credentials: &IssuerCredentials,
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Keeps credentials as long as the program runs.
#[derive(Debug, Default)]
pub struct MemoryCredentialStore(Mutex<BTreeMap<String, IssuerCredentials>>);

#[async_trait]
impl CredentialStore for MemoryCredentialStore {
    async fn load(&self, issuer: &str) -> Result<Option<IssuerCredentials>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(issuer).cloned())
    }

    async fn save(
        &self,
        issuer: &str,
        credentials: &IssuerCredentials,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(issuer.to_owned(), credentials.clone());
        Ok(())
    }
}

/// What is kept of one authorization server.
///
/// It has no `Serialize`, so that it is not written by accident: see [`expose_json`](Self::expose_json).
///
/// ```
/// use haversack_mcp_client::oauth::IssuerCredentials;
///
/// let text = r#"{"client": {"id": "c1", "secret": "s3cret"}, "tokens": {}}"#;
/// let credentials = IssuerCredentials::from_json(text)?;
/// assert!(!format!("{credentials:?}").contains("s3cret"));
/// assert!(credentials.expose_json().contains("s3cret"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerCredentials {
    /// Who we are there, if we were registered.
    pub client: Option<ClientCredentials>,
    /// Tokens by the identifier of the resource they are for.
    pub tokens: BTreeMap<String, Tokens>,
}

/// A client of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCredentials {
    /// Its identifier.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// How it authenticates at the token endpoint, if the registration said so: `client_secret_basic`,
    /// `client_secret_post` or `none`.
    pub auth_method: Option<String>,
    /// The redirect address that it was registered with, if it was. Another address needs another registration.
    pub redirect_uri: Option<String>,
    /// When the secret ends, in seconds since 1970; none if it does not.
    pub secret_expires_at: Option<u64>,
}

impl ClientCredentials {
    /// A client without a secret.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), secret: None, auth_method: None, redirect_uri: None, secret_expires_at: None }
    }

    /// Sets the secret.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.secret = Some(secret.into());
        self
    }
}

/// The tokens for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// The token that goes with each request.
    pub access: Secret,
    /// The token that a new one is had with, if the server gave one.
    pub refresh: Option<Secret>,
    /// When the access token ends, in seconds since 1970, if the server said so.
    pub expires_at: Option<u64>,
    /// The scopes that were asked for.
    pub asked: Vec<String>,
}

impl IssuerCredentials {
    /// The record as JSON, **with its secrets**.
    pub fn expose_json(&self) -> String {
        let shape = Shape {
            client: self.client.as_ref().map(|client| ClientShape {
                id: client.id.clone(),
                secret: client.secret.as_ref().map(|secret| secret.expose().to_owned()),
                auth_method: client.auth_method.clone(),
                redirect_uri: client.redirect_uri.clone(),
                secret_expires_at: client.secret_expires_at,
            }),
            tokens: self
                .tokens
                .iter()
                .map(|(resource, tokens)| {
                    let shape = TokensShape {
                        access: tokens.access.expose().to_owned(),
                        refresh: tokens.refresh.as_ref().map(|token| token.expose().to_owned()),
                        expires_at: tokens.expires_at,
                        asked: tokens.asked.clone(),
                    };
                    (resource.clone(), shape)
                })
                .collect(),
        };
        // Texts and numbers under text keys: nothing in it can fail.
        serde_json::to_string(&shape).unwrap_or_default()
    }

    /// A record from its JSON.
    ///
    /// # Errors
    ///
    /// When the text is not what [`expose_json`](Self::expose_json) writes.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let shape: Shape = serde_json::from_str(text)?;
        Ok(Self {
            client: shape.client.map(|client| ClientCredentials {
                id: client.id,
                secret: client.secret.map(Secret::from),
                auth_method: client.auth_method,
                redirect_uri: client.redirect_uri,
                secret_expires_at: client.secret_expires_at,
            }),
            tokens: shape
                .tokens
                .into_iter()
                .map(|(resource, tokens)| {
                    let tokens = Tokens {
                        access: tokens.access.into(),
                        refresh: tokens.refresh.map(Secret::from),
                        expires_at: tokens.expires_at,
                        asked: tokens.asked,
                    };
                    (resource, tokens)
                })
                .collect(),
        })
    }
}

/// The written form, apart from the type that is passed around: only this one can be serialised.
#[derive(Serialize, Deserialize)]
struct Shape {
    client: Option<ClientShape>,
    #[serde(default)]
    tokens: BTreeMap<String, TokensShape>,
}

#[derive(Serialize, Deserialize)]
struct ClientShape {
    id: String,
    secret: Option<String>,
    auth_method: Option<String>,
    redirect_uri: Option<String>,
    secret_expires_at: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct TokensShape {
    access: String,
    refresh: Option<String>,
    expires_at: Option<u64>,
    #[serde(default)]
    asked: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_and_shows_no_secret_in_debug() {
        let mut record = IssuerCredentials {
            client: Some(ClientCredentials::new("c1").with_secret("cl13nt-s3cret")),
            ..IssuerCredentials::default()
        };
        let tokens = Tokens {
            access: Secret::new("acc3ss"),
            refresh: Some(Secret::new("r3fresh")),
            expires_at: Some(17),
            asked: vec!["a".to_owned()],
        };
        record.tokens.insert("https://mcp.example".to_owned(), tokens);
        let text = record.expose_json();
        assert_eq!(IssuerCredentials::from_json(&text).unwrap(), record);
        let shown = format!("{record:?}");
        for secret in ["cl13nt-s3cret", "acc3ss", "r3fresh"] {
            assert!(text.contains(secret) && !shown.contains(secret), "{shown}");
        }
    }
}
