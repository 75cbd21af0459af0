//! No spans: what [`Trace`] is without the feature.

use std::sync::Arc;

use crate::message::{Author, CallId, Message};
use crate::model::{ModelError, ModelEvent, ModelRequest};
use crate::outcome::{Outcome, RunError};
use crate::tool::{ToolError, ToolOutput, ToolSpec};

/// A span that is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(());

impl Trace {
    pub(crate) fn run(_: &Author, _: &[Arc<str>], _: bool) -> Self {
        Self(())
    }

    pub(crate) fn chat(_: &Author, _: &ModelRequest, _: bool) -> Self {
        Self(())
    }

    pub(crate) fn tool(_: &ToolSpec, _: &CallId, _: &serde_json::Value, _: bool) -> Self {
        Self(())
    }

    #[expect(clippy::unused_self, reason = "the same as with spans")]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[expect(clippy::unused_self, reason = "the same as with spans")]
    pub(crate) fn model_event(&self, _: Option<&Result<ModelEvent, ModelError>>) {}

    #[expect(clippy::unused_self, reason = "the same as with spans")]
    pub(crate) fn answered(&self, _: Option<&Arc<Message>>) {}

    #[expect(clippy::unused_self, reason = "the same as with spans")]
    pub(crate) fn tool_ended(&self, _: &Result<ToolOutput, ToolError>) {}

    #[expect(clippy::unused_self, reason = "the same as with spans")]
    pub(crate) fn run_ended(&self, _: &Result<Outcome, RunError>) {}
}
