//! Runs below a run: what they are given, and what comes back from them.

use std::sync::{Arc, Mutex};

use crate::approval::Approver;
use crate::ledger::LedgerEntry;
use crate::limits::Limits;
use crate::message::{CallId, ToolCall};
use crate::policy::Ceiling;
use crate::session::Session;
use crate::session::open::SlotState;
use crate::setup::Setup;
use crate::state::RunState;
use crate::tool_context::Lease;

/// Where a run stands among the runs above it, and what it owes to them.
#[derive(Clone)]
pub(crate) struct Ancestry {
    /// Names of the sub-agents from the top run down; empty in the top run.
    pub(crate) path: Arc<[Arc<str>]>,
    /// The ceilings of all runs above, outermost first.
    pub(crate) ceilings: Arc<[Arc<Ceiling>]>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) wait_for_verdicts: bool,
    pub(crate) limits: Limits,
}

impl Ancestry {
    /// That of a run with none above it.
    pub(crate) fn top(setup: &Setup) -> Self {
        Self {
            path: Arc::default(),
            ceilings: Arc::default(),
            approver: setup.approver.clone(),
            wait_for_verdicts: setup.wait_for_verdicts,
            limits: setup.limits.clone(),
        }
    }
}

impl RunState {
    /// What a sub-agent gets from this run.
    pub(super) fn lease(&self, session: &Session, suspended: Option<Box<Session>>) -> Lease {
        let own = [Arc::clone(&self.setup.ceiling)];
        Lease {
            ceilings: self.ancestry.ceilings.iter().cloned().chain(own).collect(),
            approver: self.ancestry.approver.clone(),
            wait_for_verdicts: self.ancestry.wait_for_verdicts,
            left: self.ancestry.limits.left(&session.open.spent),
            max_depth: self.ancestry.limits.agent_depth,
            grants: session.grants.clone(),
            suspended: Mutex::new(suspended),
            note: Mutex::default(),
        }
    }

    /// Takes over what sub-agents spent: it counts against this run's limits, and stands in its books.
    pub(super) fn book_child(&mut self, session: &mut Session, entries: Vec<LedgerEntry>) {
        let run = session.runs;
        let spent = &mut session.open.spent;
        for mut entry in entries {
            spent.input_tokens = spent.input_tokens.saturating_add(entry.usage.input.unwrap_or(0));
            spent.output_tokens = spent.output_tokens.saturating_add(entry.usage.output.unwrap_or(0));
            spent.cost_micros = spent.cost_micros.saturating_add(entry.cost_micros.unwrap_or(0));
            entry.run = run;
            session.ledger.push(entry);
        }
    }

    /// A sub-agent waits for somebody: the call stays open, with its session.
    pub(super) fn suspended(&mut self, session: &mut Session, id: &CallId, child: Box<Session>) {
        let Some(at) = self.running.iter().position(|r| r.call == *id) else { return };
        let place = self.running.swap_remove(at).place;
        if let Some(slot) = Self::slot_mut(session, place) {
            slot.state = SlotState::Suspended;
            slot.child = Some(child);
        }
        self.after_call(session);
    }

    /// A paused sub-agent goes on when there is something for it to go on with: answers, or somebody to ask.
    pub(super) fn wake_suspended(&self, session: &mut Session, place: usize, call: &ToolCall) {
        let somebody = self.ancestry.approver.is_some() || self.ancestry.wait_for_verdicts;
        let Some(entry) = self.setup.tools.get(&call.name) else { return };
        let Some(slot) = Self::slot_mut(session, place) else { return };
        let Some(child) = &slot.child else { return };
        if somebody || child.has_answers() || child.pending_asks().is_empty() {
            let parallel = entry.effects(slot.arguments(call)).may_run_in_parallel();
            slot.state = SlotState::Cleared { approved: None, parallel };
        }
    }
}
