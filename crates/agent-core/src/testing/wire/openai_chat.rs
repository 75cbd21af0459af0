//! OpenAI Chat Completions.
//!
//! An assistant message with `tool_calls` is followed by one `tool` message for each of them, before anything else.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::{Block, Message, Role};
use crate::testing::wire::Violation;
use crate::testing::wire::walk::{
    Findings, Open, is_name, items, media, report_open, result_text, settle, text, wire_id,
};

pub(super) fn check(body: &Value) -> Vec<Violation> {
    let mut findings = Findings::default();
    let mut open = Vec::new();
    let messages = items(body, "messages");
    findings.check(!messages.is_empty(), "messages", "there is no message");
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = text(message, "role");
        if role != "tool" {
            report_open(&mut open, &mut findings);
        }
        match role {
            "system" | "developer" | "user" => {
                findings.check(has_content(message), &at, "the message is empty");
            }
            "assistant" => assistant(message, &at, &mut open, &mut findings),
            "tool" => {
                findings.check(
                    message.get("content").is_some_and(|c| c.is_string() || c.is_array()),
                    &at,
                    "a result needs content",
                );
                if let Err(problem) = settle(&mut open, text(message, "tool_call_id")) {
                    findings.add(at, problem);
                }
            }
            _ => findings.add(at, format!("unknown role `{role}`")),
        }
    }
    report_open(&mut open, &mut findings);
    findings.into_violations()
}

fn has_content(message: &Value) -> bool {
    match message.get("content") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        _ => false,
    }
}

fn assistant(message: &Value, at: &str, open: &mut Vec<Open>, findings: &mut Findings) {
    let calls = items(message, "tool_calls");
    // A refusal stands in the place of text.
    let says_something = has_content(message) || !text(message, "refusal").is_empty();
    findings.check(says_something || !calls.is_empty(), at, "an answer without text and calls");
    findings.check(message.get("tool_calls").is_none() || !calls.is_empty(), at, "an empty list of calls");
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        let function = call.get("function").unwrap_or(&Value::Null);
        findings.check(
            is_name(text(function, "name"), 64, &[]),
            &at,
            "the name is not 1 to 64 of [A-Za-z0-9_-]",
        );
        let arguments = serde_json::from_str::<Value>(text(function, "arguments"));
        findings.check(
            arguments.is_ok_and(|a| a.is_object()),
            &at,
            "the arguments are not the text of an object",
        );
        let id = text(call, "id");
        findings.check(!id.is_empty(), &at, "a call without an id");
        findings.check(!open.iter().any(|o| o.id == id), &at, "an id used twice in one answer");
        open.push(Open { id: id.to_owned(), at, answered: false });
    }
}

pub(super) fn project(messages: &[Arc<Message>]) -> Vec<Value> {
    let mut wire = Vec::new();
    for message in messages {
        match message.role {
            Role::Tool => wire.extend(message.tool_results().map(|result| {
                json!({"role": "tool", "tool_call_id": result.id.as_str(), "content": result_text(result)})
            })),
            Role::Assistant => {
                let calls: Vec<_> = message
                    .tool_calls()
                    .map(|call| {
                        let function = json!({"name": &*call.name, "arguments": call.arguments.to_string()});
                        json!({"id": wire_id(call), "type": "function", "function": function})
                    })
                    .collect();
                let content = Some(message.text()).filter(|t| !t.is_empty());
                let mut out = json!({"role": "assistant", "content": content});
                if !calls.is_empty()
                    && let Some(out) = out.as_object_mut()
                {
                    out.insert("tool_calls".to_owned(), calls.into());
                }
                wire.push(out);
            }
            _ => {
                let parts: Vec<_> = message
                    .blocks
                    .iter()
                    .filter_map(|block| match block {
                        Block::Text { text } => Some(json!({"type": "text", "text": text})),
                        Block::Image(m) => Some(json!({"type": "image_url", "image_url": media(m)})),
                        Block::Document(m) => Some(json!({"type": "file", "file": media(m)})),
                        _ => None,
                    })
                    .collect();
                wire.push(json!({"role": "user", "content": parts}));
            }
        }
    }
    wire
}
