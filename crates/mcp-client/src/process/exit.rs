//! How a server ended.

use std::fmt;

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// What it took.
    pub how: ExitHow,
    /// What the process left behind; `None` if there was no process, or its status could not be had.
    pub status: Option<ExitStatus>,
}

impl Exit {
    pub(crate) fn new(how: ExitHow, status: Option<ExitStatus>) -> Self {
        Self { how, status }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => status.fmt(f),
            None => f.write_str("ended"),
        }
    }
}

/// What it took to end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitHow {
    /// It ended by itself, before it was asked to.
    Itself,
    /// It ended when its input was closed, as the specification asks.
    Stdin,
    /// It had to be asked to terminate.
    Term,
    /// It had to be killed.
    Kill,
}

impl ExitHow {
    /// `self`, `stdin`, `term` or `kill`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "self",
            Self::Stdin => "stdin",
            Self::Term => "term",
            Self::Kill => "kill",
        }
    }
}

/// The status of a process that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitStatus {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if a signal ended it.
    pub signal: Option<i32>,
}

impl ExitStatus {
    pub(crate) fn of(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }

    /// Whether it exited with code 0.
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "ended by signal {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}
