//! The ways in which a run ends.

use std::sync::Arc;
use std::time::Duration;

use crate::approval::Ask;
use crate::closing;
use crate::event::{Added, Closed, Event};
use crate::hooks::{Ending, OnStop};
use crate::ledger::AttemptEnd;
use crate::outcome::{Outcome, RunError, StopCause};
use crate::session::Session;
use crate::session::open::Batch;
use crate::setup::purpose_of;
use crate::state::{Phase, RunState, Step};

impl RunState {
    /// The model is done. The run is, too, unless somebody has more to say.
    pub(super) fn done(&mut self, session: &mut Session) {
        if self.verdict_on_run.is_some() || (self.landing.is_none() && self.goes_on(session)) {
            return;
        }
        if self.setup.hooks.is_empty() {
            return self.finish_done(session);
        }
        self.phase = Phase::Ending;
        self.steps.push_back(Step::OnStop(Ending {
            text: self.text.clone(),
            messages: session.messages.clone(),
            turns: session.open.spent.turns,
        }));
    }

    /// Whether messages wait: steering is delivered with the next turn, of the follow-ups one at a time.
    fn goes_on(&mut self, session: &mut Session) -> bool {
        if !self.steering.is_empty() {
            return true;
        }
        match self.follow_ups.pop_front() {
            Some(message) => {
                self.add(session, message, Added::FollowUp);
                true
            }
            None => false,
        }
    }

    pub(super) fn end_judged(&mut self, session: &mut Session, how: OnStop) {
        if self.phase != Phase::Ending {
            return;
        }
        self.phase = Phase::Idle;
        match how {
            OnStop::Continue(message) => self.add(session, message, Added::Hook),
            // Something may have come in while the hooks were judging.
            OnStop::End => {
                if !self.goes_on(session) {
                    self.finish_done(session);
                }
            }
        }
    }

    fn finish_done(&mut self, session: &mut Session) {
        let text = std::mem::take(&mut self.text);
        let structured = self.structured.take();
        self.finish(session, Ok(Outcome::Done { text, structured }));
    }

    pub(super) fn request_stopped(&mut self, session: &mut Session, reason: String) {
        if matches!(self.phase, Phase::Calling | Phase::Compacting) {
            self.discard_unsent(session);
            self.finish(session, Ok(Outcome::Stopped { why: StopCause::Hook(reason) }));
        }
    }

    pub(super) fn request_panicked(&mut self, session: &mut Session) {
        if matches!(self.phase, Phase::Calling | Phase::Compacting) {
            self.events.push_back(Event::HookPanicked { hook: "before_request" });
            self.discard_unsent(session);
            self.finish(session, Err(RunError::HookPanicked));
        }
    }

    fn discard_unsent(&mut self, session: &mut Session) {
        self.cut_summary(session);
        if self.phase != Phase::Calling {
            return;
        }
        self.events.push_back(Event::AttemptDiscarded { message: self.number, attempt: self.attempt });
        self.answer.reset();
        self.phase = Phase::Idle;
    }

    /// Nothing moves but a person has to decide: the session keeps the open calls.
    pub(super) fn pause(&mut self, session: &mut Session) {
        self.close_asks(session.pending_asks(), Closed::Deferred);
        self.close_turn(session);
        self.phase = Phase::Finished;
        self.steps.clear();
        self.events.push_back(Event::RunEnded);
        self.steps.push_back(Step::Finished(Ok(Outcome::Paused)));
    }

    fn close_asks(&mut self, asks: Vec<Ask>, how: Closed) {
        self.undecided.clear();
        let closed = asks.into_iter().map(|ask| Event::ApprovalClosed { ask: Arc::new(ask), how });
        self.events.extend(closed);
    }

    /// Ends the run from wherever it is. Running calls may wind down, if the host has a clock and gives them time.
    pub(super) fn cut(&mut self, session: &mut Session, result: Result<Outcome, RunError>) {
        if matches!(self.phase, Phase::Finished | Phase::WindingDown { .. }) {
            return;
        }
        self.cut_summary(session);
        self.cut_answer(session);
        self.take_back_unbegun(session);
        self.verdict_on_run = Some(result);
        let grace = self.ancestry.limits.grace;
        match self.now {
            Some(now) if !self.running.is_empty() && grace > Duration::ZERO => {
                self.phase = Phase::WindingDown { until: now.saturating_add(grace) };
                self.steps.push_back(Step::WindDown);
            }
            _ => self.drop_running(session),
        }
    }

    /// Drops what still runs, answers what is open, and ends the run as noted.
    pub(super) fn drop_running(&mut self, session: &mut Session) {
        let result = self.verdict_on_run.take();
        let result = result.unwrap_or_else(|| Ok(Outcome::Cancelled { reason: "".into() }));
        self.finish(session, result);
    }

    /// Keeps what there is of an answer that is cut while it is written.
    fn cut_answer(&mut self, session: &mut Session) {
        if self.phase != Phase::Calling {
            return;
        }
        self.phase = Phase::Idle;
        // A call that was never begun has used nothing.
        let begun = !self.steps.iter().any(|s| matches!(s, Step::CallModel(_)));
        if begun {
            self.book(session, purpose_of(self.attempt), AttemptEnd::Aborted, self.answer.usage);
        }
        if self.answer.is_empty() {
            self.events.push_back(Event::AttemptDiscarded { message: self.number, attempt: self.attempt });
            return;
        }
        let calls = self.commit_answer(session, None).map_or(0, |m| m.tool_calls().count());
        if calls > 0 {
            session.open.batch = Some(Batch::for_calls(calls));
        }
    }

    /// The one way out: everything open is closed, the session is valid.
    pub(super) fn finish(&mut self, session: &mut Session, result: Result<Outcome, RunError>) {
        if self.phase == Phase::Finished {
            return;
        }
        self.take_back_unbegun(session);
        // A run that only compacts leaves open calls to those who resume them.
        if !self.only_compacts {
            self.close_asks(session.pending_asks(), Closed::Withdrawn);
            self.close_open_calls(session, closing::NOT_STARTED);
        }
        self.close_turn(session);
        self.running.clear();
        self.phase = Phase::Finished;
        self.events.push_back(Event::RunEnded);
        self.steps.push_back(Step::Finished(result));
    }

    /// Ends the run now, wherever it is: no waiting, no failing. Calls that run are answered as interrupted, those
    /// that have not begun as not started. What the driver still holds is to be dropped before.
    pub fn close(&mut self, session: &mut Session) {
        if self.phase != Phase::Finished {
            self.verdict_on_run = None;
            self.cut_summary(session);
            self.cut_answer(session);
            self.finish(session, Ok(Outcome::Cancelled { reason: "dropped".into() }));
        }
    }
}
