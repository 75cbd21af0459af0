//! What is wrong with a skill file, by its reading and by the open Agent Skills specification.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::{Document, ParseOptions};
use crate::name::{self, MAX_NAME_CHARS};
use crate::node::{Fields, Position};

/// Fields that the open specification names; hosts may ignore all others.
const KNOWN_FIELDS: [&str; 6] =
    ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];
/// Longest description, in characters (Agent Skills specification).
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Longest `compatibility`, in characters (Agent Skills specification).
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// Lines of a body that the specification advises at most; more belongs into files beside it.
const MAX_BODY_LINES: usize = 500;

/// All findings about a document: those of its reading first, then what the open specification asks for.
///
/// `folder` is the name of the folder that the file lies in, which should be the skill's; without it that is not judged.
/// Rules of the specification that a host may take lightly are warnings, unknown fields and a long body hints.
///
/// ```
/// use haversack_skills::document::{Document, ParseOptions};
/// use haversack_skills::lint::check;
///
/// let file = b"---\nname: PDF\ndescription: Fills forms\n---\n";
/// let document = Document::parse(file, &ParseOptions::new());
/// let found = check(&document, Some("pdf"));
/// let words: Vec<_> = found.iter().map(|found| found.code.as_str()).collect();
/// assert_eq!(words, ["name-not-lowercase", "name-not-folder"]);
/// ```
pub fn check(document: &Document<'_>, folder: Option<&str>) -> Vec<Diagnostic> {
    let mut found = document.diagnostics().to_vec();
    if let Some(fields) = document.fields() {
        check_name(fields, folder, &mut found);
        check_description(fields, &mut found);
        check_compatibility(fields, &mut found);
        check_known(fields, &mut found);
    }
    check_body(document, &mut found);
    found
}

fn report(code: Code, severity: Severity, at: Position, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(code, severity, at.line, at.column, message)
}

/// Where a field's value stands; the first line of the front matter for one that is missing.
fn place(fields: &Fields<'_>, key: &str) -> Position {
    fields.get(key).map_or(Position::new(0, 1, 1), crate::node::Node::position)
}

fn check_name(fields: &Fields<'_>, folder: Option<&str>, found: &mut Vec<Diagnostic>) {
    let at = place(fields, "name");
    let Some(name) = fields.text("name") else {
        let (code, message) = if fields.get("name").is_some() {
            (Code::NameEmpty, "`name` must be text")
        } else {
            (Code::NameMissing, "`name` is missing; write the name of the folder")
        };
        found.push(report(code, Severity::Warning, at, message));
        return;
    };
    let name = name.trim();
    for code in name::faults(name) {
        found.push(report(code, Severity::Warning, at, name_message(code, name)));
    }
    let differs = |folder: &&str| name::normal(folder) != name::normal(name) && !name.is_empty();
    if let Some(folder) = folder.filter(differs) {
        let message = format!("`name` is \"{name}\" and the folder \"{folder}\"; the two should be the same");
        found.push(report(Code::NameNotFolder, Severity::Warning, at, message));
    }
}

fn name_message(code: Code, name: &str) -> String {
    let rule = match code {
        Code::NameEmpty => return "`name` is blank; write the name of the folder".to_owned(),
        Code::NameTooLong => return format!("`name` has more than {MAX_NAME_CHARS} characters"),
        Code::NameNotLowercase => "has capital letters",
        Code::NameEdgeHyphen => "begins or ends with a hyphen",
        Code::NameDoubleHyphen => "has two hyphens in a row",
        _ => "has characters other than letters, digits and hyphens",
    };
    match name::portable(name).filter(|better| better != name) {
        Some(better) => format!("`name` {rule}; \"{better}\" would be right"),
        None => format!("`name` {rule}"),
    }
}

fn check_description(fields: &Fields<'_>, found: &mut Vec<Diagnostic>) {
    let at = place(fields, "description");
    match (fields.text("description"), fields.get("description").is_some()) {
        (Some(text), _) if !text.trim().is_empty() => {
            let length = text.chars().count();
            if length > MAX_DESCRIPTION_CHARS {
                let message =
                    format!("`description` has {length} characters, more than {MAX_DESCRIPTION_CHARS}");
                found.push(report(Code::DescriptionTooLong, Severity::Warning, at, message));
            }
        }
        (_, true) => {
            let message = "`description` must be text that says what the skill does and when to use it";
            found.push(report(Code::DescriptionEmpty, Severity::Error, at, message));
        }
        (_, false) => {
            let message = "`description` is missing; say what the skill does and when to use it";
            found.push(report(Code::DescriptionMissing, Severity::Error, at, message));
        }
    }
}

fn check_compatibility(fields: &Fields<'_>, found: &mut Vec<Diagnostic>) {
    let Some(node) = fields.get("compatibility") else { return };
    let at = node.position();
    match node.as_text() {
        None => {
            let message = "`compatibility` must be text";
            found.push(report(Code::CompatibilityNotText, Severity::Warning, at, message));
        }
        Some(text) if text.chars().count() > MAX_COMPATIBILITY_CHARS => {
            let message = format!("`compatibility` has more than {MAX_COMPATIBILITY_CHARS} characters");
            found.push(report(Code::CompatibilityTooLong, Severity::Warning, at, message));
        }
        Some(_) => {}
    }
}

fn check_known(fields: &Fields<'_>, found: &mut Vec<Diagnostic>) {
    for (key, at) in fields.keys().filter(|(key, _)| !KNOWN_FIELDS.contains(key)) {
        let message = format!("`{key}` is no field of the open specification; other hosts may ignore it");
        found.push(report(Code::UnknownField, Severity::Hint, at, message));
    }
}

fn check_body(document: &Document<'_>, found: &mut Vec<Diagnostic>) {
    if document.front_matter_range().is_none() {
        return;
    }
    let lines = document.body().lines().count();
    if lines > MAX_BODY_LINES {
        let message =
            format!("the body has {lines} lines; over {MAX_BODY_LINES}, details belong into files beside it");
        found.push(report(Code::BodyTooLong, Severity::Hint, Position::new(0, 1, 1), message));
    }
}

/// One file that was linted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Linted {
    /// The file.
    pub file: PathBuf,
    /// What was found, or why the file could not be read.
    pub outcome: Result<Vec<Diagnostic>, std::io::Error>,
}

/// Lints files, such as those of a scan, in their order. A file that cannot be read does not stop the others.
pub fn lint(files: impl IntoIterator<Item = PathBuf>, options: &ParseOptions) -> Vec<Linted> {
    let linted = files.into_iter().map(|file| {
        let outcome = read_limited(&file, options).map(|bytes| {
            let document = Document::parse(&bytes, options);
            check(&document, folder_name(&file).as_deref())
        });
        Linted { file, outcome }
    });
    linted.collect()
}

/// Reads a file, and at most one byte more than the limit, so that a huge one is refused for its size and not loaded.
pub(crate) fn read_limited(file: &Path, options: &ParseOptions) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(options.max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn folder_name(file: &Path) -> Option<String> {
    Some(file.parent()?.file_name()?.to_str()?.to_owned())
}
