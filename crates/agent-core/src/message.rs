//! Messages of blocks: what a session stores and what every provider's wire is made from.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::usage::StopReason;

/// The id that ties a tool result to its call. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// An id from any text. The loop makes ids unique within a session; providers pass on what the wire says.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallId({:?})", &*self.0)
    }
}

impl Borrow<str> for CallId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for CallId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for CallId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

/// Who speaks. The system prompt is not a message: it is part of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The person, or the host in their name.
    User,
    /// The model.
    Assistant,
    /// Results of the tool calls of the assistant message before it, all of them, in call order.
    Tool,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub blocks: Vec<Block>,
    /// Which model wrote an assistant message; sealed reasoning goes back only to its issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Why the model stopped; absent for other roles, and for an answer that was cut off on our side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
}

/// The model behind an assistant message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Author {
    /// The provider's name, for example `anthropic`.
    pub provider: Arc<str>,
    /// The model's name as the provider writes it.
    pub model: Arc<str>,
}

impl Author {
    /// An author from its two names.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}

impl Message {
    /// A message of any role.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self { role, blocks, author: None, stop: None }
    }

    /// A user message of one text block.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::text(text)])
    }

    /// An assistant message of one text block.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Block::text(text)])
    }

    /// Sets the author.
    #[must_use]
    pub fn with_author(mut self, author: Author) -> Self {
        self.author = Some(author);
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn with_stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// All text blocks, joined without a separator.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(Block::as_text).collect()
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|b| if let Block::ToolCall(c) = b { Some(c) } else { None })
    }

    /// The tool results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|b| if let Block::ToolResult(r) = b { Some(r) } else { None })
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

/// One piece of a message.
///
/// Serialised with a `type` tag. A block of a kind that this version does not know is kept whole as
/// [`Unknown`](Self::Unknown) and written again untouched, so a session survives a trip through an older program.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Media),
    /// A document, for example a PDF.
    Document(Media),
    /// The model's reasoning.
    Reasoning(Reasoning),
    /// A call that the model asks for.
    ToolCall(ToolCall),
    /// The one result of a call.
    ToolResult(ToolResult),
    /// A block that only its provider understands (server-side tools and the like), kept raw.
    Opaque(Opaque),
    /// A block written by a later version of this crate.
    #[serde(untagged)]
    Unknown(Value),
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text { text } = self { Some(text) } else { None }
    }
}

impl From<ToolCall> for Block {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(call)
    }
}

impl From<ToolResult> for Block {
    fn from(result: ToolResult) -> Self {
        Self::ToolResult(result)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct TextBlock {
            text: String,
        }
        let value = Value::deserialize(d)?;
        let Some(tag) = value.get("type").and_then(Value::as_str) else {
            return Err(D::Error::custom("a block needs a string field `type`"));
        };
        // Not derived: an unknown tag has to keep the whole value, and a known tag with a bad field has to
        // be an error that names the field instead of turning into an unknown block.
        match tag {
            "text" => TextBlock::deserialize(value).map(|t| Self::Text { text: t.text }),
            "image" => Media::deserialize(value).map(Self::Image),
            "document" => Media::deserialize(value).map(Self::Document),
            "reasoning" => Reasoning::deserialize(value).map(Self::Reasoning),
            "tool_call" => ToolCall::deserialize(value).map(Self::ToolCall),
            "tool_result" => ToolResult::deserialize(value).map(Self::ToolResult),
            "opaque" => Opaque::deserialize(value).map(Self::Opaque),
            _ => return Ok(Self::Unknown(value)),
        }
        .map_err(D::Error::custom)
    }
}

/// Bytes with a media type, inline or by address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// The media type, for example `image/png`.
    pub media_type: String,
    /// Where the bytes are.
    pub source: MediaSource,
    /// A title or file name, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where the bytes of a [`Media`] are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// Standard base64 with padding. Shared, since pictures are large and messages are cloned.
    Base64(Arc<str>),
    /// An address that the provider fetches.
    Url(String),
}

impl Media {
    /// Inline bytes, already in standard base64.
    pub fn base64(media_type: impl Into<String>, data: impl Into<Arc<str>>) -> Self {
        Self { media_type: media_type.into(), source: MediaSource::Base64(data.into()), name: None }
    }

    /// Bytes by address.
    pub fn url(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self { media_type: media_type.into(), source: MediaSource::Url(url.into()), name: None }
    }

    /// Sets the title or file name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// What the model thought, and the seal that its provider wants back word for word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reasoning {
    /// The readable part; empty when the provider hides it.
    pub text: String,
    /// The opaque part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl Reasoning {
    /// Reasoning without a seal.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), seal: None }
    }

    /// Sets the seal.
    #[must_use]
    pub fn with_seal(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }
}

