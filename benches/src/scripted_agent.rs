//! The agent that is measured: a scripted model, and a tool that costs next to nothing.

use std::task::Poll;

use futures_util::stream;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::{Block, ToolCall};
use haversack_agent_core::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::StopReason;
use serde_json::{Value, json};

use crate::contest::Marks;

/// The id and the arguments of a call.
pub fn call(turn: usize, index: usize) -> (String, String) {
    (format!("call_{turn}_{index}"), format!("{{\"path\":\"src/file_{index}.rs\",\"limit\":{turn}}}"))
}

/// What the tool says: about 100 bytes.
pub fn tool_answer(path: &str) -> String {
    format!("{path}: 10 lines read; fn main() {{ println!(\"hello\"); }} // and so on until the end of it")
}

/// Makes `calls` calls a turn until the conversation has `turns` answers, then says that it is done. Marks the start of
/// each turn where somebody wants to know.
struct Scripted {
    turns: usize,
    calls: usize,
    marks: Option<Marks>,
}

impl Model for Scripted {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("scripted", "scripted")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        if let Some(marks) = &self.marks {
            marks.mark();
        }
        // One user message, then two messages a turn.
        let turn = request.messages.len() / 2;
        let calls = if turn >= self.turns { 0 } else { self.calls };
        let mut next = 0;
        Box::pin(stream::poll_fn(move |_| {
            let _held = &request;
            let index = next;
            next += 1;
            let event = if index < calls {
                let (id, arguments) = call(turn, index);
                ModelEvent::BlockDone(ToolCall::from_text(id, "noop", &arguments).into())
            } else if calls == 0 && index == 0 {
                ModelEvent::BlockDone(Block::text("done"))
            } else {
                let reason = if calls == 0 { StopReason::EndTurn } else { StopReason::ToolUse };
                ModelEvent::Stop { reason, raw: None }
            };
            Poll::Ready(Some(Ok(event)))
        }))
    }
}

struct Noop(ToolSpec);

#[async_trait::async_trait]
impl Tool for Noop {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(tool_answer(arguments.get("path").and_then(Value::as_str).unwrap_or_default()).into())
    }
}

/// The agent. Nothing is left out that a host would have; the turn limit alone is off, and compaction finds no window to
/// mind.
///
/// # Panics
///
/// Never: its parts are valid.
pub fn agent(turns: usize, calls: usize, marks: Option<Marks>) -> Agent {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file"},
            "limit": {"type": "integer", "description": "Lines wanted"},
        },
        "required": ["path", "limit"],
    });
    Agent::builder(Scripted { turns, calls, marks })
        .section("role", "You are a coding agent.")
        .tool(Noop(ToolSpec::new("noop", "Reads a file").with_schema(schema).read_only()))
        .limits(Limits::default().with_turns(None))
        .build()
        .expect("the agent is put together from valid parts")
}
