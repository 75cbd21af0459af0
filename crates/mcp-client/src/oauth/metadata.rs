//! The two documents: what they say, as far as it is used. Everything else in them is passed over.

use serde::Deserialize;

/// How a protected resource describes itself ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ProtectedResource {
    pub(super) resource: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// How an authorization server describes itself ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl AuthorizationServer {
    /// What a server without any document has, by revision 2025-03-26: three endpoints at its root.
    pub(super) fn at_default_places(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: format!("{origin}/authorize"),
            token_endpoint: format!("{origin}/token"),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    pub(super) fn has_pkce(&self) -> bool {
        self.code_challenge_methods_supported.as_ref().is_some_and(|all| all.iter().any(|one| one == "S256"))
    }

    /// Whether the token endpoint takes a way to authenticate. Without a list it is `client_secret_basic` alone, by
    /// RFC 8414; `none` is what a client without a secret is left with, whatever the list says.
    pub(super) fn takes(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(all) => all.iter().any(|one| one == method),
            None => method == "client_secret_basic",
        }
    }
}

/// A null in the place of a list or a flag says as little as nothing at all.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
