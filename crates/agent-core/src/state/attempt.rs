//! One attempt at an answer: its events, its end, and what follows when it failed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::closing;
use crate::event::{Added, Event};
use crate::ledger::{AttemptEnd, LedgerEntry, Purpose};
use crate::message::{Block, Message, Role, ToolStatus};
use crate::model::{ModelError, ModelErrorKind, ModelEvent};
use crate::outcome::{Outcome, RunError, StopCause};
use crate::session::Session;
use crate::session::open::Batch;
use crate::session::unused;
use crate::setup::purpose_of;
use crate::state::{Phase, RunState};
use crate::usage::{StopReason, Usage};

/// What the model is asked when its answer was cut at the output limit.
const CONTINUE: &str = "Your answer was cut at the output limit. Continue exactly where it stopped.";

impl RunState {
    pub(super) fn model_event(&mut self, session: &mut Session, event: ModelEvent) {
        if self.phase == Phase::Compacting {
            return self.summary_event(session, event);
        }
        if self.phase != Phase::Calling {
            return;
        }
        match self.answer.feed(event, self.number, &mut self.events) {
            Ok(None) => {}
            Ok(Some(reason)) => self.answer_ended(session, &reason),
            Err(too_long) => self.model_failed(session, too_long.into()),
        }
    }

    pub(super) fn model_ended(&mut self, session: &mut Session) {
        let text = "the answer ended before it was complete: the stream closed without a stop reason";
        self.model_failed(session, ModelError::new(ModelErrorKind::Interrupted, text));
    }

    /// Books what an attempt used.
    pub(super) fn book(&mut self, session: &mut Session, purpose: Purpose, end: AttemptEnd, usage: Usage) {
        let Some(model) = self.setup.model(self.model) else { return };
        let cost_micros = self.setup.price(&model.author, &usage);
        let spent = &mut session.open.spent;
        spent.input_tokens = spent.input_tokens.saturating_add(usage.input.unwrap_or(0));
        spent.output_tokens = spent.output_tokens.saturating_add(usage.output.unwrap_or(0));
        spent.cost_micros = spent.cost_micros.saturating_add(cost_micros.unwrap_or(0));
        session.ledger.push(LedgerEntry {
            run: session.runs,
            turn: spent.turns.saturating_add(1),
            purpose,
            end,
            author: model.author.clone(),
            usage,
            cost_micros,
            path: Arc::clone(&self.ancestry.path),
        });
    }

    pub(super) fn model_failed(&mut self, session: &mut Session, error: ModelError) {
        if self.phase == Phase::Compacting {
            return self.summary_failed(session, &error);
        }
        if self.phase != Phase::Calling {
            return;
        }
        self.phase = Phase::Idle;
        self.book(session, purpose_of(self.attempt), AttemptEnd::Failed, self.answer.usage);
        self.discard_attempt();
        if error.kind == ModelErrorKind::Filtered {
            return self.finish(session, Ok(Outcome::Stopped { why: StopCause::Filtered }));
        }
        if matches!(error.kind, ModelErrorKind::ContextOverflow { .. }) {
            return self.overflowed(session, error);
        }
        let wait = self.setup.retry.delay(self.model_attempts, &error, self.setup.random());
        match wait {
            Some(delay) if delay.is_zero() => self.retry_at_once(session, error),
            Some(delay) if self.now.is_some() => self.back_off(delay, error),
            _ => self.fall_back(session, error),
        }
    }

    fn discard_attempt(&mut self) {
        self.events.push_back(Event::AttemptDiscarded { message: self.number, attempt: self.attempt });
        self.answer.reset();
    }

    fn retry_at_once(&mut self, session: &mut Session, error: ModelError) {
        self.announce_retry(Duration::ZERO, error);
        self.attempt_answer(session);
    }

    fn back_off(&mut self, delay: Duration, error: ModelError) {
        self.announce_retry(delay, error);
        let until = self.now.unwrap_or_default().saturating_add(delay);
        self.phase = Phase::Backoff { until };
    }

