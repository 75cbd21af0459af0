//! Tool calls that a model printed as text, because its server has no parser for the model's format.
//!
//! Opt-in, and strict: the answer has no other call, every name is of a tool on offer, and nothing but white space
//! stands behind the calls. Anything else stays text.

use std::sync::Arc;

use haversack_agent_core::tool::ToolSpec;
use serde_json::{Map, Value};

use crate::accumulate::Assembly;
use crate::fault::{Events, Fault};
use crate::names;

/// Turns printed calls at the end of the answer's last text into calls.
pub(super) fn rescue(answer: &mut Assembly, tools: &[Arc<ToolSpec>], out: &mut Events) -> Result<(), Fault> {
    let Some((length, calls)) = answer.open_text().and_then(|text| {
        let (before, calls) = read(text)?;
        let is_offered = |call: &Printed| {
            let meant = names::from_wire(&call.name, tools);
            tools.iter().any(|tool| tool.name == meant)
        };
        (!calls.is_empty() && calls.iter().all(is_offered)).then_some((before.trim_end().len(), calls))
    }) else {
        return Ok(());
    };
    answer.cut_open_text(length);
    for call in calls {
        let slot = answer.begin_call(out)?;
        if let Some(draft) = answer.call(slot) {
            draft.name = Some(names::from_wire(&call.name, tools));
            draft.arguments = Value::Object(call.arguments).to_string();
        }
        answer.finish_call(slot, out);
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Printed {
    name: String,
    arguments: Map<String, Value>,
}

/// The text before the calls, and the calls.
fn read(text: &str) -> Option<(&str, Vec<Printed>)> {
    const MARKS: [&str; 4] = ["<tool_call>", "<function=", "[TOOL_CALLS]", "<minimax:tool_call>"];
    let start = MARKS.iter().filter_map(|mark| text.find(mark)).min();
    let Some(start) = start else {
        let json = text.trim();
        let json = json.strip_prefix("```json").and_then(|json| json.strip_suffix("```")).unwrap_or(json);
        return Some(("", vec![json_call(&serde_json::from_str(json).ok()?)?]));
    };
    let (before, mut rest) = text.split_at_checked(start)?;
    let mut calls = Vec::new();
    while !rest.is_empty() {
        rest = one(rest, &mut calls)?.trim_start();
    }
    Some((before, calls))
}

/// Reads what one mark holds, and gives the text behind it.
fn one<'a>(text: &'a str, calls: &mut Vec<Printed>) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix("<tool_call>") {
        let (inner, rest) = rest.split_once("</tool_call>").unwrap_or((rest, ""));
        let inner = inner.trim();
        if inner.starts_with("<function=") {
            let after = function(inner, calls)?;
            return after.trim().is_empty().then_some(rest);
        }
        calls.push(json_call(&serde_json::from_str(inner).ok()?)?);
        return Some(rest);
    }
    if text.starts_with("<function=") {
        return function(text, calls);
    }
    if let Some(rest) = text.strip_prefix("<minimax:tool_call>") {
        let (inner, rest) = rest.split_once("</minimax:tool_call>").unwrap_or((rest, ""));
        let mut inner = inner.trim();
        while !inner.is_empty() {
            let (name, body) = inner.strip_prefix("<invoke name=\"")?.split_once("\">")?;
            let (body, after) = body.split_once("</invoke>")?;
            calls.push(Printed {
                name: name.into(),
                arguments: parameters(body, "<parameter name=\"", "\">")?,
            });
            inner = after.trim_start();
        }
        return Some(rest);
    }
    let rest = text.strip_prefix("[TOOL_CALLS]")?.trim_start();
    let (name, json) = match rest.split_once("[ARGS]") {
        Some((name, json)) if !name.contains(['{', '[']) => (name, json),
        _ => rest.split_at_checked(rest.find(['{', '['])?)?,
    };
    let name = name.trim();
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let after = json.get(values.byte_offset()..)?;
    match value {
        Value::Array(items) if name.is_empty() => {
            for item in &items {
                calls.push(json_call(item)?);
            }
        }
        Value::Object(arguments) if !name.is_empty() => calls.push(Printed { name: name.into(), arguments }),
        _ => return None,
    }
    Some(after)
}

