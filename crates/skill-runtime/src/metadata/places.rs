//! Where a field is read from: the top of the file and the sections that may hold it.

use haversack_skills::diagnostic::Severity;
use haversack_skills::node::{Fields, Node, Position};

use crate::metadata::finding::{Finding, FindingCode};
use crate::metadata::read::{Field, Notes};
use crate::metadata::rules::{Group, NEIGHBOURS, SECTIONS, is_known};

/// The mappings of one front matter that may hold fields of the modes.
pub(crate) struct Places<'f, 'a> {
    top: &'f Fields<'a>,
    sections: Vec<(&'static str, &'f Fields<'a>)>,
}

impl<'f, 'a> Places<'f, 'a> {
    pub(crate) fn of(top: &'f Fields<'a>) -> Self {
        let sections = SECTIONS.iter().filter_map(|key| Some((*key, top.get(key)?.as_map()?)));
        Self { top, sections: sections.collect() }
    }

    /// The mappings in the order in which fields of `group` are looked for.
    fn ranked(&self, group: Group) -> Vec<(&'static str, &'f Fields<'a>)> {
        let mut ranked = self.sections.clone();
        ranked.insert(if group == Group::Placement { 0 } else { ranked.len() }, ("", self.top));
        ranked
    }

    /// The value of a field: the first that is there and not empty.
    pub(crate) fn find(&self, group: Group, key: &str) -> Option<&'f Node<'a>> {
        self.ranked(group).into_iter().find_map(|(_, fields)| present(fields, key))
    }

    /// The same, ready to be read; a later place that says something else is reported.
    pub(crate) fn field(&self, group: Group, key: &'static str, notes: &mut Notes) -> Option<Field<'f, 'a>> {
        let ranked = self.ranked(group);
        let mut there = ranked.iter().filter_map(|(place, fields)| Some((*place, present(fields, key)?)));
        let (_, node) = there.next()?;
        for (place, other) in there.filter(|(_, other)| other.to_json() != node.to_json()) {
            let place = if place.is_empty() { "at the top".to_owned() } else { format!("under `{place}`") };
            let line = node.position().line;
            let message = format!("the value {place} is not used: the one in line {line} comes first");
            notes.push(Finding::new(
                FindingCode::ShadowedField,
                Severity::Warning,
                key,
                other.position(),
                message,
            ));
        }
        Some(Field::new(key.to_owned(), node, false))
    }

    /// Reports the fields that nobody reads. Under `metadata` any key may stand for other programs, so there only a
    /// hint is given.
    pub(crate) fn note_unknown(&self, notes: &mut Notes) {
        let known = |key: &str| is_known(Group::Placement, key) || is_known(Group::Section, key);
        let mut unknown = |path: String, at: Position, severity| {
            let message = "this field is not part of the format, and nothing reads it";
            notes.push(Finding::new(FindingCode::UnknownField, severity, path, at, message));
        };
        for (key, at) in self.top.keys().filter(|(key, _)| !known(key) && !NEIGHBOURS.contains(key)) {
            unknown(key.to_owned(), at, Severity::Hint);
        }
        for (section, fields) in &self.sections {
            let severity = if *section == "metadata" { Severity::Hint } else { Severity::Warning };
            for (key, at) in fields.keys().filter(|(key, _)| !known(key)) {
                unknown(format!("{section}.{key}"), at, severity);
            }
        }
    }
}

fn present<'f, 'a>(fields: &'f Fields<'a>, key: &str) -> Option<&'f Node<'a>> {
    fields
        .get(key)
        .filter(|node| !node.is_null() && node.as_text().is_none_or(|text| !text.trim().is_empty()))
}
