//! Resources: what can be read, and what reading gives.

use serde_json::Value;

use super::super::json::{Object, take_text};
use super::listing::{Item, Problem, ProblemCode};

/// A resource as its server lists it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceInfo {
    /// Where it is; what `resources/read` takes.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// All other members: `size`, `annotations`, `icons`, `_meta` and whatever else there is.
    pub extra: Object,
}

impl Item for ResourceInfo {
    const KIND: &'static str = "resource";

    fn from_object(mut object: Object) -> Result<Self, String> {
        Ok(Self {
            uri: take_text(&mut object, "uri").ok_or("it has no URI")?,
            name: take_text(&mut object, "name"),
            title: take_text(&mut object, "title"),
            description: take_text(&mut object, "description"),
            mime_type: take_text(&mut object, "mimeType"),
            extra: object,
        })
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

/// A pattern of resource addresses.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The pattern (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The MIME type of all that match.
    pub mime_type: Option<String>,
    /// All other members.
    pub extra: Object,
}

impl Item for ResourceTemplate {
    const KIND: &'static str = "resource template";

    fn from_object(mut object: Object) -> Result<Self, String> {
        Ok(Self {
            uri_template: take_text(&mut object, "uriTemplate").ok_or("it has no URI template")?,
            name: take_text(&mut object, "name"),
            title: take_text(&mut object, "title"),
            description: take_text(&mut object, "description"),
            mime_type: take_text(&mut object, "mimeType"),
            extra: object,
        })
    }

    fn key(&self) -> &str {
        &self.uri_template
    }
}

/// What a resource holds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Where it is; empty if the server did not say.
    pub uri: String,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// The text, if it is text.
    pub text: Option<String>,
    /// The data in base64, as it came, if it is not text.
    pub blob: Option<String>,
    /// All other members.
    pub extra: Object,
}

impl ResourceContents {
    pub(crate) fn from_object(mut object: Object) -> Self {
        Self {
            uri: take_text(&mut object, "uri").unwrap_or_default(),
            mime_type: take_text(&mut object, "mimeType"),
            text: take_text(&mut object, "text"),
            blob: take_text(&mut object, "blob"),
            extra: object,
        }
    }
}

/// What reading a resource gave: often one, sometimes several (a folder).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceResult {
    /// The contents, in order.
    pub contents: Vec<ResourceContents>,
    /// All other members.
    pub extra: Object,
    /// What was odd about the answer.
    pub problems: Vec<Problem>,
}

impl ResourceResult {
    pub(crate) fn from_object(mut object: Object) -> Self {
        let mut result = Self::default();
        let contents = object.shift_remove("contents");
        result.extra = object;
        let Some(Value::Array(contents)) = contents else {
            result.problems.push(Problem::new(ProblemCode::OddShape, "the answer holds no list of contents"));
            return result;
        };
        for (place, entry) in contents.into_iter().enumerate() {
            match entry {
                Value::Object(object) => result.contents.push(ResourceContents::from_object(object)),
                _ => {
                    let message = format!("contents {} was left out: it is no object", place + 1);
                    result.problems.push(Problem::new(ProblemCode::BadEntry, message));
                }
            }
        }
        result
    }
}
