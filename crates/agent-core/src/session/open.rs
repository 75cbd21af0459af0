//! The part of a session that is still in motion: the calls of the last answer and the run's counters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::limits::Spent;
use crate::message::{ToolCall, ToolResult, ToolStatus};
use crate::session::Session;

/// What a run knows that a resumed run has to know again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OpenRun {
    pub(crate) spent: Spent,
    /// Answers in a row that were cut at the output limit and asked to go on.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) continuations: u32,
    /// Answers in a row that did not fit the schema.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) schema_repairs: u32,
    /// Answers in a row that called tools which do not exist, and none that does.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) unknown_tools: u32,
    /// Sub-agents that were started.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) agents: u32,
    /// Recent calls with their results, for the detection of repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) repeats: Vec<Repeat>,
    /// The calls of the last message that are not all answered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<Batch>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// One call with its outcome, as a hash, and how often it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repeat {
    pub(crate) key: u64,
    pub(crate) times: u32,
}

/// The calls of the last message, a slot for each, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Batch {
    pub(crate) slots: Vec<Slot>,
}

/// What is known of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub(crate) state: SlotState,
    /// The arguments it is to run with, when they are not those of the proposal in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// The session of a sub-agent that paused, with all that it needs to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) child: Option<Box<Session>>,
    /// Whether a person changed them, which the model is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) edited: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SlotState {
    /// Nothing is decided.
    Proposed,
    /// Validated, and waiting for the hooks.
    Gated,
    /// Somebody has to decide; the ask is among the session's.
    Asked,
    /// It may run.
    Cleared {
        /// The digest of what may run, when somebody had to approve it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved: Option<Digest>,
        parallel: bool,
    },
    /// It runs.
    Running { parallel: bool },
    /// It is a sub-agent that paused.
    Suspended,
    /// It has its result.
    Done(Arc<ToolResult>),
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self { state: SlotState::Proposed, arguments: None, child: None, edited: false }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, SlotState::Done(_))
    }

    /// The arguments that are to run.
    pub(crate) fn arguments<'a>(&'a self, call: &'a ToolCall) -> &'a Value {
        self.arguments.as_ref().unwrap_or(&call.arguments)
    }

    /// The status of the result that a call in this state gets when its run ends here.
    pub(crate) fn status_if_cut(&self) -> Option<ToolStatus> {
        match self.state {
            SlotState::Done(_) => None,
            SlotState::Running { .. } | SlotState::Suspended => Some(ToolStatus::Interrupted),
            _ => Some(ToolStatus::NotStarted),
        }
    }
}

impl Batch {
    pub(crate) fn for_calls(count: usize) -> Self {
        let mut slots = Vec::with_capacity(count);
        slots.resize_with(count, Slot::new);
        Self { slots }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.slots.iter().all(Slot::is_done)
    }

    /// The sessions of sub-agents that paused.
    pub(crate) fn suspended(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|s| s.child.as_deref())
    }

    /// The same, for changes.
    pub(crate) fn suspended_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().filter_map(|s| s.child.as_deref_mut())
    }
}
