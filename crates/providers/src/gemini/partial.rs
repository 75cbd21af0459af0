//! Puts arguments together that come in pieces, each with the path of the value it belongs to.
//!
//! Vertex streams arguments so when it is asked to. We do not ask; a gateway may.

use serde::Deserialize;
use serde_json::{Map, Value};

/// How deep a path may go. Tool arguments nest a few levels; the bound keeps a hostile path from building a tree
/// that takes a deep recursion to drop.
const MAX_DEPTH: usize = 64;

/// How far an array may be written beyond its end at once: pieces come in order, so the next element is enough.
const MAX_GAP: usize = 16;

/// Arguments so far.
#[derive(Debug)]
pub(crate) struct PartialArguments {
    value: Value,
    /// The path of a text that goes on with the next piece.
    open: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    #[serde(default)]
    json_path: String,
    #[serde(default)]
    string_value: Option<String>,
    #[serde(default)]
    number_value: Option<Value>,
    #[serde(default)]
    bool_value: Option<Value>,
    #[serde(default)]
    will_continue: bool,
}

enum Step {
    Key(String),
    Index(usize),
}

impl PartialArguments {
    /// Arguments that begin with what came whole; null when nothing did.
    pub(crate) fn new(whole: Value) -> Self {
        Self { value: whole, open: None }
    }

    /// Adds a piece.
    pub(crate) fn add(&mut self, piece: Value) -> Result<(), String> {
        let piece: Piece = serde_json::from_value(piece)
            .map_err(|error| format!("a piece of arguments does not read: {error}"))?;
        let steps = steps(&piece.json_path)
            .ok_or_else(|| format!("a piece of arguments has the path {:?}", piece.json_path))?;
        let place = place(&mut self.value, steps)
            .ok_or_else(|| format!("a piece of arguments does not fit at {:?}", piece.json_path))?;
        let goes_on = self.open.as_deref() == Some(&*piece.json_path);
        match (place, piece.string_value) {
            (Value::String(whole), Some(text)) if goes_on => whole.push_str(&text),
            (place, Some(text)) => *place = Value::String(text),
            (place, None) => *place = piece.number_value.or(piece.bool_value).unwrap_or_default(),
        }
        self.open = piece.will_continue.then_some(piece.json_path);
        Ok(())
    }

    /// The arguments.
    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}

/// Reads `$.a.b[0]['c']`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= MAX_DEPTH {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (key, next) = after.split_at_checked(end)?;
            steps.push(Step::Key(key.to_owned()));
            rest = next;
            continue;
        }
        let after = rest.strip_prefix('[')?;
        let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'));
        if let Some(quote) = quote {
            let (key, next) = after.get(1..)?.split_once(quote)?;
            steps.push(Step::Key(key.to_owned()));
            rest = next.strip_prefix(']')?;
        } else {
            let (index, next) = after.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = next;
        }
    }
    Some(steps)
}

/// The value at a path, made where it is not there yet.
fn place(mut value: &mut Value, steps: Vec<Step>) -> Option<&mut Value> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    for step in steps {
        match step {
            Step::Key(key) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                value = value.as_object_mut()?.entry(key).or_insert(Value::Null);
            }
            Step::Index(index) => {
                if value.is_null() {
                    *value = Value::Array(Vec::new());
                }
                let items = value.as_array_mut()?;
                if index >= items.len() {
                    (index - items.len() < MAX_GAP).then_some(())?;
                    items.resize(index + 1, Value::Null);
                }
                value = items.get_mut(index)?;
            }
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_build_the_value_at_their_paths() {
        let mut arguments = PartialArguments::new(Value::Null);
        for piece in [
            json!({"jsonPath": "$.city", "stringValue": "Z\u{fc}", "willContinue": true}),
            json!({"jsonPath": "$.city", "stringValue": "rich"}),
            json!({"jsonPath": "$.days[0].n", "numberValue": 3}),
            json!({"jsonPath": "$.days[1].n", "boolValue": true}),
            json!({"jsonPath": "$['a.b']", "nullValue": "NULL_VALUE"}),
        ] {
            arguments.add(piece).unwrap();
        }
        assert_eq!(
            arguments.into_value(),
            json!({"city": "Z\u{fc}rich", "days": [{"n": 3}, {"n": true}], "a.b": null})
        );
    }

    #[test]
    fn a_path_that_does_not_read_or_fit_is_an_error() {
        for path in ["", "city", "$.a[", "$.a[x]", "$['a", "$.list[4000000000]"] {
            let mut arguments = PartialArguments::new(json!({"a": "text"}));
            assert!(arguments.add(json!({"jsonPath": path, "stringValue": "x"})).is_err(), "{path}");
        }
        let mut arguments = PartialArguments::new(json!({"a": "text"}));
        assert!(arguments.add(json!({"jsonPath": "$.a.b", "stringValue": "x"})).is_err());
        let deep = format!("${}", ".a".repeat(MAX_DEPTH + 1));
        assert!(PartialArguments::new(Value::Null).add(json!({"jsonPath": deep})).is_err());
    }
}
