//! `read_file`.

use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::policy::ApprovalKey;
use haversack_agent_core::tool::{Effects, ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::{Value, json};

use super::READ_FILE;
use super::blocking::blocking;
use super::place::{Root, number, text};

/// The largest file that is read, in bytes. A larger one is searched, or cut by a command.
pub const MAX_READ_BYTES: u64 = 8 * 1024 * 1024;

/// How much of a file one call gives, in bytes: less than a result may hold, so that a page is never cut again.
pub const PAGE_BYTES: usize = 16_000;

pub(super) struct ReadFile {
    spec: ToolSpec,
    root: Arc<Root>,
}

impl ReadFile {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let description = "Reads a text file of the project, in pages that end at a line. The end of a page says how to \
            go on.";
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, from the project's root."},
                "line": {"type": "integer", "minimum": 1, "description": "The first line to read. Default 1."},
                "lines": {"type": "integer", "minimum": 1, "description": "How many lines at most. Default: a page."},
            },
            "required": ["path"],
        });
        Self { spec: ToolSpec::new(READ_FILE, description).with_schema(schema).read_only(), root }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        self.root.keys(arguments)
    }

    fn effects(&self, arguments: &Value) -> Effects {
        self.root.reading(arguments, self.spec.effects)
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let root = Arc::clone(&self.root);
        blocking(&context, move |_| {
            let path = root.written(text(&arguments, "path"))?;
            let first = number(&arguments, "line")?.unwrap_or(1);
            let lines = number(&arguments, "lines")?.unwrap_or(usize::MAX);
            let text = read_text(&root, &path)?;
            page(&text, first, lines).map(ToolOutput::text)
        })
        .await
    }
}

/// The text of a file. Bytes that are no UTF-8 are replaced; a file with a NUL is no text.
pub(super) fn read_text(root: &Root, path: &str) -> Result<String, ToolError> {
    let (bytes, _) = root.jail.read(path, MAX_READ_BYTES).map_err(|error| error.about(path))?;
    if is_binary(&bytes) {
        return Err(ToolError::failed(format!("{path}: it is no text; it has {} bytes", bytes.len())));
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Whether bytes are no text, as `git` and `grep` tell it.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8_000).any(|byte| *byte == 0)
}

/// Lines from `first`, as many as fit into a page, and a word about what is left.
fn page(text: &str, first: usize, lines: usize) -> Result<String, ToolError> {
    let total = text.lines().count();
    if text.is_empty() {
        return Ok("(the file is empty)".to_owned());
    }
    if first > total {
        return Err(ToolError::invalid_arguments(format!("the file has only {total} lines")));
    }
    let mut page = String::new();
    let mut last = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(lines) {
        if page.len() + line.len() > PAGE_BYTES {
            break;
        }
        page.push_str(line);
        last += 1;
    }
    if last < first {
        // One line that is longer than a page: its beginning, for minified files.
        let line = text.split_inclusive('\n').nth(first - 1).unwrap_or_default();
        let kept = line.char_indices().take_while(|(at, c)| at + c.len_utf8() <= PAGE_BYTES).map(|(_, c)| c);
        page = kept.collect();
        last = first;
        page.push_str(&format!("\n[line {first} has {} bytes and is cut]", line.len()));
    }
    if last < total {
        let end = if page.ends_with('\n') { "" } else { "\n" };
        page.push_str(&format!("{end}[lines {first} to {last} of {total}; go on with line {}]", last + 1));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_at_a_line_and_together_are_the_file() {
        let text: String = (1..=3_000).map(|n| format!("line {n} ü\n")).collect();
        let (mut first, mut joined) = (1, String::new());
        loop {
            let page = page(&text, first, usize::MAX).unwrap();
            assert!(page.len() <= PAGE_BYTES + 100);
            match page.rsplit_once("\n[lines ") {
                Some((part, notice)) => {
                    joined.push_str(part);
                    joined.push('\n');
                    first = notice.rsplit(' ').next().unwrap().trim_end_matches(']').parse().unwrap();
                }
                None => {
                    joined.push_str(&page);
                    break;
                }
            }
        }
        assert_eq!(joined, text);
    }

    #[test]
    fn a_line_longer_than_a_page_is_cut_with_a_word_and_lines_past_the_end_are_an_error() {
        let text = format!("{}\nnext", "ü".repeat(20_000));
        let cut = page(&text, 1, usize::MAX).unwrap();
        assert!(cut.contains("[line 1 has 40001 bytes and is cut]") && cut.ends_with("go on with line 2]"));
        assert_eq!(page(&text, 2, 1).unwrap(), "next");
        assert!(page("a\nb", 3, 1).unwrap_err().message.contains("only 2 lines"));
        assert_eq!(page("a\nb\nc\n", 2, 1).unwrap(), "b\n[lines 2 to 2 of 3; go on with line 3]");
    }
}
