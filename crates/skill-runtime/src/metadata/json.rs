//! The fields as JSON, for replies of tools.

use serde::Serializer;
use serde_json::{Map, Value};

use crate::metadata::{Metadata, SkillMode};

impl Metadata {
    /// The fields that are set, by their names in `camelCase`.
    pub fn to_json(&self) -> Value {
        // Plain data with text keys: this does not fail.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        drop_unset(&mut value);
        value
    }
}

pub(super) fn as_text<S: Serializer>(mode: &SkillMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(mode)
}

/// Takes out what is null or empty, but for schemas and arguments, which are the author's own.
fn drop_unset(value: &mut Value) {
    const VERBATIM: [&str; 7] = [
        "input",
        "output",
        "inputMap",
        "toolInputSchema",
        "agentInputSchema",
        "agentOutputSchema",
        "allowedCommands",
    ];
    let is_unset = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_unset),
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (key, mut value) in std::mem::take(fields) {
                let verbatim = VERBATIM.contains(&key.as_str());
                if !verbatim {
                    drop_unset(&mut value);
                }
                if !(value.is_null() || !verbatim && is_unset(&value)) {
                    kept.insert(key, value);
                }
            }
            *fields = kept;
        }
        _ => {}
    }
}
