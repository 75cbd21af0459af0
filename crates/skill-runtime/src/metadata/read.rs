//! Typed reading of single values: each way to go wrong is a finding, and none lets more through than was written.

use std::collections::BTreeMap;

use haversack_skills::diagnostic::Severity;
use haversack_skills::node::{Fields, Node, Position, Type};
use serde_json::Value;

use crate::metadata::finding::{Finding, FindingCode};
use crate::metadata::rules::{Group, is_known};
use crate::metadata::words::Word;

/// Findings that are kept of one file; later ones are only counted. A file with more is not mended line by line.
pub const MAX_FINDINGS: usize = 200;

/// The findings of a reading, bounded.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) kept: Vec<Finding>,
    pub(crate) omitted: usize,
}

impl Notes {
    pub(crate) fn push(&mut self, finding: Finding) {
        // An error that is only counted could not be told from a clean file by those who look for it.
        if self.kept.len() < MAX_FINDINGS || finding.is_error() && !self.kept.iter().any(Finding::is_error) {
            self.kept.push(finding);
        } else {
            self.omitted += 1;
        }
    }
}

/// One value, with the path that names it.
pub(crate) struct Field<'f, 'a> {
    path: String,
    node: &'f Node<'a>,
    /// Whether a mistake here keeps the skill from running.
    strict: bool,
}

impl<'f, 'a> Field<'f, 'a> {
    pub(crate) fn new(path: String, node: &'f Node<'a>, strict: bool) -> Self {
        Self { path, node, strict }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn position(&self) -> Position {
        self.node.position()
    }

    pub(crate) fn node(&self) -> &'f Node<'a> {
        self.node
    }

    /// Whether nothing is written: null, or a text of blanks.
    pub(crate) fn is_blank(&self) -> bool {
        self.node.is_null() || self.node.as_text().is_some_and(|text| text.trim().is_empty())
    }

    pub(crate) fn json(&self) -> Value {
        self.node.to_json()
    }

    pub(crate) fn strictly(mut self) -> Self {
        self.strict = true;
        self
    }

    pub(crate) fn note(&self, notes: &mut Notes, code: FindingCode, message: impl Into<String>) {
        let severity = if self.strict { Severity::Error } else { Severity::Warning };
        notes.push(Finding::new(code, severity, &*self.path, self.node.position(), message));
    }

    fn wrong(&self, notes: &mut Notes, expected: &str) {
        let found = match (self.node.as_list(), self.node.as_map(), self.node.scalar_type()) {
            (Some(_), _, _) => "a list".to_owned(),
            (_, Some(_), _) => "a mapping".to_owned(),
            (_, _, Some(Type::Null)) => "nothing".to_owned(),
            (_, _, Some(Type::Text)) => "a text".to_owned(),
            _ => format!("`{}`", self.node.as_written().unwrap_or_default()),
        };
        self.note(notes, FindingCode::WrongType, format!("expected {expected}, found {found}"));
    }

    /// Text, as written; numbers and booleans are text in places where text belongs.
    pub(crate) fn text(&self, notes: &mut Notes) -> Option<String> {
        match self.node.as_written() {
            Some(_) if self.node.is_null() => None,
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong(notes, "a text");
                None
            }
        }
    }

