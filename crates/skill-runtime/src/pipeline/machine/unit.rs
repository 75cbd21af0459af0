//! One call of a step with its tries: the whole step, or one element of its loop.

use std::time::Duration;

use serde_json::Value;

use crate::pipeline::definition::DefinitionStep;
use crate::pipeline::machine::{Call, CallNumber};

pub(super) struct Unit {
    pub(super) element: Option<usize>,
    pub(super) arguments: Value,
    pub(super) tries: u32,
    /// Further tries make the same call with the same arguments, so one answer is enough.
    pub(super) approved: bool,
    pub(super) phase: Phase,
}

#[derive(Debug, PartialEq)]
pub(super) enum Phase {
    /// To be asked about, not before this time.
    Ready {
        not_before: Duration,
    },
    /// Asked about; no answer yet.
    Asked(CallNumber),
    /// It may run.
    Allowed(CallNumber),
    Running {
        number: CallNumber,
        deadline: Option<Duration>,
    },
    Done(Value),
    Failed(String),
}

impl Unit {
    pub(super) fn new(element: Option<usize>, arguments: Value) -> Self {
        Self {
            element,
            arguments,
            tries: 0,
            approved: false,
            phase: Phase::Ready { not_before: Duration::ZERO },
        }
    }

    pub(super) fn failed(element: Option<usize>, message: String) -> Self {
        Self { element, arguments: Value::Null, tries: 0, approved: false, phase: Phase::Failed(message) }
    }

    pub(super) fn call(&self, number: CallNumber, step: usize, of: &DefinitionStep) -> Call {
        Call {
            number,
            step,
            action: of.action.clone(),
            element: self.element,
            attempt: self.tries.max(1),
            tool: of.tool.clone(),
            arguments: self.arguments.clone(),
            approval: of.approval,
        }
    }

    /// A try has failed: there is another one after a pause, or there is not.
    pub(super) fn fail(&mut self, step: &DefinitionStep, message: String, hopeless: bool, now: Duration) {
        self.phase = if hopeless || self.tries >= step.tries() {
            Phase::Failed(message)
        } else {
            Phase::Ready { not_before: now.saturating_add(step.pause_after(self.tries)) }
        };
    }

    pub(super) fn allow(&mut self, number: CallNumber) {
        self.approved = true;
        self.phase = Phase::Allowed(number);
    }

    pub(super) fn runs(&self, call: CallNumber) -> bool {
        self.running() == Some(call)
    }

    pub(super) fn running(&self) -> Option<CallNumber> {
        match self.phase {
            Phase::Running { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The call whose time is up.
    pub(super) fn expired(&self, now: Duration) -> Option<CallNumber> {
        match self.phase {
            Phase::Running { number, deadline: Some(deadline) } if deadline <= now => Some(number),
            _ => None,
        }
    }

    /// Whether somebody works on it or decides about it.
    pub(super) fn is_out(&self) -> bool {
        matches!(self.phase, Phase::Asked(_) | Phase::Allowed(_) | Phase::Running { .. })
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Done(_) | Phase::Failed(_))
    }

    pub(super) fn was_begun(&self) -> bool {
        self.tries > 0 || !self.is_open()
    }

    pub(super) fn error(&self) -> Option<&str> {
        match &self.phase {
            Phase::Failed(message) => Some(message),
            _ => None,
        }
    }
}
