//! The text that the ladder works on, and the lines of its front matter.

use crate::diagnostic::Edit;
use crate::node::Fields;
use crate::yaml;
use crate::yaml::cursor::{Fault, Limits};

/// A file and where its front matter is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) front: (usize, usize),
    pub(crate) line: u32,
    pub(crate) limits: Limits,
}

impl<'a> Source<'a> {
    /// The same source after `edits` of its front matter.
    pub(crate) const fn with_text<'b>(self, text: &'b str, front_end: usize) -> Source<'b> {
        Source { text, front: (self.front.0, front_end), line: self.line, limits: self.limits }
    }

    pub(crate) fn edited<'b>(self, text: &'b str, edits: &[Edit]) -> Source<'b> {
        let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
        let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
        self.with_text(text, (self.front.1 + added).saturating_sub(removed))
    }

    pub(crate) fn try_read(self) -> Result<Fields<'a>, Fault> {
        yaml::parse(self.text, self.front.0..self.front.1, self.line, self.limits).map(|parsed| parsed.fields)
    }

    pub(crate) fn read(self) -> Option<Fields<'static>> {
        self.try_read().ok().map(Fields::into_owned)
    }

    pub(crate) fn front_text(self) -> &'a str {
        self.text.get(self.front.0..self.front.1).unwrap_or_default()
    }

    /// The lines of the front matter without their ends, and where each begins.
    pub(crate) fn lines(self) -> Vec<(usize, &'a str)> {
        let mut lines = Vec::new();
        let mut at = self.front.0;
        let mut rest = self.front_text();
        while !rest.is_empty() {
            let size = memchr::memchr2(b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len());
            let (line, tail) = rest.split_at_checked(size).unwrap_or((rest, ""));
            lines.push((at, line));
            let next =
                tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix(['\n', '\r'])).unwrap_or_default();
            at += rest.len() - next.len();
            rest = next;
        }
        lines
    }
}

/// A line `key: value` at the start of its line, as the ladder understands one.
pub(crate) struct KeyLine<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    /// Byte of the line where the value begins.
    pub(crate) value_at: usize,
}

pub(crate) fn key_line(line: &str) -> Option<KeyLine<'_>> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let size = line.find(|c| !is_key(c)).unwrap_or(line.len());
    let (key, rest) = line.split_at_checked(size)?;
    if !key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let behind = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    if !behind.is_empty() && !behind.starts_with([' ', '\t']) {
        return None;
    }
    let value = behind.trim();
    let value_at = line.len() - behind.trim_start().len();
    Some(KeyLine { key, value, value_at })
}

/// The header of a block scalar, and nothing but.
pub(crate) fn is_block_header(value: &str) -> bool {
    let Some(rest) = value.strip_prefix(['|', '>']) else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'));
    let rest = rest.trim_start_matches([' ', '\t']);
    rest.is_empty() || rest.starts_with('#')
}

/// An indented line that is not blank: it belongs to the key above it.
pub(crate) fn continuation(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches([' ', '\t']);
    let is_indented = rest.len() < line.len();
    (is_indented && rest.starts_with(|c: char| !c.is_whitespace())).then(|| line.trim())
}
