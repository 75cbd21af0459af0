//! How much work a whole validation would be.
//!
//! Schemas come from servers. A few lines of nested references can make a validator look at more places than it could
//! in a lifetime, so the work is counted first, by walking schema and value without checking anything.

use serde_json::{Map, Value};

use crate::arguments::subset::{MAX_DEPTH, MAX_VISITS};

/// Whether a validator gets through these arguments within [`MAX_VISITS`] looks at a schema, none of them deeper than
/// [`MAX_DEPTH`].
pub(super) fn is_bounded(schema: &Value, arguments: &Value) -> bool {
    Walk { root: schema, visits: 0 }.value(schema, arguments, 0).is_some()
}

/// Whether a schema nests no deeper than validators can be trusted to follow.
pub(super) fn is_shallow(schema: &Value) -> bool {
    fn within(value: &Value, depth: usize) -> bool {
        depth > 0
            && match value {
                Value::Array(items) => items.iter().all(|item| within(item, depth - 1)),
                Value::Object(map) => map.values().all(|item| within(item, depth - 1)),
                _ => true,
            }
    }
    within(schema, MAX_DEPTH)
}

struct Walk<'a> {
    root: &'a Value,
    visits: usize,
}

impl<'a> Walk<'a> {
    /// `None` once the bound is passed.
    fn value(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Option<()> {
        self.visits += 1;
        if depth > MAX_DEPTH || self.visits > MAX_VISITS {
            return None;
        }
        let Value::Object(schema) = schema else { return Some(()) };
        for (keyword, part) in schema {
            match keyword.as_str() {
                // Other references than pointers into this very schema are rare, and where they lead is not known here.
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let target = self.root.pointer(part.as_str()?.strip_prefix('#')?)?;
                    self.value(target, value, depth + 1)?;
                }
                "not" | "if" | "then" | "else" => self.value(part, value, depth + 1)?,
                "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                    for part in parts(part) {
                        self.value(part, value, depth + 1)?;
                    }
                }
                _ => self.below(schema, keyword, part, value, depth + 1)?,
            }
        }
        Some(())
    }

    /// Keywords that look at what is inside the value.
    fn below(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        part: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Option<()> {
        let named = |key: &String| schema.get("properties").is_some_and(|known| known.get(key).is_some());
        match (keyword, value) {
            ("properties", Value::Object(object)) => {
                for (key, value) in object {
                    if let Some(part) = part.get(key) {
                        self.value(part, value, depth)?;
                    }
                }
            }
            ("patternProperties", Value::Object(object)) => {
                for part in parts(part) {
                    object.values().try_for_each(|value| self.value(part, value, depth))?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Object(object)) => {
                let others = object.iter().filter(|(key, _)| !named(key));
                others.map(|(_, value)| value).try_for_each(|value| self.value(part, value, depth))?;
            }
            ("propertyNames", Value::Object(object)) => {
                object.iter().try_for_each(|_| self.value(part, &Value::Null, depth))?;
            }
            ("items" | "prefixItems", Value::Array(items)) if part.is_array() => {
                parts(part).zip(items).try_for_each(|(part, item)| self.value(part, item, depth))?;
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", Value::Array(items)) => {
                items.iter().try_for_each(|item| self.value(part, item, depth))?;
            }
            _ => {}
        }
        Some(())
    }
}

/// The schemas of a keyword that holds a list of them, or some by name.
fn parts(part: &Value) -> impl Iterator<Item = &Value> {
    let list = part.as_array().into_iter().flatten();
    list.chain(part.as_object().into_iter().flat_map(Map::values))
}
