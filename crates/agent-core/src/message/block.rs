//! The pieces of a message.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{ToolCall, ToolResult};

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
}
