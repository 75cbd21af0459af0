//! The agent loop beside its peers: `--case inproc --steps N --calls C`.
//!
//! One message, N model turns with C calls each of the tool `noop`, then the text `done`. The model is scripted in the
//! process and marks the clock once a turn, so that the time between two marks is what the loop spends on a step: events
//! read, arguments checked, policy asked, tools run, history stored. Nothing is left out that a host would have; the
//! limits alone are off, and compaction finds no window to mind.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use haversack_agent_core::agent::Agent;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::{Block, ToolCall};
use haversack_agent_core::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::session::Session;
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::StopReason;
use haversack_benches::contest::{Flags, Marks, Report, Resources};
use serde_json::{Value, json};

/// Makes `calls` calls a turn for `turns` turns, then is done.
struct Scripted {
    turns: usize,
    calls: usize,
    marks: Marks,
}

impl Model for Scripted {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("scripted", "scripted")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let turn = self.marks.mark();
        let calls = if turn < self.turns { self.calls } else { 0 };
        let last = turn >= self.turns;
        let mut next = 0;
        Box::pin(stream::poll_fn(move |_| {
            let _held = &request;
            let index = next;
            next += 1;
            let event = if index < calls {
                let arguments = format!("{{\"path\":\"src/file_{index}.rs\",\"limit\":{turn}}}");
                let id = format!("call_{turn}_{index}");
                ModelEvent::BlockDone(ToolCall::from_text(id, "noop", &arguments).into())
            } else if last && index == 0 {
                ModelEvent::BlockDone(Block::text("done"))
            } else {
                let reason = if last { StopReason::EndTurn } else { StopReason::ToolUse };
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
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let text = format!(
            "{path}: 10 lines read; fn main() {{ println!(\"hello\"); }} // and so on until the end of it"
        );
        Ok(text.into())
    }
}

fn agent(turns: usize, calls: usize, marks: &Marks) -> Agent {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file"},
            "limit": {"type": "integer", "description": "Lines wanted"},
        },
        "required": ["path", "limit"],
    });
    let noop = ToolSpec::new("noop", "Reads a file").with_schema(Arc::new(schema)).read_only();
    Agent::builder(Scripted { turns, calls, marks: marks.clone() })
        .section("role", "You are a coding agent.")
        .tool(Noop(noop))
        .limits(Limits::default().with_turns(None))
        .build()
        .expect("the agent is put together from valid parts")
}

fn main() {
    let flags = Flags::of_process();
    let case = flags.text("case", "inproc");
    assert_eq!(case, "inproc", "this contestant knows no other case");
    let (steps, calls) = (flags.number("steps", 200), flags.number("calls", 1));
    let marks = Marks::default();
    let agent = agent(steps, calls, &marks);
    let mut session = Session::new();

    let before = Resources::now();
    let start = Instant::now();
    let mut run = agent.start(&mut session, "go");
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = 0_usize;
    loop {
        match run.poll_next_unpin(&mut cx) {
            Poll::Ready(Some(_)) => events += 1,
            Poll::Ready(None) => break,
            // Everything is ready at once: the run only lets others go first.
            Poll::Pending => {}
        }
    }
    let wall = start.elapsed();
    let cpu = Resources::now().since(before).cpu();

    let outcome = futures_util::FutureExt::now_or_never(run.outcome());
    let done = Outcome::Done { text: "done".to_owned(), structured: None };
    assert_eq!(outcome, Some(Ok(done)));
    let results: usize = session.messages().iter().map(|m| m.tool_results().count()).sum();
    assert_eq!(results, steps * calls, "every call has its result");

    let sample = marks.steps();
    assert_eq!(sample.len(), steps);
    Report::new("agent", "ours", case)
        .with("steps", steps)
        .with("calls", calls)
        .sample(&sample)
        .with("deciles_us", sample.tenths_us())
        .with("wall_ms", wall.as_secs_f64() * 1e3)
        .with("cpu_us_per_step", cpu.as_secs_f64() * 1e6 / steps as f64)
        .with("events", events)
        .used_since(before)
        .print();
}
