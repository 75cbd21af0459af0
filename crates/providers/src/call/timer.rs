//! A time-out that can be set anew.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Counts down on tokio's clock. Where there is no tokio runtime there is no clock either, and it never fires:
/// a host that brings its own HTTP client and runtime bounds the waiting in the client.
#[derive(Debug)]
pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    pub(crate) fn new(time: Duration) -> Self {
        // tokio's timers panic outside a runtime.
        let runtime = tokio::runtime::Handle::try_current().is_ok();
        Self(runtime.then(|| Box::pin(tokio::time::sleep(time))))
    }

    /// Starts again, with this time left.
    pub(crate) fn reset(&mut self, time: Duration) {
        if let Some(sleep) = &mut self.0 {
            // A time that no clock can hold is forever, as far as anybody will see.
            let until = Instant::now().checked_add(time).unwrap_or_else(far_future);
            sleep.as_mut().reset(until);
        }
    }

    /// Ready when the time is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(cx))
    }

    /// What the future gives, or nothing when the time is over first.
    pub(crate) async fn race<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll(cx).map(|()| None),
        })
        .await
    }
}

fn far_future() -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + YEAR
}
