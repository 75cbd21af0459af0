//! The values of a front matter: typed, as written, and with their place in the file.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub struct Position {
    /// Byte, counted from the start of the file (a byte-order mark included).
    pub offset: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1; a byte-order mark has no width.
    pub column: u32,
}

impl Position {
    pub(crate) const fn new(offset: u32, line: u32, column: u32) -> Self {
        Self { offset, line, column }
    }
}

/// The type that the YAML 1.2 core schema gives a plain scalar. Quoted and block scalars are text.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Text: quoted, a block scalar, tagged `!!str`, or a plain word of no other type (dates and `yes` among them).
    Text,
    /// `null`, `~`, or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that an `i64` holds.
    Integer(i64),
    /// A finite number with a point or an exponent.
    Float(f64),
}

/// One value of a front matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    content: Content<'a>,
    start: Position,
    end: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content<'a> {
    Scalar(Cow<'a, str>, Type),
    List(Vec<Node<'a>>),
    Map(Fields<'a>),
}

impl<'a> Node<'a> {
    pub(crate) const fn new(content: Content<'a>, start: Position, end: u32) -> Self {
        Self { content, start, end }
    }

    pub(crate) fn into_content(self) -> Content<'a> {
        self.content
    }

    pub(crate) fn content_mut(&mut self) -> &mut Content<'a> {
        &mut self.content
    }

    pub(crate) fn place_mut(&mut self) -> (&mut Position, &mut u32) {
        (&mut self.start, &mut self.end)
    }

    /// Where the value begins. An empty value stands right behind the colon or dash that it belongs to.
    pub const fn position(&self) -> Position {
        self.start
    }

    /// The bytes of the file that hold the value, quotes and brackets included.
    pub const fn span(&self) -> std::ops::Range<usize> {
        self.start.offset as usize..self.end as usize
    }

    /// The type of a scalar; `None` for a list or a mapping.
    pub const fn scalar_type(&self) -> Option<Type> {
        match self.content {
            Content::Scalar(_, kind) => Some(kind),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// A scalar as text: `1.10` is `"1.10"`, `true` is `"true"`, an empty value is `""`; `None` for a list or a mapping.
    pub fn as_written(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text, _) => Some(text),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// A scalar as text, as [`as_written`](Self::as_written), but `None` for a null: the rule for text fields such as
    /// `name`, where `name: 3000` names the skill "3000".
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(_, Type::Null) | Content::List(_) | Content::Map(_) => None,
            Content::Scalar(text, _) => Some(text),
        }
    }

    /// Whether the value is null: empty, `~` or `null`.
    pub const fn is_null(&self) -> bool {
        matches!(self.content, Content::Scalar(_, Type::Null))
    }

    /// A boolean of the core schema, or one of the words that YAML 1.1 and people take for one: `yes`, `no`, `on`,
    /// `off`, `y`, `n`, quoted or not, in any case, and the numbers 1 and 0.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.content {
            Content::Scalar(_, Type::Bool(value)) => Some(*value),
            Content::Scalar(text, Type::Text | Type::Integer(_)) => {
                match text.trim().to_ascii_lowercase().as_str() {
                    "true" | "yes" | "on" | "y" | "1" => Some(true),
                    "false" | "no" | "off" | "n" | "0" => Some(false),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Node<'a>]> {
        match &self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    /// The fields of a mapping.
    pub const fn as_map(&self) -> Option<&Fields<'a>> {
        match &self.content {
            Content::Map(fields) => Some(fields),
            _ => None,
        }
    }

    /// The value as JSON, scalars typed by the YAML 1.2 core schema.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(text, kind) => match kind {
                Type::Text => Value::String(text.as_ref().to_owned()),
                Type::Null => Value::Null,
                Type::Bool(value) => Value::Bool(*value),
                Type::Integer(value) => Value::Number((*value).into()),
                Type::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
            },
            Content::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Content::Map(fields) => Value::Object(fields.to_json()),
        }
    }

    /// The value as JSON with every scalar left as it is written, so that `1.0` is the text "1.0".
    pub fn to_json_as_written(&self) -> Value {
        match &self.content {
            Content::Scalar(text, _) => Value::String(text.as_ref().to_owned()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_json_as_written).collect()),
            Content::Map(fields) => {
                let pairs = fields.iter().map(|(key, node)| (key.to_owned(), node.to_json_as_written()));
                Value::Object(pairs.collect())
            }
        }
    }

    /// How many values the tree holds, itself included, and the bytes of their texts.
    pub(crate) fn weight(&self) -> (usize, usize) {
        match &self.content {
            Content::Scalar(text, _) => (1, text.len()),
            Content::List(items) => items.iter().map(Self::weight).fold((1, 0), add),
            Content::Map(fields) => {
                let pairs = fields.entries.iter();
                pairs.map(|e| add((0, e.key.len()), e.value.weight())).fold((1, 0), add)
            }
        }
    }

    /// The same tree without a tie to the text it was read from.
    pub fn into_owned(self) -> Node<'static> {
        let content = match self.content {
            Content::Scalar(text, kind) => Content::Scalar(Cow::Owned(text.into_owned()), kind),
            Content::List(items) => Content::List(items.into_iter().map(Node::into_owned).collect()),
            Content::Map(fields) => Content::Map(fields.into_owned()),
        };
        Node { content, start: self.start, end: self.end }
    }
}

const fn add(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// A mapping: keys and values in the order of the file.
///
/// A key that occurs twice is there once, with its last value, in the place of that one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields<'a> {
    entries: Vec<Entry<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_start: Position,
    pub(crate) value: Node<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) const fn from_entries(entries: Vec<Entry<'a>>) -> Self {
        Self { entries }
    }

    pub(crate) fn entries_mut(&mut self) -> &mut Vec<Entry<'a>> {
        &mut self.entries
    }

    /// How many fields there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of `key`; keys are compared as they are written, case and all.
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Where `key` itself stands.
    pub fn key_position(&self, key: &str) -> Option<Position> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_start)
    }

    /// The scalar of `key` as text; `None` where it is missing, null, a list or a mapping.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::as_text)
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Node<'a>)> {
        self.entries.iter().map(|entry| (entry.key.as_ref(), &entry.value))
    }

    /// Each key and where it stands, in the order of the file.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = (&str, Position)> {
        self.entries.iter().map(|entry| (entry.key.as_ref(), entry.key_start))
    }

    /// The mapping as JSON, scalars typed by the YAML 1.2 core schema.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = Map::with_capacity(self.entries.len());
        for entry in &self.entries {
            map.insert(entry.key.as_ref().to_owned(), entry.value.to_json());
        }
        map
    }

    /// The same mapping without a tie to the text it was read from.
    pub fn into_owned(self) -> Fields<'static> {
        let entries = self.entries.into_iter().map(|entry| Entry {
            key: Cow::Owned(entry.key.into_owned()),
            key_start: entry.key_start,
            value: entry.value.into_owned(),
        });
        Fields { entries: entries.collect() }
    }
}
