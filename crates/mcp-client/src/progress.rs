//! The progress reports of one call, on their way from the driver to whoever follows the call.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::protocol::Progress;

/// The progress reports of one call, bounded: the oldest go first.
#[derive(Debug, Default)]
pub(crate) struct ProgressQueue {
    inner: Mutex<ProgressInner>,
}

#[derive(Debug, Default)]
struct ProgressInner {
    reports: VecDeque<Progress>,
    ended: bool,
    waker: Option<Waker>,
}

impl ProgressQueue {
    /// How many reports are kept for a reader who is behind.
    const KEPT: usize = 64;

    pub(crate) fn push(&self, progress: Progress) {
        let mut inner = self.lock();
        if inner.reports.len() == Self::KEPT {
            inner.reports.pop_front();
        }
        inner.reports.push_back(progress);
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    /// No more reports will come.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        let mut inner = self.lock();
        match inner.reports.pop_front() {
            Some(progress) => Poll::Ready(Some(progress)),
            None if inner.ended => Poll::Ready(None),
            None => {
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
