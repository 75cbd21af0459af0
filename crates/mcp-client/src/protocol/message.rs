//! The JSON-RPC 2.0 envelope: which kind of message a line is, whose id it carries, and what is wrong with it.
//!
//! A message is told apart by the keys that are present, in one pass, without trying one shape after the other.
//! The `jsonrpc` member is not demanded: real servers leave it out, and nothing depends on it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json::{Key, KeyOf};

/// The longest id of a peer's request that is echoed, in bytes of JSON; a longer one is noise.
pub(crate) const MAX_PEER_ID_BYTES: usize = 1024;

/// The most members of a batch that are looked at.
pub(crate) const MAX_BATCH_MEMBERS: usize = 1000;

/// The id of a request of ours.
///
/// Ids count up from 1 and are never used twice on one connection, so a late answer can never be taken for another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) u64);

impl RequestId {
    /// The id as it stands on the wire.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a request of the peer's, kept exactly as it was written so that the answer echoes it: `0`, `"0"` and
/// `0.0` stay three ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(Box<str>);

impl PeerId {
    /// The JSON text of the id.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The id of a JSON text; `None` if it is neither a string nor a number, or too long to be echoed.
    pub(crate) fn from_json(json: &str) -> Option<Self> {
        let kind = json.bytes().next()?;
        let fits = json.len() <= MAX_PEER_ID_BYTES;
        (fits && (kind == b'"' || kind == b'-' || kind.is_ascii_digit())).then(|| Self(json.into()))
    }
}

/// An error that the peer answered with.
///
/// Codes carry little meaning across servers (the same failure comes as -32601, -32602, -32603 or 0), so they are for
/// people and logs rather than for decisions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RpcError {
    /// The code, if it is a whole number.
    pub code: Option<i64>,
    /// The message; if the server sent none, what it sent instead.
    pub message: String,
    /// Further data, as it was sent.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error of ours, to answer a peer's request with.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code: Some(code), message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Reads whatever stands under `error`: an object by its members, anything else as its own message.
    pub(crate) fn from_value(value: Value) -> Self {
        let mut object = match value {
            Value::Object(object) => object,
            Value::String(message) => return Self { code: None, message, data: None },
            other => return Self { code: None, message: other.to_string(), data: None },
        };
        let code = object.get("code").and_then(whole_number);
        let message = match object.shift_remove("message") {
            Some(Value::String(message)) => message,
            _ => format!("an error without a message: {}", Value::Object(object.clone())),
        };
        Self { code, message, data: object.shift_remove("data").filter(|data| !data.is_null()) }
    }

