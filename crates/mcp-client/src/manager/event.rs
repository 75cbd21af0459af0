//! What happens to servers, as it happens.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// How many events a listener may be behind. A server has about four in its life; the rest is for hosts with many
/// servers and a slow screen.
pub(crate) const KEPT_EVENTS: usize = 256;

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManagerEvent {
    /// Its process is being started, or it is being connected to.
    Starting {
        /// The server.
        server: Arc<str>,
    },
    /// It is connected.
    Ready {
        /// The server.
        server: Arc<str>,
    },
    /// Its start failed. It is not tried again until its configuration changes or the host reloads.
    Failed {
        /// The server.
        server: Arc<str>,
        /// Why, with the end of its standard error.
        reason: Arc<str>,
    },
    /// It was connected and has ended by itself. It is started again when it is next wanted.
    Exited {
        /// The server.
        server: Arc<str>,
        /// How it ended.
        reason: Arc<str>,
    },
    /// It was ended by the manager, and its processes are gone.
    Stopped {
        /// The server.
        server: Arc<str>,
    },
    /// The listener was too slow, and that many events were dropped.
    Missed(u64),
}

/// The events of a manager from the moment it was asked for them.
#[derive(Debug)]
pub struct ManagerEvents {
    receiver: broadcast::Receiver<ManagerEvent>,
}

impl ManagerEvents {
    pub(crate) const fn new(receiver: broadcast::Receiver<ManagerEvent>) -> Self {
        Self { receiver }
    }

    /// The next event; `None` when the manager is gone and all has been read.
    ///
    /// # Cancel safety
    ///
    /// No event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<ManagerEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(ManagerEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<ManagerEvent> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Lagged(missed)) => Some(ManagerEvent::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}
