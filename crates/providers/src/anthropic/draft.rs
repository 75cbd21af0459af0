//! A block while it is written, and what becomes of it.

use std::sync::Arc;

use haversack_agent_core::message::{Block, Opaque, Reasoning, Seal, ToolCall};
use haversack_agent_core::model::ModelEvent;
use serde_json::{Map, Value};

use crate::fault::Events;

/// A block that is being written.
#[derive(Debug)]
pub(super) enum Draft {
    Text {
        text: String,
        citations: Vec<Value>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        data: Value,
    },
    Call {
        number: u32,
        id: String,
        name: Arc<str>,
        json: String,
        input: Value,
        caller: Option<Value>,
    },
    /// A kind that only the server understands, kept whole.
    Other {
        raw: Map<String, Value>,
        json: String,
    },
}

impl Draft {
    /// Puts the block out, sealed under this issuer where it has to come back.
    pub(super) fn finish(self, issuer: &Arc<str>, out: &mut Events) {
        let issuer = || Arc::clone(issuer);
        let block = match self {
            Self::Text { text, citations } => {
                out.push_back(ModelEvent::BlockDone(Block::Text { text }));
                if citations.is_empty() {
                    return;
                }
                Block::Opaque(Opaque::new(issuer(), rest_of_the_text_before(citations)))
            }
            Self::Thinking { text, signature } => {
                let mut data = Map::new();
                if !signature.is_empty() {
                    data.insert("signature".into(), signature.into());
                }
                Block::Reasoning(Reasoning::new(text).with_seal(Seal::new(issuer(), data)))
            }
            Self::Redacted { data } => {
                let data = Map::from_iter([("redacted_thinking".to_owned(), data)]);
                Block::Reasoning(Reasoning::new("").with_seal(Seal::new(issuer(), data)))
            }
            Self::Call { id, name, json, input, caller, .. } => {
                let mut call = if json.is_empty() {
                    call_with(id, name, input)
                } else {
                    ToolCall::from_text(id, name, &json)
                };
                call.seal =
                    caller.map(|caller| Seal::new(issuer(), Map::from_iter([("caller".to_owned(), caller)])));
                Block::ToolCall(call)
            }
            Self::Other { mut raw, json } => {
                if !json.is_empty() {
                    // Half an input is kept as text, so that nothing is lost and nothing is made up.
                    let input = serde_json::from_str(&json).unwrap_or(Value::String(json));
                    raw.insert("input".into(), input);
                }
                Block::Opaque(Opaque::new(issuer(), Value::Object(raw)))
            }
        };
        out.push_back(ModelEvent::BlockDone(block));
    }
}

/// What belongs to the text block before it: our blocks of text hold nothing but text.
fn rest_of_the_text_before(citations: Vec<Value>) -> Value {
    let fields = [("type".to_owned(), "text".into()), ("citations".to_owned(), Value::Array(citations))];
    Value::Object(Map::from_iter(fields))
}

/// A call whose input came whole. What is no object is kept as malformed, like text that is none.
fn call_with(id: String, name: Arc<str>, input: Value) -> ToolCall {
    match input {
        Value::Object(_) => ToolCall::new(id, name, input),
        Value::Null => ToolCall::from_text(id, name, ""),
        Value::String(text) => ToolCall::from_text(id, name, &text),
        other => ToolCall::from_text(id, name, &other.to_string()),
    }
}
