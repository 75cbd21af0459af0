//! The words in which the model learns what became of its calls.
//!
//! Four things that must not be mixed up: it did not start, it was cut while it ran, it was refused, it failed.

use std::sync::Arc;
use std::time::Duration;

use crate::message::{Block, CallId, ToolResult, ToolStatus};

/// The run ended before the call's turn came.
pub(crate) const NOT_STARTED: &str =
    "Not started: the run ended before this call could run. Nothing was done.";

/// The call ran when the run was cut.
pub(crate) const INTERRUPTED: &str =
    "Interrupted while it was running. Its effects are unknown: check before you do it again.";

/// The history holds no result, and nobody knows why.
pub(crate) const LOST: &str =
    "The result of this call was lost. Its effects are unknown: check before you do it again.";

/// The answer was cut at the output limit.
pub(crate) const CUT_AT_LIMIT: &str = "Not started: the answer reached the output limit and was cut off, so this request was incomplete and has \
     been discarded. Nothing was done. Send smaller pieces, for example several shorter calls.";

/// The answer was cut for another reason.
pub(crate) const CUT_OFF: &str = "Not started: the answer ended before it was complete, so its tool calls were discarded. Nothing was done.";

/// A newer message came while the call waited for an approval.
pub(crate) const SUPERSEDED: &str = "Not started: it waited for an approval when a new message came instead of one. Nothing was done. It was \
     not refused.";

/// A limit forbids further calls.
pub(crate) const TOOL_LIMIT: &str =
    "Not started: this run may make no more tool calls. Nothing was done. Finish with what you have.";

/// A limit forbids further sub-agents.
pub(crate) const AGENT_LIMIT: &str =
    "Not started: this run may start no more sub-agents. Nothing was done. Go on without.";

/// More calls in one answer than are looked at.
pub(crate) const TOO_MANY: &str =
    "Not started: one answer may not hold this many tool calls. Nothing was done. Make fewer at a time.";

pub(crate) fn result(
    id: &CallId,
    name: &Arc<str>,
    status: ToolStatus,
    text: impl Into<String>,
) -> ToolResult {
    ToolResult::new(id.clone(), Arc::clone(name), status, vec![Block::text(text)])
}

/// The text for a call that was cut while it ran, with the time it had run if that is known.
pub(crate) fn interrupted(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!(
            "Interrupted after {:.1} s while it was running. Its effects are unknown: check before you do it again.",
            after.as_secs_f64()
        ),
        None => INTERRUPTED.to_owned(),
    }
}
