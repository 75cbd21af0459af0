//! `edit_file` and `write_file`.

use std::io::{self, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::fs::{Metadata, OpenOptions};
use haversack_agent_core::policy::ApprovalKey;
use haversack_agent_core::tool::{Claim, Effects, ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::{Value, json};

use super::blocking::blocking;
use super::diff::unified;
use super::jail::{JailError, Place};
use super::place::{Root, text};
use super::read::is_binary;
use super::{EDIT_FILE, WRITE_FILE};

/// The largest file that is edited or written, in bytes.
pub const MAX_EDIT_BYTES: u64 = 1024 * 1024;

pub(super) struct EditFile {
    spec: ToolSpec,
    root: Arc<Root>,
}

pub(super) struct WriteFile {
    spec: ToolSpec,
    root: Arc<Root>,
}

/// The effects that the spec states; a call on a sensitive file states more.
fn ordinary() -> Effects {
    let mut effects = Effects::default();
    effects.read_only = Some(false);
    effects.destructive = Some(false);
    effects.claimed_by = Claim::Host;
    effects
}

impl EditFile {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let description = "Replaces a text in a file of the project by another. The old text has to stand in the file \
            exactly once, so take enough of the lines around it along; with `all`, each place is replaced.";
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, from the project's root."},
                "old": {"type": "string", "description": "The text that is there, with its blanks and line ends."},
                "new": {"type": "string", "description": "The text to put there."},
                "all": {"type": "boolean", "description": "Replace it wherever it stands. Default false."},
            },
            "required": ["path", "old", "new"],
        });
        let spec = ToolSpec::new(EDIT_FILE, description).with_schema(schema).with_effects(ordinary());
        Self { spec, root }
    }
}

impl WriteFile {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let description = "Writes a whole file of the project, and the folders it stands in; what was in it is gone. To \
            change a part of a file, use `edit_file`.";
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, from the project's root."},
                "content": {"type": "string", "description": "All of its text."},
            },
            "required": ["path", "content"],
        });
        let spec = ToolSpec::new(WRITE_FILE, description).with_schema(schema).with_effects(ordinary());
        Self { spec, root }
    }
}

/// A change, worked out and not yet made.
struct Change {
    path: String,
    old: Option<String>,
    new: String,
    metadata: Option<Metadata>,
}

impl Change {
    fn diff(&self) -> String {
        unified(&self.path, self.old.as_deref(), &self.new)
    }

    fn make(self, root: &Root) -> Result<ToolOutput, ToolError> {
        let about = |error: JailError| error.about(&self.path);
        let place = root.jail.place(&self.path, self.old.is_none()).map_err(about)?;
        replace(&place, &self.new, self.metadata.as_ref()).map_err(|error| about(JailError::Io(error)))?;
        let diff = self.diff();
        let (added, removed) = diff.lines().skip(2).fold((0, 0), |(added, removed), line| {
            (added + usize::from(line.starts_with('+')), removed + usize::from(line.starts_with('-')))
        });
        let verb = if self.old.is_some() { "changed" } else { "created" };
        let told = format!("{verb} {}: {added} lines added, {removed} removed", self.path);
        Ok(ToolOutput::text(told).with_structured(json!({"path": self.path, "diff": diff})))
    }
}

/// The file as it is; `None` when there is none.
fn current(root: &Root, path: &str) -> Result<Option<(String, Metadata)>, ToolError> {
    match root.jail.read(path, MAX_EDIT_BYTES) {
        Ok((bytes, _)) if is_binary(&bytes) => Err(ToolError::failed(format!("{path}: it is no text"))),
        Ok((bytes, metadata)) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some((text, metadata))),
            Err(_) => Err(ToolError::failed(format!("{path}: it is no UTF-8, and would be damaged"))),
        },
        Err(JailError::Missing) => Ok(None),
        Err(error) => Err(error.about(path)),
    }
}

fn edit(root: &Root, arguments: &Value) -> Result<Change, ToolError> {
    let path = root.written(text(arguments, "path"))?;
    let (old, new) = (text(arguments, "old"), text(arguments, "new"));
    let all = arguments.get("all").and_then(Value::as_bool).unwrap_or(false);
    if old.is_empty() || old == new {
        let why = if old.is_empty() { "the `old` text is empty" } else { "`old` and `new` are the same" };
        return Err(ToolError::invalid_arguments(why));
    }
    let Some((content, metadata)) = current(root, &path)? else {
        return Err(JailError::Missing.about(&path));
    };
    // Models write line feeds whatever the file has.
    let windows = !content.contains(old) && content.contains("\r\n") && !old.contains('\r');
    let ends = |text: &str| if windows { text.replace('\n', "\r\n") } else { text.to_owned() };
    let (old, new) = (ends(old), ends(new));
    match content.matches(&old).count() {
        0 => {
            return Err(ToolError::failed(format!(
                "{path}: the `old` text is not there; read the file again"
            )));
        }
        1 => {}
        _ if all => {}
        times => {
            return Err(ToolError::failed(format!(
                "{path}: the `old` text stands there {times} times; take more lines along, or set `all`"
            )));
        }
    }
    let changed = content.replace(&old, &new);
    fits(&path, &changed)?;
    Ok(Change { path, old: Some(content), new: changed, metadata: Some(metadata) })
}

fn write(root: &Root, arguments: &Value) -> Result<Change, ToolError> {
    let path = root.written(text(arguments, "path"))?;
    let new = text(arguments, "content").to_owned();
    fits(&path, &new)?;
    let (old, metadata) = current(root, &path)?.unzip();
    Ok(Change { path, old, new, metadata })
}

fn fits(path: &str, text: &str) -> Result<(), ToolError> {
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes <= MAX_EDIT_BYTES) {
        return Ok(());
    }
    Err(ToolError::invalid_arguments(format!("{path}: more than {MAX_EDIT_BYTES} bytes are not written")))
}

/// Writes a file beside its place and renames it, so that there is the old text or the new one, and so that another
/// name of the same file elsewhere (a hard link) is not written through.
fn replace(place: &Place, text: &str, metadata: Option<&Metadata>) -> io::Result<()> {
    /// Names tried for the file beside; each is taken only by an edit that was killed half way.
    const ATTEMPTS: u32 = 64;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut attempt = 0;
    let (mut file, beside) = loop {
        let beside = format!(".haversack-{attempt}.tmp");
        match place.folder.open_with(&beside, &options) {
            Ok(file) => break (file, beside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| metadata.map_or(Ok(()), |metadata| file.set_permissions(metadata.permissions())))
        .and_then(|()| file.sync_all());
    drop(file);
    let renamed = written.and_then(|()| place.folder.rename(&beside, &place.folder, &place.name));
    if renamed.is_err() {
        // The first failure is the one to tell.
        let _ = place.folder.remove_file(&beside);
    }
    renamed
}

macro_rules! changing_tool {
    ($tool:ty, $plan:ident) => {
        #[async_trait]
        impl Tool for $tool {
            fn spec(&self) -> &ToolSpec {
                &self.spec
            }

            fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
                self.root.keys(arguments)
            }

            fn effects(&self, arguments: &Value) -> Effects {
                self.root.writing(arguments)
            }

            fn preview(&self, arguments: &Value) -> Option<String> {
                Some(match $plan(&self.root, arguments) {
                    Ok(change) => change.diff(),
                    Err(error) => format!("This call would fail: {error}"),
                })
            }

            async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
                let root = Arc::clone(&self.root);
                blocking(&context, move |_| $plan(&root, &arguments)?.make(&root)).await
            }
        }
    };
}

changing_tool!(EditFile, edit);
changing_tool!(WriteFile, write);
