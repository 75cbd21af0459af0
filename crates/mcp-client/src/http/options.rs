//! How a server over HTTP is reached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haversack_http::{HeaderMap, HeaderName, HeaderValue, HttpClient, Secret, header};

use crate::http::address::{Address, AddressPolicy};
use crate::http::machine::HttpConfig;
use crate::http::token::{FixedToken, TokenSource};

/// The most headers that a host may add to each request.
const MAX_HEADERS: usize = 64;

/// How a server over HTTP is reached: where it is, what sends, what each request carries. `Debug` shows names of headers,
/// never their values.
#[derive(Clone)]
pub struct HttpOptions {
    pub(crate) url: String,
    pub(crate) client: Arc<dyn HttpClient>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tokens: Option<Arc<dyn TokenSource>>,
    policy: AddressPolicy,
    old_transport: bool,
    listens: bool,
    note_timeout: Duration,
}

impl HttpOptions {
    /// The endpoint of a server, and what sends requests there.
    pub fn new(url: impl Into<String>, client: Arc<dyn HttpClient>) -> Self {
        Self {
            url: url.into(),
            client,
            headers: Vec::new(),
            tokens: None,
            policy: AddressPolicy::default(),
            old_transport: false,
            listens: true,
            note_timeout: Duration::from_secs(30),
        }
    }

    /// Adds a header to each request. What the protocol sets itself cannot be set; that, and what cannot be a header, is
    /// an error when connecting.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a token that each request carries.
    #[must_use]
    pub fn with_bearer_token(self, token: Secret) -> Self {
        self.with_token_source(Arc::new(FixedToken(token)))
    }

    /// Sets where tokens come from.
    #[must_use]
    pub fn with_token_source(mut self, tokens: Arc<dyn TokenSource>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets which addresses may be connected to. Default: `https` to public addresses, and anything on this machine.
    #[must_use]
    pub fn with_address_policy(mut self, policy: AddressPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Tries the HTTP+SSE transport of revision 2024-11-05 where a server takes no other. Default: no; it is gone from all
    /// later revisions.
    #[must_use]
    pub fn with_old_transport(mut self, tried: bool) -> Self {
        self.old_transport = tried;
        self
    }

    /// Opens a stream on which a legacy server may speak unasked: of changed lists, for example. Default: yes; a server
    /// that has none refuses it, which is fine.
    #[must_use]
    pub fn with_listening(mut self, listens: bool) -> Self {
        self.listens = listens;
        self
    }

    /// Sets how long a notification, and the renewal of a session, may take. Default 30 s.
    #[must_use]
    pub fn with_note_timeout(mut self, timeout: Duration) -> Self {
        self.note_timeout = timeout;
        self
    }

    /// Judges everything, and makes the machine's settings of it.
    pub(crate) fn config(&self, max_message_bytes: usize) -> Result<HttpConfig, String> {
        let address = Address::parse(&self.url)?;
        self.policy.judge(&address)?;
        Ok(HttpConfig {
            url: self.url.clone(),
            address,
            headers: headers_of(&self.headers)?,
            has_tokens: self.tokens.is_some(),
            old_transport: self.old_transport,
            listens: self.listens,
            max_message_bytes,
            note_timeout: self.note_timeout,
        })
    }
}

/// The host's headers. The error names a header and never holds its value.
fn headers_of(pairs: &[(String, String)]) -> Result<HeaderMap, String> {
    const OURS: [HeaderName; 8] = [
        header::ACCEPT,
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::HOST,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::TE,
        header::UPGRADE,
    ];
    if pairs.len() > MAX_HEADERS {
        return Err(format!("it is given over {MAX_HEADERS} headers"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let shown = crate::visible::short(name, 40);
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{shown}` cannot be the name of a header"))?;
        let is_protocol = name.as_str().starts_with("mcp-") || name.as_str() == "last-event-id";
        if is_protocol || OURS.contains(&name) {
            return Err(format!("the header `{shown}` is the protocol's own and cannot be set"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{shown}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("url", &haversack_http::without_secrets(&self.url))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("has_tokens", &self.tokens.is_some())
            .field("policy", &self.policy)
            .field("old_transport", &self.old_transport)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_the_protocols_or_none_at_all_are_refused_by_name() {
        let table = [
            ("Mcp-Session-Id", "x"),
            ("mcp-protocol-version", "x"),
            ("Host", "x"),
            ("content-length", "1"),
            ("Accept", "x"),
            ("a b", "s3cret"),
            ("X\r\nY", "s3cret"),
            ("X-Key", "s3cret\r\nX-Other: 1"),
            ("X-Key", "s3cret\u{0}"),
        ];
        for (name, value) in table {
            let fault = headers_of(&[(name.to_owned(), value.to_owned())]).unwrap_err();
            assert!(!fault.contains("s3cret"), "{fault}");
        }
        let good = [("Authorization", "Bearer x"), ("X-Key", "ü")];
        let good: Vec<_> = good.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(headers_of(&good).unwrap().len(), 2);
    }
}
