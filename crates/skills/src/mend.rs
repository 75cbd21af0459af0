//! The lenient ladder: what a forgiving reader still gets from a front matter that is no YAML.
//!
//! Four rungs, each tried only where the one before did not help: control characters dropped; risky plain values of
//! top-level keys put in quotes; broken bracketed and quoted values put in quotes as well; and last the lines `name:`
//! and `description:` read as they stand. What a rung changes is an edit of the file.

pub(crate) mod patch;
pub(crate) mod source;
pub(crate) mod quote;
pub(crate) mod scan;

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Edit, Severity};
use crate::fence::{Split, split};
use crate::lines::Lines;
use crate::mend::patch::{WayBack, difference, patch};
use crate::mend::quote::quote_values;
use crate::mend::scan::{repair, scan};
use crate::mend::source::Source;
use crate::node::{Content, Fields, Node, Position};
use crate::yaml::character::first_forbidden;
use crate::yaml::cursor::Limits;

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
    scanned(original, clean, &controls)
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

/// What a reading with `attempt` comes to: fields with positions of the file, and what was done as diagnostics.
fn finish(original: Source<'_>, controls: &[Edit], attempt: &Attempt, mut fields: Fields<'static>) -> Mended {
    let lines = Lines::new(original.text);
    let (fixed, clean) = (WayBack::new(&attempt.edits), WayBack::new(controls));
    let back = |offset: usize| clean.before(fixed.before(offset));
    move_fields(&mut fields, &|offset| lines.position(back(offset)), &back);
    let mut diagnostics = Vec::new();
    if let Some(first) = controls.first() {
        let message = format!("read without {} control characters; take them out", controls.len());
        diagnostics.push(step(Code::MendedControl, lines.position(first.start), message));
    }
    for (key, at) in &attempt.touched {
        let message = format!("read the value of `{key}` as text; put it in quotes");
        diagnostics.push(step(attempt.code, lines.position(clean.before(*at)), message));
    }
    let clean_text = patch(original.text, controls);
    let edit = offer(original, &patch(&clean_text, &attempt.edits), controls, &attempt.edits);
    if let Some(first) = diagnostics.first_mut() {
        first.fix = edit;
    }
    Mended { rung: attempt.rung, fields, diagnostics }
}

/// The edit that makes `fixed` of a file, unless it would move a fence: dropping a control character can make one.
fn offer(original: Source<'_>, fixed: &str, controls: &[Edit], edits: &[Edit]) -> Option<Edit> {
    let behind = original.text.len() - original.front.1;
    let end = fixed.len().checked_sub(behind)?;
    match split(fixed) {
        Split::Fenced { front, .. } if front == (original.front.0..end) => {}
        _ => return None,
    }
    Some(match (controls, edits) {
        ([], [edit]) | ([edit], []) => edit.clone(),
        _ => difference(original.text, fixed),
    })
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

/// What the last rung comes to: `name` and `description`, and the edit that saves the file from it, if one is found.
fn scanned(original: Source<'_>, clean: Source<'_>, controls: &[Edit]) -> Option<Mended> {
    let lines = Lines::new(original.text);
    let mut fields = scan(clean);
    if fields.is_empty() {
        return None;
    }
    let edit = repair(clean, &fields).and_then(|fixed| offer(original, &fixed, &[], &[]));
    let way = WayBack::new(controls);
    let back = |offset: usize| way.before(offset);
    move_fields(&mut fields, &|offset| lines.position(back(offset)), &back);
    let mut diagnostics: Vec<Diagnostic> = fields
        .iter()
        .map(|(key, value)| {
            let message = format!("read `{key}` from its own lines, since the front matter is no YAML");
            step(Code::MendedScan, value.position(), message)
        })
        .collect();
    if let Some(first) = diagnostics.first_mut() {
        first.fix = edit;
    }
    Some(Mended { rung: Rung::Scan, fields, diagnostics })
}
