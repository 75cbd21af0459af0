//! What a host sees of a run, as it happens.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approval::Ask;
use crate::digest::Digest;
use crate::limits::Limit;
use crate::message::{Author, CallId, Media, Message, ToolResult};
use crate::model::ModelError;
use crate::output::Cut;
use crate::session::Problem;
use crate::usage::Usage;

/// The stable number of a message within its session, counted from 1 in the order in which messages began. A user
/// interface updates the row of that number and never guesses.
pub type MessageNumber = u64;

/// Something that happened.
///
/// Each thing that lasts has a start and an end: run, turn, message, tool call, approval, compaction. An end comes
/// for every start, whatever happens, unless the host drops the run. Events are delivered before what they
/// announce proceeds: when [`ToolStarted`](Self::ToolStarted) is in the host's hands, the tool was not polled yet,
/// so a host that saves the session then never finds a call that ran without a trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The number of the run in its session, from 1.
        run: u64,
        /// Over the frozen system prompt.
        prompt: Digest,
        /// Over the tools on offer.
        tools: Digest,
    },
    /// The session was not valid and has been repaired.
    Repaired {
        /// What was wrong.
        problems: Vec<Problem>,
    },
    /// A message of the user's side entered the conversation.
    MessageAdded {
        /// Its number.
        message: MessageNumber,
        /// Why it is there.
        why: Added,
        /// The message.
        content: Arc<Message>,
    },
    /// A turn began: one answer of the model with its tool results.
    TurnStarted {
        /// The turn within the run, from 1.
        turn: u32,
    },
    /// An attempt at an answer began.
    MessageStarted {
        /// The number of the answer; all attempts at it have the same.
        message: MessageNumber,
        /// Counted from 1.
        attempt: u32,
        /// The model that is asked.
        model: Author,
    },
    /// More text of the answer.
    Text {
        /// The answer.
        message: MessageNumber,
        /// The text to append.
        delta: String,
    },
    /// More reasoning.
    Reasoning {
        /// The answer.
        message: MessageNumber,
        /// The text to append.
        delta: String,
    },
    /// The model began to write a tool call. It runs only if the whole answer arrives.
    ToolCallStarted {
        /// The answer.
        message: MessageNumber,
        /// Tells calls of one answer apart while they are written.
        index: u32,
        /// The tool.
        name: Arc<str>,
    },
    /// More of a call's arguments: JSON text, cut anywhere.
    ToolArguments {
        /// The answer.
        message: MessageNumber,
        /// The call.
        index: u32,
        /// The text to append.
        delta: String,
    },
    /// What was shown of this attempt no longer counts: take it off the screen.
    AttemptDiscarded {
        /// The answer.
        message: MessageNumber,
        /// The attempt.
        attempt: u32,
    },
    /// An attempt failed and another follows.
    Retrying {
        /// The answer.
        message: MessageNumber,
        /// The attempt that follows.
        attempt: u32,
        /// How long the run waits before it.
        delay: Duration,
        /// Why the last one failed.
        error: ModelError,
    },
    /// Another model takes over.
    ModelSwitched {
        /// The model before.
        from: Author,
        /// The model from now on.
        to: Author,
        /// Why.
        error: ModelError,
    },
    /// The answer is whole, or as whole as it will be (`stop` of the message is absent when it was cut by us).
    MessageEnded {
        /// The answer.
        message: MessageNumber,
        /// What is stored of it.
        content: Arc<Message>,
        /// What this attempt used.
        usage: Usage,
    },
    /// A call had an id that was taken, and got another.
    CallRenamed {
        /// The id on the wire.
        wire: Arc<str>,
        /// The id from now on.
        call: CallId,
    },
    /// Somebody has to decide about a call.
    ApprovalAsked {
        /// The question.
        ask: Arc<Ask>,
    },
    /// A question is closed: show it no longer.
    ApprovalClosed {
        /// The question.
        ask: Arc<Ask>,
        /// What became of it.
        how: Closed,
    },
    /// A grant that came with a verdict was not kept; the call itself was allowed.
    GrantRefused {
        /// The call.
        call: CallId,
        /// Why.
        reason: String,
    },
    /// A call starts.
    ToolStarted {
        /// The call.
        call: CallId,
        /// The tool.
        name: Arc<str>,
        /// The arguments it runs with, when they are not those that the model proposed.
        edited: Option<Value>,
    },
    /// A running call reports.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The report.
        text: String,
        /// Reports that were dropped before this one because they were not read in time.
        skipped: u32,
    },
    /// The output of a call was too long for the model and was cut.
    OutputCut {
        /// The call.
        call: CallId,
        /// What the model does not see.
        cut: Cut,
        /// Where the host's sink put the whole, in the words that the model was given.
        kept: Option<String>,
    },
    /// A call has its one result, also when it never started.
    ToolEnded {
        /// The call.
        call: CallId,
        /// The result.
        result: Arc<ToolResult>,
        /// Files for the host that the model does not see.
        attachments: Vec<Media>,
    },
    /// All calls of an answer have their results, and these are stored.
    ResultsAdded {
        /// The number of the message that holds them.
        message: MessageNumber,
        /// The message.
        content: Arc<Message>,
    },
    /// The results of one answer were too long together and were cut, each to the same size.
    ResultsCut {
        /// Bytes that the model does not see.
        dropped_bytes: usize,
    },
    /// The model makes the same call with the same result again and again, and was told so.
    RepeatNoticed {
        /// The tool.
        name: Arc<str>,
        /// How often.
        times: u32,
    },
    /// `tool_search` loaded tools.
    ToolsLoaded {
        /// Their names, in the order in which they were appended.
        names: Vec<Arc<str>>,
    },
    /// A limit is reached.
    LimitReached {
        /// Which.
        limit: Limit,
        /// Whether one last request without tools follows.
        landing: bool,
    },
    /// The context is nearly full, and room is being made.
    CompactionStarted {
        /// Estimated tokens of the next request.
        tokens: u64,
    },
    /// Room was made, or not.
    CompactionEnded {
        /// Estimated tokens of the next request.
        tokens: u64,
        /// Tool results that were replaced by a note.
        stubbed: usize,
        /// Messages that were replaced by a summary.
        summarised: usize,
        /// Why no more room could be made.
        problem: Option<String>,
    },
    /// A hook panicked; what it had to decide was decided against it.
    HookPanicked {
        /// Which of the hook's methods.
        hook: &'static str,
    },
    /// Something happened in a sub-agent.
    SubAgent {
        /// The call of this run that started it.
        call: CallId,
        /// The sub-agent's name.
        name: Arc<str>,
        /// What happened.
        event: Box<Event>,
    },
    /// The turn is over.
    TurnEnded {
        /// The turn.
        turn: u32,
    },
    /// The run is over; its outcome is the run's to tell.
    RunEnded,
}

/// Why a message of the user's side entered the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Added {
    /// It started the run.
    Input,
    /// The host steered.
    Steering,
    /// The host had queued it for the end.
    FollowUp,
    /// The answer was cut at the output limit.
    Continuation,
    /// A limit is reached, and this is the last request.
    Landing,
    /// The run was resumed where the model had ended.
    Resumption,
    /// A hook does not let the run end yet.
    Hook,
    /// The answer did not fit the schema.
    SchemaRepair,
    /// Earlier messages were summarised.
    Summary,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closed {
    /// The call may run as shown.
    Allowed,
    /// The call may run with other arguments.
    Edited,
    /// The call may not run.
    Denied,
    /// It waits in the saved session.
    Deferred,
    /// The run ended before anybody answered.
    Withdrawn,
    /// What was asked about has changed; a new question follows.
    Stale,
}
