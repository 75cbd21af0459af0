//! The lenient ladder: what a forgiving reader still gets from a front matter that is no YAML.
//!
//! Four rungs, each tried only where the one before did not help: control characters dropped; risky plain values of
//! top-level keys put in quotes; broken bracketed and quoted values put in quotes as well; and last the lines `name:`
//! and `description:` read as they stand. What a rung changes is an edit of the file.

use std::borrow::Cow;
use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Edit, Severity};
use crate::lines::Lines;
use crate::node::{Content, Entry, Fields, Node, Position, Type};
use crate::yaml;
use crate::yaml::cursor::{Limits, first_forbidden};

/// How a front matter that is no YAML was read all the same, from the gentlest way to the roughest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rung {
    /// Control characters dropped.
    Control,
    /// Plain values put in quotes: `description: Use when: asked`.
    Quote,
    /// Broken bracketed and quoted values put in quotes as well: `argument-hint: [a] [b]`.
    Flow,
    /// Only `name` and `description`, read line by line.
    Scan,
}

impl Rung {
    /// The word that reports use: `control`, `quote`, `quote2` or `scan`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Quote => "quote",
            Self::Flow => "quote2",
            Self::Scan => "scan",
        }
    }
}

/// A front matter read by the ladder.
#[derive(Debug)]
pub(crate) struct Mended {
    pub(crate) rung: Rung,
    pub(crate) fields: Fields<'static>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A file and where its front matter is.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    front: (usize, usize),
    line: u32,
    limits: Limits,
}

/// What a rung changes.
struct Attempt {
    rung: Rung,
    code: Code,
    edits: Vec<Edit>,
    /// Keys whose values are meant, and where these begin.
    touched: Vec<(String, usize)>,
}

/// Reads the lines `front` of `text`, which a strict reader refuses, by the first rung that helps.
pub(crate) fn mend(text: &str, front: Range<usize>, line: u32, limits: Limits) -> Option<Mended> {
    let original = Source { text, front: (front.start, front.end), line, limits };
    let controls = control_edits(original);
    let clean_text = patch(text, &controls);
    let clean = original.edited(&clean_text, &controls);
    if let (false, Some(fields)) = (controls.is_empty(), clean.read()) {
        let nothing =
            Attempt { rung: Rung::Control, code: Code::MendedControl, edits: vec![], touched: vec![] };
        return Some(finish(original, &controls, &nothing, fields));
    }
    for (rung, code) in [(Rung::Quote, Code::MendedQuote), (Rung::Flow, Code::MendedFlow)] {
        let (edits, touched) = quote_values(clean, rung == Rung::Flow);
        if edits.is_empty() {
            continue;
        }
        let fixed_text = patch(clean.text, &edits);
        if let Some(fields) = clean.edited(&fixed_text, &edits).read() {
            return Some(finish(original, &controls, &Attempt { rung, code, edits, touched }, fields));
        }
    }
    scan(original, clean, &controls)
}

impl<'a> Source<'a> {
    /// The same source after `edits` of its front matter.
    const fn with_text<'b>(self, text: &'b str, front_end: usize) -> Source<'b> {
        Source { text, front: (self.front.0, front_end), line: self.line, limits: self.limits }
    }

    fn edited<'b>(self, text: &'b str, edits: &[Edit]) -> Source<'b> {
        let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
        let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
        self.with_text(text, (self.front.1 + added).saturating_sub(removed))
    }

    fn read(self) -> Option<Fields<'static>> {
        let parsed = yaml::parse(self.text, self.front.0..self.front.1, self.line, self.limits).ok()?;
        Some(parsed.fields.into_owned())
    }

    fn front_text(self) -> &'a str {
        self.text.get(self.front.0..self.front.1).unwrap_or_default()
    }

    /// The lines of the front matter without their ends, and where each begins.
    fn lines(self) -> Vec<(usize, &'a str)> {
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

/// The text with `edits` made, which are in order and do not touch each other.
fn patch<'a>(text: &'a str, edits: &[Edit]) -> Cow<'a, str> {
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(out)
}