    fn announce_retry(&mut self, delay: Duration, error: ModelError) {
        let attempt = self.attempt.saturating_add(1);
        self.events.push_back(Event::Retrying { message: self.number, attempt, delay, error });
    }

    /// The model has failed for good: the next one of the list takes over, if it can do better.
    fn fall_back(&mut self, session: &mut Session, error: ModelError) {
        use ModelErrorKind as K;
        // The same request would be refused by the next model as well.
        let hopeless = matches!(error.kind, K::InvalidRequest { .. });
        let next = self.model.saturating_add(1);
        let (Some(from), Some(to)) = (self.setup.models.get(self.model), self.setup.models.get(next)) else {
            return self.finish(session, Err(RunError::Model(Box::new(error))));
        };
        if hopeless {
            return self.finish(session, Err(RunError::Model(Box::new(error))));
        }
        self.events.push_back(Event::ModelSwitched {
            from: from.author.clone(),
            to: to.author.clone(),
            error,
        });
        self.model = next;
        self.model_attempts = 0;
        self.attempt_answer(session);
    }

    fn answer_ended(&mut self, session: &mut Session, reason: &StopReason) {
        self.phase = Phase::Idle;
        self.book(session, purpose_of(self.attempt), AttemptEnd::Answered, self.answer.usage);
        session.open.spent.turns = session.open.spent.turns.saturating_add(1);
        let whole = reason.is_complete() && self.answer.is_closed();
        let usage = self.answer.usage;
        let message = self.commit_answer(session, Some(reason.clone()));
        self.calibrate(session, &usage);
        let calls = message.as_ref().map_or(0, |m| m.tool_calls().count());
        self.text = message.map(|m| m.text()).unwrap_or_default();
        if calls == 0 {
            return self.answered_in_words(session, reason);
        }
        session.open.batch = Some(Batch::for_calls(calls));
        if self.landing.is_some() && !self.answers_by_tool() {
            self.close_open_calls(session, closing::TOOL_LIMIT);
            return self.turn_ended(session);
        }
        if whole {
            session.open.continuations = 0;
            return self.propose(session);
        }
        let text = if *reason == StopReason::MaxTokens { closing::CUT_AT_LIMIT } else { closing::CUT_OFF };
        self.close_open_calls(session, text);
        self.turn_ended(session);
        match reason {
            StopReason::Filtered => self.end_with(StopCause::Filtered),
            _ => {
                self.count_continuation(session);
            }
        }
    }

    /// An answer without calls.
    fn answered_in_words(&mut self, session: &mut Session, reason: &StopReason) {
        self.turn_ended(session);
        match reason {
            StopReason::Filtered => self.end_with(StopCause::Filtered),
            // The provider wants to be asked again, with the same history.
            StopReason::Pause => {}
            StopReason::MaxTokens if self.landing.is_none() => {
                if self.count_continuation(session) {
                    self.add(session, Message::user(CONTINUE), Added::Continuation);
                }
            }
            // The context is full: room is made, and the model goes on.
            StopReason::ContextWindow if self.count_continuation(session) => {
                if !self.compact(session, None) {
                    self.add(session, Message::user(CONTINUE), Added::Continuation);
                }
            }
            StopReason::ContextWindow => {}
            _ => {
                session.open.continuations = 0;
                self.answered_finally(session);
            }
        }
    }

    /// Counts an answer that was cut. Whether the run may go on.
    fn count_continuation(&mut self, session: &mut Session) -> bool {
        let count = &mut session.open.continuations;
        *count = count.saturating_add(1);
        let goes_on = *count <= self.ancestry.limits.continuations;
        if !goes_on {
            self.end_with(StopCause::OutputLimit);
        }
        goes_on
    }

