//! The format as a JSON Schema and as tables for people, made from the one table of its fields.
//!
//! The repository publishes both, as `docs/skill-format.schema.json` and in `docs/skill-format.md`; a test keeps them
//! what the code says.
//!
//! ```
//! let schema = haversack_skill_runtime::format::json_schema();
//! assert_eq!(schema["properties"]["skill_mode"]["enum"], serde_json::json!(["prompt", "tool", "agent"]));
//! ```

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::metadata::{FieldRule, Group, Kind, SECTIONS, fields_of};

/// The JSON Schema (2020-12) of a front matter with the fields of the modes. Other fields are left open at the top and
/// in the sections, and closed where a misspelt limit would do harm.
pub fn json_schema() -> Value {
    let section = object([Group::Placement, Group::Section].into_iter().flat_map(fields_of));
    let mut schema = section.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for key in SECTIONS {
            properties.insert(key.to_owned(), json!({"$ref": "#/$defs/section"}));
        }
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!("Front matter of a SKILL.md with modes"));
        schema.insert("$defs".to_owned(), json!({"section": section}));
    }
    schema
}

fn object<'f>(fields: impl Iterator<Item = &'f FieldRule>) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = of_kind(field.kind);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), Value::from(field.about));
        }
        properties.insert(field.name.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties})
}

fn of_group(group: Group) -> Value {
    let mut schema = object(fields_of(group));
    if let Some(schema) = schema.as_object_mut() {
        let required: Vec<&str> =
            fields_of(group).filter(|f| f.about.ends_with("; required")).map(|f| f.name).collect();
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": ["string", "number", "boolean"]}),
        Kind::Customary(words) => json!({"type": "string", "examples": words}),
        Kind::List => json!({"type": ["array", "string"], "items": {"type": "string"}}),
        Kind::StrictList => json!({"type": "array", "items": {"type": "string"}}),
        Kind::WordList(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
        Kind::Integer => json!({"type": "integer"}),
        Kind::Whole => json!({"type": "integer", "minimum": 0}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::Mapping(group) => of_group(group),
        Kind::Mappings(group) => json!({"type": "array", "items": of_group(group)}),
        Kind::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::AnyMap | Kind::Schema => json!({"type": "object"}),
    }
}

/// The fields of a group as a table of Markdown.
pub fn table(group: Group) -> String {
    let mut table = String::from("| field | takes | what it is for |\n| --- | --- | --- |\n");
    for field in fields_of(group) {
        // Writing to a string does not fail.
        let _ = writeln!(table, "| `{}` | {} | {} |", field.name, takes(field.kind), field.about);
    }
    table
}

fn takes(kind: Kind) -> String {
    let words = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Customary(known) => format!("text, such as {}", words(known)),
        Kind::List => "list of texts, or a text with commas".to_owned(),
        Kind::StrictList => "list of texts".to_owned(),
        Kind::WordList(known) => format!("list of {}", words(known)),
        Kind::Integer => "whole number".to_owned(),
        Kind::Whole => "whole number from 0".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Word(known) => words(known),
        Kind::Mapping(_) => "mapping, see below".to_owned(),
        Kind::Mappings(_) => "list of mappings, see below".to_owned(),
        Kind::TextMap => "mapping of texts".to_owned(),
        Kind::AnyMap => "mapping of any values".to_owned(),
        Kind::Schema => "JSON Schema".to_owned(),
    }
}
