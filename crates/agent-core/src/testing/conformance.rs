//! Checks that third parties run on their own models and tools.
//!
//! Each check drives the real thing and gives back what breaks the contract of its trait. It makes real calls: use
//! recorded traffic, a local server, or arguments whose effects do no harm.

use std::fmt;
use std::panic::AssertUnwindSafe;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use crate::arguments::ArgumentCheck;
use crate::message::{Block, CallId};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest};
use crate::tool::{ToolError, ToolOutput};
use crate::tool_context::{Tool, ToolContext};

/// One way in which an implementation breaks its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule, as a sentence.
    pub rule: &'static str,
    /// What happened instead.
    pub seen: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; but {}", self.rule, self.seen)
    }
}

/// How often a model's stream is dropped early in [`check_model`]; each costs a call.
const MAX_DROPS: usize = 16;

/// Calls a model and checks its stream against the contract of [`Model`]: the order and the agreement of events, an
/// end after each, streams that are dropped after each of their first events, and two calls at the same time.
///
/// # Cancel safety
///
/// Dropping the future drops the streams that are open.
pub async fn check_model(model: &dyn Model, request: &ModelRequest) -> Vec<Finding> {
    let mut findings = Vec::new();
    if model.info() != model.info() {
        add(&mut findings, "a model says the same of itself each time", "it did not");
    }
    let whole = collect(model, request, &mut findings).await;
    findings.extend(check_events(&whole));
    for count in 0..whole.len().min(MAX_DROPS) {
        let dropped = AssertUnwindSafe(async {
            let mut stream = model.stream(request.clone());
            for _ in 0..count {
                let _event = stream.next().await;
            }
        });
        if dropped.catch_unwind().await.is_err() {
            let seen = format!("dropping after {count} events panicked");
            add(&mut findings, "dropping a stream at any point is safe", seen);
        }
    }
    let both = async {
        let mut first = model.stream(request.clone());
        let mut second = model.stream(request.clone());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        loop {
            match (first.next().await, second.next().await) {
                (None, None) => return (a, b),
                (x, y) => {
                    a.extend(x);
                    b.extend(y);
                }
            }
        }
    };
    match AssertUnwindSafe(both).catch_unwind().await {
        Ok((a, b)) => {
            for events in [a, b] {
                findings.extend(check_events(&events).into_iter().map(|finding| Finding {
                    seen: format!("with two calls at the same time, {}", finding.seen),
                    ..finding
                }));
            }
        }
        Err(_panic) => {
            add(&mut findings, "two calls at the same time do not disturb each other", "it panicked");
        }
    }
    findings
}

async fn collect(
    model: &dyn Model,
    request: &ModelRequest,
    findings: &mut Vec<Finding>,
) -> Vec<Result<ModelEvent, ModelError>> {
    let events = AssertUnwindSafe(async { model.stream(request.clone()).collect::<Vec<_>>().await });
    events.catch_unwind().await.unwrap_or_else(|_panic| {
        add(findings, "a model does not panic", "the stream panicked");
        Vec::new()
    })
}

