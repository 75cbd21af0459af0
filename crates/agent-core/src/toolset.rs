//! The tools of an agent: checked once, sorted by name, looked up by name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;

use crate::arguments::ArgumentCheck;
use crate::digest::{Digest, Fingerprint};
use crate::policy::ApprovalKey;
use crate::tool::{Effects, ToolSpec};
use crate::tool_context::Tool;

/// Tools of an agent at most. Far above what a model can choose from, also with deferred loading.
pub const MAX_TOOLS: usize = 4096;

/// Letters of a tool's name at most, as the narrowest provider has it.
pub const MAX_NAME: usize = 64;

/// How the origin of a tool begins that starts a run of its own; its name follows.
pub(crate) const AGENT_ORIGIN: &str = "agent:";

/// Tools in the order of their names. The order of registration does not matter, so that the same tools always
/// make the same request.
#[derive(Debug, Default)]
pub(crate) struct Toolset {
    entries: Vec<ToolEntry>,
}

/// One tool with what the loop reads of it once.
pub(crate) struct ToolEntry {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) tool: Arc<dyn Tool>,
    /// Offered only after `tool_search` has loaded it.
    pub(crate) deferred: bool,
    pub(crate) check: ArgumentCheck,
    fingerprint: OnceLock<Fingerprint>,
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEntry").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl ToolEntry {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| Fingerprint::of(&self.spec))
    }

    /// Whether the tool starts a run of its own. The origin is the host's word, never a server's.
    pub(crate) fn is_agent(&self) -> bool {
        self.spec.origin.starts_with(AGENT_ORIGIN)
    }

    /// What is wrong with the arguments, in words for the model.
    pub(crate) fn wrong_arguments(&self, arguments: &Value) -> Option<String> {
        self.check
            .check(arguments)
            .err()
            .map(|wrong| format!("The arguments do not fit. Nothing was run.\n{wrong}"))
    }

    /// The effects with these arguments. A panicking tool counts as one that may do anything.
    pub(crate) fn effects(&self, arguments: &Value) -> Effects {
        catch_unwind(AssertUnwindSafe(|| self.tool.effects(arguments))).unwrap_or_default()
    }

    /// How long a call may take: the tool's own word, else the run's limit. A sub-agent has limits of its own, and may
    /// wait for people as long as they take, so the run's limit does not bind it.
    pub(crate) fn time_limit(&self, of_the_run: Option<Duration>) -> Option<Duration> {
        let own = catch_unwind(AssertUnwindSafe(|| self.tool.time_limit())).ok().flatten();
        own.or(if self.is_agent() { None } else { of_the_run })
    }

    /// The approval keys, or `None` when the tool panicked over them.
    pub(crate) fn approval_keys(&self, arguments: &Value) -> Option<Vec<ApprovalKey>> {
        catch_unwind(AssertUnwindSafe(|| self.tool.approval_keys(arguments))).ok()
    }

    /// What the call would change, in the tool's words. A panic is no preview.
    pub(crate) fn preview(&self, arguments: &Value) -> Option<String> {
        catch_unwind(AssertUnwindSafe(|| self.tool.preview(arguments))).ok().flatten()
    }
}

/// Why a set of tools cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolsetError {
    /// Two tools have the same name.
    Duplicate(String),
    /// The name is not 1 to 64 of `[A-Za-z0-9_-]`.
    Name(String),
    /// The schema of the arguments is not an object schema.
    Schema(String),
    /// There are more than [`MAX_TOOLS`].
    TooMany(usize),
    /// The tool panicked when asked for its spec.
    Panicked,
}

impl fmt::Display for ToolsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "two tools are named `{name}`; give one of them another name"),
            Self::Name(name) => {
                write!(f, "tool name `{name}` is not 1 to {MAX_NAME} letters, digits, `_` or `-`")
            }
            Self::Schema(name) => {
                write!(
                    f,
                    "the input schema of tool `{name}` is not an object schema (`\"type\": \"object\"`)"
                )
            }
            Self::TooMany(n) => write!(f, "{n} tools are more than the {MAX_TOOLS} that an agent can have"),
            Self::Panicked => f.write_str("a tool panicked when asked for its spec"),
        }
    }
}

impl std::error::Error for ToolsetError {}

impl Toolset {
    pub(crate) fn new(tools: Vec<(Arc<dyn Tool>, bool)>) -> Result<Self, ToolsetError> {
        if tools.len() > MAX_TOOLS {
            return Err(ToolsetError::TooMany(tools.len()));
        }
        let mut entries = Vec::with_capacity(tools.len());
        for (tool, deferred) in tools {
            let spec = catch_unwind(AssertUnwindSafe(|| tool.spec().clone()))
                .map_err(|_panic| ToolsetError::Panicked)?;
            check(&spec)?;
            entries.push(ToolEntry {
                check: ArgumentCheck::new(Arc::clone(&spec.input_schema)),
                spec: Arc::new(spec),
                tool,
                deferred,
                fingerprint: OnceLock::new(),
            });
        }
        entries.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        for pair in entries.windows(2) {
            if let [a, b] = pair
                && a.spec.name == b.spec.name
            {
                return Err(ToolsetError::Duplicate(a.spec.name.to_string()));
            }
        }
        Ok(Self { entries })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ToolEntry> {
        let place = self.entries.binary_search_by(|e| (*e.spec.name).cmp(name)).ok()?;
        self.entries.get(place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ToolEntry> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// A digest over a list of tools as it is offered to a model.
pub(crate) fn digest(offered: &[Arc<ToolSpec>]) -> Digest {
    let mut bytes = Vec::with_capacity(offered.len() * 32);
    for spec in offered {
        bytes.extend_from_slice(Fingerprint::of(spec).to_string().as_bytes());
    }
    Digest::of_bytes(&bytes)
}

pub(crate) fn check(spec: &ToolSpec) -> Result<(), ToolsetError> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if spec.name.is_empty() || spec.name.len() > MAX_NAME || !spec.name.bytes().all(letter) {
        return Err(ToolsetError::Name(spec.name.to_string()));
    }
    if spec.input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(ToolsetError::Schema(spec.name.to_string()));
    }
    Ok(())
}