    /// Ends the run at the next opportunity, which is before the next request.
    pub(super) fn end_with(&mut self, why: StopCause) {
        self.verdict_on_run = Some(Ok(Outcome::Stopped { why }));
    }

    pub(super) fn turn_ended(&mut self, session: &Session) {
        self.close_turn(session);
        if let Some(limit) = self.landing {
            self.end_with(StopCause::Limit(limit));
        }
    }

    /// Tells that the turn is over, once.
    pub(super) fn close_turn(&mut self, session: &Session) {
        if std::mem::take(&mut self.turn_open) {
            self.events.push_back(Event::TurnEnded { turn: session.open.spent.turns });
        }
    }

    /// Stores what there is of the answer. Nothing is stored of an answer without content.
    pub(super) fn commit_answer(
        &mut self,
        session: &mut Session,
        stop: Option<StopReason>,
    ) -> Option<Arc<Message>> {
        let usage = self.answer.usage;
        let blocks = self.answer.take_blocks();
        self.answer.reset();
        if blocks.is_empty() {
            return None;
        }
        let mut message = Message::new(Role::Assistant, blocks);
        message.author = self.setup.model(self.model).map(|m| m.author.clone());
        message.stop = stop;
        self.settle_calls(session.messages.len(), &mut message);
        let content = Arc::new(message);
        session.messages.push(Arc::clone(&content));
        self.sent = session.messages.len();
        self.events.push_back(Event::MessageEnded {
            message: self.number,
            content: Arc::clone(&content),
            usage,
        });
        Some(content)
    }

    /// Gives every call an id of its own and arguments that every wire accepts.
    fn settle_calls(&mut self, place: usize, message: &mut Message) {
        for (at, block) in message.blocks.iter_mut().enumerate() {
            let Block::ToolCall(call) = block else { continue };
            if !call.arguments.is_object() {
                let written = std::mem::replace(&mut call.arguments, Value::Object(Map::new()));
                if !written.is_null() {
                    call.malformed = Some(written.to_string());
                }
            }
            let id = unused(&self.ids, &call.id, place, at);
            if id != call.id {
                let wire: Arc<str> = call.id.as_str().into();
                self.events.push_back(Event::CallRenamed { wire: Arc::clone(&wire), call: id.clone() });
                call.wire_id = Some(wire);
                call.id = id.clone();
            }
            self.ids.insert(id);
        }
    }

    /// Answers all open calls that have no result with one text, closes the batch and tells the host.
    pub(super) fn close_open_calls(&mut self, session: &mut Session, not_started: &str) {
        let Some(last) = session.messages.last().cloned() else { return };
        let open =
            session.open.batch.as_ref().map(|b| b.slots.iter().map(|s| !s.is_done()).collect::<Vec<_>>());
        let texts: Vec<Option<String>> = self.texts_of_running();
        let text = |place: usize, status| match status {
            ToolStatus::Interrupted => {
                texts.get(place).cloned().flatten().unwrap_or_else(|| closing::interrupted(None))
            }
            _ => not_started.to_owned(),
        };
        let max_bytes = self.setup.outputs.turn_bytes;
        let Some((message, dropped_bytes)) = session.close_batch(text, max_bytes) else { return };
        for ((result, _), open) in
            message.tool_results().zip(last.tool_calls()).zip(open.into_iter().flatten())
        {
            if open {
                let result = Arc::new(result.clone());
                self.events.push_back(Event::ToolEnded {
                    call: result.id.clone(),
                    result,
                    attachments: Vec::new(),
                });
            }
        }
        self.results_added(session, message, dropped_bytes);
    }

    pub(super) fn results_added(
        &mut self,
        session: &mut Session,
        content: Arc<Message>,
        dropped_bytes: usize,
    ) {
        if dropped_bytes > 0 {
            self.events.push_back(Event::ResultsCut { dropped_bytes });
        }
        let message = session.next_number();
        self.events.push_back(Event::ResultsAdded { message, content });
    }
}