/// Where the byte `offset` of an edited text was before the edits.
fn before_edits(offset: usize, edits: &[Edit]) -> usize {
    let (mut grown, mut shrunk) = (0, 0);
    for edit in edits {
        let start = edit.start + grown - shrunk;
        if offset < start {
            break;
        }
        if offset < start + edit.text.len() {
            return edit.start;
        }
        grown += edit.text.len();
        shrunk += edit.end - edit.start;
    }
    offset + shrunk - grown
}

/// One edit that does what `fixed` differs by: the bytes between the common start and the common end.
fn difference(text: &str, fixed: &str) -> Edit {
    let (old, new) = (text.as_bytes(), fixed.as_bytes());
    let mut head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    while !text.is_char_boundary(head) || !fixed.is_char_boundary(head) {
        head -= 1;
    }
    let longest = old.len().min(new.len()) - head;
    let mut tail = old.iter().rev().zip(new.iter().rev()).take(longest).take_while(|(a, b)| a == b).count();
    while !text.is_char_boundary(old.len() - tail) || !fixed.is_char_boundary(new.len() - tail) {
        tail -= 1;
    }
    Edit::new(head, old.len() - tail, fixed.get(head..new.len() - tail).unwrap_or_default())
}

/// Edits that take out every control character of the front matter.
fn control_edits(source: Source<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = source.front.0;
    while let Some((index, forbidden)) =
        first_forbidden(source.text.as_bytes().get(at..source.front.1).unwrap_or_default())
    {
        let start = at + index;
        at = start + forbidden.len_utf8();
        edits.push(Edit::new(start, at, ""));
    }
    edits
}

/// A line `key: value` at the start of its line, as the ladder understands one.
struct KeyLine<'a> {
    key: &'a str,
    value: &'a str,
    /// Byte of the line where the value begins.
    value_at: usize,
}

fn key_line(line: &str) -> Option<KeyLine<'_>> {
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
fn is_block_header(value: &str) -> bool {
    let Some(rest) = value.strip_prefix(['|', '>']) else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'));
    let rest = rest.trim_start_matches([' ', '\t']);
    rest.is_empty() || rest.starts_with('#')
}

/// An indented line that is not blank: it belongs to the key above it.
fn continuation(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches([' ', '\t']);
    let is_indented = rest.len() < line.len();
    (is_indented && rest.starts_with(|c: char| !c.is_whitespace())).then(|| line.trim())
}

/// Edits that put in single quotes what a strict reader trips over, and the keys meant.
fn quote_values(source: Source<'_>, hard: bool) -> (Vec<Edit>, Vec<(String, usize)>) {
    let lines = source.lines();
    let mut edits = Vec::new();
    let mut touched = Vec::new();
    let mut index = 0;
    while let Some((at, line)) = lines.get(index) {
        index += 1;
        let Some(found) = key_line(line).filter(|found| !found.value.is_empty()) else { continue };
        if is_block_header(found.value) {
            continue;
        }
        let more: Vec<(usize, &str)> = lines
            .iter()
            .skip(index)
            .map_while(|(at, line)| Some((*at + lead(line), continuation(line)?)))
            .collect();
        let start = at + found.value_at;
        let end = more.last().map_or(start + found.value.len(), |(at, text)| at + text.len());
        if !is_risky(found.value, hard, source, (*at, end)) {
            continue;
        }
        let parts: Vec<&str> =
            std::iter::once(found.value).chain(more.iter().map(|(_, text)| *text)).collect();
        edits.push(Edit::new(start, end, single_quoted(&parts.join(" "))));
        touched.push((found.key.to_owned(), start));
        index += more.len();
    }
    (edits, touched)
}

