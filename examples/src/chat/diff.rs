//! What an edit would change, line by line, from the arguments of a call.
//!
//! Tools that edit files are alike: a path, and either the new text or pairs of old and new text. They are known by the
//! shape of their arguments, so that a file server of any make shows a diff, and not only our own tools.

use std::path::{Component, Path};

use haversack::prelude::Ask;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Lines around a change that are shown.
const CONTEXT_LINES: usize = 2;
/// Bytes of a file that are read for a diff; of a larger one only the new text is shown.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// One line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Where it is: the file, or a gap between two places of it.
    Place(String),
    /// Stays.
    Same(String),
    /// Goes.
    Removed(String),
    /// Comes.
    Added(String),
}

/// What a call that is asked about would change: in the words of its tool, or by the shape of its arguments.
pub fn of_ask(ask: &Ask, root: &Path) -> Option<Vec<Change>> {
    let own = ask.preview.as_deref().map(of_preview);
    own.or_else(|| of_call(&ask.tool, &ask.arguments, |path| read_below(root, path)))
}

/// The lines of a unified diff; lines of any other text stay as they are.
fn of_preview(preview: &str) -> Vec<Change> {
    let mut is_head = preview.starts_with("--- ");
    let mut changes = Vec::new();
    for line in preview.lines() {
        is_head &= !line.starts_with("@@");
        let (mark, rest) = line.split_at_checked(1).unwrap_or((line, ""));
        changes.push(match mark {
            "-" if is_head => continue,
            "+" if is_head => {
                Change::Place(line.trim_start_matches("+++ ").trim_start_matches("b/").to_owned())
            }
            "+" => Change::Added(rest.to_owned()),
            "-" => Change::Removed(rest.to_owned()),
            "@" if matches!(changes.last(), Some(Change::Place(_))) => continue,
            "@" => Change::Place("…".to_owned()),
            " " => Change::Same(rest.to_owned()),
            _ => Change::Same(line.to_owned()),
        });
    }
    changes
}

/// What a call with these arguments would change in files, if it is an edit; `read` gives a file's text, where the host
/// may read it.
pub fn of_call(tool: &str, arguments: &Value, read: impl Fn(&str) -> Option<String>) -> Option<Vec<Change>> {
    let path = text(arguments, &["path", "file_path", "file", "filename"])?;
    let mut changes = vec![Change::Place(path.to_owned())];
    if let Some((old, new)) = replacement(arguments) {
        lines(old, new, &mut changes);
        return Some(changes);
    }
    let edits = arguments.get("edits").and_then(Value::as_array);
    let edits: Vec<_> = edits.into_iter().flatten().filter_map(replacement).collect();
    if !edits.is_empty() {
        for (place, (old, new)) in edits.into_iter().enumerate() {
            if place > 0 {
                changes.push(Change::Place("…".to_owned()));
            }
            lines(old, new, &mut changes);
        }
        return Some(changes);
    }
    let name = tool.rsplit("__").next().unwrap_or(tool);
    let writes = ["write", "create", "save", "put"].iter().any(|word| name.contains(word));
    let new = text(arguments, &["content", "contents", "text", "file_text"]).filter(|_| writes)?;
    lines(&read(path).unwrap_or_default(), new, &mut changes);
    Some(changes)
}

/// Reads a file below a folder for a diff: no way out of the folder, no link, nothing large, nothing that is no text.
pub fn read_below(root: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    let below = path.strip_prefix(root).unwrap_or(path);
    if below.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let real = root.join(below).canonicalize().ok()?;
    let is_inside = real.starts_with(root.canonicalize().ok()?);
    let size = std::fs::metadata(&real).ok().filter(|m| m.is_file())?.len();
    (is_inside && size <= MAX_FILE_BYTES).then(|| std::fs::read_to_string(&real).ok())?
}

