//! Tool schemas as wires want them. The caller's schema is never changed: what has to differ is a copy.

use serde_json::{Map, Value, json};

/// An object schema that every server takes: without `$schema`, with `type` and `properties`, which OpenAI demands
/// and generators leave out where there are no parameters.
pub(crate) fn plain(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// Keywords of JSON Schema that the strict mode of OpenAI takes beside those that are handled below.
const STRICT_KEYWORDS: &[&str] = &[
    "type",
    "description",
    "enum",
    "const",
    "title",
    "$ref",
    "pattern",
    "format",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
];

/// Nesting that the strict mode takes.
const MAX_STRICT_DEPTH: usize = 10;

/// The schema in the strict subset: every object closed, every property required, optional ones allowed to be
/// `null` instead. None where the schema says things that the subset cannot.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    let plain = plain(schema);
    let strict = strict_part(&plain, 0)?;
    (strict.get("type")? == "object").then_some(strict)
}

fn strict_part(schema: &Value, depth: usize) -> Option<Value> {
    let schema = schema.as_object()?;
    if depth > MAX_STRICT_DEPTH {
        return None;
    }
    let mut out = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "$schema" | "default" | "examples" | "required" => continue,
            "additionalProperties" if value == &json!(false) => continue,
            "properties" => strict_properties(value, schema.get("required"), depth)?,
            "items" => strict_part(value, depth + 1)?,
            "anyOf" => {
                let parts = value.as_array()?.iter().map(|part| strict_part(part, depth + 1));
                Value::Array(parts.collect::<Option<_>>()?)
            }
            "$defs" | "definitions" => {
                let parts = value.as_object()?.iter();
                let parts = parts.map(|(name, part)| Some((name.clone(), strict_part(part, depth + 1)?)));
                Value::Object(parts.collect::<Option<_>>()?)
            }
            key if STRICT_KEYWORDS.contains(&key) => value.clone(),
            _ => return None,
        };
        out.insert(key.clone(), value);
    }
    if out.get("type").is_some_and(|kind| kind == "object") || out.contains_key("properties") {
        let names: Vec<Value> =
            out.get("properties")?.as_object()?.keys().map(|name| name.clone().into()).collect();
        out.insert("required".into(), names.into());
        out.insert("additionalProperties".into(), false.into());
    }
    Some(Value::Object(out))
}

fn strict_properties(properties: &Value, required: Option<&Value>, depth: usize) -> Option<Value> {
    let is_required =
        |name: &str| required.and_then(Value::as_array).is_some_and(|names| names.iter().any(|n| n == name));
    let parts = properties.as_object()?.iter().map(|(name, part)| {
        let part = strict_part(part, depth + 1)?;
        Some((name.clone(), if is_required(name) { part } else { nullable(part)? }))
    });
    Some(Value::Object(parts.collect::<Option<_>>()?))
}

/// The same, or `null`.
fn nullable(mut schema: Value) -> Option<Value> {
    let object = schema.as_object_mut()?;
    if object.contains_key("enum") || object.contains_key("const") {
        return Some(json!({"anyOf": [schema, {"type": "null"}]}));
    }
    match object.get_mut("type") {
        Some(Value::String(kind)) if kind == "null" => {}
        Some(kind @ Value::String(_)) => *kind = json!([kind.clone(), "null"]),
        Some(Value::Array(kinds)) => {
            if !kinds.contains(&json!("null")) {
                kinds.push("null".into());
            }
        }
        _ => return Some(json!({"anyOf": [schema, {"type": "null"}]})),
    }
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_schemas_are_objects_with_properties_and_the_original_stays() {
        let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema"});
        assert_eq!(plain(&schema), json!({"type": "object", "properties": {}}));
        assert_eq!(schema.as_object().unwrap().len(), 1);
        assert_eq!(plain(&Value::Null), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn strict_schemas_are_closed_and_optional_properties_become_nullable() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"enum": ["d"]}}}},
            },
            "required": ["a"],
        });
        assert_eq!(
            strict(&schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {
                        "type": ["array", "null"],
                        "items": {
                            "type": "object",
                            "properties": {"c": {"anyOf": [{"enum": ["d"]}, {"type": "null"}]}},
                            "required": ["c"],
                            "additionalProperties": false,
                        },
                    },
                },
                "required": ["a", "b"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_the_strict_subset_cannot_say_is_not_strict() {
        for part in [
            json!({"type": "object", "additionalProperties": true}),
            json!({"oneOf": []}),
            json!({"not": {}}),
            json!(true),
        ] {
            let schema = json!({"type": "object", "properties": {"a": part}});
            assert_eq!(strict(&schema), None, "{schema}");
        }
        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        assert_eq!(strict(&deep), None);
    }
}
