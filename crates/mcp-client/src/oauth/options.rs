//! Who the host is, and its limits.

use std::time::Duration;

use crate::oauth::store::ClientCredentials;

/// How [`OAuth`](crate::oauth::OAuth) behaves.
///
/// ```
/// use haversack_mcp_client::oauth::{ClientCredentials, OAuthOptions};
///
/// let options = OAuthOptions::new("My Editor")
///     .with_client_metadata_url("https://editor.example/oauth/client.json")
///     .with_client("https://auth.example", ClientCredentials::new("my-editor"));
/// ```
#[derive(Clone, Debug)]
pub struct OAuthOptions {
    pub(super) client_name: String,
    pub(super) client_metadata_url: Option<String>,
    pub(super) clients: Vec<(String, ClientCredentials)>,
    pub(super) refresh: bool,
    pub(super) private_addresses: bool,
    pub(super) request_timeout: Duration,
    pub(super) visit_timeout: Duration,
}

impl OAuthOptions {
    /// Defaults for a host of that name, which users see when they are asked.
    pub fn new(client_name: impl Into<String>) -> Self {
        Self {
            client_name: client_name.into(),
            client_metadata_url: None,
            clients: Vec::new(),
            refresh: true,
            private_addresses: false,
            request_timeout: Duration::from_secs(30),
            visit_timeout: Duration::from_secs(300),
        }
    }

    /// Sets the address of the host's [client metadata document], which is its identifier at authorization servers that
    /// take such. It has to be HTTPS with a path, and the document has to list the browser's redirect address.
    ///
    /// [client metadata document]: https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/
    #[must_use]
    pub fn with_client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Adds a client that the host has at an authorization server already. It is shown to that one only.
    #[must_use]
    pub fn with_client(mut self, issuer: impl Into<String>, client: ClientCredentials) -> Self {
        self.clients.push((issuer.into(), client));
        self
    }

    /// Sets whether a refresh token is wanted, so that the user is asked less often. Default yes.
    #[must_use]
    pub fn with_refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// Lets servers elsewhere name addresses of this machine and of private networks, and plain HTTP there. Default no;
    /// servers that are local themselves may always.
    #[must_use]
    pub fn with_private_addresses(mut self, allowed: bool) -> Self {
        self.private_addresses = allowed;
        self
    }

    /// Sets how long each request to an authorization server may take. Default 30 s.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets how long the user may take in the browser. Default 5 minutes.
    #[must_use]
    pub fn with_visit_timeout(mut self, timeout: Duration) -> Self {
        self.visit_timeout = timeout;
        self
    }

    pub(super) fn client_at(&self, issuer: &str) -> Option<&ClientCredentials> {
        self.clients.iter().find(|(at, _)| at == issuer).map(|(_, client)| client)
    }
}
