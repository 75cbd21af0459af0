//! What can go wrong, sorted by what the caller can do about it.

use std::fmt;
use std::time::Duration;

use crate::process::Exit;
use crate::protocol::{Challenge, Failure, OpeningError, RpcError, in_words};

/// Why something asked of a server could not be had.
///
/// A tool that reports a failure of its own is no error but a result with
/// [`is_error`](crate::protocol::ToolResult::is_error).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be started: the configuration or the installation wants mending.
    #[error("cannot start {server}: running {program} failed")]
    Spawn {
        /// The server.
        server: String,
        /// The program.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The program ran, but the connection did not open.
    #[error("cannot connect to {server}: {error}{ending}")]
    Opening {
        /// The server.
        server: String,
        /// What happened.
        error: OpeningError,
        /// How the process ended, and what it said last.
        ending: Ending,
    },
    /// No answer in time. The server has been told that the call is cancelled; what it did is unknown.
    #[error("{server} did not answer {method} within {}", in_words(*after))]
    Timeout {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// The time that ran out, as it was set.
        after: Duration,
    },
    /// The connection has ended: start the server again.
    #[error("{server} is gone: {reason}{ending}")]
    Closed {
        /// The server.
        server: String,
        /// Why the connection ended.
        reason: String,
        /// How the process ended, and what it said last.
        ending: Ending,
    },
    /// The server answered with an error.
    #[error("{server} refused {method}: {error}")]
    Rpc {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// The error.
        error: RpcError,
    },
    /// The server answered with something that is no answer: a fault of the server.
    #[error("the answer of {server} to {method} is not valid: {reason}")]
    InvalidAnswer {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server wants something of the user that the host does not serve.
    #[error("{server} needs {needed} to go on with {method}, which this host does not offer")]
    InputNeeded {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// What the server wants: `roots/list`, `sampling/createMessage` or `elicitation/create`.
        needed: String,
    },
    /// The server wants another authorization: get a token, by asking the user most often, and connect with it.
    #[error("{server} wants authorization (status {status}{})", said_of(challenge.as_ref(), reason.as_ref()))]
    AuthorizationRequired {
        /// The server.
        server: String,
        /// 401, or 403 where more is needed than the token allows.
        status: u16,
        /// What it wants, if it says so.
        challenge: Option<Challenge>,
        /// Why no better token could be had, if that was tried.
        reason: Option<String>,
    },
    /// The message could not be delivered, or brought no answer. What the server did is unknown.
    #[error("{method} to {server} failed: {failure}")]
    Transport {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// What happened.
        failure: Failure,
    },
    /// The server cannot be connected to in this way: its address or its headers are not allowed or make no sense.
    #[error("cannot connect to {server}: {reason}")]
    Address {
        /// The server.
        server: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The request was not sent: a limit of this client, or a question the server does not take.
    #[error("{method} was not sent to {server}: {reason}")]
    NotSent {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// Why not, and what to do.
        reason: String,
    },
}

/// The end of the message about authorization.
fn said_of(challenge: Option<&Challenge>, reason: Option<&String>) -> String {
    let mut said = String::new();
    for (name, value) in [
        ("", challenge.and_then(Challenge::error)),
        ("scope ", challenge.and_then(Challenge::scope)),
        ("", reason.map(String::as_str)),
    ] {
        if let Some(value) = value {
            said.push_str(", ");
            said.push_str(name);
            said.push_str(value);
        }
    }
    said
}

impl Error {
    /// The error for a message that brought no answer.
    pub(crate) fn of_failure(server: &str, method: &str, failure: Failure) -> Self {
        let server = server.to_owned();
        match failure {
            Failure::Unauthorized { status, challenge, reason } => {
                Self::AuthorizationRequired { server, status, challenge, reason }
            }
            failure => Self::Transport { server, method: method.to_owned(), failure },
        }
    }

    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Opening { error: OpeningError::TimedOut { .. }, .. })
    }

    /// Whether the connection is gone, so that only starting the server again helps.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Opening { .. } | Self::Spawn { .. })
    }

    /// The kind of error as a word, for reports: `spawn`, `opening`, `timeout`, `closed`, `rpc`, `invalid_answer`,
    /// `input_needed`, `not_sent`, `authorization_required`, `transport` or `address`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Spawn { .. } => "spawn",
            Self::Opening { .. } => "opening",
            Self::Timeout { .. } => "timeout",
            Self::Closed { .. } => "closed",
            Self::Rpc { .. } => "rpc",
            Self::InvalidAnswer { .. } => "invalid_answer",
            Self::InputNeeded { .. } => "input_needed",
            Self::NotSent { .. } => "not_sent",
            Self::AuthorizationRequired { .. } => "authorization_required",
            Self::Transport { .. } => "transport",
            Self::Address { .. } => "address",
        }
    }

    /// The end of what the server wrote to standard error, if the error carries it.
    pub fn stderr_tail(&self) -> Option<&str> {
        match self {
            Self::Opening { ending, .. } | Self::Closed { ending, .. } => Some(&ending.stderr_tail),
            _ => None,
        }
    }
}

/// How a server's process ended and what it said last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ending {
    /// How it ended, if it has ended and there was a process.
    pub exit: Option<Exit>,
    /// The end of what it wrote to standard error, as it came.
    pub stderr_tail: String,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most that is quoted, from the end: a message is for reading.
        const QUOTED_CHARS: usize = 600;
        if let Some(status) = self.exit.and_then(|exit| exit.status) {
            write!(f, " ({status})")?;
        }
        let said = self.stderr_tail.trim();
        if said.is_empty() {
            return Ok(());
        }
        let skipped = said.chars().count().saturating_sub(QUOTED_CHARS);
        let quoted: String = said.chars().skip(skipped).collect();
        write!(f, "; its last words: {}{quoted}", if skipped > 0 { "…" } else { "" })
    }
}
