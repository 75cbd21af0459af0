//! `list_files`.

use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::policy::{ApprovalKey, Glob};
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::{Value, json};

use super::LIST_FILES;
use super::blocking::{GivenUp, blocking};
use super::place::{Root, number, text};
use super::read::PAGE_BYTES;
use super::walk::{Kind, MAX_DEPTH, Walk, Walked};

/// Entries in one listing, fewer if their paths are long; beyond that, the listing says that there are more.
pub const MAX_LISTED: usize = 500;

pub(super) struct ListFiles {
    spec: ToolSpec,
    root: Arc<Root>,
}

impl ListFiles {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let description = "Lists what is in a folder of the project; folders end with `/`, links with `@`. With a \
            `pattern`, lists the files below it that match.";
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The folder, from the project's root. Default: the root."},
                "pattern": {"type": "string", "description": "A glob over paths from that folder, for example `**/*.rs`."},
                "depth": {"type": "integer", "minimum": 1, "description": "Levels of folders. Default 1, with a pattern all."},
            },
        });
        Self { spec: ToolSpec::new(LIST_FILES, description).with_schema(schema).read_only(), root }
    }
}

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        self.root.keys(arguments)
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let root = Arc::clone(&self.root);
        blocking(&context, move |given_up| list(&root, &arguments, given_up).map(ToolOutput::text)).await
    }
}

fn list(root: &Root, arguments: &Value, given_up: &GivenUp) -> Result<String, ToolError> {
    let path = root.written(text(arguments, "path"))?;
    let pattern = Some(text(arguments, "pattern")).filter(|p| !p.is_empty()).map(Glob::new);
    let depth = number(arguments, "depth")?.unwrap_or(if pattern.is_some() { MAX_DEPTH } else { 1 });
    let folder = root.jail.folder(&path).map_err(|error| error.about(&path))?;
    let mut lines: Vec<String> = Vec::new();
    let (mut bytes, mut more) = (0, false);
    let mut walk = Walk {
        visit: |entry: super::walk::Entry<'_>| {
            let from_here = below(entry.path, &path);
            let wanted = match &pattern {
                Some(pattern) => entry.kind == Kind::File && pattern.matches(from_here),
                None => true,
            };
            if !wanted {
                return true;
            }
            bytes += entry.path.len();
            if lines.len() >= MAX_LISTED || bytes > PAGE_BYTES {
                more = true;
                return false;
            }
            let mark = match entry.kind {
                Kind::Folder => "/",
                Kind::Link => "@",
                Kind::File | Kind::Other => "",
            };
            lines.push(format!("{}{mark}", entry.path));
            true
        },
        given_up,
        seen: 0,
        result: Walked::default(),
    };
    walk.folder(&folder, &path, depth.min(MAX_DEPTH)).map_err(|error| error.about(&path))?;
    let walked = walk.result;
    if lines.is_empty() {
        lines.push("(nothing)".to_owned());
    }
    if more {
        lines.push("[there are more; list a folder below, or use a pattern]".to_owned());
    }
    lines.extend(notice(walked));
    Ok(lines.join("\n"))
}

/// A path from a folder.
pub(super) fn below<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder).map_or(path, |rest| rest.strip_prefix('/').unwrap_or(rest))
}

/// What a walk left out.
pub(super) fn notice(walked: Walked) -> Vec<String> {
    let mut lines = Vec::new();
    if walked.unreadable > 0 {
        lines.push(format!("[{} entries could not be read]", walked.unreadable));
    }
    if walked.cut {
        lines.push("[there is more than is looked at in one call; begin at a folder below]".to_owned());
    }
    lines
}
