//! A handle on a run: what another task, a signal handler or a button may do to it.

use std::fmt;
use std::sync::Arc;

use crate::approval::{Refused, Verdict};
use crate::digest::Digest;
use crate::inbox::{Inbox, MAX_QUEUED_MESSAGES};
use crate::message::Message;

/// Reaches a run from outside. Cheap to clone; outlives the run, and then says so.
///
/// Nothing here waits or blocks: the run acts on it the next time that it is polled, and is woken for that.
#[derive(Clone)]
pub struct RunHandle(Arc<Inbox>);

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a message that was not queued is handed back"]
pub enum Steered {
    /// The run will deliver it; if the run ends before it can, the message is among
    /// [`RunHandle::undelivered`].
    Queued,
    /// The run is over: here it is back.
    NotRunning(Message),
    /// Too many messages wait already: here it is back.
    Full(Message),
}

impl RunHandle {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Self {
        Self(inbox)
    }

    /// Ends the run. The model stream is dropped at once and what it had said is kept; running tools are told, and
    /// dropped after the grace period. The first reason is the one that counts.
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        self.0.lock().cancel.get_or_insert_with(|| reason.into());
        self.0.wake();
    }

    /// Hands over a message that enters the conversation before the next request, after the calls that are running.
    pub fn steer(&self, message: impl Into<Message>) -> Steered {
        self.queue(message.into(), true)
    }

    /// Hands over a message that enters the conversation when the run would end. Of several, one at a time.
    pub fn follow_up(&self, message: impl Into<Message>) -> Steered {
        self.queue(message.into(), false)
    }

    fn queue(&self, message: Message, steering: bool) -> Steered {
        {
            let mut mail = self.0.lock();
            if mail.closed {
                return Steered::NotRunning(message);
            }
            let queue = if steering { &mut mail.steering } else { &mut mail.follow_ups };
            if queue.len() >= MAX_QUEUED_MESSAGES {
                return Steered::Full(message);
            }
            queue.push_back(message);
        }
        self.0.wake();
        Steered::Queued
    }

    /// Answers an open ask, by the digest that [`ApprovalAsked`](crate::event::Event::ApprovalAsked) showed. The
    /// first answer counts, whoever gives it.
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`] when no such ask is open.
    pub fn decide(&self, ask: &Digest, verdict: Verdict) -> Result<(), Refused> {
        // Sub-agents wait for their verdicts in boxes of their own.
        let mut boxes = vec![Arc::clone(&self.0)];
        while let Some(inbox) = boxes.pop() {
            {
                let mut mail = inbox.lock();
                let Some(place) = mail.asks.iter().position(|open| open == ask) else {
                    boxes.extend(mail.children.iter().map(|(_, child)| Arc::clone(child)));
                    continue;
                };
                if verdict == Verdict::Defer {
                    return Ok(());
                }
                mail.asks.swap_remove(place);
                mail.verdicts.push((*ask, verdict));
            }
            inbox.wake();
            self.0.wake();
            return Ok(());
        }
        Err(Refused::Stale)
    }

    /// Takes the messages that the run could not deliver before it ended, in the order in which they were sent,
    /// steering first. Empty while the run goes on.
    pub fn undelivered(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().undelivered)
    }

    /// Whether the run goes on.
    pub fn is_running(&self) -> bool {
        !self.0.lock().closed
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("running", &self.is_running()).finish()
    }
}
