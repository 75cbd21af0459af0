//! The schema of a tool, as it is but for what every provider refuses.

use std::sync::Arc;

use serde_json::{Value, json};

/// How deep a schema may nest. Deeper ones are refused by providers, and walking them is not free.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// How many values a schema may hold: far above the largest real ones (about 3,000), and an end for a hostile one,
/// which would be paid for with every request.
pub const MAX_SCHEMA_NODES: usize = 20_000;

#[derive(Debug)]
pub(super) struct Schema {
    pub(super) schema: Arc<Value>,
    /// What had to be changed beside `$schema`, for the host.
    pub(super) mended: Option<String>,
}

/// The schema for the model. Nothing is resolved, and nothing is fetched.
pub(super) fn for_model(original: &Arc<Value>) -> Result<Schema, String> {
    within_bounds(original)?;
    let Value::Object(object) = &**original else {
        let mended = (!original.is_null())
            .then(|| "its schema is no object; it is offered without parameters".to_owned());
        return Ok(Schema { schema: empty(), mended });
    };
    let is_object = match object.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|k| k == "object"),
        Some(_) => false,
    };
    if !is_object {
        let mended = "its schema is not one of an object; it is offered without parameters".to_owned();
        return Ok(Schema { schema: empty(), mended: Some(mended) });
    }
    let plain = object.get("type").is_some_and(Value::is_string) && object.contains_key("properties");
    if plain && !object.contains_key("$schema") {
        return Ok(Schema { schema: Arc::clone(original), mended: None });
    }
    let mut object = object.clone();
    object.shift_remove("$schema");
    object.insert("type".to_owned(), "object".into());
    object.entry("properties").or_insert_with(|| json!({}));
    Ok(Schema { schema: Arc::new(Value::Object(object)), mended: None })
}

fn empty() -> Arc<Value> {
    Arc::new(json!({"type": "object", "properties": {}}))
}

fn within_bounds(schema: &Value) -> Result<(), String> {
    let mut open = vec![(schema, 1)];
    let mut nodes = 0;
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        if depth > MAX_SCHEMA_DEPTH {
            return Err(format!(
                "its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels; it is left out"
            ));
        }
        if nodes > MAX_SCHEMA_NODES {
            return Err(format!("its schema holds more than {MAX_SCHEMA_NODES} values; it is left out"));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|v| (v, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_passes_as_it_is_but_for_what_every_provider_refuses() {
        let empty = json!({"type": "object", "properties": {}});
        for (given, offered, mended) in [
            (
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}, "additionalProperties": false}),
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}, "additionalProperties": false}),
                false,
            ),
            (
                json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"$schema": {"type": "string"}}}),
                json!({"type": "object", "properties": {"$schema": {"type": "string"}}}),
                false,
            ),
            (json!({}), empty.clone(), false),
            (json!({"type": "object"}), empty.clone(), false),
            (
                json!({"type": ["object", "null"], "properties": {"a": {}}}),
                json!({"type": "object", "properties": {"a": {}}}),
                false,
            ),
            (Value::Null, empty.clone(), false),
            (json!(true), empty.clone(), true),
            (json!([1]), empty.clone(), true),
            (json!({"type": "string"}), empty, true),
        ] {
            let schema = for_model(&Arc::new(given.clone())).unwrap();
            assert_eq!((&*schema.schema, schema.mended.is_some()), (&offered, mended), "{given}");
        }
    }

    #[test]
    fn a_schema_without_end_leaves_its_tool_out() {
        let deep = (0..MAX_SCHEMA_DEPTH).fold(json!({}), |inner, _| json!({"properties": inner}));
        assert!(for_model(&Arc::new(deep)).unwrap_err().contains("deeper"));
        let wide = json!({"type": "object", "properties": {"a": {"enum": vec![0; MAX_SCHEMA_NODES]}}});
        assert!(for_model(&Arc::new(wide)).unwrap_err().contains("more than"));
    }
}
