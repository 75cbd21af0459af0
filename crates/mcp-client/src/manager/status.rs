//! How servers are.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::config::expand::ExpandError;
use crate::config::{Origin, ToolFilter};
use crate::error::Error;

/// How one server is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Where it was defined.
    pub origin: Origin,
    /// Whether the host cannot do without it.
    pub required: bool,
    /// How it is.
    pub state: ServerState,
}

/// How a server is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerState {
    /// Its entry says that it is switched off.
    Disabled,
    /// Its transport is not supported, by this build or by this host; the text names it.
    Unsupported(Arc<str>),
    /// It belongs to the repository, and nobody has approved it.
    Unapproved,
    /// It was not asked for yet, or it was ended.
    NotStarted,
    /// It is being started.
    Starting,
    /// It is connected.
    Ready,
    /// Its start failed; it is left alone until its configuration changes or the host reloads.
    Failed(Arc<StartError>),
    /// It was connected and has ended by itself.
    Exited {
        /// How it ended.
        reason: Arc<str>,
        /// How long until it may be started again; zero if that is now.
        restart_in: Duration,
    },
}

impl ServerState {
    /// Whether the server is connected.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("disabled"),
            Self::Unsupported(kind) => write!(f, "unsupported ({kind})"),
            Self::Unapproved => f.write_str("not approved"),
            Self::NotStarted => f.write_str("not started"),
            Self::Starting => f.write_str("starting"),
            Self::Ready => f.write_str("ready"),
            Self::Failed(error) => write!(f, "failed: {}", error.with_causes()),
            Self::Exited { reason, restart_in } if restart_in.is_zero() => write!(f, "exited: {reason}"),
            Self::Exited { reason, restart_in } => {
                write!(f, "exited: {reason}; it may start again in {restart_in:.0?}")
            }
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its entry makes no sense once its variables are put in.
    #[error("cannot start {server}: {error}")]
    Entry {
        /// The server.
        server: Arc<str>,
        /// What is wrong.
        error: ExpandError,
    },
    /// Its working folder is not there.
    #[error("cannot start {server}: its working folder {} is no folder", folder.display())]
    NoFolder {
        /// The server.
        server: Arc<str>,
        /// The folder.
        folder: PathBuf,
    },
    /// It is reached over HTTP, and the host has lent nothing to do that with.
    #[error("cannot connect to {server}: this host does not connect to servers over HTTP")]
    NoHttp {
        /// The server.
        server: Arc<str>,
    },
    /// It could not be run, or no connection came about.
    #[error(transparent)]
    Client(Error),
    /// There is no tokio runtime to start it in.
    #[error("servers can only be started inside a tokio runtime")]
    NoRuntime,
    /// The task that started it was given up: its runtime went down, or there is a bug.
    #[error("the start was given up before it came to an end")]
    Abandoned,
}

impl StartError {
    /// The error in words, with all that led to it: `cannot start x: running y failed: No such file or directory`.
    #[must_use]
    pub fn with_causes(&self) -> String {
        let mut words = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            words.push_str(": ");
            words.push_str(&error.to_string());
            cause = error.source();
        }
        words
    }
}

/// What [`ensure_started`](crate::manager::Manager::ensure_started) came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartReport {
    /// How all servers are, sorted by name.
    pub statuses: Vec<ServerStatus>,
    pub(crate) new: Vec<Arc<str>>,
}

impl StartReport {
    /// The servers whose failure has not been in a report before: what to tell the user now.
    pub fn new_failures(&self) -> impl Iterator<Item = &ServerStatus> {
        self.statuses.iter().filter(|status| self.new.contains(&status.name))
    }

    /// The servers that the host cannot do without and that are not connected, for whatever reason.
    pub fn missing_required(&self) -> impl Iterator<Item = &ServerStatus> {
        self.statuses.iter().filter(|status| {
            status.required && !status.state.is_ready() && !matches!(status.state, ServerState::Disabled)
        })
    }
}

/// A server that is connected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadyServer {
    /// Its name.
    pub name: Arc<str>,
    /// Where it was defined.
    pub origin: Origin,
    /// The connection.
    pub client: Client,
    /// Which of its tools may be used. Whoever offers tools to a model has to heed it.
    pub tools: ToolFilter,
}
