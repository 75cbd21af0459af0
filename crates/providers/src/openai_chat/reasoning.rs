//! The forms of reasoning on Chat's wire that are more than a text.

use serde_json::{Map, Value};

use crate::fault::Fault;

/// OpenRouter's `reasoning_details`: what their issuer wants back, in one list for the whole message.
#[derive(Debug, Default)]
pub(super) struct Details(pub(super) Vec<Value>);

impl Details {
    /// Details are what their issuer wants back. Streamed ones of one kind and index are pieces of one.
    pub(super) fn add(&mut self, details: Vec<Value>) -> Result<(), Fault> {
        /// Details that one answer may have: real ones have one for each thought.
        const MAX_DETAILS: usize = 10_000;
        for detail in details {
            if let (Some(Value::Object(last)), Value::Object(new)) = (self.0.last_mut(), &detail)
                && continues(last, new)
            {
                for (key, value) in new {
                    match (last.get_mut(key), value) {
                        (Some(Value::String(text)), Value::String(more))
                            if matches!(key.as_str(), "text" | "summary" | "data") =>
                        {
                            text.push_str(more);
                        }
                        (_, Value::Null) => {}
                        _ => {
                            last.insert(key.clone(), value.clone());
                        }
                    }
                }
                continue;
            }
            if self.0.len() >= MAX_DETAILS {
                return Err(Fault::Protocol(format!("more than {MAX_DETAILS} reasoning details")));
            }
            self.0.push(detail);
        }
        Ok(())
    }
}

/// Whether a detail is the next piece of the one before it.
fn continues(last: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let same = |key: &str| last.get(key) == new.get(key);
    let is_sealed = last.get("signature").is_some_and(|signature| !signature.is_null());
    same("type") && same("index") && (same("id") || new.get("id").is_none_or(Value::is_null)) && !is_sealed
}

/// Text and reasoning of content that is a list of parts (Mistral).
pub(super) fn parts_of(content: &Value) -> (String, String) {
    let (mut text, mut thought) = (String::new(), String::new());
    for part in content.as_array().into_iter().flatten() {
        if part.get("type").is_some_and(|kind| kind == "thinking") {
            match part.get("thinking") {
                Some(Value::Array(parts)) => {
                    thought.extend(parts.iter().filter_map(|part| part.get("text")?.as_str()));
                }
                Some(Value::String(more)) => thought.push_str(more),
                _ => {}
            }
        } else if let Some(more) = part.get("text").and_then(Value::as_str) {
            text.push_str(more);
        }
    }
    (text, thought)
}
