//! The parts of a tool result, a prompt message or a resource.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::super::json::{Key, KeyOf, Object, take_object, take_text};
use super::listing::{Problem, ProblemCode};
use super::resource::ResourceContents;

/// One part of a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// A resource, with its contents.
    Resource(EmbeddedResource),
    /// A pointer to a resource that can be read.
    ResourceLink(ResourceLink),
    /// A kind this client does not know, or a known kind without its parts: kept as it came.
    Unknown(Value),
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TextContent {
    /// The text as it came; it may hold control characters.
    pub text: String,
    /// All other members: `annotations`, `_meta` and whatever else there is.
    pub extra: Object,
}

/// An image or sound.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Media {
    /// The data in base64, as it came: not decoded, and not checked.
    pub data: String,
    /// The MIME type, if one was given.
    pub mime_type: Option<String>,
    /// All other members.
    pub extra: Object,
}

impl Media {
    /// About how many bytes the data stands for, without decoding it.
    pub fn decoded_len(&self) -> usize {
        let padding = self.data.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.data.len() - padding) / 4 * 3 + ((self.data.len() - padding) % 4 * 3) / 4
    }
}

/// A resource inside a result.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// All other members.
    pub extra: Object,
}

/// A pointer to a resource.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Its name, if one was given.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// All other members.
    pub extra: Object,
}

impl Content {
    /// Text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), extra: Object::new() })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Reads a part of any shape.
    pub(crate) fn from_value(value: Value) -> Self {
        match value {
            Value::Object(object) => Self::from_object(object),
            other => Self::Unknown(other),
        }
    }

    fn from_object(mut object: Object) -> Self {
        let read = match object.get("type").and_then(Value::as_str) {
            Some("text") => take_text(&mut object, "text").map(|text| {
                object.shift_remove("type");
                Self::Text(TextContent { text, extra: std::mem::take(&mut object) })
            }),
            Some("image") => Media::take_from(&mut object).map(Self::Image),
            Some("audio") => Media::take_from(&mut object).map(Self::Audio),
            Some("resource") => EmbeddedResource::take_from(&mut object).map(Self::Resource),
            Some("resource_link") => ResourceLink::take_from(&mut object).map(Self::ResourceLink),
            _ => None,
        };
        read.unwrap_or(Self::Unknown(Value::Object(object)))
    }
}

impl Media {
    fn take_from(object: &mut Object) -> Option<Self> {
        let data = take_text(object, "data")?;
        let mime_type = take_text(object, "mimeType");
        object.shift_remove("type");
        Some(Self { data, mime_type, extra: std::mem::take(object) })
    }
}

impl EmbeddedResource {
    fn take_from(object: &mut Object) -> Option<Self> {
        let resource = ResourceContents::from_object(take_object(object, "resource")?);
        object.shift_remove("type");
        Some(Self { resource, extra: std::mem::take(object) })
    }
}

impl ResourceLink {
    fn take_from(object: &mut Object) -> Option<Self> {
        let uri = take_text(object, "uri")?;
        object.shift_remove("type");
        Some(Self {
            uri,
            name: take_text(object, "name"),
            title: take_text(object, "title"),
            description: take_text(object, "description"),
            mime_type: take_text(object, "mimeType"),
            extra: std::mem::take(object),
        })
    }
}

/// A list of parts in whatever shape it came: a list, a single part, a bare text, or nothing.
#[derive(Debug, Default)]
pub(crate) struct ContentList {
    pub(crate) parts: Vec<Content>,
    pub(crate) problems: Vec<Problem>,
}

impl ContentList {
    fn odd(parts: Vec<Content>, what: &str) -> Self {
        let message = format!("the content is {what} instead of a list");
        Self { parts, problems: vec![Problem::new(ProblemCode::OddShape, message)] }
    }
}

impl<'de> Deserialize<'de> for ContentList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentListVisitor)
    }
}

struct ContentListVisitor;

impl<'de> Visitor<'de> for ContentListVisitor {
    type Value = ContentList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("content")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ContentList, A::Error> {
        let mut list = ContentList::default();
        while let Some(part) = seq.next_element_seed(PartSeed)? {
            if list.parts.is_empty() {
                // Nearly every result has one part, which a first growth to four would waste three of.
                list.parts.reserve_exact(1);
            }
            list.parts.push(part);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ContentList, A::Error> {
        Ok(ContentList::odd(vec![PartSeed.visit_map(map)?], "a single part"))
    }

    fn visit_str<E>(self, text: &str) -> Result<ContentList, E> {
        Ok(ContentList::odd(vec![Content::text(text)], "a text"))
    }

    fn visit_unit<E>(self) -> Result<ContentList, E> {
        Ok(ContentList::odd(Vec::new(), "null"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<ContentList, E> {
        Ok(ContentList::odd(vec![Content::Unknown(value.into())], "a truth value"))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ContentList, E> {
        Ok(ContentList::odd(vec![Content::Unknown(value.into())], "a number"))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ContentList, E> {
        Ok(ContentList::odd(vec![Content::Unknown(value.into())], "a number"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ContentList, E> {
        Ok(ContentList::odd(vec![Content::Unknown(value.into())], "a number"))
    }
}

/// Reads one part. Text, which nearly everything is, goes straight into its string; the rest is read as an object
/// first.
struct PartSeed;

const MEMBERS: &[&str] = &["type", "text"];

impl<'de> DeserializeSeed<'de> for PartSeed {
    type Value = Content;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartSeed {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let (mut is_text, mut text, mut extra) = (false, None, Object::new());
        while let Some(key) = map.next_key_seed(KeyOf(MEMBERS))? {
            match key {
                Key::Known(0) => match map.next_value_seed(KindSeed)? {
                    Kind::Text => is_text = true,
                    Kind::Other(kind) => {
                        is_text = false;
                        extra.insert("type".to_owned(), kind);
                    }
                },
                Key::Known(_) => text = Some(map.next_value::<Value>()?),
                Key::Other(key) => {
                    extra.insert(key, map.next_value()?);
                }
            }
        }
        match text {
            Some(Value::String(text)) if is_text => return Ok(Content::Text(TextContent { text, extra })),
            Some(text) => {
                extra.insert("text".to_owned(), text);
            }
            None => {}
        }
        if is_text {
            extra.insert("type".to_owned(), "text".into());
        }
        Ok(Content::from_object(extra))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Content::Unknown(Value::Array(list)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Unknown(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Unknown(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Unknown(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Unknown(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Unknown(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Unknown(value.into()))
    }
}

/// The kind of a part.
enum Kind {
    Text,
    Other(Value),
}

struct KindSeed;

impl<'de> DeserializeSeed<'de> for KindSeed {
    type Value = Kind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KindSeed {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kind of a part")
    }

    fn visit_str<E>(self, kind: &str) -> Result<Kind, E> {
        Ok(if kind == "text" { Kind::Text } else { Kind::Other(kind.into()) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut object = Object::new();
        while let Some((key, value)) = map.next_entry()? {
            object.insert(key, value);
        }
        Ok(Kind::Other(Value::Object(object)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Kind::Other(Value::Array(list)))
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Other(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Other(value.into()))
    }
}