    /// A list of texts that are not blank, or one text with commas.
    pub(crate) fn list(&self, notes: &mut Notes) -> Vec<String> {
        if let Some(text) = self.node.as_text() {
            return text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned).collect();
        }
        if self.node.is_null() {
            return Vec::new();
        }
        self.items(notes, "a list of texts, or one text with commas").unwrap_or_default()
    }

    /// A list of texts and nothing else; `None` where it is none.
    pub(crate) fn strict_list(&self, notes: &mut Notes) -> Option<Vec<String>> {
        self.items(notes, "a list of texts")
    }

    fn items(&self, notes: &mut Notes, expected: &str) -> Option<Vec<String>> {
        let Some(items) = self.node.as_list() else {
            self.wrong(notes, expected);
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let field = Field::new(format!("{}[{index}]", self.path), item, self.strict);
            match item.scalar_type() {
                Some(Type::Text) => {
                    let text = item.as_written().unwrap_or_default();
                    if !text.trim().is_empty() {
                        texts.push(text.to_owned());
                    }
                }
                _ => field.wrong(notes, "a text"),
            }
        }
        Some(texts)
    }

    /// A list of words from a set; what is not in the set is dropped, with a finding.
    pub(crate) fn words<W: Word>(&self, notes: &mut Notes) -> Vec<W> {
        let mut words = Vec::new();
        for text in self.list(notes) {
            match W::from_word(text.trim()) {
                Some(word) if words.contains(&word) => {}
                Some(word) => words.push(word),
                None => self.unknown_word(notes, &text, W::WORDS, "it is left out"),
            }
        }
        words
    }

    /// One word of a set; anything else is the strictest of them.
    pub(crate) fn word<W: Word>(&self, notes: &mut Notes) -> W {
        let Some(text) = self.node.as_text() else {
            self.wrong(notes, &format!("one of {}", W::WORDS.join(", ")));
            return W::strictest();
        };
        W::from_word(text.trim()).unwrap_or_else(|| {
            let strictest = W::strictest();
            self.unknown_word(notes, text, W::WORDS, &format!("it counts as `{}`", strictest.word()));
            strictest
        })
    }

    fn unknown_word(&self, notes: &mut Notes, text: &str, words: &[&str], instead: &str) {
        let shown: String = text.chars().take(60).collect();
        let message = format!("`{shown}` is none of {}; {instead}", words.join(", "));
        self.note(notes, FindingCode::UnknownWord, message);
    }

    /// `true` or `false`; anything else is `true` where that is strict, since flags of agents take rights away.
    pub(crate) fn flag(&self, notes: &mut Notes) -> bool {
        if let Some(Type::Bool(value)) = self.node.scalar_type() {
            return value;
        }
        if self.node.is_null() && !self.strict {
            return false;
        }
        self.wrong(notes, "`true` or `false` without quotes");
        self.strict
    }

    /// A whole number, also below 0.
    pub(crate) fn integer(&self, notes: &mut Notes) -> Option<i64> {
        match self.node.scalar_type() {
            Some(Type::Integer(number)) => Some(number),
            Some(Type::Null) if !self.strict => None,
            Some(Type::Float(_)) => {
                self.note(notes, FindingCode::OutOfRange, "expected a whole number");
                None
            }
            _ => {
                self.wrong(notes, "a whole number without quotes");
                None
            }
        }
    }

    /// A whole number from 0.
    pub(crate) fn whole(&self, notes: &mut Notes) -> Option<u64> {
        let number = self.integer(notes)?;
        let whole = u64::try_from(number).ok();
        if whole.is_none() {
            self.note(notes, FindingCode::OutOfRange, "expected a whole number from 0");
        }
        whole
    }

    /// A whole number that caps something: one that cannot be read is 0, which is none.
    pub(crate) fn cap(&self, notes: &mut Notes) -> u64 {
        self.whole(notes).unwrap_or(0)
    }

    /// A mapping from names to texts that are not blank.
    pub(crate) fn text_map(&self, notes: &mut Notes) -> BTreeMap<String, String> {
        let Some(fields) = self.node.as_map() else {
            self.wrong(notes, "a mapping");
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for (key, node) in fields.iter() {
            let field = Field::new(format!("{}.{key}", self.path), node, self.strict);
            if let Some(text) = field.text(notes).filter(|text| !text.trim().is_empty()) {
                texts.insert(key.to_owned(), text);
            }
        }
        texts
    }

    /// A mapping with any keys.
    pub(crate) fn free_mapping(&self, notes: &mut Notes) -> Option<Mapping<'f, 'a>> {
        let Some(fields) = self.node.as_map() else {
            if !self.node.is_null() {
                self.wrong(notes, "a mapping");
            }
            return None;
        };
        Some(Mapping { path: self.path.clone(), fields, strict: self.strict, at: self.node.position() })
    }

    /// A mapping with the fields of a group; what the group does not have is reported.
    pub(crate) fn mapping(&self, group: Group, notes: &mut Notes) -> Option<Mapping<'f, 'a>> {
        let Some(fields) = self.node.as_map() else {
            self.wrong(notes, "a mapping");
            return None;
        };
        for (key, at) in fields.keys().filter(|(key, _)| !is_known(group, key)) {
            let severity = if self.strict { Severity::Error } else { Severity::Warning };
            let path = format!("{}.{key}", self.path);
            let message = "this field is not part of the format, and nothing reads it";
            notes.push(Finding::new(FindingCode::UnknownField, severity, path, at, message));
        }
        Some(Mapping { path: self.path.clone(), fields, strict: self.strict, at: self.node.position() })
    }

    /// A list of such mappings, at most `limit`; other entries are left out with a finding.
    pub(crate) fn mappings(&self, group: Group, limit: usize, notes: &mut Notes) -> Vec<Mapping<'f, 'a>> {
        let Some(items) = self.node.as_list() else {
            self.wrong(notes, "a list of mappings");
            return Vec::new();
        };
        if items.len() > limit {
            let message = format!("{} entries are more than the {limit} that are read", items.len());
            notes.push(Finding::new(
                FindingCode::TooMany,
                Severity::Error,
                &*self.path,
                self.position(),
                message,
            ));
        }
        let fields = items.iter().take(limit).enumerate();
        let fields = fields.map(|(at, item)| Field::new(format!("{}[{at}]", self.path), item, self.strict));
        fields.filter_map(|field| field.mapping(group, notes)).collect()
    }
}

/// The fields of one mapping below the top.
pub(crate) struct Mapping<'f, 'a> {
    path: String,
    fields: &'f Fields<'a>,
    strict: bool,
    at: Position,
}

impl<'f, 'a> Mapping<'f, 'a> {
    /// The value of `key`, if it is written, also when it is empty.
    pub(crate) fn field(&self, key: &str) -> Option<Field<'f, 'a>> {
        let node = self.fields.get(key)?;
        Some(Field::new(format!("{}.{key}", self.path), node, self.strict))
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Text, or empty.
    pub(crate) fn text(&self, key: &str, notes: &mut Notes) -> String {
        self.field(key).and_then(|field| field.text(notes)).unwrap_or_default()
    }

    /// Text that is not empty.
    pub(crate) fn some_text(&self, key: &str, notes: &mut Notes) -> Option<String> {
        self.field(key).and_then(|field| field.text(notes)).filter(|text| !text.trim().is_empty())
    }

    /// Text without which the mapping means nothing.
    pub(crate) fn required(&self, key: &str, notes: &mut Notes) -> Option<String> {
        let text = self.some_text(key, notes);
        if text.is_none() {
            let message = format!("`{key}` is missing or empty, so the entry is left out");
            notes.push(Finding::new(FindingCode::Missing, Severity::Warning, &*self.path, self.at, message));
        }
        text
    }

    /// A list of texts, or empty.
    pub(crate) fn list(&self, key: &str, notes: &mut Notes) -> Vec<String> {
        self.field(key).map(|field| field.list(notes)).unwrap_or_default()
    }

    /// Every key with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'f str, &'f Node<'a>)> {
        self.fields.iter()
    }
}
