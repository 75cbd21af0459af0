//! Google Gemini, `generateContent`.
//!
//! A content with function calls comes right after the user's turn or after results, and the next content holds as
//! many responses as there were calls. No content and no part is empty.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::{Block, Message, Role};
use crate::testing::wire::Violation;
use crate::testing::wire::walk::{Findings, is_name, items, media, object, result_text, text};

pub(super) fn check(body: &Value) -> Vec<Violation> {
    let mut findings = Findings::default();
    let contents = items(body, "contents");
    findings.check(!contents.is_empty(), "contents", "there is no content");
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        let role = text(content, "role");
        findings.check(matches!(role, "user" | "model" | "function"), &at, &format!("unknown role `{role}`"));
        let previous = index.checked_sub(1).and_then(|i| contents.get(i));
        if previous.is_none() {
            findings.check(role == "user", &at, "the first content is not the user's");
        }
        let parts = items(content, "parts");
        findings.check(!parts.is_empty(), &at, "the content is empty");
        for (index, part) in parts.iter().enumerate() {
            check_part(part, role, &format!("{at}.parts[{index}]"), &mut findings);
        }
        let calls = names(parts, "functionCall");
        let responses = names(parts, "functionResponse");
        if !calls.is_empty() {
            let after_user = previous.is_some_and(|p| text(p, "role") != "model");
            findings.check(after_user, &at, "calls that do not come right after the user's turn or results");
            let answers = contents.get(index + 1).map(|next| names(items(next, "parts"), "functionResponse"));
            findings.check(
                answers.unwrap_or_default() == calls,
                &at,
                "the next content does not hold one response for each call, in order",
            );
        }
        if !responses.is_empty() {
            let asked = previous.map(|p| names(items(p, "parts"), "functionCall")).unwrap_or_default();
            findings.check(asked.len() == responses.len(), &at, "more or fewer responses than calls before");
        }
    }
    findings.into_violations()
}

fn check_part(part: &Value, role: &str, at: &str, findings: &mut Findings) {
    if let Some(text) = part.get("text") {
        findings.check(text.as_str().is_some_and(|t| !t.is_empty()), at, "an empty text");
    }
    if let Some(call) = part.get("functionCall") {
        findings.check(role == "model", at, "a call outside of an answer");
        findings.check(call.get("args").is_none_or(Value::is_object), at, "the arguments are no object");
        let name = text(call, "name");
        findings.check(is_name(name, 64, &['.', ':']), at, "the name is not 1 to 64 of [A-Za-z0-9_.:-]");
    }
    if let Some(response) = part.get("functionResponse") {
        findings.check(role != "model", at, "a response in an answer");
        findings.check(
            response.get("response").is_some_and(Value::is_object),
            at,
            "the response is no object",
        );
    }
    findings.check(part.as_object().is_some_and(|p| !p.is_empty()), at, "an empty part");
}

/// Names (and ids, where there are any) of the calls or responses among these parts.
fn names<'a>(parts: &'a [Value], field: &str) -> Vec<(&'a str, &'a str)> {
    parts
        .iter()
        .filter_map(|part| part.get(field))
        .map(|call| (text(call, "name"), text(call, "id")))
        .collect()
}

pub(super) fn project(messages: &[Arc<Message>]) -> Vec<Value> {
    let mut wire: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let parts: Vec<_> = message.blocks.iter().filter_map(part).collect();
        let results = |parts: &[Value]| parts.iter().any(|p| p.get("functionResponse").is_some());
        match wire.last_mut() {
            // Turns of one role are joined, except that results stay a content of their own.
            Some((last, content)) if *last == role && !results(content) && !results(&parts) => {
                content.extend(parts);
            }
            _ => wire.push((role, parts)),
        }
    }
    wire.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"text": text})),
        Block::Image(m) | Block::Document(m) => Some(json!({"inlineData": media(m)})),
        Block::ToolCall(call) => Some(json!({
            "functionCall": {"id": call.id.as_str(), "name": &*call.name, "args": object(&call.arguments)},
        })),
        Block::ToolResult(result) => Some(json!({"functionResponse": {
            "id": result.id.as_str(), "name": &*result.name, "response": {"result": result_text(result)},
        }})),
        _ => None,
    }
}
