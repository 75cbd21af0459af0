//! Work on files, off the thread that drives the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haversack_agent_core::tool::{ToolError, ToolErrorKind};
use haversack_agent_core::tool_context::ToolContext;

/// Whether a call was given up: its future was dropped, or its run cancelled.
#[derive(Clone, Debug)]
pub(super) struct GivenUp {
    dropped: Arc<AtomicBool>,
    context: ToolContext,
}

impl GivenUp {
    pub(super) fn is_so(&self) -> bool {
        self.dropped.load(Ordering::Relaxed) || self.context.cancellation().is_cancelled()
    }
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work on a blocking thread. Work that may take long looks at [`GivenUp`] now and then.
pub(super) async fn blocking<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&GivenUp) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let guard = Guard(Arc::default());
    let given_up = GivenUp { dropped: Arc::clone(&guard.0), context: context.clone() };
    let done = tokio::task::spawn_blocking(move || work(&given_up)).await;
    drop(guard);
    done.unwrap_or_else(|error| {
        Err(ToolError::new(ToolErrorKind::Failed, format!("the work on files broke off: {error}")))
    })
}
