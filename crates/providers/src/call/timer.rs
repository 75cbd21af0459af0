//! The clock of a call: how long to wait for the next piece, and how long for the next one that says something.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::endpoint::Timeouts;

/// Counts down on tokio's clock. Where there is no tokio runtime there is no clock either, and it never fires:
/// a host that brings its own HTTP client and runtime bounds the waiting in the client.
#[derive(Debug)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    timeouts: Timeouts,
    /// When it has been quiet for too long.
    quiet_until: Option<Instant>,
    /// It was, when the last piece came. That piece may still say something.
    was_too_quiet: bool,
}

impl Timer {
    /// Counts down to the first byte.
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        // tokio's timers panic outside a runtime.
        let runtime = tokio::runtime::Handle::try_current().is_ok();
        let sleep = runtime.then(|| Box::pin(tokio::time::sleep(timeouts.first_byte)));
        Self { sleep, timeouts, quiet_until: None, was_too_quiet: false }
    }

    /// Counts down to the next piece, now that one came. `has_said` tells whether the pieces since the last call led to
    /// an event; the first call begins the count of how long none did.
    pub(crate) fn piece(&mut self, has_said: bool) {
        let Some(sleep) = &mut self.sleep else { return };
        let now = Instant::now();
        let quiet_until = match self.quiet_until.filter(|_| !has_said) {
            Some(until) => until,
            None => after(now, self.timeouts.quiet),
        };
        self.quiet_until = Some(quiet_until);
        self.was_too_quiet = now >= quiet_until;
        // What came in time may be read before it is judged.
        let until = after(now, self.timeouts.idle);
        sleep.as_mut().reset(if self.was_too_quiet { until } else { until.min(quiet_until) });
    }

    /// Whether the last piece came when it had been quiet for too long.
    pub(crate) fn was_too_quiet(&self) -> bool {
        self.was_too_quiet
    }

    /// Whether it has been quiet for too long by now.
    pub(crate) fn is_too_quiet(&self) -> bool {
        self.quiet_until.is_some_and(|until| Instant::now() >= until)
    }

    /// Ready when the time is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Pending, |sleep| sleep.as_mut().poll(cx))
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

/// A time that no clock can hold is forever, as far as anybody will see.
fn after(now: Instant, time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now.checked_add(time).unwrap_or_else(|| now + YEAR)
}
