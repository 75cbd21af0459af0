//! Tools: what a server offers and what a call gives back.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::super::json::{Key, KeyOf, Object, take_object, take_text};
use super::content::{Content, ContentList};
use super::listing::{Item, Problem, ProblemCode};

/// A tool as its server describes it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name, exactly as the server wrote it and as a call must name it. By advice 1 to 128 of `[A-Za-z0-9_.-]`;
    /// in practice anything.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, in words for the model. Text from the server: data, not instructions.
    pub description: Option<String>,
    /// The schema of the arguments as it came, `Null` if there was none. It may be of any shape.
    pub input_schema: Arc<Value>,
    /// The schema of [`ToolResult::structured`], if there is one.
    pub output_schema: Option<Arc<Value>>,
    /// What the server claims of the tool.
    pub annotations: ToolAnnotations,
    /// All other members: `icons`, `execution`, `_meta` and whatever else there is.
    pub extra: Object,
}

impl ToolInfo {
    /// A tool without a description, for tests.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Arc<Value>>) -> Self {
        Self { name: name.into(), input_schema: input_schema.into(), ..Self::default() }
    }
}

/// What a server claims about a tool of its own: hints, never a permission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// A name for people.
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy what cannot be brought back.
    pub destructive: Option<bool>,
    /// Doing it twice is the same as doing it once.
    pub idempotent: Option<bool>,
    /// It reaches out into the world.
    pub open_world: Option<bool>,
}

impl Item for ToolInfo {
    const KIND: &'static str = "tool";

    fn from_object(mut object: Object) -> Result<Self, String> {
        let name = take_text(&mut object, "name").ok_or("it has no name")?;
        let annotations = take_object(&mut object, "annotations").map(ToolAnnotations::from_object);
        Ok(Self {
            name,
            title: take_text(&mut object, "title"),
            description: take_text(&mut object, "description"),
            input_schema: Arc::new(object.shift_remove("inputSchema").unwrap_or(Value::Null)),
            output_schema: object
                .shift_remove("outputSchema")
                .filter(|schema| !schema.is_null())
                .map(Arc::new),
            annotations: annotations.unwrap_or_default(),
            extra: object,
        })
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl ToolAnnotations {
    fn from_object(mut object: Object) -> Self {
        let claim = |key| object.get(key).and_then(Value::as_bool);
        Self {
            read_only: claim("readOnlyHint"),
            destructive: claim("destructiveHint"),
            idempotent: claim("idempotentHint"),
            open_world: claim("openWorldHint"),
            title: take_text(&mut object, "title"),
        }
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The parts, in order.
    pub content: Vec<Content>,
    /// Structured output. Many servers send the same twice, here and as text: do not show a model both.
    pub structured: Option<Value>,
    /// Whether this is the tool's own report of a failure, for the model to react to.
    pub is_error: bool,
    /// All other members, `_meta` among them.
    pub extra: Object,
    /// What was odd about the answer and how it was read.
    pub problems: Vec<Problem>,
}

impl ToolResult {
    /// A result of these parts, for tests.
    pub fn of(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }

    /// All text parts, joined by line ends.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// Reads the result of a tool call in one pass over its bytes.
pub(crate) struct ToolResultSeed;

const MEMBERS: &[&str] = &["content", "isError", "structuredContent"];

impl<'de> DeserializeSeed<'de> for ToolResultSeed {
    type Value = ToolResult;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ToolResult, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ToolResultSeed {
    fn odd(self, value: Value) -> ToolResult {
        let message = format!("the result is {} instead of an object", kind_of(&value));
        ToolResult {
            content: if value.is_null() { Vec::new() } else { vec![Content::Unknown(value)] },
            problems: vec![Problem::new(ProblemCode::OddShape, message)],
            ..ToolResult::default()
        }
    }
}

impl<'de> Visitor<'de> for ToolResultSeed {
    type Value = ToolResult;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the result of a tool call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolResult, A::Error> {
        let mut result = ToolResult::default();
        let mut content = None;
        while let Some(key) = map.next_key_seed(KeyOf(MEMBERS))? {
            match key {
                // Of a key that stands there twice, the last one counts.
                Key::Known(0) => content = Some(map.next_value::<ContentList>()?),
                Key::Known(1) => match map.next_value()? {
                    Value::Bool(is_error) => result.is_error = is_error,
                    Value::Null => {}
                    other => {
                        result.is_error =
                            other.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"));
                        let message = format!("isError is {other}, read as {}", result.is_error);
                        result.problems.push(Problem::new(ProblemCode::OddShape, message));
                    }
                },
                Key::Known(_) => result.structured = Some(map.next_value()?),
                Key::Other(key) => {
                    result.extra.insert(key, map.next_value()?);
                }
            }
        }
        if let Some(content) = content {
            result.content = content.parts;
            result.problems.extend(content.problems);
        }
        Ok(result)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<ToolResult, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(self.odd(Value::Array(list)))
    }

    fn visit_str<E>(self, text: &str) -> Result<ToolResult, E> {
        Ok(self.odd(text.into()))
    }

    fn visit_unit<E>(self) -> Result<ToolResult, E> {
        Ok(self.odd(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<ToolResult, E> {
        Ok(self.odd(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ToolResult, E> {
        Ok(self.odd(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ToolResult, E> {
        Ok(self.odd(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ToolResult, E> {
        Ok(self.odd(value.into()))
    }
}

/// What a value is, in words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
