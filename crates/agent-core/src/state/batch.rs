//! The calls of one answer, from proposal to permission: validate, judge, ask.
//!
//! The order is fixed: validation, hard denials, hooks, validation again, policy on the final arguments, the ask.
//! Nothing rewrites arguments after somebody was asked about them.

use std::sync::Arc;

use serde_json::Value;

use crate::approval::Ask;
use crate::closing;
use crate::digest::{Digest, ask_digest};
use crate::event::Event;
use crate::hooks::{Gate, Judgement, PlannedCall};
use crate::message::{Message, ToolCall, ToolStatus};
use crate::policy::{Decision, Proposal, Tightening, decide};
use crate::session::Session;
use crate::session::open::{Slot, SlotState};
use crate::setup::Setup;
use crate::state::{Phase, RunState, Step};
use crate::toolset::ToolEntry;

/// Arguments are shown back to the model up to this many bytes.
const SHOWN_BYTES: usize = 300;

/// What the policy makes of a call.
pub(super) enum Judged {
    Cleared { parallel: bool },
    Asked(Box<Ask>),
    Denied(String),
}

impl RunState {
    /// The message that holds the open calls. Shared, so that slots can be changed while its calls are read.
    pub(super) fn calling_message(session: &Session) -> Option<Arc<Message>> {
        session.messages.last().cloned()
    }

    pub(super) fn slot_mut(session: &mut Session, place: usize) -> Option<&mut Slot> {
        session.open.batch.as_mut()?.slots.get_mut(place)
    }

    pub(super) fn slot(session: &Session, place: usize) -> Option<&Slot> {
        session.open.batch.as_ref()?.slots.get(place)
    }

    /// Takes up the calls of a session that was saved in the middle of a batch.
    pub(super) fn resume_batch(&mut self, session: &mut Session) {
        let Some(message) = Self::calling_message(session) else { return };
        for (place, call) in message.tool_calls().enumerate() {
            let Some(slot) = Self::slot(session, place) else { continue };
            let now = || self.digest_now(session, call, slot.arguments(call));
            let holds = match &slot.state {
                SlotState::Done(_) => true,
                SlotState::Suspended => {
                    self.wake_suspended(session, place, call);
                    continue;
                }
                // What was approved has to be what would run now; else it is asked about again.
                SlotState::Cleared { approved: Some(digest), .. } => now() == Some(*digest),
                SlotState::Asked => now().is_some_and(|digest| session.asks.find(&digest).is_some()),
                _ => false,
            };
            if !holds && let Some(slot) = Self::slot_mut(session, place) {
                // A rewrite by a hook is made again; an edit belongs to the approval that no longer counts.
                *slot = Slot::new();
            }
        }
        // Questions that are still open are put to the approver of this run.
        self.undecided = session.asks.pending().map(|ask| ask.digest).collect();
        let shown: Vec<_> = session.asks.pending().cloned().map(Arc::new).collect();
        self.events.extend(shown.into_iter().map(|ask| Event::ApprovalAsked { ask }));
        self.propose(session);
    }

    pub(super) fn digest_now(&self, session: &Session, call: &ToolCall, arguments: &Value) -> Option<Digest> {
        let entry = self.setup.tools.get(&call.name)?;
        let generation = session.asks.generation();
        Some(ask_digest(&self.ancestry.path, &call.id, entry.fingerprint(), arguments, generation))
    }

    /// Validates the calls that nothing is decided about, and goes on with hooks or the policy.
    pub(super) fn propose(&mut self, session: &mut Session) {
        let setup = Arc::clone(&self.setup);
        let Some(message) = Self::calling_message(session) else { return };
        let mut planned = Vec::new();
        for (place, call) in message.tool_calls().enumerate() {
            // Calls that cannot run get their results here: one too many of the same ends the run.
            if self.walks_in_circles() {
                planned.clear();
                break;
            }
            let Some(slot) = Self::slot(session, place) else { continue };
            if slot.state != SlotState::Proposed {
                continue;
            }
            if place >= self.ancestry.limits.calls_per_turn {
                self.settle(session, place, call, ToolStatus::NotStarted, closing::TOO_MANY);
                continue;
            }
            if self.builtin(&setup, session, place, call) {
                continue;
            }
            let Some(entry) = self.validate(&setup, session, place, call) else { continue };
            if setup.hooks.is_empty() {
                self.judge(&setup, session, place, call, entry, None);
            } else if let Some(plan) = self.plan(&setup, session, place, call, entry) {
                planned.push(plan);
            }
        }
        if planned.is_empty() {
            self.enter_batch(session);
        } else {
            self.phase = Phase::Gating;
            self.steps.push_back(Step::Gate(planned));
        }
    }

