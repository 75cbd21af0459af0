//! What the supervisor needs to know of what it supervises: how it is started, watched and ended.

use std::future::Future;
use std::sync::Arc;

use crate::fingerprint::Fingerprint;

/// Connects to servers.
pub(crate) trait Connect: Send + Sync + 'static {
    /// What is needed to start one.
    type Launch: Send + Sync + 'static;
    /// A connection.
    type Link: Link;
    /// Why there is none.
    type Error: Send + Sync + 'static;

    /// Starts a server and connects to it, within a time of its own. Dropped, it leaves no process behind.
    fn connect(
        self: Arc<Self>,
        server: Arc<str>,
        launch: Arc<Self::Launch>,
    ) -> impl Future<Output = Result<Self::Link, Self::Error>> + Send;

    /// The whole reason in words, for an event.
    fn describe(error: &Self::Error) -> String;

    /// The error for a start that could not even begin.
    fn not_begun(reason: NotBegun) -> Self::Error;
}

/// Why a start did not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotBegun {
    NoRuntime,
    Abandoned,
}

/// A connection to a server.
pub(crate) trait Link: Clone + Send + Sync + 'static {
    /// Waits until it has ended by itself, and says how.
    fn ended(&self) -> impl Future<Output = String> + Send;
    /// Whether it has ended by itself.
    fn has_ended(&self) -> bool;
    /// Ends it in order, and waits until nothing is left of it.
    fn close(&self) -> impl Future<Output = ()> + Send;
    /// Ends it at once, without a runtime.
    fn end_now(&self);
}

/// A server that should run.
pub(crate) struct Wanted<L> {
    pub(crate) key: Fingerprint,
    pub(crate) launch: Arc<L>,
}
