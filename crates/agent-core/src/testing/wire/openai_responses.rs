//! OpenAI Responses.
//!
//! The conversation is a flat list of items. Each `function_call` has one `function_call_output` after it, and a
//! `reasoning` item is followed by the item that it was for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::{Block, Message, Role};
use crate::testing::wire::Violation;
use crate::testing::wire::walk::{Findings, is_name, items, media, result_text, text, wire_id};

pub(super) fn check(body: &Value) -> Vec<Violation> {
    let mut findings = Findings::default();
    if body.get("input").is_some_and(Value::is_string) {
        return findings.into_violations();
    }
    // With a previous response the calls may be on the server's side.
    let continued = body.get("previous_response_id").is_some_and(Value::is_string);
    let input = items(body, "input");
    findings.check(!input.is_empty() || continued, "input", "there is no item");
    let mut calls: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    for (index, item) in input.iter().enumerate() {
        let at = format!("input[{index}]");
        match kind(item) {
            "message" => message(item, &at, &mut findings),
            "function_call" => {
                let name = text(item, "name");
                findings.check(is_name(name, 128, &[]), &at, "the name is not 1 to 128 of [A-Za-z0-9_-]");
                let arguments = serde_json::from_str::<Value>(text(item, "arguments"));
                findings.check(arguments.is_ok(), &at, "the arguments are not the text of JSON");
                let id = text(item, "call_id");
                findings.check(is_name(id, 64, &[]), &at, "the call id is not 1 to 64 of [A-Za-z0-9_-]");
                if calls.insert(id, (at.clone(), false)).is_some() {
                    findings.add(at, "a call id used twice");
                }
            }
            "function_call_output" => match calls.get_mut(text(item, "call_id")) {
                Some((_, answered)) if *answered => findings.add(at, "a second result for one call"),
                Some((_, answered)) => *answered = true,
                None if continued => {}
                None => findings.add(at, "a result without a call before it"),
            },
            "reasoning" => {
                let next = input.get(index + 1).map(kind);
                let belongs = match next {
                    Some("message") => input.get(index + 1).is_some_and(|m| text(m, "role") == "assistant"),
                    // Server-side items (searches and the like) follow reasoning as well.
                    Some("function_call_output") | None => false,
                    Some(_) => true,
                };
                findings.check(belongs, &at, "reasoning without the item that it was for right after it");
            }
            _ => {}
        }
    }
    for (id, (at, answered)) in calls {
        findings.check(answered, &at, &format!("call {id} has no result after it"));
    }
    findings.into_violations()
}

/// A message may leave out its type.
fn kind(item: &Value) -> &str {
    match text(item, "type") {
        "" if item.get("role").is_some() => "message",
        kind => kind,
    }
}

fn message(item: &Value, at: &str, findings: &mut Findings) {
    let role = text(item, "role");
    findings.check(
        matches!(role, "user" | "assistant" | "system" | "developer"),
        at,
        &format!("unknown role `{role}`"),
    );
    let empty = match item.get("content") {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => parts.is_empty(),
        _ => true,
    };
    findings.check(!empty, at, "the message is empty");
}

pub(super) fn project(messages: &[Arc<Message>]) -> Vec<Value> {
    let mut wire = Vec::new();
    for message in messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let part = if message.role == Role::Assistant { "output_text" } else { "input_text" };
        let mut parts = Vec::new();
        let before = wire.len();
        for block in &message.blocks {
            match block {
                Block::Text { text } => parts.push(json!({"type": part, "text": text})),
                Block::Image(m) => parts.push(json!({"type": "input_image", "image": media(m)})),
                Block::Document(m) => parts.push(json!({"type": "input_file", "file": media(m)})),
                other => {
                    flush(&mut wire, &mut parts, role);
                    wire.extend(item(other));
                }
            }
        }
        flush(&mut wire, &mut parts, role);
        if wire.len() == before {
            wire.push(json!({"type": "message", "role": role, "content": []}));
        }
    }
    wire
}

fn flush(wire: &mut Vec<Value>, parts: &mut Vec<Value>, role: &str) {
    if !parts.is_empty() {
        wire.push(json!({"type": "message", "role": role, "content": std::mem::take(parts)}));
    }
}

fn item(block: &Block) -> Option<Value> {
    match block {
        Block::ToolCall(call) => Some(json!({
            "type": "function_call", "call_id": wire_id(call), "name": &*call.name,
            "arguments": call.arguments.to_string(),
        })),
        Block::ToolResult(result) => Some(json!({
            "type": "function_call_output", "call_id": result.id.as_str(), "output": result_text(result),
        })),
        // Only sealed reasoning can be sent again.
        Block::Reasoning(r) if r.seal.is_some() => Some(json!({"type": "reasoning", "summary": []})),
        _ => None,
    }
}
