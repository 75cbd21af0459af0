//! What reaches a run from outside its own poll: progress of tools, and whatever a handle sends.
//!
//! One mutex and one waker. The lock is held for a push or a swap, never while foreign code runs, and every list
//! in it is bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use crate::approval::Verdict;
use crate::digest::Digest;
use crate::event::Event;
use crate::ledger::LedgerEntry;
use crate::message::{CallId, Message};
use crate::policy::Grants;
use crate::session::Session;

/// Progress notes that wait for the host at most, for all tools of a run together. When the host reads slower than
/// tools write, the oldest note goes and the next one says how many went before it.
pub const MAX_PROGRESS_NOTES: usize = 64;

/// Bytes of one progress note; a longer one is cut at a character and ends in `…`.
pub const MAX_PROGRESS_BYTES: usize = 8 * 1024;

/// Messages that wait for the run at most, steering and follow-ups each. A host that sends more gets them back.
pub const MAX_QUEUED_MESSAGES: usize = 1024;

/// Events of sub-agents that wait for the host at most; a sub-agent that has more to tell waits.
pub const MAX_CHILD_EVENTS: usize = 256;

/// The letter box of one run.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waker: AtomicWaker,
    /// Whether there is something to read: keeps the lock out of the way of a run that nobody talks to.
    full: AtomicBool,
    /// Whether the run of this box has nothing to do until a person has decided.
    awaits_people: AtomicBool,
    mail: Mutex<Mail>,
}

#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) progress: VecDeque<Progress>,
    pub(crate) steering: VecDeque<Message>,
    pub(crate) follow_ups: VecDeque<Message>,
    pub(crate) verdicts: Vec<(Digest, Verdict)>,
    pub(crate) cancel: Option<Arc<str>>,
    /// The asks that a handle may answer.
    pub(crate) asks: Vec<Digest>,
    /// Set when the run is over: from then on nothing is taken in.
    pub(crate) closed: bool,
    /// Events of sub-agents, with the call and the name of each.
    pub(crate) children_events: VecDeque<(CallId, Arc<str>, Event)>,
    /// The letter boxes of sub-agents that run, so that a handle reaches them.
    pub(crate) children: Vec<(CallId, Arc<Inbox>)>,
    /// What sub-agents spent.
    pub(crate) books: Vec<LedgerEntry>,
    /// What was granted to sub-agents.
    pub(crate) grants: Vec<Grants>,
    /// Sub-agents that paused.
    pub(crate) suspended: Vec<(CallId, Box<Session>)>,
    /// What the run did not deliver.
    pub(crate) undelivered: Vec<Message>,
}

#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) call: CallId,
    pub(crate) text: String,
    /// Notes that were dropped before this one because nobody read them in time.
    pub(crate) skipped: u32,
}

impl Inbox {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Mail> {
        // Pushes and swaps only: no panic can leave the lists half-changed.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Whether something came since the last look.
    pub(crate) fn take_full(&self) -> bool {
        // The load first: it is the cheap common case.
        self.full.load(Ordering::Acquire) && self.full.swap(false, Ordering::AcqRel)
    }

    /// Tells the run that there is mail. Call it without the lock.
    pub(crate) fn wake(&self) {
        self.full.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Notes whether the run has nothing to do until a person has decided, for the run above.
    pub(crate) fn note_waiting(&self, waits: bool) {
        self.awaits_people.store(waits, Ordering::Relaxed);
    }

    /// Whether all these calls are sub-agents that wait for people.
    pub(crate) fn only_people_are_missing<'a>(&self, mut calls: impl Iterator<Item = &'a CallId>) -> bool {
        let mail = self.lock();
        // The common case first: no sub-agent at all.
        !mail.children.is_empty()
            && calls.all(|call| {
                let child = mail.children.iter().find(|(id, _)| id == call);
                child.is_some_and(|(_, inbox)| inbox.awaits_people.load(Ordering::Relaxed))
            })
    }

    pub(crate) fn push_progress(&self, call: CallId, mut text: String) {
        if text.len() > MAX_PROGRESS_BYTES {
            let mut end = MAX_PROGRESS_BYTES;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push('…');
        }
        {
            let progress = &mut self.lock().progress;
            let mut skipped = 0;
            if progress.len() >= MAX_PROGRESS_NOTES
                && let Some(oldest) = progress.pop_front()
            {
                skipped = oldest.skipped.saturating_add(1);
            }
            // The count rides on the next note in the queue, which is the first that the host will see.
            match progress.front_mut() {
                Some(next) => next.skipped = next.skipped.saturating_add(skipped),
                None => debug_assert_eq!(skipped, 0, "the queue holds more than one note when it is full"),
            }
            progress.push_back(Progress { call, text, skipped: 0 });
        }
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_nobody_reads_are_counted_and_never_pile_up() {
        let inbox = Inbox::default();
        for i in 0..MAX_PROGRESS_NOTES + 10 {
            inbox.push_progress("c".into(), i.to_string());
        }
        let mail = inbox.lock();
        assert_eq!(mail.progress.len(), MAX_PROGRESS_NOTES);
        assert_eq!((mail.progress[0].skipped, mail.progress[0].text.as_str()), (10, "10"));
    }

    #[test]
    fn a_long_note_is_cut_at_a_character() {
        let inbox = Inbox::default();
        inbox.push_progress("c".into(), "ä".repeat(MAX_PROGRESS_BYTES));
        let mail = inbox.lock();
        assert!(mail.progress[0].text.ends_with("ä…"));
        assert!(mail.progress[0].text.len() <= MAX_PROGRESS_BYTES + '…'.len_utf8());
    }
}
