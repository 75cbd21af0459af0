//! Calls in motion: started by the wave rule, ended by their results, their time-outs, or the end of the run.

use std::sync::Arc;
use std::time::Duration;

use crate::closing;
use crate::event::Event;
use crate::message::{Block, CallId, Media, ToolCall, ToolResult, ToolStatus};
use crate::output::limit;
use crate::session::Session;
use crate::session::open::SlotState;
use crate::state::{Phase, ReadyCall, RunState, Step};
use crate::tool::{ToolError, ToolErrorKind, ToolOutput};
use crate::wave::{Standing, next_to_start};

#[derive(Debug)]
pub(super) struct RunningCall {
    pub(super) place: usize,
    pub(super) call: CallId,
    started: Option<Duration>,
    is_agent: bool,
    pub(super) deadline: Option<Duration>,
}

impl RunState {
    /// Starts what may start, and ends the batch or the run when nothing moves any more.
    pub(super) fn advance(&mut self, session: &mut Session) {
        if self.phase != Phase::Batch {
            return;
        }
        // A run that is about to end, for a call that is made again and again or for an answer that never fits, starts
        // nothing more: what has not begun has not started.
        if self.verdict_on_run.is_some() && self.structured.is_none() && !Self::all_done(session) {
            if self.running.is_empty() {
                self.drop_running(session);
            }
            return;
        }
        let Some(message) = Self::calling_message(session) else { return };
        while let Some(place) = self.next_place(session) {
            let call = message.tool_calls().nth(place);
            let Some(call) = call else { break };
            self.start(session, place, call);
        }
        if !self.running.is_empty() {
            return;
        }
        if Self::all_done(session) {
            self.close_complete(session);
        } else if !self.is_awaited() {
            self.pause(session);
        }
    }

    fn all_done(session: &Session) -> bool {
        session.open.batch.as_ref().is_none_or(|b| b.is_complete())
    }

    /// Whether somebody is at work on a verdict, or the host has said that it will send one.
    fn is_awaited(&self) -> bool {
        self.deciding || (self.ancestry.wait_for_verdicts && self.ancestry.approver.is_none())
    }

    /// The place of the next call that may start now.
    fn next_place(&mut self, session: &Session) -> Option<usize> {
        let batch = session.open.batch.as_ref()?;
        while batch.slots.get(self.first_open).is_some_and(|s| s.is_done()) {
            self.first_open += 1;
        }
        let standings = batch.slots.iter().skip(self.first_open).map(|slot| match slot.state {
            SlotState::Done(_) => Standing::Done,
            SlotState::Running { parallel } => Standing::Running { parallel },
            SlotState::Cleared { parallel, .. } => Standing::Ready { parallel },
            _ => Standing::Undecided,
        });
        let place = next_to_start(standings, self.ancestry.limits.parallel_calls)? + self.first_open;
        let agents = self.running.iter().filter(|r| r.is_agent).count();
        if agents > 0 && agents >= self.ancestry.limits.agents_at_once {
            let call = session.messages.last()?.tool_calls().nth(place)?;
            if self.setup.tools.get(&call.name).is_some_and(|e| e.is_agent()) {
                return None;
            }
        }
        Some(place)
    }

    fn start(&mut self, session: &mut Session, place: usize, call: &ToolCall) {
        let setup = Arc::clone(&self.setup);
        if self.ancestry.limits.tool_calls.is_some_and(|limit| session.open.spent.tool_calls >= limit) {
            return self.settle(session, place, call, ToolStatus::NotStarted, closing::TOOL_LIMIT);
        }
        let Some(entry) = setup.tools.get(&call.name) else { return };
        let is_agent = entry.is_agent();
        let goes_on = Self::slot(session, place).is_some_and(|s| s.child.is_some());
        if is_agent && !goes_on {
            if session.open.agents >= self.ancestry.limits.agents {
                return self.settle(session, place, call, ToolStatus::NotStarted, closing::AGENT_LIMIT);
            }
            session.open.agents += 1;
        }
        session.open.spent.tool_calls = session.open.spent.tool_calls.saturating_add(1);
        let Some(slot) = Self::slot_mut(session, place) else { return };
        let parallel = matches!(slot.state, SlotState::Cleared { parallel: true, .. });
        slot.state = SlotState::Running { parallel };
        let arguments = slot.arguments(call).clone();
        let edited = slot.arguments.clone();
        let child = slot.child.take();
        let lease = is_agent.then(|| self.lease(session, child));
        self.running.push(RunningCall {
            is_agent,
            place,
            call: call.id.clone(),
            started: self.now,
            deadline: entry
                .time_limit(self.ancestry.limits.tool_timeout)
                .and_then(|limit| self.now?.checked_add(limit)),
        });
        self.events.push_back(Event::ToolStarted {
            call: call.id.clone(),
            name: Arc::clone(&call.name),
            edited,
        });
        self.steps.push_back(Step::RunTool(ReadyCall {
            id: call.id.clone(),
            tool: Arc::clone(&entry.tool),
            arguments,
            spec: Arc::clone(&entry.spec),
            lease,
        }));
    }

    /// A call has ended by itself.
    pub(super) fn tool_done(
        &mut self,
        session: &mut Session,
        id: &CallId,
        result: Result<ToolOutput, ToolError>,
        kept: Option<String>,
    ) {
        let Some(at) = self.running.iter().position(|r| r.call == *id) else { return };
        let place = self.running.swap_remove(at).place;
        let Some(message) = Self::calling_message(session) else { return };
        let Some(call) = message.tool_calls().nth(place) else { return };
        let (result, attachments) = self.result_of(session, place, call, result, kept);
        self.finish_call(session, place, call, result, attachments);
        self.after_call(session);
    }

