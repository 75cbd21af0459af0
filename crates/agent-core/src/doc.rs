//! A model and a tool for the examples of this documentation. Not part of the public interface: tests of hosts use
//! the feature `testing`.

use async_trait::async_trait;
use futures_util::stream;
use serde_json::Value;

use crate::message::{Block, Role, ToolCall};
use crate::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Tool, ToolContext};
use crate::usage::StopReason;

/// A model that says one text.
pub fn says(text: &str) -> impl Model {
    Example { call: None, text: text.to_owned() }
}

/// A model that calls a tool once, then says one text.
pub fn calls_then_says(tool: &str, arguments: Value, text: &str) -> impl Model {
    Example { call: Some(ToolCall::new("call-1", tool, arguments)), text: text.to_owned() }
}

/// A tool of this name that does nothing.
pub fn tool(name: &str) -> impl Tool {
    Nothing(ToolSpec::new(name, "Does nothing"))
}

struct Example {
    call: Option<ToolCall>,
    text: String,
}

impl Model for Example {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("example", "example")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let first = !request.messages.iter().any(|m| m.role == Role::Tool);
        let block = match &self.call {
            Some(call) if first => Block::ToolCall(call.clone()),
            _ => Block::text(&*self.text),
        };
        let stop = ModelEvent::Stop { reason: StopReason::EndTurn, raw: None };
        Box::pin(stream::iter([Ok(ModelEvent::BlockDone(block)), Ok(stop)]))
    }
}

struct Nothing(ToolSpec);

#[async_trait]
impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("Nothing was done.".into())
    }
}
