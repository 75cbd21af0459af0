//! Reading calls from the end of a text.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::tool::ToolSpec;

pub(super) const OPEN: &str = "<tool_call>";
pub(super) const CLOSE: &str = "</tool_call>";

/// A text that ends in calls.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    /// What stands before the calls, without white space at its end.
    pub(super) before: String,
    pub(super) calls: Vec<(Arc<str>, Value)>,
}

/// Reads the calls at the end of a whole answer; `None` when there is nothing to execute. `bare` also takes an answer
/// that is nothing but JSON.
pub(super) fn read(text: &str, tools: &[Arc<ToolSpec>], bare: bool) -> Option<Reading> {
    let Some(start) = text.find(OPEN) else {
        return if bare { read_bare(text, tools) } else { None };
    };
    // All blocks of the answer have to be in the run: one that stands apart, quoted or not, and it is not clear what
    // the model meant.
    let (before, run) = text.split_at_checked(start)?;
    if is_quoted(before) {
        return None;
    }
    let mut calls = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let json = rest.strip_prefix(OPEN)?;
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let value = values.next()?.ok()?;
        calls.push(call(value, tools)?);
        let after = json.get(values.byte_offset()..)?.trim_start();
        rest = match after.strip_prefix(CLOSE) {
            Some(after) => after.trim_start(),
            // Only the last block may be left open: its JSON is whole, and the answer is not cut off.
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(Reading { before: before.trim_end().to_owned(), calls })
}

/// Whether what follows this text is code or a quotation.
fn is_quoted(before: &str) -> bool {
    let mut fence: Option<(char, usize)> = None;
    for line in before.lines() {
        let line = line.trim_start();
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { continue };
        let length = line.chars().take_while(|c| *c == mark).count();
        match fence {
            None if length >= 3 => fence = Some((mark, length)),
            // A fence is closed by at least as many marks of its own kind.
            Some((open, least)) if open == mark && length >= least => fence = None,
            _ => {}
        }
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indented = line.trim().is_empty() && (line.contains('\t') || line.len() >= 4);
    let inline_code = line.matches('`').count() % 2 == 1;
    fence.is_some() || indented || inline_code || line.trim_start().starts_with('>')
}

/// An answer that is one JSON object or array of calls and nothing else, in a code fence or not.
fn read_bare(text: &str, tools: &[Arc<ToolSpec>]) -> Option<Reading> {
    let text = text.trim();
    let json = match text.strip_prefix("```") {
        Some(fenced) => {
            let fenced = fenced.strip_suffix("```")?;
            fenced.strip_prefix("json").unwrap_or(fenced).strip_prefix(['\n', '\r'])?
        }
        None => text,
    };
    let values = match serde_json::from_str(json).ok()? {
        Value::Array(values) if !values.is_empty() => values,
        value @ Value::Object(_) => vec![value],
        _ => return None,
    };
    // Without tags around it, JSON has to look like a call and like nothing else.
    let is_call = |value: &Value| {
        value
            .as_object()
            .is_some_and(|object| object.len() == 2 && ARGUMENTS.iter().any(|k| object.contains_key(*k)))
    };
    if !values.iter().all(is_call) {
        return None;
    }
    let calls = values.into_iter().map(|value| call(value, tools)).collect::<Option<_>>()?;
    Some(Reading { before: String::new(), calls })
}

/// What models call the arguments.
const ARGUMENTS: [&str; 3] = ["arguments", "args", "parameters"];

fn call(value: Value, tools: &[Arc<ToolSpec>]) -> Option<(Arc<str>, Value)> {
    let Value::Object(mut object) = value else { return None };
    // The shape of OpenAI's wire: the call is inside of `function`.
    if let Some(Value::Object(inner)) = object.get_mut("function") {
        object = std::mem::take(inner);
    }
    let name = object.get("name").or(object.get("tool"))?.as_str()?;
    let name = Arc::clone(&tools.iter().find(|tool| *tool.name == *name)?.name);
    let arguments = ARGUMENTS.iter().find_map(|key| object.remove(*key)).unwrap_or(Value::Null);
    match arguments {
        Value::Null => Some((name, Value::Object(Map::new()))),
        Value::Object(_) => Some((name, arguments)),
        Value::String(text) if text.trim().is_empty() => Some((name, Value::Object(Map::new()))),
        Value::String(text) => serde_json::from_str(&text).ok().filter(Value::is_object).map(|a| (name, a)),
        _ => None,
    }
}
