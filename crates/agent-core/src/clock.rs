//! Time, given by the host. Without a clock the loop never waits: no retry after a pause, no time limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Ready when its deadline has come. Dropping it forgets the deadline.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A monotonic clock and its timer.
///
/// # Contract
///
/// - [`now`](Self::now) counts from any fixed moment and never goes back. It is read a few times per turn.
/// - A sleep is ready no earlier than its deadline, and soon after it. Sleeping until a past moment is ready at
///   the first poll.
pub trait Clock: Send + Sync + 'static {
    /// The time since a fixed moment of the clock's choice.
    fn now(&self) -> Duration;

    /// Waits until [`now`](Self::now) has reached `deadline`.
    fn sleep_until(&self, deadline: Duration) -> Sleep;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        (**self).sleep_until(deadline)
    }
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The clock of tokio's timer; follows its paused time in tests. Sleeps need a runtime with time enabled.
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// A clock that counts from now.
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        /// Longer than any run, and short enough for the timer wheel.
        const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        Box::pin(tokio::time::sleep_until(self.origin + deadline.min(FOREVER)))
    }
}
