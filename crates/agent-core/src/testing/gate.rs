//! A barrier that the test opens.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Holds up whoever waits at it until the test lets them through. Cheap to clone; all clones are the same gate.
///
/// ```
/// use futures_util::FutureExt;
/// use haversack_agent_core::testing::Gate;
///
/// let gate = Gate::new();
/// let mut wait = gate.wait();
/// assert!((&mut wait).now_or_never().is_none());
/// assert_eq!(gate.waiting(), 1);
/// gate.release(1);
/// assert!(wait.now_or_never().is_some());
/// ```
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    open: bool,
    permits: usize,
    arrivals: usize,
    next_key: u64,
    /// Those that wait, first come first served.
    waiting: Vec<(u64, Waker)>,
    /// Those that wait for someone to wait.
    watching: Vec<(u64, Waker)>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        let wakers = {
            let mut state = self.state();
            state.open = true;
            state.wakers()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Lets `count` more through, first come first served.
    pub fn release(&self, count: usize) {
        let wakers = {
            let mut state = self.state();
            state.permits = state.permits.saturating_add(count);
            state.wakers()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until the gate lets this one through. Dropping the future gives up the place.
    pub fn wait(&self) -> Wait {
        Wait { gate: self.clone(), key: None, done: false }
    }

    /// How many wait at the gate now.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// How many have come to the gate so far, those that went through or gave up included.
    pub fn arrivals(&self) -> usize {
        self.state().arrivals
    }

    /// Waits until at least `count` have come to the gate.
    pub async fn arrived(&self, count: usize) {
        let key = {
            let mut state = self.state();
            state.next_key += 1;
            state.next_key
        };
        std::future::poll_fn(|cx| {
            let mut state = self.state();
            state.watching.retain(|(k, _)| *k != key);
            if state.arrivals >= count {
                return Poll::Ready(());
            }
            state.watching.push((key, cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Those to wake after a change; they stay listed until they have gone through.
    fn wakers(&self) -> Vec<Waker> {
        self.waiting.iter().map(|(_, waker)| waker.clone()).collect()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Gate")
            .field("open", &state.open)
            .field("permits", &state.permits)
            .field("waiting", &state.waiting.len())
            .finish_non_exhaustive()
    }
}

/// Ready when the gate has let it through. Made by [`Gate::wait`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Wait {
    gate: Gate,
    key: Option<u64>,
    done: bool,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.done {
            return Poll::Ready(());
        }
        let mut watching = Vec::new();
        {
            let mut state = this.gate.state();
            let key = *this.key.get_or_insert_with(|| {
                state.arrivals += 1;
                state.next_key += 1;
                watching = std::mem::take(&mut state.watching);
                state.next_key
            });
            let place = state.waiting.iter().position(|(k, _)| *k == key).unwrap_or(state.waiting.len());
            if state.open || place < state.permits {
                state.permits = state.permits.saturating_sub(usize::from(!state.open));
                state.waiting.retain(|(k, _)| *k != key);
                this.done = true;
            } else if let Some((_, waker)) = state.waiting.get_mut(place) {
                waker.clone_from(cx.waker());
            } else {
                state.waiting.push((key, cx.waker().clone()));
            }
        }
        // Outside the lock: a waker is foreign code.
        watching.into_iter().for_each(|(_, waker)| waker.wake());
        if this.done { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let (Some(key), false) = (self.key, self.done) {
            let wakers = {
                let mut state = self.gate.state();
                state.waiting.retain(|(k, _)| *k != key);
                state.wakers()
            };
            // The place that became free may be somebody's turn.
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}
