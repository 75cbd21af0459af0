//! The rungs that put values in quotes.

use crate::diagnostic::Edit;
use crate::mend::source::{Source, continuation, is_block_header, key_line};

/// Edits that put in single quotes what a strict reader trips over, and the keys meant.
pub(crate) fn quote_values(source: Source<'_>, hard: bool) -> (Vec<Edit>, Vec<(String, usize)>) {
    let lines = source.lines();
    let mut edits = Vec::new();
    let mut touched = Vec::new();
    let mut index = 0;
    while let Some((at, line)) = lines.get(index) {
        index += 1;
        let owner = index - 1;
        let Some(found) = key_line(line).filter(|found| !found.value.is_empty()) else { continue };
        if is_block_header(found.value) {
            continue;
        }
        let Some(edit) = entry_edit(&lines, owner) else { continue };
        if !is_risky(found.value, hard, source, (*at, edit.end)) {
            continue;
        }
        touched.push((found.key.to_owned(), edit.start));
        while lines.get(index).is_some_and(|(at, _)| *at < edit.end) {
            index += 1;
        }
        edits.push(edit);
    }
    (edits, touched)
}

/// The edit that puts the value of the key on the line `owner`, with the indented lines behind it, in single quotes on one
/// line. The header of a block scalar is no part of its text.
pub(crate) fn entry_edit(lines: &[(usize, &str)], owner: usize) -> Option<Edit> {
    let (at, line) = lines.get(owner)?;
    let found = key_line(line)?;
    let more: Vec<(usize, &str)> = lines
        .iter()
        .skip(owner + 1)
        .map_while(|(at, line)| Some((*at + lead(line), continuation(line)?)))
        .collect();
    let start = at + found.value_at;
    let end = more.last().map_or(start + found.value.len(), |(at, text)| at + text.len());
    let first = if is_block_header(found.value) { "" } else { found.value };
    let parts: Vec<&str> = std::iter::once(first)
        .chain(more.iter().map(|(_, text)| *text))
        .filter(|part| !part.is_empty())
        .collect();
    Some(Edit::new(start, end, single_quoted(&parts.join(" "))))
}

/// Bytes of white space that begin a line.
pub(crate) fn lead(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a value, which with its key fills the bytes `entry`, should be quoted.
pub(crate) fn is_risky(value: &str, hard: bool, source: Source<'_>, entry: (usize, usize)) -> bool {
    if value.starts_with(['"', '\'', '[', '{']) {
        if !hard {
            return false;
        }
        let alone = source.with_text(source.text.get(..entry.1).unwrap_or_default(), entry.1);
        return Source { front: entry, ..alone }.read().is_none();
    }
    let has_blank_behind = |rest: &str| rest.is_empty() || rest.starts_with(' ') || rest.starts_with('\t');
    value.split(':').skip(1).any(has_blank_behind)
        || value.contains(" #")
        || value.starts_with([',', ']', '}', '#', '&', '*', '!', '|', '>', '%', '@', '`'])
        || value.strip_prefix(['-', '?', ':']).is_some_and(has_blank_behind)
}

pub(crate) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
