//! Answers to asks: what a verdict does to the call that it is about.

use std::sync::Arc;

use serde_json::Value;

use super::batch::Judged;
use crate::approval::{Ask, Refused, Verdict};
use crate::digest::Digest;
use crate::event::{Closed, Event};
use crate::message::{ToolCall, ToolStatus};
use crate::outcome::{Outcome, StopCause};
use crate::session::Session;
use crate::session::open::SlotState;
use crate::setup::Setup;
use crate::state::{Phase, RunState};
use crate::toolset::ToolEntry;

impl RunState {
    /// One answer, whoever gives it.
    pub(super) fn answered(
        &mut self,
        session: &mut Session,
        ask: &Digest,
        verdict: Verdict,
    ) -> Result<(), Refused> {
        if self.phase != Phase::Batch {
            return Err(Refused::Stale);
        }
        session.asks.answer(ask, verdict)?;
        self.act_on_verdicts(session);
        self.advance(session);
        Ok(())
    }

    /// The approver has said all that it has to say.
    pub(super) fn decided(&mut self, session: &mut Session) {
        self.deciding = false;
        self.consult(session);
        self.advance(session);
    }

    /// Spends every recorded verdict whose ask is about what would run now.
    pub(super) fn act_on_verdicts(&mut self, session: &mut Session) {
        let setup = Arc::clone(&self.setup);
        let Some(message) = Self::calling_message(session) else { return };
        for (place, call) in message.tool_calls().enumerate() {
            let Some(slot) = Self::slot(session, place) else { continue };
            if slot.state != SlotState::Asked {
                continue;
            }
            let Some(entry) = setup.tools.get(&call.name) else { continue };
            let arguments = slot.arguments(call).clone();
            let path = Arc::clone(&self.ancestry.path);
            if let Some((ask, verdict)) = session.asks.take(&path, &call.id, entry.fingerprint(), &arguments)
            {
                self.act_on(&setup, session, place, call, entry, ask, verdict);
                if self.phase != Phase::Batch {
                    return;
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that one verdict is about; used in one place")]
    fn act_on(
        &mut self,
        setup: &Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
        ask: Ask,
        verdict: Verdict,
    ) {
        let how = match &verdict {
            Verdict::AllowEdited(_) => Closed::Edited,
            Verdict::Allow | Verdict::AllowAlways(_) => Closed::Allowed,
            _ => Closed::Denied,
        };
        let digest = ask.digest;
        self.events.push_back(Event::ApprovalClosed { ask: Arc::new(ask), how });
        match verdict {
            Verdict::AllowEdited(arguments) => {
                self.clear_edited(setup, session, place, call, entry, arguments);
            }
            Verdict::Deny { reason } => {
                self.settle(session, place, call, ToolStatus::Denied, refused(&reason));
            }
            Verdict::Stop { reason } => {
                self.settle(session, place, call, ToolStatus::Denied, refused(&reason));
                self.cut(session, Ok(Outcome::Stopped { why: StopCause::Approver(reason) }));
            }
            Verdict::Allow => self.clear(session, place, call, entry, digest),
            Verdict::AllowAlways(rules) => {
                for rule in rules {
                    if let Err(refused) = session.grants.add(rule, &entry.spec) {
                        let reason = refused.to_string();
                        self.events.push_back(Event::GrantRefused { call: call.id.clone(), reason });
                    }
                }
                self.clear(session, place, call, entry, digest);
            }
            // A verdict of a later version of ours that we do not know cannot allow anything; `Defer` is never
            // recorded.
            Verdict::Defer => {}
        }
    }

    fn clear(
        &mut self,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
        digest: Digest,
    ) {
        let Some(slot) = Self::slot_mut(session, place) else { return };
        let parallel = entry.effects(slot.arguments(call)).may_run_in_parallel();
        slot.state = SlotState::Cleared { approved: Some(digest), parallel };
    }

    /// A person changed the arguments: they are checked like the model's own, and what the policy denies stays
    /// denied.
    fn clear_edited(
        &mut self,
        setup: &Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        entry: &ToolEntry,
        arguments: Value,
    ) {
        let Some(slot) = Self::slot_mut(session, place) else { return };
        slot.edited = true;
        slot.arguments = Some(arguments);
        if self.validate(setup, session, place, call).is_none() {
            return;
        }
        if let Some(Judged::Denied(text)) = self.ruling(setup, session, place, call, entry, None) {
            return self.settle(session, place, call, ToolStatus::Denied, text);
        }
        let digest =
            Self::slot(session, place).and_then(|s| self.digest_now(session, call, s.arguments(call)));
        if let Some(digest) = digest {
            self.clear(session, place, call, entry, digest);
        }
    }
}

/// The result of a call that a person refused.
fn refused(reason: &str) -> String {
    let because = if reason.trim().is_empty() { String::new() } else { format!(": {reason}") };
    format!(
        "Denied by the user{because}. It did not run. Do not try the same again: choose another way, or ask."
    )
}