/// `<function=NAME><parameter=KEY>VALUE</parameter></function>`
fn function<'a>(text: &'a str, calls: &mut Vec<Printed>) -> Option<&'a str> {
    let (name, body) = text.strip_prefix("<function=")?.split_once('>')?;
    let (body, after) = body.split_once("</function>").unwrap_or((body, ""));
    let body = body.trim();
    let arguments = match serde_json::from_str(body) {
        Ok(Value::Object(arguments)) => arguments,
        _ => parameters(body, "<parameter=", ">")?,
    };
    calls.push(Printed { name: name.trim().into(), arguments });
    Some(after)
}

/// Parameters as tags. A value that reads as JSON is that, any other is text.
fn parameters(text: &str, open: &str, close: &str) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, body) = rest.strip_prefix(open)?.split_once(close)?;
        let (value, after) = body.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        arguments.insert(key.trim().into(), value);
        rest = after.trim_start();
    }
    Some(arguments)
}

/// `{"name": …, "arguments": {…}}`, also under the names that models mix up with these.
fn json_call(value: &Value) -> Option<Printed> {
    let object = value.as_object()?;
    let name = object.get("name")?.as_str()?;
    let arguments = object.get("arguments").or_else(|| object.get("parameters"))?;
    let arguments = match arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::String(text) => serde_json::from_str(text).ok()?,
        _ => return None,
    };
    Some(Printed { name: name.into(), arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn printed_calls_are_read_and_everything_else_is_text() {
        let call = |name: &str, arguments: Value| (name.to_owned(), arguments);
        for (text, before, calls) in [
            (
                r#"Well.<tool_call>{"name":"a","arguments":{"x":1}}</tool_call>"#,
                "Well.",
                vec![call("a", json!({"x": 1}))],
            ),
            (
                "<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"b\",\"arguments\":\"{}\"}",
                "",
                vec![call("a", json!({})), call("b", json!({}))],
            ),
            (
                "<function=a><parameter=x>\n1\n</parameter><parameter=y>z</parameter></function>",
                "",
                vec![call("a", json!({"x": 1, "y": "z"}))],
            ),
            ("<tool_call>\n<function=a>\n</function>\n</tool_call>", "", vec![call("a", json!({}))]),
            (
                r#"[TOOL_CALLS]a{"x":1}[TOOL_CALLS]b[ARGS]{}"#,
                "",
                vec![call("a", json!({"x": 1})), call("b", json!({}))],
            ),
            (r#"[TOOL_CALLS] [{"name":"a","arguments":{}}]"#, "", vec![call("a", json!({}))]),
            (
                r#"<minimax:tool_call><invoke name="a"><parameter name="x">y</parameter></invoke></minimax:tool_call>"#,
                "",
                vec![call("a", json!({"x": "y"}))],
            ),
            (r#" {"name":"a","parameters":{}} "#, "", vec![call("a", json!({}))]),
            ("```json\n{\"name\":\"a\",\"arguments\":{}}\n```", "", vec![call("a", json!({}))]),
        ] {
            let (start, read) = read(text).unwrap_or_else(|| panic!("{text}"));
            let read: Vec<_> = read.into_iter().map(|c| (c.name, Value::Object(c.arguments))).collect();
            assert_eq!((start, read), (before, calls), "{text}");
        }
        for text in [
            "plain",
            "",
            r#"<tool_call>{"name":"a","arguments":{}}</tool_call> is what a call looks like"#,
            r#"<tool_call>{"name":"a","arguments":{"x":"#,
            r#"<tool_call>{"name":"a","arguments":[]}</tool_call>"#,
            "[TOOL_CALLS]",
            r#"{"name":"a"}"#,
            "<function=a",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
