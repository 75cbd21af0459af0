//! A tool call and its one result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Block, CallId, Seal};

/// A call that the model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Unique within the session.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments. Always an object in a stored session, so that every wire accepts the history.
    pub arguments: Value,
    /// What the model wrote, when that was no JSON object; such a call is never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// The id on the wire, when the loop had to give the call another one because it was not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<Arc<str>>,
    /// Opaque data that the provider wants back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl ToolCall {
    /// A call with parsed arguments.
    pub fn new(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, malformed: None, wire_id: None, seal: None }
    }

    /// A call from the argument text of the wire. Blank text and `null` mean an object without keys (providers
    /// send both for tools without parameters); text that is no JSON object is kept as
    /// [`malformed`](Self::malformed) beside an empty object. Nothing is repaired here.
    pub fn from_text(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: &str) -> Self {
        let text = arguments.trim();
        let empty = || Value::Object(Map::new());
        if text.is_empty() || text == "null" {
            return Self::new(id, name, empty());
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => Self::new(id, name, value),
            _ => Self { malformed: Some(arguments.to_owned()), ..Self::new(id, name, empty()) },
        }
    }

    /// Sets the seal.
    #[must_use]
    pub fn with_seal(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }
}

/// The one result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call that this answers.
    pub id: CallId,
    /// The tool's name, which some wires want again.
    pub name: Arc<str>,
    /// What became of the call.
    pub status: ToolStatus,
    /// What the model sees: text, images, documents.
    pub content: Vec<Block>,
    /// Structured output for the host; not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

impl ToolResult {
    /// A result from its parts.
    pub fn new(
        id: impl Into<CallId>,
        name: impl Into<Arc<str>>,
        status: ToolStatus,
        content: Vec<Block>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), status, content, structured: None }
    }

    /// All text blocks of the content, joined by line breaks.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// What became of a tool call. Every call in a history has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed, or could not be run as asked.
    Error,
    /// It was refused; it did not run.
    Denied,
    /// It did not run, because the run ended or the answer was cut off before it could.
    NotStarted,
    /// It was running when the run was cut: its effects are unknown.
    Interrupted,
}

impl ToolStatus {
    /// Whether the result is an error to the model: everything but [`Ok`](Self::Ok).
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn argument_text_is_an_object_or_kept_as_malformed() {
        for (text, arguments, malformed) in [
            ("", json!({}), None),
            (" \n", json!({}), None),
            ("null", json!({}), None),
            (r#"{"a":1}"#, json!({"a": 1}), None),
            (r#"{"a":1"#, json!({}), Some(r#"{"a":1"#)),
            ("[1]", json!({}), Some("[1]")),
            ("\"{}\"", json!({}), Some("\"{}\"")),
        ] {
            let call = ToolCall::from_text("1", "t", text);
            assert_eq!((call.arguments, call.malformed.as_deref()), (arguments, malformed), "{text:?}");
        }
    }
}
