//! What a machine wants done, and what it is told.

use std::time::Duration;

use serde_json::Value;

use crate::metadata::Approval;
use crate::pipeline::report::Report;

/// Names one try of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub(super) u64);

/// A call that a pipeline wants to make.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Names it in the answers to the machine.
    pub number: CallNumber,
    /// The step, from 1.
    pub step: usize,
    /// The name of the step.
    pub action: String,
    /// The element of a loop, from 0.
    pub element: Option<usize>,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// The arguments, templates replaced.
    pub arguments: Value,
    /// What the step wants a person to agree to.
    pub approval: Approval,
}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Find out whether this call may run, and say so with [`handle_reply`](crate::pipeline::Machine::handle_reply).
    Ask(Call),
    /// Make this call, and tell the machine of its end with [`handle_done`](crate::pipeline::Machine::handle_done).
    Run(Call),
    /// Drop this call: nobody waits for it any more.
    Abandon(CallNumber),
    /// Nothing to do until a call ends or this time has come.
    Wait(Option<Duration>),
    /// The pipeline has ended.
    Finished(Report),
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// It may.
    Allow,
    /// It may, with these arguments instead.
    AllowEdited(Value),
    /// It may not; the step counts as failed, and is not tried again.
    Deny(String),
    /// It may not, and the pipeline ends.
    Stop(String),
}
