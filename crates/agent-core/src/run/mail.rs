//! What reaches a run from its handles and its sub-agents, and what it gives back at its end.

use crate::event::Event;
use crate::message::CallId;
use crate::run::Run;
use crate::session::Session;
use crate::state::Input;

impl Run<'_> {
    /// Keeps the list of asks that a handle may answer true to what the host has been told.
    pub(super) fn note_asks(&self, event: &Event) {
        match event {
            Event::ApprovalAsked { ask } => self.scope.inbox.lock().asks.push(ask.digest),
            Event::ApprovalClosed { ask, .. } => {
                self.scope.inbox.lock().asks.retain(|open| *open != ask.digest);
            }
            _ => {}
        }
    }

    pub(super) fn read_mail(&mut self) {
        if !self.scope.inbox.take_full() {
            return;
        }
        let (cancel, verdicts, progress) = {
            let mut mail = self.scope.inbox.lock();
            (mail.cancel.take(), std::mem::take(&mut mail.verdicts), std::mem::take(&mut mail.progress))
        };
        self.read_children();
        for note in progress {
            self.feed(Input::ToolProgress { call: note.call, text: note.text, skipped: note.skipped });
        }
        loop {
            let (steering, follow_up) = self.state.takes_messages();
            let mut mail = self.scope.inbox.lock();
            let steering = if steering { mail.steering.pop_front() } else { None };
            let follow_up = if follow_up { mail.follow_ups.pop_front() } else { None };
            drop(mail);
            if steering.is_none() && follow_up.is_none() {
                break;
            }
            steering.into_iter().for_each(|m| self.feed(Input::Steer(m)));
            follow_up.into_iter().for_each(|m| self.feed(Input::FollowUp(m)));
        }
        for (ask, verdict) in verdicts {
            self.feed(Input::Verdict { ask, verdict });
        }
        if let Some(reason) = cancel {
            self.feed(Input::Cancel { reason });
        }
    }

    pub(super) fn take_suspended(&self, call: &CallId) -> Option<Box<Session>> {
        let mut mail = self.scope.inbox.lock();
        let at = mail.suspended.iter().position(|(id, _)| id == call)?;
        Some(mail.suspended.swap_remove(at).1)
    }

    /// Takes in what sub-agents have told, spent and been granted.
    pub(super) fn read_children(&mut self) {
        let (events, books, grants) = {
            let mut mail = self.scope.inbox.lock();
            (
                std::mem::take(&mut mail.children_events),
                std::mem::take(&mut mail.books),
                std::mem::take(&mut mail.grants),
            )
        };
        for (call, name, event) in events {
            self.feed(Input::Child { call, name, event: Box::new(event) });
        }
        if !books.is_empty() {
            self.feed(Input::Books(books));
        }
        grants.into_iter().for_each(|grants| self.feed(Input::Granted(grants)));
    }

    /// Tells handles that the run is over and gives back what was not delivered.
    pub(super) fn close_mail(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let undelivered = self.state.take_undelivered();
        let mut mail = self.scope.inbox.lock();
        mail.closed = true;
        mail.asks.clear();
        let (steering, follow_ups) =
            (std::mem::take(&mut mail.steering), std::mem::take(&mut mail.follow_ups));
        mail.undelivered.extend(undelivered.into_iter().chain(steering).chain(follow_ups));
    }
}