    /// The error as it goes on the wire.
    pub(crate) fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".to_owned(), self.code.unwrap_or(code::INTERNAL_ERROR).into());
        object.insert("message".to_owned(), self.message.as_str().into());
        if let Some(data) = &self.data {
            object.insert("data".to_owned(), data.clone());
        }
        Value::Object(object)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} (code {code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Error codes of JSON-RPC and of MCP.
pub mod code {
    /// The method is not known.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are not what the method takes.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something failed inside.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Modern: a header does not match the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// Modern: the client lacks a capability that the server needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// Modern: the protocol version is not spoken; `data.supported` lists those that are.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// A number that is whole, however it is written (`1000`, `1e3`).
fn whole_number(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let number = value.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within what a double holds exactly")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// What one line holds.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// A request or a notification.
    Call { id: Option<PeerId>, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// An answer; whether it carries a result or an error is read by whoever waits for it. Where the result stands in
    /// the line is known if that could be seen without reading all of it.
    Answer { id: AnswerId, result: Option<Range<usize>> },
    /// A JSON-RPC batch, cut at [`MAX_BATCH_MEMBERS`], and how many there were.
    Batch { members: Vec<&'a RawValue>, in_all: usize },
}

/// The id of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerId {
    /// A whole number.
    Exact(u64),
    /// Something that stands for a number of ours if no exact answer does: `"1"` or `1.0`.
    Loose(u64),
    /// `null`, or none at all beside an error: the peer could not read what it answers.
    Null,
    /// Nothing that was ever ours.
    Foreign,
}

impl AnswerId {
    fn from_json(json: &str) -> Self {
        if json == "null" {
            return Self::Null;
        }
        if let Ok(id) = json.parse() {
            return Self::Exact(id);
        }
        let text = json.trim_matches('"');
        if let Ok(id) = text.parse() {
            return Self::Loose(id);
        }
        let whole = text.strip_suffix(".0").and_then(|whole| whole.parse().ok());
        whole.map_or(Self::Foreign, Self::Loose)
    }
}

/// Reads one line. The error says why it is no message.
pub(crate) fn parse(line: &[u8]) -> Result<Incoming<'_>, Noise> {
    if let Some((id, result)) = answered_id(line) {
        return Ok(Incoming::Answer { id: AnswerId::Exact(id), result });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let shape = deserializer.deserialize_any(ShapeVisitor).map_err(|_| Noise::NotJson)?;
    deserializer.end().map_err(|_| Noise::NotJson)?;
    match shape {
        Shape::Object(envelope) => envelope.into_incoming(),
        Shape::Array { members, in_all } => Ok(Incoming::Batch { members, in_all }),
        Shape::Other => Err(Noise::NotAMessage),
    }
}

/// Why a line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    NotJson,
    NotAMessage,
}

/// The id of an answer, read from the two ends of the line only, where nearly every server puts it; and where its result
/// stands, if nothing else stands beside it.
///
/// A line that begins or ends like this and is valid JSON is an answer to that id (a quote cannot stand inside a JSON
/// string unescaped, so neither pattern can be part of one). If it turns out not to be valid JSON, the one call that
/// waits for it fails at once, instead of running into its timeout.
pub(crate) fn answered_id(line: &[u8]) -> Option<(u64, Option<Range<usize>>)> {
    const RESULT: &[u8] = b",\"result\":";
    const FIRST: &[u8] = b"{\"result\":";
    if let Some(rest) = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":") {
        let (id, rest) = leading_number(rest)?;
        if let Some(result) = rest.strip_prefix(RESULT) {
            return Some((id, Some(line.len() - result.len()..line.len().saturating_sub(1))));
        }
        return rest.starts_with(b",\"error\":").then_some((id, None));
    }
    if line.starts_with(FIRST) {
        // The longest number has 20 digits, and the pattern before it 22 bytes.
        const TAIL: usize = 48;
        const PATTERN: &[u8] = b",\"jsonrpc\":\"2.0\",\"id\":";
        let before = line.len().saturating_sub(TAIL);
        let tail = line.get(before..)?.strip_suffix(b"}")?;
        let at = memchr::memmem::rfind(tail, PATTERN)?;
        let (id, rest) = leading_number(tail.get(at + PATTERN.len()..)?)?;
        return rest.is_empty().then_some((id, Some(FIRST.len()..before + at)));
    }
    // The looser writing of a few serialisers.
    if let Some(rest) = line.strip_prefix(b"{\"jsonrpc\": \"2.0\", \"id\": ") {
        let (id, rest) = leading_number(rest)?;
        let answers = rest.starts_with(b", \"result\":") || rest.starts_with(b", \"error\":");
        return answers.then_some((id, None));
    }
    None
}

fn leading_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = bytes.split_at_checked(digits)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    answers: bool,
}

impl<'a> Envelope<'a> {
    fn into_incoming(self) -> Result<Incoming<'a>, Noise> {
        let Some(method) = self.method else {
            return match self.id {
                Some(id) => Ok(Incoming::Answer { id: AnswerId::from_json(id.get()), result: None }),
                None if self.answers => Ok(Incoming::Answer { id: AnswerId::Null, result: None }),
                None => Err(Noise::NotAMessage),
            };
        };
        let id = match self.id {
            None => None,
            Some(id) => Some(PeerId::from_json(id.get()).ok_or(Noise::NotAMessage)?),
        };
        Ok(Incoming::Call { id, method, params: self.params })
    }
}

enum Shape<'a> {
    Object(Envelope<'a>),
    Array { members: Vec<&'a RawValue>, in_all: usize },
    Other,
}

struct ShapeVisitor;

const MEMBERS: &[&str] = &["id", "method", "params", "result", "error"];

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<'de>, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key_seed(KeyOf(MEMBERS))? {
            match key {
                Key::Known(0) => envelope.id = Some(map.next_value()?),
                Key::Known(1) => match map.next_value()? {
                    Value::String(method) => envelope.method = Some(Cow::Owned(method)),
                    other => envelope.method = Some(Cow::Owned(other.to_string())),
                },
                Key::Known(2) => envelope.params = Some(map.next_value()?),
                Key::Known(_) => {
                    envelope.answers = true;
                    map.next_value::<IgnoredAny>()?;
                }
                Key::Other(_) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Shape::Object(envelope))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape<'de>, A::Error> {
        let (mut members, mut in_all) = (Vec::new(), 0);
        while let Some(member) = seq.next_element::<&'de RawValue>()? {
            in_all += 1;
            if members.len() < MAX_BATCH_MEMBERS {
                members.push(member);
            }
        }
        Ok(Shape::Array { members, in_all })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }

    fn visit_unit<E>(self) -> Result<Shape<'de>, E> {
        Ok(Shape::Other)
    }
}

#[cfg(test)]
mod tests;
