//! What is wrong with a configuration: values beside the part that is good.

use std::fmt;

use crate::config::entry::Origin;
use crate::visible::short;

/// The most characters of a name or value that a message quotes.
const QUOTED_CHARS: usize = 80;

/// One thing that was left out, replaced or ignored, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The source in which it is.
    pub origin: Origin,
    /// The server in question; `None` when it is the whole source.
    pub server: Option<String>,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong and what to do, as a clause without a full stop. Never holds the value of a variable.
    pub message: String,
}

/// Kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The source could not be read; none of its servers count.
    Unreadable,
    /// The source is no JSON, or not of the right shape; none of its servers count.
    Malformed,
    /// An entry cannot be used; the server is left out, and its name stays taken.
    BadEntry,
    /// An optional setting cannot be used; the server runs with the default.
    BadSetting,
    /// The entry asks for a transport that is not supported; the server is not started.
    Unsupported,
    /// A later source defines the same name; this entry does not count.
    Replaced,
    /// The entry of a repository takes a name that belongs to the host, or one too like it; it does not count.
    NameTaken,
    /// The same source defines the name twice; the last one counts.
    Duplicate,
    /// More servers than [`MAX_SERVERS`](crate::config::MAX_SERVERS); this one and what follows do not count.
    TooMany,
    /// A variable is not set and has no default; the text stays as written.
    UnsetVariable,
}

impl Problem {
    pub(crate) fn of_source(origin: Origin, kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { origin, server: None, kind, message: message.into() }
    }

    pub(crate) fn of_server(
        origin: &Origin,
        server: &str,
        kind: ProblemKind,
        message: impl Into<String>,
    ) -> Self {
        Self { origin: origin.clone(), server: Some(server.into()), kind, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(server) = &self.server {
            write!(f, "server `{}`: ", short(server, QUOTED_CHARS))?;
        }
        f.write_str(&self.message)
    }
}
