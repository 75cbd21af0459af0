//! What a tool says of itself, what it gives back, and how it fails.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::message::{Block, Media};

/// A tool as the model sees it, and what the loop may assume of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The public name: 1 to 64 of `[A-Za-z0-9_-]`, unique in a tool set.
    pub name: Arc<str>,
    /// What it is for, in the words that the model reads.
    pub description: Arc<str>,
    /// JSON Schema of the arguments, an object schema.
    pub input_schema: Arc<Value>,
    /// What running it may do.
    #[serde(default)]
    pub effects: Effects,
    /// Where the tool comes from, for people and for fingerprints: empty for the host's own, else for example
    /// `mcp:<server>`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub origin: Arc<str>,
}

impl ToolSpec {
    /// A tool without parameters, of unknown effects.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: Arc::new(json!({"type": "object", "properties": {}})),
            effects: Effects::default(),
            origin: "".into(),
        }
    }

    /// Sets the schema of the arguments.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<Arc<Value>>) -> Self {
        self.input_schema = schema.into();
        self
    }

    /// Declares, in the host's name, that the tool only reads: it runs beside others and needs no approval.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.effects = Effects { read_only: Some(true), destructive: Some(false), ..self.effects };
        self.effects.claimed_by = Claim::Host;
        self
    }

    /// Sets what running it may do.
    #[must_use]
    pub fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Sets where the tool comes from.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = origin.into();
        self
    }
}

/// What running a tool may do, and who says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Effects {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy what cannot be brought back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Doing it twice is the same as doing it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Who says so. Only the host's word waives an approval; a server's word is used for scheduling.
    #[serde(default)]
    pub claimed_by: Claim,
}

impl Effects {
    /// Effects as a server claims them of its own tool.
    pub fn claimed_by_server(
        read_only: Option<bool>,
        destructive: Option<bool>,
        idempotent: Option<bool>,
    ) -> Self {
        Self { read_only, destructive, idempotent, claimed_by: Claim::Server }
    }

    /// Whether the tool may run beside others: it is said to be read-only, by whomever.
    pub fn may_run_in_parallel(&self) -> bool {
        self.read_only == Some(true)
    }

    /// Whether the host itself vouches that the tool is read-only.
    pub fn is_trusted_read_only(&self) -> bool {
        self.read_only == Some(true) && self.claimed_by == Claim::Host
    }

    /// Whether the host itself vouches that the tool is read-only, or at least that it destroys nothing.
    pub fn is_trusted_harmless(&self) -> bool {
        self.claimed_by == Claim::Host && (self.read_only == Some(true) || self.destructive == Some(false))
    }
}

/// Who made a claim about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The program that embeds us.
    Host,
    /// The server that offers the tool, about itself; the safe assumption.
    #[default]
    Server,
}

/// What a tool gives back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model sees, in order: text, images, documents.
    pub blocks: Vec<Block>,
    /// Whether this is the tool's own report of a failure.
    pub is_error: bool,
    /// Structured output for the host; kept with the result, not sent to the model.
    pub structured: Option<Value>,
    /// Files for the host that the model does not need to see.
    pub attachments: Vec<Media>,
}

impl ToolOutput {
    /// One text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::text(text)], ..Self::default() }
    }

    /// One text block that reports a failure which the model can react to.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Several blocks.
    pub fn blocks(blocks: Vec<Block>) -> Self {
        Self { blocks, ..Self::default() }
    }

    /// Sets the structured output.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Why a tool could not do what it was asked. It becomes an error result for the model, never the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolError {
    /// What kind of failure.
    pub kind: ToolErrorKind,
    /// What happened and what to do, in words for the model.
    pub message: String,
}

/// The kinds of tool failure that the loop tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool ran and failed.
    Failed,
    /// The arguments are not what the tool takes.
    InvalidArguments,
    /// It took too long.
    Timeout,
    /// What the tool stands for is gone: a server that died, a network that is down.
    Unavailable,
    /// The run was cancelled; the effects are unknown.
    Interrupted,
}

impl ToolError {
    /// A failure of any kind.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The tool ran and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// The arguments are not what the tool takes.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidArguments, message)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}