/// Opaque data that may go back only to the provider that issued it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Seal {
    /// Who issued it, in the words of the `Model` implementation (provider and API).
    pub issuer: Arc<str>,
    /// The data, in whatever form the issuer wants it back.
    pub data: Value,
}

impl Seal {
    /// A seal from its parts.
    pub fn new(issuer: impl Into<Arc<str>>, data: impl Into<Value>) -> Self {
        Self { issuer: issuer.into(), data: data.into() }
    }
}

/// A provider's own block, kept raw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opaque {
    /// Who issued it.
    pub issuer: Arc<str>,
    /// The block as it was on the wire.
    pub raw: Value,
}

impl Opaque {
    /// An opaque block from its parts.
    pub fn new(issuer: impl Into<Arc<str>>, raw: Value) -> Self {
        Self { issuer: issuer.into(), raw }
    }
}

/// A call that the model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Unique within the session.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments. Always an object in a stored session, so that every wire accepts the history.
    pub arguments: Value,
    /// What the model wrote, when that was no JSON object; such a call is never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
    /// The id on the wire, when the loop had to give the call another one because it was not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<Arc<str>>,
    /// Opaque data that the provider wants back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl ToolCall {
    /// A call with parsed arguments.
    pub fn new(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, malformed: None, wire_id: None, seal: None }
    }

    /// A call from the argument text of the wire. Blank text and `null` mean an object without keys (providers
    /// send both for tools without parameters); text that is no JSON object is kept as
    /// [`malformed`](Self::malformed) beside an empty object. Nothing is repaired here.
    pub fn from_text(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: &str) -> Self {
        let text = arguments.trim();
        let empty = || Value::Object(Map::new());
        if text.is_empty() || text == "null" {
            return Self::new(id, name, empty());
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => Self::new(id, name, value),
            _ => Self { malformed: Some(arguments.to_owned()), ..Self::new(id, name, empty()) },
        }
    }

    /// Sets the seal.
    #[must_use]
    pub fn with_seal(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }
}

/// The one result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call that this answers.
    pub id: CallId,
    /// The tool's name, which some wires want again.
    pub name: Arc<str>,
    /// What became of the call.
    pub status: ToolStatus,
    /// What the model sees: text, images, documents.
    pub content: Vec<Block>,
    /// Structured output for the host; not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

impl ToolResult {
    /// A result from its parts.
    pub fn new(
        id: impl Into<CallId>,
        name: impl Into<Arc<str>>,
        status: ToolStatus,
        content: Vec<Block>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), status, content, structured: None }
    }

    /// All text blocks of the content, joined by line breaks.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// What became of a tool call. Every call in a history has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed, or could not be run as asked.
    Error,
    /// It was refused; it did not run.
    Denied,
    /// It did not run, because the run ended or the answer was cut off before it could.
    NotStarted,
    /// It was running when the run was cut: its effects are unknown.
    Interrupted,
}

impl ToolStatus {
    /// Whether the result is an error to the model: everything but [`Ok`](Self::Ok).
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_block_kind_survives_a_round_trip_and_unknown_kinds_stay_untouched() {
        let blocks = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "media_type": "image/png", "source": {"base64": "AA=="}},
            {"type": "document", "media_type": "application/pdf", "source": {"url": "https://example.org/a"}, "name": "a"},
            {"type": "reasoning", "text": "hm", "seal": {"issuer": "anthropic", "data": "sig"}},
            {"type": "tool_call", "id": "1", "name": "t", "arguments": {"z": 1, "a": 2}},
            {"type": "tool_result", "id": "1", "name": "t", "status": "not_started", "content": []},
            {"type": "opaque", "issuer": "openai", "raw": {"type": "web_search_call"}},
            {"type": "hologram", "z": [1, 2], "a": null},
        ]);
        let read: Vec<Block> = serde_json::from_value(blocks.clone()).unwrap();
        assert!(matches!(read.last(), Some(Block::Unknown(_))));
        assert_eq!(serde_json::to_string(&read).unwrap(), blocks.to_string());
    }

    #[test]
    fn a_known_block_with_a_bad_field_is_an_error_and_not_an_unknown_block() {
        let error = serde_json::from_value::<Block>(json!({"type": "text"})).unwrap_err();
        assert!(error.to_string().contains("text"), "{error}");
    }

    #[test]
    fn argument_text_is_an_object_or_kept_as_malformed() {
        for (text, arguments, malformed) in [
            ("", json!({}), None),
            (" \n", json!({}), None),
            ("null", json!({}), None),
            (r#"{"a":1}"#, json!({"a": 1}), None),
            (r#"{"a":1"#, json!({}), Some(r#"{"a":1"#)),
            ("[1]", json!({}), Some("[1]")),
            ("\"{}\"", json!({}), Some("\"{}\"")),
        ] {
            let call = ToolCall::from_text("1", "t", text);
            assert_eq!((call.arguments, call.malformed.as_deref()), (arguments, malformed), "{text:?}");
        }
    }
}
