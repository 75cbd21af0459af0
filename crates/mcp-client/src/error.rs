//! What can go wrong, sorted by what the caller can do about it.

use std::fmt;
use std::time::Duration;

use crate::process::Exit;
use crate::protocol::{OpeningError, RpcError};

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
    #[error("{server} did not answer {method} within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// The time it took.
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

impl Error {
    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Opening { error: OpeningError::TimedOut { .. }, .. })
    }

    /// Whether the connection is gone, so that only starting the server again helps.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Opening { .. } | Self::Spawn { .. })
    }

    /// The kind of error as a word, for reports: `spawn`, `opening`, `timeout`, `closed`, `rpc`, `invalid_answer`,
    /// `input_needed` or `not_sent`.
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