/// Bytes of white space that begin a line.
fn lead(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a value, which with its key fills the bytes `entry`, should be quoted.
fn is_risky(value: &str, hard: bool, source: Source<'_>, entry: (usize, usize)) -> bool {
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

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What a reading with `attempt` comes to: fields with positions of the file, and what was done as diagnostics.
fn finish(original: Source<'_>, controls: &[Edit], attempt: &Attempt, mut fields: Fields<'static>) -> Mended {
    let lines = Lines::new(original.text);
    let back = |offset: usize| before_edits(before_edits(offset, &attempt.edits), controls);
    move_fields(&mut fields, &|offset| lines.position(back(offset)), &back);
    let mut diagnostics = Vec::new();
    if let Some(first) = controls.first() {
        let message = format!("read without {} control characters; take them out", controls.len());
        diagnostics.push(step(Code::MendedControl, lines.position(first.start), message));
    }
    for (key, at) in &attempt.touched {
        let message = format!("read the value of `{key}` as text; put it in quotes");
        diagnostics.push(step(attempt.code, lines.position(before_edits(*at, controls)), message));
    }
    let edit = match (controls, attempt.edits.as_slice()) {
        ([], [edit]) | ([edit], []) => edit.clone(),
        _ => {
            let clean = patch(original.text, controls);
            difference(original.text, &patch(&clean, &attempt.edits))
        }
    };
    if let Some(first) = diagnostics.first_mut() {
        first.fix = Some(edit);
    }
    Mended { rung: attempt.rung, fields, diagnostics }
}

fn step(code: Code, at: Position, message: String) -> Diagnostic {
    Diagnostic::new(code, Severity::Warning, at.line, at.column, message)
}

/// Gives every value of a mended text its place in the file.
fn move_fields(fields: &mut Fields<'_>, place: &dyn Fn(usize) -> Position, back: &dyn Fn(usize) -> usize) {
    for entry in fields.entries_mut() {
        entry.key_start = place(entry.key_start.offset as usize);
        move_node(&mut entry.value, place, back);
    }
}

fn move_node(node: &mut Node<'_>, place: &dyn Fn(usize) -> Position, back: &dyn Fn(usize) -> usize) {
    let (start, end) = node.place_mut();
    *start = place(start.offset as usize);
    *end = (back(*end as usize) as u32).max(start.offset);
    match node.content_mut() {
        Content::Scalar(..) => {}
        Content::List(items) => items.iter_mut().for_each(|item| move_node(item, place, back)),
        Content::Map(fields) => move_fields(fields, place, back),
    }
}

/// The last rung: the lines `name:` and `description:` as text, whatever the rest looks like.
fn scan(original: Source<'_>, clean: Source<'_>, controls: &[Edit]) -> Option<Mended> {
    let positions = Lines::new(original.text);
    let lines = clean.lines();
    let mut entries: Vec<Entry<'static>> = Vec::new();
    for (index, (at, line)) in lines.iter().enumerate() {
        let Some(found) = key_line(line).filter(|found| matches!(found.key, "name" | "description")) else {
            continue;
        };
        if entries.iter().any(|entry| entry.key == found.key) {
            continue;
        }
        let first = if is_block_header(found.value) { "" } else { unquoted(found.value) };
        let more = lines.iter().skip(index + 1).map_while(|(_, line)| continuation(line));
        let parts: Vec<&str> = std::iter::once(first).chain(more).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            continue;
        }
        let place = |offset: usize| positions.position(before_edits(offset, controls));
        let (start, end) = (at + found.value_at, at + found.value_at + found.value.len());
        let content = Content::Scalar(Cow::Owned(parts.join(" ")), Type::Text);
        let value = Node::new(content, place(start), place(end).offset);
        entries.push(Entry { key: Cow::Owned(found.key.to_owned()), key_start: place(*at), value });
    }
    let diagnostics = entries.iter().map(|entry| {
        let message = format!("read `{}` from its own line, since the front matter is no YAML", entry.key);
        step(Code::MendedScan, entry.value.position(), message)
    });
    let diagnostics: Vec<Diagnostic> = diagnostics.collect();
    let fields = Fields::from_entries(entries);
    (!fields.is_empty()).then_some(Mended { rung: Rung::Scan, fields, diagnostics })
}

/// The value without the quotes around it, if it has them.
fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}
