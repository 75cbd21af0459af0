//! One tool call: what is called, with what, for how long, and who hears of its progress.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use crate::progress::ProgressQueue;
use crate::protocol::{Members, Object, Progress, RequestParams};

/// A tool call to be made with [`Client::call`](crate::Client::call).
///
/// ```
/// use std::time::Duration;
/// use haversack_mcp_client::ToolCall;
/// use serde_json::json;
///
/// let mut call = ToolCall::new("search")
///     .with_arguments(json!({"query": "otters"}).as_object().cloned().unwrap_or_default())
///     .with_timeout(Duration::from_secs(5));
/// let progress = call.progress();
/// # drop(progress);
/// ```
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) name: String,
    pub(crate) arguments: Object,
    pub(crate) meta: Option<Object>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) limit: Option<Duration>,
    pub(crate) progress: Option<Arc<ProgressQueue>>,
}

impl ToolCall {
    /// A call without arguments. The name is the server's own.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: Object::new(),
            meta: None,
            timeout: None,
            limit: None,
            progress: None,
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Object) -> Self {
        self.arguments = arguments;
        self
    }

    /// Sets metadata of the host's to go beside that of the protocol. Keys of the protocol's own are left out.
    #[must_use]
    pub fn with_meta(mut self, meta: Object) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Sets how long to wait without an answer or progress, in place of the client's setting.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long the call may take in all, in place of the client's setting.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The progress reports of this call, as a stream that ends with the call.
    pub fn progress(&mut self) -> ProgressStream {
        let queue = self.progress.get_or_insert_default();
        ProgressStream { queue: Arc::clone(queue) }
    }
}

/// Progress reports of one call.
///
/// At most 64 unread reports are kept; the oldest go first. The stream ends when the call does, however it ends.
#[derive(Debug)]
pub struct ProgressStream {
    queue: Arc<ProgressQueue>,
}

impl ProgressStream {
    /// The next report, or `None` after the end of the call.
    ///
    /// # Cancel safety
    /// Dropping the future loses no report.
    pub async fn next(&mut self) -> Option<Progress> {
        std::future::poll_fn(|cx| self.queue.poll_next(cx)).await
    }
}

impl Stream for ProgressStream {
    type Item = Progress;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        self.queue.poll_next(cx)
    }
}

/// The parameters of a tool call, written without building an object first.
pub(crate) struct ToolCallParams<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Object,
    pub(crate) meta: Option<&'a Object>,
}

impl RequestParams for ToolCallParams<'_> {
    fn write_members(&self, members: &mut Members<'_>) {
        members.plain("name", self.name);
        members.plain("arguments", self.arguments);
    }

    fn meta(&self) -> Option<&Object> {
        self.meta
    }
}

/// Parameters with what a further round adds to them.
pub(crate) struct RoundParams<'a, P> {
    pub(crate) params: &'a P,
    pub(crate) round: &'a Object,
}

impl<P: RequestParams> RequestParams for RoundParams<'_, P> {
    fn write_members(&self, members: &mut Members<'_>) {
        self.params.write_members(members);
        self.round.write_members(members);
    }

    fn meta(&self) -> Option<&Object> {
        self.params.meta()
    }
}
