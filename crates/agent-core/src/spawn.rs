//! A run on a task of its own, for hosts that cannot poll it where they are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::StreamExt as _;
use tokio::task::JoinHandle;

use crate::agent::Agent;
use crate::event::Event;
use crate::handle::RunHandle;
use crate::message::Message;
use crate::outcome::{Outcome, RunError};
use crate::run::Run;
use crate::session::Session;
use crate::state::{Ancestry, Start};
use crate::tool_context::Scope;

/// Events that wait for the reader at most. When the queue is full, deltas of the same block that wait one behind the
/// other become one; when there is nothing to merge, the run waits. No event is dropped.
pub const MAX_WAITING_EVENTS: usize = 256;

/// Bytes that deltas are merged up to.
const MAX_MERGED_BYTES: usize = 64 * 1024;

impl Agent {
    /// The same as [`start`](Self::start), on a task of its own. The session is given back with the outcome.
    ///
    /// Needs a tokio runtime. Dropping the returned value cancels the run without grace and drops the session with
    /// it: to keep the session, [`cancel`](RunHandle::cancel) and await
    /// [`finish`](SpawnedRun::finish).
    pub fn spawn(&self, session: Session, message: impl Into<Message>) -> SpawnedRun {
        let message = message.into();
        spawn(self.clone(), session, Start::With(message))
    }

    /// The same as [`resume`](Self::resume), on a task of its own.
    pub fn spawn_resumed(&self, session: Session) -> SpawnedRun {
        spawn(self.clone(), session, Start::Again)
    }
}

fn spawn(agent: Agent, mut session: Session, start: Start) -> SpawnedRun {
    let queue = Arc::new(Queue::default());
    let scope = Scope::default();
    let handle = RunHandle::new(Arc::clone(&scope.inbox));
    let writer = Writer(Arc::clone(&queue));
    let task = tokio::spawn(async move {
        let outcome = {
            let ancestry = Ancestry::top(agent.setup());
            let mut run = agent.run_below(&mut session, start, ancestry, scope);
            pump(&mut run, &writer.0).await;
            run.outcome().await
        };
        drop(writer);
        (session, outcome)
    });
    SpawnedRun { queue, task, handle }
}

/// Closes the queue when the task ends, however it ends.
struct Writer(Arc<Queue>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn pump(run: &mut Run<'_>, queue: &Queue) {
    while let Some(event) = run.next().await {
        let mut event = Some(event);
        std::future::poll_fn(|cx| queue.poll_push(&mut event, cx)).await;
    }
}

/// A run on a task of its own.
#[derive(Debug)]
pub struct SpawnedRun {
    queue: Arc<Queue>,
    task: JoinHandle<(Session, Result<Outcome, RunError>)>,
    handle: RunHandle,
}

impl SpawnedRun {
    /// A handle to cancel, steer and decide from elsewhere.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// The next event, or `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no event is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.queue.poll_pop(cx)).await
    }

    /// Waits for the end, past any events that were not read, and gives back the session with the outcome.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the runtime was shut down before the run ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run, and the session with it.
    pub async fn finish(mut self) -> Result<(Session, Result<Outcome, RunError>), Lost> {
        while self.next().await.is_some() {}
        (&mut self.task).await.map_err(|_gone| Lost)
    }
}

impl Drop for SpawnedRun {
    fn drop(&mut self) {
        self.task.abort();
        self.queue.close();
    }
}

/// The runtime was shut down before the run ended, and the session went with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the runtime was shut down before the run ended")
    }
}

impl std::error::Error for Lost {}

/// A bounded queue between one run and one reader.
#[derive(Debug, Default)]
struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Waiting {
    /// Takes an event in, or gives it back when there is no room.
    fn push(&mut self, next: Event) -> Option<Event> {
        if self.events.len() >= MAX_WAITING_EVENTS {
            let next = match self.events.back_mut() {
                Some(last) => merge(last, next)?,
                None => next,
            };
            self.make_room();
            if self.events.len() >= MAX_WAITING_EVENTS {
                return Some(next);
            }
            self.events.push_back(next);
            return None;
        }
        self.events.push_back(next);
        None
    }

    /// Merges what can be merged.
    fn make_room(&mut self) {
        let mut merged = VecDeque::with_capacity(self.events.len());
        for event in self.events.drain(..) {
            let event = match merged.back_mut() {
                Some(last) => merge(last, event),
                None => Some(event),
            };
            merged.extend(event);
        }
        self.events = merged;
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_push(&self, event: &mut Option<Event>, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        let Some(next) = event.take() else { return Poll::Ready(()) };
        if waiting.closed {
            return Poll::Ready(());
        }
        *event = waiting.push(next);
        if event.is_some() {
            waiting.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let reader = waiting.reader.take();
        drop(waiting);
        if let Some(reader) = reader {
            reader.wake();
        }
        Poll::Ready(())
    }

    fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut waiting = self.lock();
        if let Some(event) = waiting.events.pop_front() {
            let writer = waiting.writer.take();
            drop(waiting);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Poll::Ready(Some(event));
        }
        if waiting.closed {
            return Poll::Ready(None);
        }
        waiting.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn close(&self) {
        let (reader, writer) = {
            let mut waiting = self.lock();
            waiting.closed = true;
            (waiting.reader.take(), waiting.writer.take())
        };
        reader.into_iter().chain(writer).for_each(Waker::wake);
    }
}

/// Appends a delta to one of the same block. Gives back what cannot be merged.
fn merge(last: &mut Event, next: Event) -> Option<Event> {
    let (into, delta) = match (last, &next) {
        (Event::Text { message: a, delta: into }, Event::Text { message: b, delta }) if a == b => {
            (into, delta)
        }
        (Event::Reasoning { message: a, delta: into }, Event::Reasoning { message: b, delta }) if a == b => {
            (into, delta)
        }
        (
            Event::ToolArguments { message: a, index: i, delta: into },
            Event::ToolArguments { message: b, index: j, delta },
        ) if a == b && i == j => (into, delta),
        _ => return Some(next),
    };
    if into.len() + delta.len() > MAX_MERGED_BYTES {
        return Some(next);
    }
    into.push_str(delta);
    None
}

#[cfg(test)]
mod tests;