    pub(super) fn after_call(&mut self, session: &mut Session) {
        match self.phase {
            Phase::WindingDown { .. } if self.running.is_empty() => self.drop_running(session),
            _ => self.advance(session),
        }
    }

    fn result_of(
        &mut self,
        session: &Session,
        place: usize,
        call: &ToolCall,
        result: Result<ToolOutput, ToolError>,
        kept: Option<String>,
    ) -> (ToolResult, Vec<Media>) {
        let edited = Self::slot(session, place)
            .filter(|s| s.edited)
            .map(|s| format!("The user changed the arguments of this call to {}.", s.arguments(call)));
        let (output, failed) = match result {
            Ok(output) => (output, None),
            Err(error) => {
                let interrupted = error.kind == ToolErrorKind::Interrupted;
                let status = if interrupted { ToolStatus::Interrupted } else { ToolStatus::Error };
                (ToolOutput::error(error.message), Some(status))
            }
        };
        let status = failed.unwrap_or(if output.is_error { ToolStatus::Error } else { ToolStatus::Ok });
        let (output, cut) = limit(output, &self.setup.outputs, kept.as_deref());
        if !cut.is_nothing() {
            self.events.push_back(Event::OutputCut { call: call.id.clone(), cut, kept });
        }
        let ToolOutput { blocks: mut content, structured, attachments, .. } = output;
        if let Some(note) = edited {
            content.insert(0, Block::text(note));
        }
        let mut result = ToolResult::new(call.id.clone(), Arc::clone(&call.name), status, content);
        result.structured = structured;
        (result, attachments)
    }

    /// A call gets its result without having run.
    pub(super) fn settle(
        &mut self,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        status: ToolStatus,
        text: impl Into<String>,
    ) {
        let result = closing::result(&call.id, &call.name, status, text);
        self.finish_call(session, place, call, result, Vec::new());
    }

    pub(super) fn finish_call(
        &mut self,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        mut result: ToolResult,
        attachments: Vec<Media>,
    ) {
        self.any_ok |= result.status == ToolStatus::Ok;
        self.notice_repeats(session, place, call, &mut result);
        let result = Arc::new(result);
        self.events.push_back(Event::ToolEnded {
            call: call.id.clone(),
            result: Arc::clone(&result),
            attachments,
        });
        if let Some(slot) = Self::slot_mut(session, place) {
            slot.state = SlotState::Done(result);
        }
    }

    /// All calls have their results: they become one message, in the order of the calls.
    fn close_complete(&mut self, session: &mut Session) {
        self.phase = Phase::Idle;
        self.undecided.clear();
        // Nothing is open, so no text is needed.
        let max_bytes = self.setup.outputs.turn_bytes;
        if let Some((message, dropped_bytes)) = session.close_batch(|_, _| String::new(), max_bytes) {
            self.results_added(session, message, dropped_bytes);
        }
        self.turn_ended(session);
        self.count_unknown_tools(session);
        if self.structured.is_some() {
            self.verdict_on_run = None;
            self.done(session);
        }
    }

    /// Calls that took too long are dropped and get an error result.
    pub(super) fn drop_late(&mut self, session: &mut Session, now: Duration) {
        while let Some(at) = self.running.iter().position(|r| r.deadline.is_some_and(|d| now >= d)) {
            let late = self.running.swap_remove(at);
            let Some(message) = Self::calling_message(session) else { return };
            let Some(call) = message.tool_calls().nth(late.place) else { return };
            let after = now.saturating_sub(late.started.unwrap_or(now));
            let text = format!(
                "Timed out after {:.1} s and was stopped. Its effects are unknown: check before you do it again.",
                after.as_secs_f64()
            );
            self.steps.push_back(Step::DropTool(late.call));
            let error = Err(ToolError::new(ToolErrorKind::Timeout, text));
            let (result, attachments) = self.result_of(session, late.place, call, error, None);
            self.finish_call(session, late.place, call, result, attachments);
            self.after_call(session);
        }
    }

    /// The text for each call that is cut while it runs, by place.
    pub(super) fn texts_of_running(&mut self) -> Vec<Option<String>> {
        let mut texts = Vec::new();
        for running in self.running.drain(..) {
            let after = self.now.and_then(|now| Some(now.saturating_sub(running.started?)));
            if texts.len() <= running.place {
                texts.resize(running.place + 1, None);
            }
            if let Some(text) = texts.get_mut(running.place) {
                *text = Some(closing::interrupted(after));
            }
        }
        texts
    }

    /// Takes back the calls that were to be begun and never were: they have not started, and the history says so.
    pub(super) fn take_back_unbegun(&mut self, session: &mut Session) {
        for step in std::mem::take(&mut self.steps) {
            let Step::RunTool(ready) = step else { continue };
            let Some(at) = self.running.iter().position(|r| r.call == ready.id) else { continue };
            let place = self.running.swap_remove(at).place;
            session.open.spent.tool_calls = session.open.spent.tool_calls.saturating_sub(1);
            if let Some(slot) = Self::slot_mut(session, place) {
                slot.child = ready.lease.and_then(|l| l.take_suspended());
                slot.state = if slot.child.is_some() { SlotState::Suspended } else { SlotState::Proposed };
            }
        }
    }
}
