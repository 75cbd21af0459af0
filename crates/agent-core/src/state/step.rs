//! What the run asks its driver to begin, and what the driver feeds back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approval::{Ask, Verdict};
use crate::digest::Digest;
use crate::event::Event;
use crate::hooks::{Ending, Judgement, OnStop, PlannedCall};
use crate::ledger::{LedgerEntry, Purpose};
use crate::message::{CallId, Message};
use crate::model::{ModelError, ModelEvent, ModelRequest};
use crate::outcome::{Outcome, RunError};
use crate::policy::Grants;
use crate::session::Session;
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Lease, Tool};

/// Something to begin. Each is given once.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Call the model; feed every event as [`Input::Model`], then [`Input::ModelEnded`]. Drop the stream before
    /// feeding the event that ends it: the request shares the history, and the answer is appended to it.
    CallModel(ModelCall),
    /// Ask the hooks about these calls; feed [`Input::Gates`] with one answer for each.
    Gate(Vec<PlannedCall>),
    /// Ask the approver about these; feed each [`Input::Verdict`], then [`Input::Decided`].
    Decide(Vec<Ask>),
    /// Run a call; feed [`Input::ToolDone`].
    RunTool(ReadyCall),
    /// The call took too long: drop it. Nothing is to be fed for it.
    DropTool(CallId),
    /// Ask the hooks about the end; feed [`Input::Ended`].
    OnStop(Ending),
    /// Tell the running calls to wind down, and drop model, hooks and approver. What ends in time counts.
    WindDown,
    /// Drop everything that is still in motion.
    DropAll,
    /// The run is over.
    Finished(Result<Outcome, RunError>),
}

/// A model call to make.
#[derive(Debug)]
#[non_exhaustive]
pub struct ModelCall {
    /// The place of the model in the agent's fallback list.
    pub model: usize,
    /// What to send.
    pub request: ModelRequest,
    /// What it is for.
    pub purpose: Purpose,
}

/// A call that may run now.
#[non_exhaustive]
pub struct ReadyCall {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The arguments: validated, and what was approved if that was needed.
    pub arguments: Value,
    /// What the hooks are told about it.
    pub(crate) spec: Arc<ToolSpec>,
    /// What a sub-agent gets from this run.
    pub(crate) lease: Option<Lease>,
}

impl fmt::Debug for ReadyCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyCall")
            .field("id", &self.id)
            .field("tool", &self.spec.name)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// Something that happened outside.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// The model said something, or failed.
    Model(Result<ModelEvent, ModelError>),
    /// The model's stream is over.
    ModelEnded,
    /// A hook does not let the request out, for this reason.
    RequestStopped(String),
    /// A hook panicked over the request.
    RequestPanicked,
    /// What the hooks say of the calls of [`Step::Gate`], in their order. A missing answer denies.
    Gates(Vec<Judgement>),
    /// Somebody answered an ask.
    Verdict {
        /// The ask, by its digest.
        ask: Digest,
        /// The answer.
        verdict: Verdict,
    },
    /// The approver is done; what it did not answer is deferred.
    Decided,
    /// A running call reports.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The report.
        text: String,
        /// Reports that were dropped before this one.
        skipped: u32,
    },
    /// A call ended.
    ToolDone {
        /// The call.
        call: CallId,
        /// How.
        result: Result<ToolOutput, ToolError>,
        /// Where the whole output is kept, in words for the model, if it is longer than the model may see.
        kept: Option<String>,
    },
    /// Something happened in a sub-agent.
    Child {
        /// The call that started it.
        call: CallId,
        /// Its name.
        name: Arc<str>,
        /// What happened.
        event: Box<Event>,
    },
    /// What sub-agents spent.
    Books(Vec<LedgerEntry>),
    /// What was granted to a sub-agent.
    Granted(Grants),
    /// A sub-agent paused; there is no [`ToolDone`](Self::ToolDone) for it.
    Suspended {
        /// The call that started it.
        call: CallId,
        /// All that it needs to go on.
        session: Box<Session>,
    },
    /// What the hooks say of the end.
    Ended(OnStop),
    /// A hook panicked; what it had to decide is fed besides.
    HookPanicked(&'static str),
    /// A message to deliver before the next request.
    Steer(Message),
    /// A message to deliver when the run would end.
    FollowUp(Message),
    /// End the run.
    Cancel {
        /// For the host's own use; the model does not see it.
        reason: Arc<str>,
    },
    /// Whether all that runs are sub-agents that wait for people. The time from the last [`Time`](Self::Time) on does
    /// not count as work then.
    SubAgentsWait(bool),
    /// The time by the host's clock. Times that lie before an earlier one count as that one.
    Time(Duration),
}