/// Checks the events of one answer, from its first to its end, against the contract of [`Model`]. Pure: use it on
/// recorded answers as well.
pub fn check_events(events: &[Result<ModelEvent, ModelError>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut check = Events::default();
    for (place, event) in events.iter().enumerate() {
        let last = place + 1 == events.len();
        match event {
            Err(_) if !last => add(&mut findings, "nothing comes after an error", "something did"),
            Err(_) => check.ended = true,
            Ok(event) => check.event(event, last, &mut findings),
        }
    }
    if !check.ended {
        add(&mut findings, "an answer ends with a stop or an error", "it ended with neither");
    }
    findings
}

#[derive(Default)]
struct Events {
    text: String,
    reasoning: String,
    open: Vec<(u32, CallId, String)>,
    ended: bool,
}

impl Events {
    fn event(&mut self, event: &ModelEvent, last: bool, findings: &mut Vec<Finding>) {
        match event {
            ModelEvent::Text(delta) => self.text.push_str(delta),
            ModelEvent::Reasoning(delta) => self.reasoning.push_str(delta),
            ModelEvent::ToolCallStarted { index, id, .. } => {
                if self.open.iter().any(|(i, ..)| i == index) {
                    let seen = format!("index {index} began again before its block was done");
                    add(findings, "the index tells calls apart while they stream", seen);
                }
                self.open.push((*index, id.clone(), String::new()));
            }
            ModelEvent::ToolArguments { index, delta } => {
                match self.open.iter_mut().find(|(i, ..)| i == index) {
                    Some((_, _, arguments)) => arguments.push_str(delta),
                    None => {
                        let seen = format!("arguments of index {index} came without it");
                        add(findings, "a call begins before its arguments come", seen);
                    }
                }
            }
            ModelEvent::BlockDone(block) => self.block(block, findings),
            ModelEvent::Stop { .. } => {
                self.ended = true;
                if !last {
                    add(findings, "the stop is the last event", "something came after it");
                }
                if !self.text.is_empty() {
                    add(findings, "every text that is previewed is also given as a block", "one was not");
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, block: &Block, findings: &mut Vec<Finding>) {
        match block {
            Block::Text { text } => {
                let preview = std::mem::take(&mut self.text);
                if !preview.is_empty() && preview.trim() != text.trim() {
                    let seen = format!("the preview was {preview:?} and the block {text:?}");
                    add(findings, "the deltas of a text are a preview of its block", seen);
                }
            }
            Block::Reasoning(_) => self.reasoning.clear(),
            Block::ToolCall(call) => {
                if !call.arguments.is_object() {
                    let seen = format!("those of `{}` are {}", call.id, call.arguments);
                    add(findings, "the arguments of a call are an object", seen);
                }
                let Some(place) = self.open.iter().position(|(_, id, _)| *id == call.id) else { return };
                let (_, _, preview) = self.open.remove(place);
                let parsed = serde_json::from_str::<Value>(&preview).ok();
                if call.malformed.is_none() && parsed.is_some_and(|p| p.is_object() && p != call.arguments) {
                    let seen = format!("{preview} became {}", call.arguments);
                    add(findings, "the deltas of arguments are a preview of the call", seen);
                }
            }
            Block::ToolResult(_) => {
                add(findings, "a model gives no results of the host's tools", "it gave one");
            }
            _ => {}
        }
    }
}

/// Values that a model may send and that are no proper arguments of anything.
fn odd_arguments() -> [Value; 6] {
    let deep = (0..100).fold(json!(0), |inner, _| json!([inner]));
    [
        json!({}),
        json!({"": null}),
        json!({"\u{0}": [1e308, -1]}),
        json!({"deep": deep}),
        json!(null),
        json!("text"),
    ]
}

/// Calls a tool and checks it against the contract of [`Tool`]: a spec that stands still and that every provider
/// takes, keys and effects that are the same each time and never panic, calls that end in a result whatever the
/// arguments are, and calls that are dropped when they have begun. `arguments` are arguments with which it succeeds.
///
/// # Cancel safety
///
/// Dropping the future drops the call that is open.
pub async fn check_tool(tool: &dyn Tool, arguments: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_spec(tool, arguments, &mut findings);
    let odd = odd_arguments();
    for arguments in odd.iter().chain([arguments]) {
        let ask = || (tool.approval_keys(arguments), tool.effects(arguments));
        match (
            std::panic::catch_unwind(AssertUnwindSafe(ask)),
            std::panic::catch_unwind(AssertUnwindSafe(ask)),
        ) {
            (Ok(first), Ok(second)) if first == second => {}
            (Ok(_), Ok(_)) => {
                let seen = format!("not for {arguments}");
                add(&mut findings, "keys and effects are the same each time", seen);
            }
            _ => {
                let seen = format!("they did for {arguments}");
                add(&mut findings, "keys and effects do not panic", seen);
            }
        }
    }
    // Only objects reach a tool; whether they fit is the schema's business, and no reason to panic.
    for arguments in odd.iter().filter(|a| a.is_object()) {
        if call(tool, arguments).await.is_none() {
            let seen = format!("it did for {arguments}");
            add(&mut findings, "a tool does not panic over arguments", seen);
        }
    }
    let begun = AssertUnwindSafe(async {
        let mut call = tool.call(arguments.clone(), ToolContext::detached("dropped"));
        let _pending_or_done = (&mut call).now_or_never();
    });
    if begun.catch_unwind().await.is_err() {
        add(&mut findings, "a call that has begun can be dropped", "it panicked");
    }
    match call(tool, arguments).await {
        None => add(&mut findings, "a tool does not panic", "it did"),
        Some(Err(error)) => {
            add(&mut findings, "it succeeds with the arguments of the check", format!("it failed: {error}"));
        }
        Some(Ok(output)) => {
            let fits = |b: &Block| matches!(b, Block::Text { .. } | Block::Image(_) | Block::Document(_));
            if !output.blocks.iter().all(fits) {
                add(&mut findings, "an output holds text, images and documents", "there was another block");
            }
        }
    }
    findings
}

fn check_spec(tool: &dyn Tool, arguments: &Value, findings: &mut Vec<Finding>) {
    let spec = tool.spec().clone();
    if spec != *tool.spec() {
        add(findings, "a tool says the same of itself each time", "it did not");
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.chars().all(letters) {
        add(findings, "a name is 1 to 64 of [A-Za-z0-9_-]", format!("it is `{}`", spec.name));
    }
    if spec.description.trim().is_empty() {
        add(findings, "a tool says what it is for", "the description is empty");
    }
    if spec.input_schema.get("type").and_then(Value::as_str) != Some("object") {
        add(findings, "the schema is an object schema", format!("it is {}", spec.input_schema));
    }
    if let Err(wrong) = ArgumentCheck::new(spec.input_schema).check(arguments) {
        add(findings, "the arguments of the check fit the schema", wrong.to_string());
    }
}

/// `None` when it panicked, be it in making the future or in polling it.
async fn call(tool: &dyn Tool, arguments: &Value) -> Option<Result<ToolOutput, ToolError>> {
    let call = AssertUnwindSafe(async { tool.call(arguments.clone(), ToolContext::detached("check")).await });
    call.catch_unwind().await.ok()
}

fn add(findings: &mut Vec<Finding>, rule: &'static str, seen: impl Into<String>) {
    findings.push(Finding { rule, seen: seen.into() });
}