fn replacement(value: &Value) -> Option<(&str, &str)> {
    let old = text(value, &["old_text", "oldText", "old_string", "old_str", "old", "find", "search"])?;
    let new =
        text(value, &["new_text", "newText", "new_string", "new_str", "new", "replace", "replacement"])?;
    Some((old, new))
}

fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(name)?.as_str())
}

fn lines(old: &str, new: &str, changes: &mut Vec<Change>) {
    let diff = TextDiff::from_lines(old, new);
    for (place, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if place > 0 {
            changes.push(Change::Place("…".to_owned()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value().trim_end_matches(['\n', '\r']).to_owned();
            changes.push(match change.tag() {
                ChangeTag::Equal => Change::Same(line),
                ChangeTag::Delete => Change::Removed(line),
                ChangeTag::Insert => Change::Added(line),
            });
        }
    }
    if old == new {
        changes.push(Change::Same("(nothing changes)".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(tool: &str, arguments: &Value) -> Option<String> {
        let before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        let changes = of_call(tool, arguments, |path| (path == "a.md").then(|| before.to_owned()))?;
        let line = |change: &Change| match change {
            Change::Place(place) => format!("@{place}"),
            Change::Same(line) => format!(" {line}"),
            Change::Removed(line) => format!("-{line}"),
            Change::Added(line) => format!("+{line}"),
        };
        Some(changes.iter().map(line).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn edits_are_known_by_the_shape_of_their_arguments() {
        let whole = "one\nTWO\nthree\nfour\nfive\nsix\nSEVEN\n";
        for (tool, arguments, diff) in [
            ("edit_file", json!({"path": "a.md", "old_text": "x\ny", "new_text": "x\nz"}), "@a.md| x|-y|+z"),
            (
                "mcp__fs__edit_file",
                json!({"path": "a.md", "edits": [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": ""}]}),
                "@a.md|-a|+b|@…|-c",
            ),
            (
                "mcp__fs__write_file",
                json!({"path": "a.md", "content": whole}),
                "@a.md| one|-two|+TWO| three| four| five| six|-seven|+SEVEN",
            ),
            ("write_file", json!({"path": "new.md", "content": "hello\n"}), "@new.md|+hello"),
            (
                "edit",
                json!({"file_path": "a", "old_string": "s", "new_string": "s"}),
                "@a| (nothing changes)",
            ),
        ] {
            assert_eq!(shown(tool, &arguments).as_deref(), Some(diff), "{tool}");
        }
        for (tool, arguments) in [
            ("read_file", json!({"path": "a.md"})),
            ("search", json!({"path": "a.md", "text": "x"})),
            ("add_note", json!({"title": "t", "text": "x"})),
            ("odd", json!("text")),
        ] {
            assert_eq!(shown(tool, &arguments), None, "{tool}");
        }
    }

    #[test]
    fn the_diff_of_a_tool_is_shown_line_by_line_and_any_other_preview_as_it_is() {
        let text = |changes: Vec<Change>| format!("{changes:?}");
        let diff = "--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n same\n-- old\n+++ new\n";
        let shown = [
            Change::Place("x.md".into()),
            Change::Same("same".into()),
            Change::Removed("- old".into()),
            Change::Added("++ new".into()),
        ];
        assert_eq!(text(of_preview(diff)), text(shown.into()));
        assert_eq!(of_preview("moves 3 files"), [Change::Same("moves 3 files".into())]);
    }

    #[test]
    fn a_diff_reads_nothing_outside_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("in.md"), "in").unwrap();
        std::fs::write(folder.path().join("out.md"), "out").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("out.md"), root.join("link.md")).unwrap();
        assert_eq!(read_below(&root, "in.md").as_deref(), Some("in"));
        assert_eq!(read_below(&root, &root.join("in.md").to_string_lossy()).as_deref(), Some("in"));
        let outside = folder.path().join("out.md");
        for path in ["../out.md", "link.md", &outside.to_string_lossy(), "absent.md", "."] {
            assert_eq!(read_below(&root, path), None, "{path}");
        }
    }
}
