//! What happens on a connection beside its calls, as a bounded stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::process::Exit;
use crate::protocol::Notice;

/// How many events are kept for those who have not read them yet. Older ones are dropped and counted.
const KEPT_EVENTS: usize = 256;

/// How many of them are kept while nobody has asked for events at all: what was said at the start.
const KEPT_UNREAD: usize = 64;

/// Something that happened on a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The server said something on its own, or something odd.
    Notice(Notice),
    /// The connection has ended, and the process if there was one. The last event.
    Ended(Exit),
    /// That many events were dropped because they were not read in time.
    Missed(u64),
}

/// The events of one connection.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    kept: VecDeque<Event>,
    /// The number of the first event kept.
    first: u64,
    was_read: bool,
    ended: bool,
    waiting: Vec<Waker>,
}

impl EventLog {
    pub(crate) fn push(&self, event: Event) {
        let mut inner = self.lock();
        if inner.ended {
            return;
        }
        let limit = if inner.was_read { KEPT_EVENTS } else { KEPT_UNREAD };
        if inner.kept.len() >= limit {
            // A listener who is behind wants the latest.
            inner.kept.pop_front();
            inner.first += 1;
        }
        inner.ended = matches!(event, Event::Ended(_));
        inner.kept.push_back(event);
        for waker in std::mem::take(&mut inner.waiting) {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of a connection, from the first one still kept on.
///
/// At most 256 unread events are kept; who reads too slowly gets [`Event::Missed`] in place of the oldest. The stream
/// ends after [`Event::Ended`]. It does not keep the connection alive.
#[derive(Debug)]
pub struct Events {
    log: Arc<EventLog>,
    next: u64,
    done: bool,
}

impl Events {
    pub(crate) fn of(log: Arc<EventLog>) -> Self {
        log.lock().was_read = true;
        Self { log, next: 0, done: false }
    }

    /// The next event, or `None` after the last one.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next event that is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        match self.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.done {
            return Poll::Ready(None);
        }
        let mut inner = self.log.lock();
        if let Some(missed @ 1..) = inner.first.checked_sub(self.next) {
            self.next = inner.first;
            return Poll::Ready(Some(Event::Missed(missed)));
        }
        let place = usize::try_from(self.next - inner.first).unwrap_or(usize::MAX);
        match inner.kept.get(place) {
            Some(event) => {
                self.next += 1;
                self.done = matches!(event, Event::Ended(_));
                Poll::Ready(Some(event.clone()))
            }
            None => {
                inner.waiting.retain(|waker| !waker.will_wake(cx.waker()));
                inner.waiting.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ExitHow;

    fn note(number: usize) -> Event {
        Event::Notice(Notice::Noise { text: number.to_string() })
    }

    #[test]
    fn each_reader_gets_every_event_in_order_and_then_the_end() {
        let log = Arc::new(EventLog::default());
        let (mut one, mut other) = (Events::of(Arc::clone(&log)), Events::of(Arc::clone(&log)));
        log.push(note(1));
        assert_eq!(one.try_next(), Some(note(1)));
        assert_eq!(one.try_next(), None);
        log.push(note(2));
        let end = Event::Ended(Exit::new(ExitHow::Itself, None));
        log.push(end.clone());
        log.push(note(3));
        for wanted in [Some(note(2)), Some(end.clone()), None, None] {
            assert_eq!(one.try_next(), wanted);
        }
        for wanted in [Some(note(1)), Some(note(2)), Some(end), None] {
            assert_eq!(other.try_next(), wanted);
        }
    }

    #[test]
    fn a_slow_reader_is_told_how_much_it_missed() {
        let log = Arc::new(EventLog::default());
        let mut events = Events::of(Arc::clone(&log));
        for number in 0..KEPT_EVENTS + 5 {
            log.push(note(number));
        }
        assert_eq!(events.try_next(), Some(Event::Missed(5)));
        assert_eq!(events.try_next(), Some(note(5)));
    }
}
