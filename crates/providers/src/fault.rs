//! What the decoders share: where their events go and how they fail.

use std::collections::VecDeque;

use haversack_agent_core::model::ModelEvent;
use serde_json::Value;

/// Where decoded events go.
pub(crate) type Events = VecDeque<ModelEvent>;

/// What is wrong with an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// It is not what the API promises.
    Protocol(String),
    /// The server reported an error inside the answer: the whole object.
    Reported(Value),
    /// The model wrote a tool call that its own server could not read; the server's word for it.
    InvalidToolCall(String),
    /// It is over and not complete.
    Interrupted(String),
}
