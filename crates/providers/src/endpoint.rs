//! Where a model is, and everything about reaching it that no API decides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haversack_agent_core::model::ModelInfo;
use haversack_http::{HeaderName, HeaderValue, HttpClient, Secret, without_secrets};
use serde_json::{Map, Value};

/// How long each part of a call may take. There is no bound over the whole answer: a stream may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending the request to the first byte of the answer's body. 300 s unless set, since a local server may
    /// load its model first. (The time for the connection itself is the HTTP client's: 10 s unless set there.)
    pub first_byte: Duration,
    /// Between two pieces of the answer, whatever is in them: a comment counts as a sign of life. 120 s unless set.
    pub idle: Duration,
    /// How long a server may show that it lives and say nothing: comments, blank lines and pings, or the pieces of an
    /// answer that is not streamed. Counted from the first of them behind the last event for the host. 30 minutes unless set, since gateways keep
    /// a caller waiting that way while a model is busy or reads a long prompt; without the bound they could do it for ever.
    pub quiet: Duration,
}

impl Timeouts {
    /// Sets the time to the first byte.
    #[must_use]
    pub fn with_first_byte(mut self, time: Duration) -> Self {
        self.first_byte = time;
        self
    }

    /// Sets the time between two pieces.
    #[must_use]
    pub fn with_idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Sets the time in which there may be signs of life and nothing else.
    #[must_use]
    pub fn with_quiet(mut self, time: Duration) -> Self {
        self.quiet = time;
        self
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            quiet: Duration::from_secs(30 * 60),
        }
    }
}

/// How much is read of one answer, whatever the server sends. What is over a bound ends the call with an error of
/// kind `Protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of text, reasoning and tool arguments in one answer. 16 MiB unless set: some forty times what today's
    /// models write at most.
    pub max_answer_bytes: usize,
    /// Bytes of one event of a stream. 8 MiB unless set.
    pub max_event_bytes: usize,
    /// Bytes of an answer that is not streamed. 64 MiB unless set.
    pub max_body_bytes: usize,
}

impl Limits {
    /// Sets the bytes of text, reasoning and arguments in one answer.
    #[must_use]
    pub fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }

    /// Sets the bytes of one event of a stream.
    #[must_use]
    pub fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets the bytes of an answer that is not streamed.
    #[must_use]
    pub fn with_max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_answer_bytes: 16 << 20, max_event_bytes: 8 << 20, max_body_bytes: 64 << 20 }
    }
}

/// One model at one address.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) http: Arc<dyn HttpClient>,
    /// Without a slash at its end.
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
    pub(crate) info: ModelInfo,
    /// Headers of the host's own; they win over ours.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// A header that could not be read, told when a call is made.
    pub(crate) bad_header: Option<String>,
    /// Fields of the host's own for every body; they win over ours.
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) streaming: bool,
}

impl Endpoint {
    pub(crate) fn new(http: Arc<dyn HttpClient>, base_url: &str, info: ModelInfo) -> Self {
        Self {
            http,
            base_url: base_url.trim().trim_end_matches('/').to_owned(),
            key: None,
            info,
            headers: Vec::new(),
            bad_header: None,
            extra_body: Map::new(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            streaming: true,
        }
    }

    pub(crate) fn provider(&self) -> &str {
        &self.info.provider
    }

    /// The provider and where it is, for failures of the connection.
    pub(crate) fn place(&self) -> String {
        format!("{} at {}", self.provider(), without_secrets(&self.base_url))
    }

    pub(crate) fn model(&self) -> &str {
        &self.info.model
    }

    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            self.bad_header = Some(format!("the header {name:?} is not legal"));
            return;
        };
        // It may hold a key, and nobody can tell.
        value.set_sensitive(true);
        self.headers.push((name, value));
    }

    /// Takes every secret of ours out of a text that a server wrote.
    pub(crate) fn redact(&self, text: &mut String) {
        if let Some(key) = &self.key {
            key.redact(text);
        }
        // Headers such as a version are no secrets, and taking them out would garble the text.
        const SECRET_NAMES: [&str; 5] = ["key", "auth", "token", "secret", "cookie"];
        for (name, value) in &self.headers {
            if SECRET_NAMES.iter().any(|part| name.as_str().contains(part))
                && let Ok(value) = value.to_str()
            {
                Secret::new(value.strip_prefix("Bearer ").unwrap_or(value)).redact(text);
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &without_secrets(&self.base_url))
            .field("key", &self.key)
            .field("info", &self.info)
            .field("headers", &self.headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())
            .field("extra_body", &self.extra_body.keys().collect::<Vec<_>>())
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .field("streaming", &self.streaming)
            .finish_non_exhaustive()
    }
}
