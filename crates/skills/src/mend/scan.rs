//! The last rung, and the edits that save a file from it.

use std::borrow::Cow;

use crate::diagnostic::{Code, Edit};
use crate::mend::patch::patch;
use crate::mend::quote::entry_edit;
use crate::mend::source::{Source, continuation, is_block_header, key_line};
use crate::node::{Content, Entry, Fields, Node, Position, Type};

/// Faults that are mended one after the other before giving up; files with more need a person.
const MAX_REPAIRS: usize = 8;

/// The fields that the scan reads.
const SCANNED: [&str; 2] = ["name", "description"];

/// The lines `name:` and `description:` as text, whatever the rest looks like. Positions hold offsets only.
pub(crate) fn scan(source: Source<'_>) -> Fields<'static> {
    let lines = source.lines();
    let mut entries: Vec<Entry<'static>> = Vec::new();
    for (index, (at, line)) in lines.iter().enumerate() {
        let Some(found) = key_line(line).filter(|found| SCANNED.contains(&found.key)) else { continue };
        if entries.iter().any(|entry| entry.key == found.key) {
            continue;
        }
        let first = if is_block_header(found.value) { "" } else { unquoted(found.value) };
        let more = lines.iter().skip(index + 1).map_while(|(_, line)| continuation(line));
        let parts: Vec<&str> = std::iter::once(first).chain(more).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            continue;
        }
        let place = |offset: usize| Position::new(offset as u32, 0, 0);
        let (start, end) = (at + found.value_at, at + found.value_at + found.value.len());
        let content = Content::Scalar(Cow::Owned(parts.join(" ")), Type::Text);
        let value = Node::new(content, place(start), end as u32);
        entries.push(Entry { key: Cow::Owned(found.key.to_owned()), key_start: place(*at), value });
    }
    Fields::from_entries(entries)
}

/// The value without the quotes around it, if it has them.
fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// The text with its front matter made right, where faults of white space or of the two scanned values are all that is
/// wrong with it, and where a strict reader then finds what the scan found.
pub(crate) fn repair(source: Source<'_>, scanned: &Fields<'_>) -> Option<String> {
    let mut text = Cow::Borrowed(source.text);
    let mut end = source.front.1;
    for _ in 0..MAX_REPAIRS {
        let current = source.with_text(&text, end);
        let (line, code) = match current.try_read() {
            Ok(fields) => {
                let agrees = scanned.iter().all(|(key, value)| same_words(fields.text(key), value.as_text()));
                return agrees.then(|| text.into_owned());
            }
            Err(fault) => ((fault.at.line - source.line) as usize, fault.code),
        };
        let edits = repair_line(current, line, code)?;
        let fixed = patch(&text, &edits).into_owned();
        end = current.edited(&fixed, &edits).front.1;
        text = Cow::Owned(fixed);
    }
    None
}

/// Whether two texts have the same words: a block scalar keeps line breaks that the scan reads as blanks.
fn same_words(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.split_whitespace().eq(b.split_whitespace()),
        _ => false,
    }
}

/// Edits for the fault on the line `index` of the front matter.
fn repair_line(source: Source<'_>, index: usize, code: Code) -> Option<Vec<Edit>> {
    let lines = source.lines();
    let (at, line) = *lines.get(index)?;
    if code == Code::TabIndentation {
        return Some(untabbed(&lines));
    }
    if code == Code::MissingColon
        && let Some(edit) = missing_blank(at, line)
    {
        return Some(vec![edit]);
    }
    if code == Code::SecondDocument {
        return directives(&lines);
    }
    if code == Code::InlineBlock
        && let Some(edit) = list_below(source, &lines, index)
    {
        return Some(vec![edit]);
    }
    let owner = lines.iter().take(index + 1).rposition(|(_, line)| key_line(line).is_some())?;
    let (_, owner_line) = lines.get(owner)?;
    let key = key_line(owner_line)?.key;
    if !SCANNED.contains(&key) {
        return None;
    }
    entry_edit(&lines, owner).map(|edit| vec![edit])
}

/// Edits that write two blanks for each tab that indents a line.
fn untabbed(lines: &[(usize, &str)]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (at, line) in lines {
        let lead = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indent = line.get(..lead).unwrap_or_default();
        if indent.contains('\t') {
            edits.push(Edit::new(*at, at + lead, indent.replace('\t', "  ")));
        }
    }
    edits
}

/// An edit for `key:value`, a colon with an odd blank or of full width behind the key, or `description words`.
fn missing_blank(at: usize, line: &str) -> Option<Edit> {
    let size =
        line.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(line.len());
    let (key, rest) = line.split_at_checked(size)?;
    if !SCANNED.contains(&key) {
        return None;
    }
    let at = at + size;
    let value = rest.strip_prefix([':', '\u{ff1a}']).unwrap_or(rest).trim_start();
    if value.is_empty() {
        return None;
    }
    Some(Edit::new(at, at + rest.len() - value.len(), ": "))
}

/// Edits that make comments of the directives before a front matter, which say nothing that changes its meaning.
fn directives(lines: &[(usize, &str)]) -> Option<Vec<Edit>> {
    let found = lines.iter().filter(|(_, line)| line.starts_with('%'));
    let edits: Vec<Edit> = found.map(|(at, _)| Edit::new(*at, *at, "# ")).collect();
    (!edits.is_empty()).then_some(edits)
}

/// An edit that moves a list from the line of its key to the next: `tools: - Read` with more dashes below.
fn list_below(source: Source<'_>, lines: &[(usize, &str)], index: usize) -> Option<Edit> {
    let (at, line) = lines.get(index)?;
    let found = key_line(line).filter(|found| found.value.starts_with("- "))?;
    let (next, below) = lines.get(index + 1)?;
    let indent = below.len() - below.trim_start_matches(' ').len();
    if !below.trim_start_matches(' ').starts_with("- ") {
        return None;
    }
    let blanks = line.get(..found.value_at)?.trim_end_matches([' ', '\t']).len();
    let line_end = source.text.get(at + line.len()..*next).unwrap_or("\n");
    let text = format!("{line_end}{}", " ".repeat(indent));
    Some(Edit::new(at + blanks, at + found.value_at, text))
}
