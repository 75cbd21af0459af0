//! The time that pauses are measured with.

use std::fmt;
use std::time::{Duration, Instant};

/// Tells how much time has passed, from any point on. It decides when a server that keeps exiting may be started again;
/// nothing sleeps by it.
///
/// # Contract
///
/// It never goes back, and answers at once.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time since some fixed point.
    fn now(&self) -> Duration;
}

/// The monotonic clock of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}
