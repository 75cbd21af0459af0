//! How a run ends.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::Limit;
use crate::model::ModelError;

/// How a run ended. In each case the session is valid, and resuming or a new
/// message goes on from it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The model was done.
    Done {
        /// The text of its last answer.
        text: String,
        /// The answer as checked data, when the agent asks for structured output.
        structured: Option<Value>,
    },
    /// Calls wait for a verdict. Save the session, answer with
    /// [`Session::answer`](crate::session::Session::answer), resume.
    Paused,
    /// The run stopped before the model was done.
    Stopped {
        /// Why.
        why: StopCause,
    },
    /// The run was cancelled.
    Cancelled {
        /// The reason that was given.
        reason: Arc<str>,
    },
}

/// Why a run stopped before the model was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCause {
    /// A limit was reached. Raise it and resume.
    Limit(Limit),
    /// The model made the same call with the same result again and again.
    Repeats {
        /// The tool.
        tool: Arc<str>,
        /// How often.
        times: u32,
    },
    /// The model called nothing but tools that do not exist, however often it was told which ones do.
    UnknownTools {
        /// Answers in a row.
        times: u32,
    },
    /// The answer was cut at the output limit, and asking to go on did not help.
    OutputLimit,
    /// The provider withheld the answer.
    Filtered,
    /// The model gave no answer that fits the schema.
    NoStructuredOutput {
        /// What was wrong with the last one.
        problem: String,
    },
    /// A hook ended the run.
    Hook(String),
    /// An approver ended the run.
    Approver(String),
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => write!(f, "the {limit} is reached"),
            Self::Repeats { tool, times } => {
                write!(f, "`{tool}` was called {times} times with the same arguments and the same result")
            }
            Self::UnknownTools { times } => {
                write!(f, "{times} answers in a row called only tools that do not exist")
            }
            Self::OutputLimit => f.write_str("the answer was cut at the output limit"),
            Self::Filtered => f.write_str("the provider withheld the answer"),
            Self::NoStructuredOutput { problem } => write!(f, "no answer fits the schema: {problem}"),
            Self::Hook(reason) => write!(f, "a hook stopped the run: {reason}"),
            Self::Approver(reason) => write!(f, "the approver stopped the run: {reason}"),
        }
    }
}

/// Why a run failed: only what the host has to deal with. What the model can deal with is a tool result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunError {
    /// The model could not be reached or refused, after all retries and fallbacks. The session is valid; resuming
    /// makes the same request again.
    Model(Box<ModelError>),
    /// The context is full and compaction could not make room.
    ContextFull(Box<ModelError>),
    /// There is nothing to resume: the session holds no message.
    NothingToResume,
    /// A hook panicked where it had to decide.
    HookPanicked,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => write!(f, "the model call failed: {error}"),
            Self::ContextFull(error) => {
                write!(f, "the conversation does not fit the model, even compacted: {error}")
            }
            Self::NothingToResume => f.write_str("nothing to resume: the session holds no message"),
            Self::HookPanicked => f.write_str("a hook panicked where it had to decide"),
        }
    }
}

// No source: the text above already holds it.
impl std::error::Error for RunError {}