    /// Finds the tool and checks the arguments; a call that cannot run gets its result here.
    pub(super) fn validate<'s>(
        &mut self,
        setup: &'s Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
    ) -> Option<&'s ToolEntry> {
        let Some(entry) = setup.tools.get(&call.name) else {
            self.unknown_tool = true;
            let text = setup.unknown_tool(&call.name);
            self.settle(session, place, call, ToolStatus::Error, text);
            return None;
        };
        let slot = Self::slot(session, place)?;
        let wrong = match &call.malformed {
            Some(written) if slot.arguments.is_none() => Some(malformed(written)),
            _ => entry.wrong_arguments(slot.arguments(call)),
        };
        let Some(wrong) = wrong else { return Some(entry) };
        // The host may know how to mend it; what it mends is judged like anything else, and shown beside the
        // proposal.
        let mended = if slot.arguments.is_none() { setup.mend(call, &entry.spec) } else { None };
        match mended.filter(|m| entry.wrong_arguments(m).is_none()) {
            Some(mended) => {
                Self::slot_mut(session, place)?.arguments = Some(mended);
                Some(entry)
            }
            None => {
                let text =
                    format!("{wrong}\nThe schema of `{}` is {}", entry.spec.name, entry.spec.input_schema);
                self.settle(session, place, call, ToolStatus::Error, text);
                None
            }
        }
    }

    /// What the hooks are asked about; nothing for a call that is denied anyway.
    fn plan(
        &mut self,
        setup: &Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
    ) -> Option<PlannedCall> {
        if let Judged::Denied(text) = self.ruling(setup, session, place, call, entry, None)? {
            self.settle(session, place, call, ToolStatus::Denied, text);
            return None;
        }
        let slot = Self::slot_mut(session, place)?;
        slot.state = SlotState::Gated;
        let arguments = slot.arguments(call).clone();
        Some(PlannedCall {
            id: call.id.clone(),
            tool: Arc::clone(&entry.spec.name),
            effects: entry.effects(&arguments),
            arguments,
            path: Arc::clone(&self.ancestry.path),
        })
    }

    /// The hooks have judged: tighten, rewrite and validate again, then the policy on what came out.
    pub(super) fn gated(&mut self, session: &mut Session, judgements: Vec<Judgement>) {
        if self.phase != Phase::Gating {
            return;
        }
        let setup = Arc::clone(&self.setup);
        let Some(message) = Self::calling_message(session) else { return };
        let mut judgements = judgements.into_iter();
        for (place, call) in message.tool_calls().enumerate() {
            let Some(slot) = Self::slot_mut(session, place) else { continue };
            if slot.state != SlotState::Gated {
                continue;
            }
            let silent = || Gate::Deny("a hook that has to judge it failed".to_owned()).into();
            let Judgement { rewrite, objection } = judgements.next().unwrap_or_else(silent);
            if rewrite.is_some() {
                slot.arguments = rewrite;
            }
            if let Some(entry) = self.validate(&setup, session, place, call) {
                self.judge(&setup, session, place, call, entry, objection.as_ref());
            }
        }
        self.enter_batch(session);
    }

    fn judge(
        &mut self,
        setup: &Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
        hook: Option<&Tightening>,
    ) {
        match self.ruling(setup, session, place, call, entry, hook) {
            Some(Judged::Cleared { parallel }) => {
                if let Some(slot) = Self::slot_mut(session, place) {
                    slot.state = SlotState::Cleared { approved: None, parallel };
                }
            }
            Some(Judged::Asked(ask)) => self.ask(session, place, *ask),
            Some(Judged::Denied(text)) => self.settle(session, place, call, ToolStatus::Denied, text),
            None => {}
        }
    }

    pub(super) fn ruling(
        &self,
        setup: &Setup,
        session: &Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
        hook: Option<&Tightening>,
    ) -> Option<Judged> {
        let slot = Self::slot(session, place)?;
        let arguments = slot.arguments(call);
        let effects = entry.effects(arguments);
        // A tool that cannot say what a call touches is one that somebody has to look at.
        let doubt = Tightening::Ask("the tool could not say what the call touches".to_owned());
        let keys = entry.approval_keys(arguments);
        let hook = if keys.is_none() { hook.or(Some(&doubt)) } else { hook };
        let keys = keys.unwrap_or_default();
        let proposal = Proposal::new(&entry.spec, entry.fingerprint(), &keys).with_effects(effects);
        let ruling = decide(&proposal, &setup.policy, &session.grants, &self.ancestry.ceilings, hook);
        Some(match ruling.decision {
            Decision::Allow => Judged::Cleared { parallel: effects.may_run_in_parallel() },
            Decision::Deny => Judged::Denied(denied(&ruling.reason.to_string())),
            Decision::Ask => {
                let generation = session.asks.generation();
                let mut ask = Ask::new(call.id.clone(), &proposal, &ruling, arguments.clone(), generation);
                if slot.arguments.is_some() {
                    ask = ask.with_proposed(call.arguments.clone());
                }
                if let Some(preview) = entry.preview(arguments) {
                    ask = ask.with_preview(&preview);
                }
                if !self.ancestry.path.is_empty() {
                    ask = ask.with_path(Arc::clone(&self.ancestry.path));
                }
                Judged::Asked(Box::new(ask))
            }
        })
    }

    fn ask(&mut self, session: &mut Session, place: usize, ask: Ask) {
        let shown = Arc::new(ask.clone());
        let known = session.asks.find(&ask.digest).is_some();
        // The ask was made from this very session: it cannot be stale.
        let opened = session.asks.open(ask);
        debug_assert!(opened.is_ok(), "a fresh ask was refused");
        if let Some(slot) = Self::slot_mut(session, place) {
            slot.state = SlotState::Asked;
        }
        if !known {
            self.undecided.push(shown.digest);
            self.events.push_back(Event::ApprovalAsked { ask: shown });
        }
    }

    /// From here on calls run and verdicts arrive, in whatever order.
    fn enter_batch(&mut self, session: &mut Session) {
        self.phase = Phase::Batch;
        self.first_open = 0;
        self.act_on_verdicts(session);
        self.consult(session);
        self.advance(session);
    }

    /// Puts open questions to the approver, all at once.
    pub(super) fn consult(&mut self, session: &Session) {
        if self.deciding || self.ancestry.approver.is_none() || self.phase != Phase::Batch {
            return;
        }
        let undecided = std::mem::take(&mut self.undecided);
        let asks: Vec<Ask> =
            session.asks.pending().filter(|ask| undecided.contains(&ask.digest)).cloned().collect();
        if !asks.is_empty() {
            self.deciding = true;
            self.steps.push_back(Step::Decide(asks));
        }
    }
}

/// The result of a call that the rules refuse.
pub(super) fn denied(reason: &str) -> String {
    format!("Denied ({reason}). It did not run. Do not try the same again: choose another way, or ask.")
}

/// The result of a call whose arguments are no JSON object.
fn malformed(written: &str) -> String {
    let problem = match serde_json::from_str::<Value>(written) {
        Ok(_) => "it is valid JSON, but no object".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut end = written.len().min(SHOWN_BYTES);
    while !written.is_char_boundary(end) {
        end -= 1;
    }
    let shown = written.get(..end).unwrap_or_default();
    let more = if end < written.len() { "…" } else { "" };
    format!("The arguments are not a JSON object ({problem}). Nothing was run. What came was: {shown}{more}")
}
