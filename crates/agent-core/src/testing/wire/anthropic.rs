//! Anthropic Messages.
//!
//! Users and assistants only. The results of an answer's calls stand at the beginning of the very next user message,
//! all of them. No text is empty.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::{Block, Message, Role};
use crate::testing::wire::Violation;
use crate::testing::wire::walk::{
    Findings, Open, is_name, items, media, object, report_open, result_text, settle, text, wire_id,
};

pub(super) fn check(body: &Value) -> Vec<Violation> {
    let mut findings = Findings::default();
    let mut open = Vec::new();
    let mut ids = BTreeSet::new();
    let messages = items(body, "messages");
    findings.check(!messages.is_empty(), "messages", "there is no message");
    let first = messages.first().map(|m| text(m, "role"));
    findings.check(first.is_none_or(|r| r == "user"), "messages[0]", "the first message is not the user's");
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = text(message, "role");
        findings.check(matches!(role, "user" | "assistant"), &at, &format!("unknown role `{role}`"));
        let content = match message.get("content") {
            Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
            other => other.and_then(Value::as_array).cloned().unwrap_or_default(),
        };
        let last_answer = role == "assistant" && index + 1 == messages.len();
        findings.check(!content.is_empty() || last_answer, &at, "the message is empty");
        if role == "user" {
            results(&content, &at, &mut open, &mut findings);
        }
        report_open(&mut open, &mut findings);
        for (index, block) in content.iter().enumerate() {
            let at = format!("{at}.content[{index}]");
            match text(block, "type") {
                "text" => findings.check(
                    text(block, "text").contains(|c: char| !c.is_whitespace()),
                    &at,
                    "a text of nothing but white space",
                ),
                "thinking" => findings.check(
                    role == "assistant" && !text(block, "signature").is_empty(),
                    &at,
                    "thinking without its signature, or not in an answer",
                ),
                "tool_use" => call(block, role, at, &mut ids, &mut open, &mut findings),
                _ => {}
            }
        }
    }
    report_open(&mut open, &mut findings);
    findings.into_violations()
}

fn results(content: &[Value], at: &str, open: &mut [Open], findings: &mut Findings) {
    let mut other_seen = false;
    for (index, block) in content.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        if text(block, "type") != "tool_result" {
            other_seen = true;
            continue;
        }
        findings.check(!other_seen, &at, "a result after something else");
        if let Err(problem) = settle(open, text(block, "tool_use_id")) {
            findings.add(at, problem);
        }
    }
}

fn call(
    block: &Value,
    role: &str,
    at: String,
    ids: &mut BTreeSet<String>,
    open: &mut Vec<Open>,
    findings: &mut Findings,
) {
    findings.check(role == "assistant", &at, "a call outside of an answer");
    findings.check(is_name(text(block, "name"), 128, &[]), &at, "the name is not 1 to 128 of [A-Za-z0-9_-]");
    findings.check(block.get("input").is_some_and(Value::is_object), &at, "the input is no object");
    let id = text(block, "id");
    findings.check(is_name(id, usize::MAX, &[]), &at, "the id is not of [A-Za-z0-9_-]");
    findings.check(ids.insert(id.to_owned()), &at, "an id used twice in one conversation");
    open.push(Open { id: id.to_owned(), at, answered: false });
}

pub(super) fn project(messages: &[Arc<Message>]) -> Vec<Value> {
    let mut wire: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks: Vec<_> = message.blocks.iter().filter_map(block).collect();
        match wire.last_mut() {
            // The API joins messages of one role itself; so do we, to see the results at their place.
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => wire.push((role, blocks)),
        }
    }
    wire.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Image(m) => Some(json!({"type": "image", "source": media(m)})),
        Block::Document(m) => Some(json!({"type": "document", "source": media(m)})),
        Block::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": wire_id(call), "name": &*call.name, "input": object(&call.arguments),
        })),
        Block::ToolResult(result) => Some(json!({
            "type": "tool_result", "tool_use_id": result.id.as_str(), "content": result_text(result),
            "is_error": result.status.is_error(),
        })),
        // Only sealed reasoning can be sent again.
        Block::Reasoning(r) if r.seal.is_some() => {
            Some(json!({"type": "thinking", "thinking": r.text, "signature": "sealed"}))
        }
        _ => None,
    }
}
