//! What a host lends to servers that are named in a configuration: who sends, where to, and with which tokens.

use std::fmt;
use std::sync::Arc;

use haversack_http::{HttpClient, Secret};

use crate::http::address::AddressPolicy;
use crate::http::options::HttpOptions;
use crate::http::token::{FixedToken, TokenSource};

/// How servers of a configuration are reached over HTTP.
///
/// A configuration says *where* a server is; the host says here what sends requests, which addresses may be asked, and
/// what proves who asks. Tokens belong to an address and not to a server's name, since anybody can name a server:
///
/// ```
/// # fn access(client: impl haversack_http::HttpClient) -> haversack_mcp_client::http::HttpAccess {
/// use std::sync::Arc;
/// use haversack_http::Secret;
/// use haversack_mcp_client::http::HttpAccess;
///
/// HttpAccess::new(Arc::new(client)).with_bearer_token("https://mcp.example.com/mcp", Secret::new("…"))
/// # }
/// ```
#[derive(Clone)]
pub struct HttpAccess {
    client: Arc<dyn HttpClient>,
    policy: AddressPolicy,
    tokens: Vec<(String, Arc<dyn TokenSource>)>,
    any_tokens: Option<Arc<dyn TokenSource>>,
    old_transport: bool,
}

impl HttpAccess {
    /// Requests are sent by `client`, to addresses that the default [`AddressPolicy`] allows, without tokens.
    pub fn new(client: Arc<dyn HttpClient>) -> Self {
        let policy = AddressPolicy::default();
        Self { client, policy, tokens: Vec::new(), any_tokens: None, old_transport: false }
    }

    /// Sets which addresses may be connected to. Default: `https` to public addresses, and anything on this machine.
    #[must_use]
    pub fn with_address_policy(mut self, policy: AddressPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets a token for the server at exactly this address, which is compared with that of the entry once its variables
    /// are put in.
    #[must_use]
    pub fn with_bearer_token(self, url: impl Into<String>, token: Secret) -> Self {
        self.with_token_source(url, Arc::new(FixedToken(token)))
    }

    /// Sets where the tokens for the server at exactly this address come from.
    #[must_use]
    pub fn with_token_source(mut self, url: impl Into<String>, tokens: Arc<dyn TokenSource>) -> Self {
        self.tokens.push((url.into(), tokens));
        self
    }

    /// Sets where the tokens for all other servers come from. The source is told the address and answers for it: it must
    /// give nothing that another address may not see.
    #[must_use]
    pub fn with_token_source_for_all(mut self, tokens: Arc<dyn TokenSource>) -> Self {
        self.any_tokens = Some(tokens);
        self
    }

    /// Tries the HTTP+SSE transport of revision 2024-11-05 where a server takes no other. Default: no.
    #[must_use]
    pub fn with_old_transport(mut self, tried: bool) -> Self {
        self.old_transport = tried;
        self
    }

    /// The options for one server.
    #[must_use]
    pub fn options(&self, url: &str) -> HttpOptions {
        let options = HttpOptions::new(url, Arc::clone(&self.client))
            .with_address_policy(self.policy)
            .with_old_transport(self.old_transport);
        // The last one set counts.
        let own = self.tokens.iter().rev().find(|(of, _)| of == url).map(|(_, tokens)| tokens);
        match own.or(self.any_tokens.as_ref()) {
            Some(tokens) => options.with_token_source(Arc::clone(tokens)),
            None => options,
        }
    }
}

impl fmt::Debug for HttpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(url, _): &(String, _)| haversack_http::without_secrets(url);
        f.debug_struct("HttpAccess")
            .field("policy", &self.policy)
            .field("tokens_for", &self.tokens.iter().map(shown).collect::<Vec<_>>())
            .field("old_transport", &self.old_transport)
            .finish_non_exhaustive()
    }
}
