//! How a model call fails.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model call that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelError {
    /// What kind of failure, which decides what the loop does.
    pub kind: ModelErrorKind,
    /// What happened, naming the provider or address; never holds a key.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's error type, in its words.
    pub error_type: Option<String>,
    /// The provider's error code, in its words.
    pub code: Option<String>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// The server's id of the request, for support.
    pub request_id: Option<String>,
    /// The server's own word on whether another try makes sense; it stands above the kind.
    pub retryable: Option<bool>,
    /// What the server said, as it said it.
    pub reply: Option<Box<ServerReply>>,
}

/// What a server said of a failure, in its own words: for reports, and for hosts that know their server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerReply {
    /// The message, where one could be found.
    pub message: Option<String>,
    /// The code, a number or a text.
    pub code: Option<Value>,
    /// The start of the body; how much is kept is the provider's choice.
    pub body: String,
}

impl ServerReply {
    /// A reply of which only the body is known.
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }
}

impl ModelError {
    /// A failure with a kind and a text.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            error_type: None,
            code: None,
            retry_after: None,
            request_id: None,
            retryable: None,
            reply: None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        use ModelErrorKind as K;
        self.retryable.unwrap_or(matches!(
            self.kind,
            K::RateLimited | K::Overloaded | K::Server | K::Timeout(_) | K::Interrupted | K::Transport
        ))
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(status) = self.status {
            write!(f, " (status {status})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}

/// The kinds of failure that a host or the loop can do something about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing or wrong.
    Auth,
    /// The key is right, but may not do this.
    Permission,
    /// There is no such model or address.
    NotFound,
    /// The request itself is refused.
    InvalidRequest {
        /// The field at fault, where the server names it.
        param: Option<String>,
    },
    /// The model takes no tools.
    ToolsUnsupported,
    /// The model wrote a tool call that its own server could not read.
    InvalidToolCall,
    /// The prompt does not fit.
    ContextOverflow {
        /// The window in tokens, where the server tells.
        limit: Option<u64>,
        /// The prompt in tokens, where the server tells.
        used: Option<u64>,
    },
    /// Too many requests: wait.
    RateLimited,
    /// The account is out of money or quota: waiting does not help.
    QuotaExhausted,
    /// The server is busy.
    Overloaded,
    /// The server failed.
    Server,
    /// Nothing came in time.
    Timeout(TimeoutPhase),
    /// The stream ended before the answer did.
    Interrupted,
    /// The provider withheld the answer.
    Filtered,
    /// What came is not what the API promises.
    Protocol,
    /// The connection failed.
    Transport,
    /// Anything else.
    Other,
}

/// Where a time-out struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// Before there was a connection.
    Connect,
    /// Before the first byte of the answer.
    FirstByte,
    /// Between two bytes of the answer.
    Idle,
}
