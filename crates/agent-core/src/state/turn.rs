//! The beginning of a run and of each turn: repair, deliveries, limits, the request.

use std::sync::Arc;
use std::time::Duration;

use crate::closing;
use crate::event::{Added, Event};
use crate::limits::Limit;
use crate::message::{Message, Role};
use crate::model::ModelRequest;
use crate::outcome::{Outcome, RunError, StopCause};
use crate::prompt;
use crate::session::Session;
use crate::session::open::OpenRun;
use crate::setup::purpose_of;
use crate::state::{ModelCall, Phase, RunState, Step};

/// What the model is asked when a run goes on behind a finished answer.
const RESUME: &str = "Continue.";

impl RunState {
    pub(super) fn begin(&mut self, session: &mut Session, input: Option<Message>) {
        let problems = session.repair();
        self.events.push_back(Event::RunStarted {
            run: session.runs.saturating_add(1),
            prompt: self.setup.prompt_digest,
            tools: self.setup.tools_digest,
        });
        if !problems.is_empty() {
            self.events.push_back(Event::Repaired { problems });
        }
        session.runs = session.runs.saturating_add(1);
        self.ids = session.messages.iter().flat_map(|m| m.tool_calls()).map(|c| c.id.clone()).collect();
        match input {
            Some(message) => {
                self.close_open_calls(session, closing::SUPERSEDED);
                session.open = OpenRun::default();
                self.add(session, message, Added::Input);
            }
            None if session.messages.is_empty() => {
                self.finish(session, Err(RunError::NothingToResume));
            }
            None => self.resume(session),
        }
    }

    /// Begins a run that makes room and does nothing else.
    pub(super) fn begin_compaction(&mut self, session: &mut Session) {
        self.only_compacts = true;
        session.runs = session.runs.saturating_add(1);
        self.events.push_back(Event::RunStarted {
            run: session.runs,
            prompt: self.setup.prompt_digest,
            tools: self.setup.tools_digest,
        });
        let problems = session.repair();
        if !problems.is_empty() {
            self.events.push_back(Event::Repaired { problems });
        }
    }

    /// Goes on where the session ended: with its open calls, or with another request.
    fn resume(&mut self, session: &mut Session) {
        if session.open.batch.is_some() {
            // The turn of the open calls goes on.
            self.turn_open = true;
            self.events.push_back(Event::TurnStarted { turn: session.open.spent.turns });
            self.resume_batch(session);
        } else if session.messages.last().is_some_and(|m| m.role == Role::Assistant) {
            // No provider answers an answer; some take it for the beginning of one.
            self.add(session, Message::user(RESUME), Added::Resumption);
        }
    }

    /// Appends a message of the user's side.
    pub(super) fn add(&mut self, session: &mut Session, message: Message, why: Added) {
        let content = Arc::new(message);
        session.messages.push(Arc::clone(&content));
        let message = session.next_number();
        self.events.push_back(Event::MessageAdded { message, why, content });
    }

    /// Decides what comes next when nothing is in motion.
    pub(super) fn next_turn(&mut self, session: &mut Session) {
        if let Some(result) = self.verdict_on_run.take() {
            return self.finish(session, result);
        }
        if self.only_compacts {
            return self.compact_only(session);
        }
        self.deliver_steering(session);
        match self.ancestry.limits.reached(&session.open.spent) {
            Some(limit) => self.reach(session, limit),
            None if self.make_room(session) => {}
            None => self.call_model(session),
        }
    }

    pub(super) fn deliver_steering(&mut self, session: &mut Session) -> bool {
        let any = !self.steering.is_empty();
        while let Some(message) = self.steering.pop_front() {
            self.add(session, message, Added::Steering);
        }
        any
    }

    /// A limit is reached: one last request if it may be made, else the end.
    pub(super) fn reach(&mut self, session: &mut Session, limit: Limit) {
        let landing = self.landing.is_none() && self.ancestry.limits.may_land(&session.open.spent);
        if self.landing.is_none() {
            self.events.push_back(Event::LimitReached { limit, landing });
        }
        if !landing {
            return self.finish(session, Ok(Outcome::Stopped { why: StopCause::Limit(limit) }));
        }
        self.landing = Some(limit);
        let text = format!(
            "The {limit} of this run is reached. No more tools can be called. Say briefly what is done and what is left."
        );
        self.add(session, Message::user(text), Added::Landing);
        self.call_model(session);
    }

    /// Begins the first attempt at an answer.
    pub(super) fn call_model(&mut self, session: &mut Session) {
        self.attempt = 0;
        self.model_attempts = 0;
        self.overflow_is_handled = false;
        self.number = session.next_number();
        self.turn_open = true;
        self.events.push_back(Event::TurnStarted { turn: session.open.spent.turns.saturating_add(1) });
        self.attempt_answer(session);
    }

    /// Begins an attempt at the present answer.
    pub(super) fn attempt_answer(&mut self, session: &mut Session) {
        self.attempt = self.attempt.saturating_add(1);
        self.model_attempts = self.model_attempts.saturating_add(1);
        self.answer.reset();
        self.phase = Phase::Calling;
        let Some(model) = self.setup.model(self.model) else { return };
        self.events.push_back(Event::MessageStarted {
            message: self.number,
            attempt: self.attempt,
            model: model.author.clone(),
        });
        let request = ModelRequest {
            system: Arc::clone(&self.setup.system),
            messages: session.messages.clone(),
            tools: Arc::clone(&self.offered),
            tool_choice: self.tool_choice(),
            response_format: self.setup.wanted.as_ref().and_then(|w| w.format()),
            options: self.setup.options.clone(),
            cache: prompt::markers(&session.messages, self.sent),
        };
        let purpose = purpose_of(self.attempt);
        self.steps.push_back(Step::CallModel(ModelCall { model: self.model, request, purpose }));
    }

    pub(super) fn set_time(&mut self, session: &mut Session, now: Duration) {
        let before = self.now.unwrap_or(now);
        let now = now.max(before);
        if self.is_working() {
            self.unbooked += now - before;
            let millis = u64::try_from(self.unbooked.as_millis()).unwrap_or(u64::MAX);
            self.unbooked -= Duration::from_millis(millis);
            let wall = &mut session.open.spent.wall_millis;
            *wall = wall.saturating_add(millis);
        }
        self.now = Some(now);
        match self.phase {
            Phase::Backoff { until } if now >= until => self.attempt_answer(session),
            Phase::WindingDown { until } if now >= until => self.drop_running(session),
            _ => self.drop_late(session, now),
        }
        if self.wall_deadline(session).is_some_and(|deadline| now >= deadline) {
            let why = StopCause::Limit(Limit::WallTime);
            self.events.push_back(Event::LimitReached { limit: Limit::WallTime, landing: false });
            self.cut(session, Ok(Outcome::Stopped { why }));
        }
    }

    /// Whether time counts: always, but while all that is missing is a person's answer, here or in sub-agents.
    pub(crate) fn is_working(&self) -> bool {
        self.phase != Phase::Batch || (!self.running.is_empty() && !self.sub_agents_wait)
    }

    /// When the wall time is used up for good, the landing's reserve included.
    pub(super) fn wall_deadline(&self, session: &Session) -> Option<Duration> {
        let limit = self.ancestry.limits.wall_time?;
        if matches!(self.phase, Phase::Finished | Phase::WindingDown { .. }) || !self.is_working() {
            return None;
        }
        let spent = Duration::from_millis(session.open.spent.wall_millis) + self.unbooked;
        Some(self.now?.saturating_add(limit.saturating_sub(spent)))
    }
}
