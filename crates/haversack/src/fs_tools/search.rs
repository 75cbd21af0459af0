//! `search_files`.

use std::io::Read as _;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::policy::{ApprovalKey, Glob};
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::SEARCH_FILES;
use super::blocking::{GivenUp, blocking};
use super::jail::{JailError, open_file};
use super::list::{below, notice};
use super::place::{Root, text};
use super::read::{PAGE_BYTES, is_binary};
use super::walk::{Entry, Kind, MAX_DEPTH, Walk, Walked};

/// Matching lines in one result, fewer if they are long; beyond that, the result says that there are more.
pub const MAX_MATCHES: usize = 200;

/// The largest file that is searched, in bytes; larger ones are counted as left out.
pub const MAX_SEARCHED_BYTES: u64 = 2 * 1024 * 1024;

/// How much of a matching line is shown, in characters: minified files have lines without end.
const MAX_LINE_CHARS: usize = 300;

/// Memory for a compiled expression, in bytes: the model writes it, and `(a{1000}){1000}` is short.
const MAX_REGEX_BYTES: usize = 1024 * 1024;

pub(super) struct SearchFiles {
    spec: ToolSpec,
    root: Arc<Root>,
}

impl SearchFiles {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let description = "Searches the text files of the project, line by line, for a regular expression. Gives \
            `path:line: text` for each line that matches.";
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "A regular expression (no look-around, no back-references)."},
                "path": {"type": "string", "description": "The folder or file to search. Default: the project's root."},
                "pattern": {"type": "string", "description": "Only files whose path from that folder matches this glob, for example `**/*.rs`."},
                "literal": {"type": "boolean", "description": "Take the query as it is written. Default false."},
                "ignore_case": {"type": "boolean", "description": "Default false."},
            },
            "required": ["query"],
        });
        Self { spec: ToolSpec::new(SEARCH_FILES, description).with_schema(schema).read_only(), root }
    }
}

#[async_trait]
impl Tool for SearchFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        self.root.keys(arguments)
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let root = Arc::clone(&self.root);
        blocking(&context, move |given_up| search(&root, &arguments, given_up).map(ToolOutput::text)).await
    }
}

/// What a search has found so far.
struct Found {
    lines: Vec<String>,
    bytes: usize,
    more: bool,
    sensitive: usize,
    large: usize,
}

fn search(root: &Root, arguments: &Value, given_up: &GivenUp) -> Result<String, ToolError> {
    let path = root.written(text(arguments, "path"))?;
    let regex = expression(arguments)?;
    let pattern = Some(text(arguments, "pattern")).filter(|p| !p.is_empty()).map(Glob::new);
    let mut found = Found { lines: Vec::new(), bytes: 0, more: false, sensitive: 0, large: 0 };
    let folder = match root.jail.folder(&path) {
        Ok(folder) => folder,
        Err(JailError::Kind(_)) => return search_one(root, &path, &regex, found),
        Err(error) => return Err(error.about(&path)),
    };
    let mut walk = Walk {
        visit: |entry: Entry<'_>| {
            let wanted = entry.kind == Kind::File
                && pattern.as_ref().is_none_or(|pattern| pattern.matches(below(entry.path, &path)));
            if !wanted {
                return true;
            }
            if root.sensitive.is_read(entry.path) {
                found.sensitive += 1;
                return true;
            }
            search_file(&entry, &regex, &mut found)
        },
        given_up,
        seen: 0,
        result: Walked::default(),
    };
    walk.folder(&folder, &path, MAX_DEPTH).map_err(|error| error.about(&path))?;
    let walked = walk.result;
    Ok(result(found, walked))
}

/// Searches a single file that was named.
fn search_one(root: &Root, path: &str, regex: &Regex, mut found: Found) -> Result<String, ToolError> {
    let place = root.jail.place(path, false).map_err(|error| error.about(path))?;
    root.jail.is_file(&place.folder, &place.name, path).map_err(|error| error.about(path))?;
    if root.sensitive.is_read(path) {
        found.sensitive += 1;
    } else {
        let entry = Entry { path, name: &place.name, kind: Kind::File, folder: &place.folder };
        search_file(&entry, regex, &mut found);
    }
    Ok(result(found, Walked::default()))
}

fn result(mut found: Found, walked: Walked) -> String {
    if found.lines.is_empty() {
        found.lines.push("(no match)".to_owned());
    }
    if found.more {
        found.lines.push("[there are more matches; search for less, or in a folder below]".to_owned());
    }
    if found.sensitive > 0 {
        found.lines.push(format!("[{} files that may hold credentials were left out]", found.sensitive));
    }
    if found.large > 0 {
        found
            .lines
            .push(format!("[{} files of more than {MAX_SEARCHED_BYTES} bytes were left out]", found.large));
    }
    found.lines.extend(notice(walked));
    found.lines.join("\n")
}

fn expression(arguments: &Value) -> Result<Regex, ToolError> {
    let flag = |key: &str| arguments.get(key).and_then(Value::as_bool).unwrap_or(false);
    let query = text(arguments, "query");
    if query.is_empty() {
        return Err(ToolError::invalid_arguments("the `query` is empty"));
    }
    let query = if flag("literal") { regex::escape(query) } else { query.to_owned() };
    RegexBuilder::new(&query)
        .case_insensitive(flag("ignore_case"))
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(|error| ToolError::invalid_arguments(format!("the `query` is no expression: {error}")))
}

/// Searches one file; gives back whether to go on.
fn search_file(entry: &Entry<'_>, regex: &Regex, found: &mut Found) -> bool {
    // What cannot be opened or has become something else is passed over, as a search does.
    let Ok(file) = open_file(entry.folder, entry.name) else { return true };
    match file.metadata() {
        Ok(metadata) if !metadata.is_file() => return true,
        Ok(metadata) if metadata.len() > MAX_SEARCHED_BYTES => {
            found.large += 1;
            return true;
        }
        Ok(_) => {}
        Err(_) => return true,
    }
    let mut bytes = Vec::new();
    if file.take(MAX_SEARCHED_BYTES).read_to_end(&mut bytes).is_err() || is_binary(&bytes) {
        return true;
    }
    let text = String::from_utf8_lossy(&bytes);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
        if found.lines.len() >= MAX_MATCHES || found.bytes >= PAGE_BYTES {
            found.more = true;
            return false;
        }
        let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
        let cut = if shown.len() < line.len() { " [cut]" } else { "" };
        let line = format!("{}:{}: {shown}{cut}", entry.path, number + 1);
        found.bytes += line.len();
        found.lines.push(line);
    }
    true
}
