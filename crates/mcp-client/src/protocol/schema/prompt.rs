//! Prompts and completion.

use serde_json::Value;

use super::super::json::{Object, take_text};
use super::content::Content;
use super::listing::{Item, Problem, ProblemCode};

/// A prompt as its server lists it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptInfo {
    /// The name; what `prompts/get` takes.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What can be filled in.
    pub arguments: Vec<PromptArgument>,
    /// All other members.
    pub extra: Object,
}

/// What can be filled in in a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// All other members.
    pub extra: Object,
}

impl Item for PromptInfo {
    const KIND: &'static str = "prompt";

    fn from_object(mut object: Object) -> Result<Self, String> {
        let name = take_text(&mut object, "name").ok_or("it has no name")?;
        let arguments = match object.shift_remove("arguments") {
            Some(Value::Array(arguments)) => {
                arguments.into_iter().filter_map(PromptArgument::from_value).collect()
            }
            _ => Vec::new(),
        };
        Ok(Self {
            name,
            title: take_text(&mut object, "title"),
            description: take_text(&mut object, "description"),
            arguments,
            extra: object,
        })
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl PromptArgument {
    fn from_value(value: Value) -> Option<Self> {
        let Value::Object(mut object) = value else { return None };
        Some(Self {
            name: take_text(&mut object, "name")?,
            title: take_text(&mut object, "title"),
            description: take_text(&mut object, "description"),
            required: object
                .shift_remove("required")
                .and_then(|required| required.as_bool())
                .unwrap_or(false),
            extra: object,
        })
    }
}

/// A prompt, filled in.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
    /// All other members.
    pub extra: Object,
    /// What was odd about the answer.
    pub problems: Vec<Problem>,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptMessage {
    /// `user` or `assistant`, as the server wrote it.
    pub role: String,
    /// What is said. One part; the revision at hand allows no more.
    pub content: Content,
    /// All other members.
    pub extra: Object,
}

impl PromptResult {
    pub(crate) fn from_object(mut object: Object) -> Self {
        let mut result = Self { description: take_text(&mut object, "description"), ..Self::default() };
        let messages = object.shift_remove("messages");
        result.extra = object;
        let Some(Value::Array(messages)) = messages else {
            result.problems.push(Problem::new(ProblemCode::OddShape, "the answer holds no list of messages"));
            return result;
        };
        for (place, entry) in messages.into_iter().enumerate() {
            let Value::Object(mut object) = entry else {
                let message = format!("message {} was left out: it is no object", place + 1);
                result.problems.push(Problem::new(ProblemCode::BadEntry, message));
                continue;
            };
            result.messages.push(PromptMessage {
                role: take_text(&mut object, "role").unwrap_or_else(|| "user".to_owned()),
                content: Content::from_value(object.shift_remove("content").unwrap_or(Value::Null)),
                extra: object,
            });
        }
        result
    }
}

/// Ways to go on with a value that is being typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first; at most 100 by the specification.
    pub values: Vec<String>,
    /// How many there are in all, if the server says so.
    pub total: Option<u64>,
    /// Whether there are more.
    pub has_more: bool,
}

impl Completion {
    pub(crate) fn from_object(mut object: Object) -> Option<Self> {
        let Some(Value::Object(mut completion)) = object.shift_remove("completion") else { return None };
        let Some(Value::Array(values)) = completion.shift_remove("values") else { return None };
        Some(Self {
            values: values.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
            total: completion.get("total").and_then(Value::as_u64),
            has_more: completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}
