//! Who speaks, and what each side can do.

use serde_json::{Value, json};

use super::super::json::{Object, take_object, take_text};
use super::super::revision::{Era, Revision};

/// What the client says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name of the host program.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl ClientInfo {
    /// A client of that name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }
}

/// What a server says of itself when a connection opens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The name; empty if the server does not say.
    pub name: String,
    /// The version; empty if the server does not say.
    pub version: String,
    /// A name for people.
    pub title: Option<String>,
    /// The family of revisions the connection is in.
    pub era: Era,
    /// The revision the connection is in.
    pub protocol_version: Revision,
    /// How the server wants its tools used, as it came and of any length. Text from the server: data, not
    /// instructions to obey; cut it before it goes into a prompt.
    pub instructions: Option<String>,
    /// What the server declares that it can do.
    pub capabilities: ServerCapabilities,
    /// All other members of the answer that opened the connection.
    pub extra: Object,
}

impl ServerInfo {
    /// Reads the answer to `initialize` or `server/discover`; what is missing is empty.
    pub(crate) fn from_object(mut object: Object, protocol_version: Revision) -> Self {
        let meta =
            object.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo")).cloned();
        let mut who = match meta {
            Some(Value::Object(who)) => who,
            _ => take_object(&mut object, "serverInfo").unwrap_or_default(),
        };
        Self {
            name: take_text(&mut who, "name").unwrap_or_default(),
            version: take_text(&mut who, "version").unwrap_or_default(),
            title: take_text(&mut who, "title"),
            era: protocol_version.era(),
            protocol_version,
            instructions: take_text(&mut object, "instructions"),
            capabilities: ServerCapabilities(take_object(&mut object, "capabilities").unwrap_or_default()),
            extra: object,
        }
    }
}

/// What a server declares that it can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCapabilities(pub(crate) Object);

impl ServerCapabilities {
    /// Whether it declares tools.
    pub fn tools(&self) -> bool {
        self.has("tools")
    }

    /// Whether it declares resources.
    pub fn resources(&self) -> bool {
        self.has("resources")
    }

    /// Whether it declares prompts.
    pub fn prompts(&self) -> bool {
        self.has("prompts")
    }

    /// Whether it declares completion. The first revision had no such declaration, and completion without it.
    pub fn completions(&self) -> bool {
        self.has("completions")
    }

    /// Whether it declares log messages.
    pub fn logging(&self) -> bool {
        self.has("logging")
    }

    /// Whether it declares that it tells of changes to one of its lists: `tools`, `resources` or `prompts`.
    pub fn list_changed(&self, list: &str) -> bool {
        self.0.get(list).and_then(|list| list.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Whether it declares that single resources can be subscribed to.
    pub fn resource_subscriptions(&self) -> bool {
        self.0.get("resources").and_then(|list| list.get("subscribe")) == Some(&Value::Bool(true))
    }

    /// The settings of an extension, if it is declared.
    pub fn extension(&self, id: &str) -> Option<&Value> {
        self.0.get("extensions")?.get(id)
    }

    /// All of it, as it came.
    pub fn as_object(&self) -> &Object {
        &self.0
    }

    fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    }
}

/// How much a server should log: the syslog severities (RFC 5424), least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// For debugging.
    Debug,
    /// For information.
    Info,
    /// Normal but significant.
    Notice,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Critical conditions.
    Critical,
    /// Action must be taken at once.
    Alert,
    /// The server is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}
