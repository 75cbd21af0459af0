//! A small cancellation token: a flag that wakes whoever waits for it, and that passes on to its children.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Tells work that it is no longer wanted. Cheap to clone; all clones are the same token.
///
/// A tool that runs long looks at [`is_cancelled`](Self::is_cancelled) or waits for
/// [`cancelled`](Self::cancelled) and winds down; what does not react is dropped after the grace period.
///
/// ```
/// use haversack_agent_core::cancel::Cancellation;
///
/// let run = Cancellation::new();
/// let child = run.child();
/// run.cancel();
/// assert!(child.is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next_key: u64,
    wakers: Vec<(u64, Waker)>,
    children: Vec<Weak<Shared>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing under this lock can leave the lists half-changed, so a poisoned lock is as good as any.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancellation {
    /// A token of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled with this one, and can be cancelled without it.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        {
            let mut waiting = self.0.waiting();
            // Forgets children that are gone whenever the list would have to grow.
            if waiting.children.len() == waiting.children.capacity() {
                waiting.children.retain(|c| c.strong_count() > 0);
            }
            waiting.children.push(Arc::downgrade(&child.0));
        }
        // Read after the child is listed: a cancel in between is then seen by one side or the other.
        if self.is_cancelled() {
            child.cancel();
        }
        child
    }

    /// Cancels this token and all its children. Doing it again changes nothing.
    pub fn cancel(&self) {
        let mut open = vec![Arc::clone(&self.0)];
        while let Some(token) = open.pop() {
            token.cancelled.store(true, Ordering::SeqCst);
            let (wakers, children) = {
                let mut waiting = token.waiting();
                (std::mem::take(&mut waiting.wakers), std::mem::take(&mut waiting.children))
            };
            open.extend(children.iter().filter_map(Weak::upgrade));
            // Outside the lock: a waker is foreign code.
            for (_, waker) in wakers {
                waker.wake();
            }
        }
    }

    /// Whether [`cancel`](Self::cancel) was called on this token or on one above it.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until the token is cancelled. Cancellation safe: dropping the future forgets the wait.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), key: None }
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_cancelled()).finish()
    }
}

/// Ready when its token is cancelled. Made by [`Cancellation::cancelled`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cancelled {
    token: Cancellation,
    key: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        {
            let mut waiting = this.token.0.waiting();
            let key = *this.key.get_or_insert_with(|| {
                waiting.next_key += 1;
                waiting.next_key
            });
            match waiting.wakers.iter_mut().find(|(k, _)| *k == key) {
                Some((_, waker)) => waker.clone_from(cx.waker()),
                None => waiting.wakers.push((key, cx.waker().clone())),
            }
        }
        // Read after the waker is listed, so that a cancel in between cannot be missed.
        if this.token.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.token.0.waiting().wakers.retain(|(k, _)| *k != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn a_cancel_reaches_grandchildren_but_never_the_parent() {
        let root = Cancellation::new();
        let child = root.child();
        let grandchild = child.child();
        child.cancel();
        assert_eq!(
            (root.is_cancelled(), child.is_cancelled(), grandchild.is_cancelled()),
            (false, true, true)
        );
        assert!(child.child().is_cancelled(), "a child of a cancelled token starts cancelled");
    }

    #[test]
    fn a_waiting_future_is_woken_and_a_dropped_one_leaves_nothing_behind() {
        let token = Cancellation::new();
        let mut waiting = token.cancelled();
        assert!((&mut waiting).now_or_never().is_none());
        let other = token.cancelled();
        drop(other);
        assert_eq!(token.0.waiting().wakers.len(), 1);
        token.cancel();
        assert!(waiting.now_or_never().is_some());
        assert_eq!(token.0.waiting().wakers.len(), 0);
    }
}
