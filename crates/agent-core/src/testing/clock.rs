//! A clock that the test sets.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::clock::{Clock, Sleep};

/// A clock that stands still until the test moves it. Cheap to clone; all clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use futures_util::FutureExt;
/// use haversack_agent_core::clock::Clock;
/// use haversack_agent_core::testing::FakeClock;
///
/// let clock = FakeClock::new();
/// let mut sleep = clock.sleep_until(Duration::from_secs(5));
/// assert!((&mut sleep).now_or_never().is_none());
/// assert_eq!(clock.next_deadline(), Some(Duration::from_secs(5)));
/// clock.advance(Duration::from_secs(5));
/// assert!(sleep.now_or_never().is_some());
/// ```
#[derive(Clone, Default)]
pub struct FakeClock(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: Duration,
    next_key: u64,
    sleepers: Vec<Sleeper>,
}

struct Sleeper {
    key: u64,
    deadline: Duration,
    waker: Waker,
}

impl FakeClock {
    /// A clock that stands at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock, and wakes whoever has slept long enough.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut state = self.state();
            state.now = state.now.saturating_add(by);
            let now = state.now;
            let due: Vec<_> = state.sleepers.extract_if(.., |s| s.deadline <= now).collect();
            due
        };
        // Outside the lock: a waker is foreign code.
        due.into_iter().for_each(|sleeper| sleeper.waker.wake());
    }

    /// The earliest deadline that somebody waits for.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.state().sleepers.iter().map(|s| s.deadline).min()
    }

    /// Moves the clock to the earliest deadline. Whether anybody waited for one.
    pub fn advance_to_next(&self) -> bool {
        let Some(deadline) = self.next_deadline() else { return false };
        self.advance(deadline.saturating_sub(self.now()));
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.state().now
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        Box::pin(FakeSleep { clock: self.clone(), deadline, key: None })
    }
}

impl fmt::Debug for FakeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FakeClock").field(&self.now()).finish()
    }
}

struct FakeSleep {
    clock: FakeClock,
    deadline: Duration,
    key: Option<u64>,
}

impl Future for FakeSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.clock.state();
        if state.now >= this.deadline {
            return Poll::Ready(());
        }
        let key = *this.key.get_or_insert_with(|| {
            state.next_key += 1;
            state.next_key
        });
        match state.sleepers.iter_mut().find(|s| s.key == key) {
            Some(sleeper) => sleeper.waker.clone_from(cx.waker()),
            None => {
                let sleeper = Sleeper { key, deadline: this.deadline, waker: cx.waker().clone() };
                state.sleepers.push(sleeper);
            }
        }
        Poll::Pending
    }
}

impl Drop for FakeSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.state().sleepers.retain(|s| s.key != key);
        }
    }
}
