//! Why a message that was handed to a transport of messages brought no answer.

use std::fmt;

use super::challenge::Challenge;

/// Why a message brought no answer, in the words of its transport.
///
/// Transports of lines need no such thing: there a connection works or is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There was no connection, or it broke. What became of the message is unknown, unless there never was a connection.
    Connection {
        /// What happened.
        reason: String,
    },
    /// The server answered with a status that is no answer to the message.
    Status {
        /// The status.
        status: u16,
        /// The beginning of what it said besides; it may be empty.
        said: String,
    },
    /// The server points elsewhere. That is not followed: it would carry credentials to wherever it points.
    Redirected {
        /// The status.
        status: u16,
        /// Where to, without user, query and fragment.
        to: String,
    },
    /// The server wants another authorization.
    Unauthorized {
        /// 401, or 403 where more is needed than the token allows.
        status: u16,
        /// What it wants, if it says so.
        challenge: Option<Challenge>,
        /// Why no better token could be had, if that was tried.
        reason: Option<String>,
    },
    /// What came is no answer to the message, or over a limit.
    Unusable {
        /// What is wrong.
        reason: String,
    },
}

impl Failure {
    #[cfg(feature = "http")]
    pub(crate) fn unusable(reason: impl Into<String>) -> Self {
        Self::Unusable { reason: reason.into() }
    }

    /// Whether the other side of the connection may well be a server of another era: it answered, but not as MCP does.
    pub(crate) fn may_be_of_another_era(&self) -> bool {
        !matches!(self, Self::Connection { .. } | Self::Redirected { .. } | Self::Unauthorized { .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection { reason } | Self::Unusable { reason } => f.write_str(reason),
            Self::Status { status, said } if said.is_empty() => write!(f, "it answered with status {status}"),
            Self::Status { status, said } => write!(f, "it answered with status {status}: {said}"),
            Self::Redirected { status, to } => write!(
                f,
                "it answered with status {status} and points to {to}, which is not followed; configure that address \
                 if you trust it"
            ),
            Self::Unauthorized { status, challenge, reason } => {
                write!(f, "it wants authorization (status {status}")?;
                let challenge = challenge.as_ref();
                if let Some(error) = challenge.and_then(Challenge::error) {
                    write!(f, ", {error}")?;
                }
                if let Some(scope) = challenge.and_then(Challenge::scope) {
                    write!(f, ", scope \"{scope}\"")?;
                }
                f.write_str(")")?;
                reason.as_ref().map_or(Ok(()), |reason| write!(f, "; {reason}"))
            }
        }
    }
}
