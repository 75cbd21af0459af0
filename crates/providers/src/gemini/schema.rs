//! Tool schemas for Gemini. The caller's schema is never changed: these make another one.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Map, Value, json};

/// How deep a schema is followed. Tools nest a few levels; a schema that refers to itself has no end.
const MAX_DEPTH: usize = 24;

/// How many schemas one may turn into: references are written out, and a few that refer to each other could fill the memory.
const MAX_SCHEMAS: usize = 4096;

/// The keywords of the `OpenAPI` subset that say the same in JSON Schema.
const KEPT: [&str; 16] = [
    "description",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "propertyOrdering",
    "required",
    "title",
];

/// The schema without `$schema`, which names its dialect and constrains nothing.
pub(super) fn without_dialect(schema: &Value) -> Cow<'_, Value> {
    match schema {
        Value::Object(map) if map.contains_key("$schema") => {
            let rest = map.iter().filter(|(key, _)| *key != "$schema");
            Cow::Owned(Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect()))
        }
        _ => Cow::Borrowed(schema),
    }
}

/// The schema in the `OpenAPI` subset of older endpoints; none for a tool without parameters, since an object without
/// properties is refused there.
pub(super) fn open_api(schema: &Value) -> Option<Value> {
    let has_properties = schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
    has_properties.then(|| convert(schema, &Walk { root: schema, left: Cell::new(MAX_SCHEMAS) }, 0))
}

struct Walk<'a> {
    root: &'a Value,
    left: Cell<usize>,
}

fn convert(schema: &Value, walk: &Walk<'_>, depth: usize) -> Value {
    let left = walk.left.get().saturating_sub(1);
    walk.left.set(left);
    // A schema that allows everything, or goes on for ever.
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH && left > 0) else {
        return json!({"type": "OBJECT"});
    };
    if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#')) {
        return walk
            .root
            .pointer(target)
            .map_or_else(|| json!({}), |target| convert(target, walk, depth + 1));
    }
    let mut out = Map::new();
    let convert = |schema: &Value| convert(schema, walk, depth + 1);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("type", Value::String(kind)) => {
                out.insert("type".into(), kind.to_ascii_uppercase().into());
            }
            ("type", Value::Array(kinds)) => types(kinds, &mut out),
            ("const", value) => {
                out.insert("enum".into(), json!([value]));
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, value)| (name.clone(), convert(value)));
                out.insert("properties".into(), Value::Object(properties.collect()));
            }
            ("items", items @ Value::Object(_)) => {
                out.insert("items".into(), convert(items));
            }
            ("anyOf" | "oneOf", Value::Array(choices)) => any_of(choices, convert, &mut out),
            ("allOf", Value::Array(parts)) if parts.len() == 1 => {
                if let Some(Value::Object(only)) = parts.first().map(convert) {
                    out.extend(only);
                }
            }
            (key, value) if KEPT.contains(&key) => {
                out.insert(key.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    // Only texts can be listed.
    if out.get("enum").and_then(Value::as_array).is_some_and(|list| list.iter().any(|v| !v.is_string())) {
        out.remove("enum");
    }
    Value::Object(out)
}

/// Several types: `null` is a flag, more than one of the others are choices.
fn types(kinds: &[Value], out: &mut Map<String, Value>) {
    let names = || kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
    if kinds.iter().any(|kind| kind == "null") {
        out.insert("nullable".into(), true.into());
    }
    match (names().next(), names().count()) {
        (Some(kind), 1) => {
            out.insert("type".into(), kind.to_ascii_uppercase().into());
        }
        (Some(_), _) => {
            let choices: Vec<Value> =
                names().map(|kind| json!({"type": kind.to_ascii_uppercase()})).collect();
            out.insert("anyOf".into(), choices.into());
        }
        (None, _) => {}
    }
}

/// Choices: `null` is a flag, and a single one left is the schema itself.
fn any_of(choices: &[Value], convert: impl Fn(&Value) -> Value, out: &mut Map<String, Value>) {
    let is_null = |choice: &&Value| choice.get("type") == Some(&Value::from("null"));
    if choices.iter().any(|choice| is_null(&choice)) {
        out.insert("nullable".into(), true.into());
    }
    let mut rest: Vec<Value> = choices.iter().filter(|choice| !is_null(choice)).map(convert).collect();
    match (rest.pop(), rest.is_empty()) {
        (Some(Value::Object(only)), true) => out.extend(only),
        (Some(last), _) => {
            rest.push(last);
            out.insert("anyOf".into(), rest.into());
        }
        (None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_subset_cannot_say_is_said_another_way_or_left_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "$defs": {"unit": {"type": "string", "const": "C"}},
            "properties": {
                "city": {"type": ["string", "null"], "examples": ["Bern"], "description": "where"},
                "unit": {"$ref": "#/$defs/unit"},
                "days": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]},
                "when": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "list": {"type": "array", "items": {"type": "number"}},
                "level": {"enum": [1, 2]},
            },
            "required": ["city"],
        });
        assert_eq!(
            open_api(&schema).unwrap(),
            json!({
                "type": "OBJECT",
                "properties": {
                    "city": {"nullable": true, "type": "STRING", "description": "where"},
                    "unit": {"type": "STRING", "enum": ["C"]},
                    "days": {"nullable": true, "type": "INTEGER"},
                    "when": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
                    "list": {"type": "ARRAY", "items": {"type": "NUMBER"}},
                    "level": {},
                },
                "required": ["city"],
            })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let own = json!({"$ref": "#"});
        let schema = json!({"type": "object", "properties": {"a": own, "b": own, "c": own}});
        assert!(open_api(&schema).unwrap().to_string().len() < 1_000_000);
    }

    #[test]
    fn only_the_dialect_is_taken_off_a_json_schema() {
        let schema = json!({"type": "object", "additionalProperties": false});
        assert!(matches!(without_dialect(&schema), Cow::Borrowed(_)));
        assert_eq!(*without_dialect(&json!({"$schema": "x", "type": "object"})), json!({"type": "object"}));
        assert_eq!(open_api(&schema), None);
    }
}
