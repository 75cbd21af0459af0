//! The text of a skill, read for its author: what it says, and everything that is wrong with it.

use haversack_skills::diagnostic::{Code, Diagnostic, Severity};
use haversack_skills::document::{Document, ParseOptions};
use serde_json::{Map, Value, json};

use crate::metadata::{Metadata, Reading};
use crate::validate::{Context, Fault, validate};

/// A skill's text, read.
pub(super) struct SkillText {
    pub(super) reading: Option<Reading>,
    pub(super) description: String,
    pub(super) front_matter: Value,
    /// What is wrong with the front matter as such, with lines.
    pub(super) parse_errors: Vec<String>,
    /// What else its author should know.
    pub(super) warnings: Vec<String>,
}

impl SkillText {
    pub(super) fn read(text: &str) -> Self {
        let document = Document::parse(text.as_bytes(), &ParseOptions::new());
        let say = |found: &Diagnostic| {
            format!(
                "line {}, column {}: {} [{}]",
                found.line,
                found.column,
                found.message,
                found.code.as_str()
            )
        };
        let (errors, others): (Vec<_>, Vec<_>) =
            document.diagnostics().iter().partition(|found| is_wrong(found));
        let mut parse_errors: Vec<String> = errors.into_iter().map(say).collect();
        let reading = document.fields().map(Metadata::read);
        if reading.is_none() && parse_errors.is_empty() {
            parse_errors.push("line 1, column 1: there is no front matter that could be read".to_owned());
        }
        let mut warnings: Vec<String> = others.into_iter().map(say).collect();
        let findings =
            reading.iter().flat_map(|reading| &reading.findings).filter(|finding| !finding.is_error());
        warnings.extend(findings.map(ToString::to_string));
        Self {
            description: document.description().unwrap_or_default().to_owned(),
            front_matter: document.fields().map_or(Value::Null, |fields| Value::Object(fields.to_json())),
            reading,
            parse_errors,
            warnings,
        }
    }

    pub(super) fn metadata(&self) -> Option<&Metadata> {
        self.reading.as_ref().map(|reading| &reading.metadata)
    }

    pub(super) fn tree_id(&self) -> Option<&str> {
        self.metadata()?.tree_id.as_deref().filter(|id| !id.is_empty())
    }

    pub(super) fn faults(&self, context: &Context<'_>) -> Vec<Fault> {
        self.reading.as_ref().map(|reading| validate(reading, context)).unwrap_or_default()
    }

    /// Adds `metadata` and `warnings`.
    pub(super) fn describe(&self, out: &mut Map<String, Value>) {
        if let Some(metadata) = self.metadata() {
            out.insert("metadata".to_owned(), metadata.to_json());
        }
        if !self.warnings.is_empty() {
            out.insert("warnings".to_owned(), json!(self.warnings));
        }
    }

    /// The faults as `validateError`, the first, and `validateErrors`, all.
    pub(super) fn tell_faults(&self, faults: &[Fault], out: &mut Map<String, Value>) {
        let mode = self.metadata().map(|metadata| metadata.mode.to_string()).unwrap_or_default();
        let told: Vec<Value> = faults
            .iter()
            .map(|fault| {
                let mut told =
                    json!({"code": fault.code.as_str(), "message": fault.message, "resolvedMode": mode});
                if let (Some(field), Some(told)) = (&fault.field, told.as_object_mut()) {
                    told.insert("field".to_owned(), field.as_str().into());
                }
                told
            })
            .collect();
        out.insert("validateError".to_owned(), told.first().cloned().unwrap_or_default());
        out.insert("validateErrors".to_owned(), told.into());
    }
}

/// Whether a text is not saved for this: it breaks the format, or says something twice, of which a reader would take
/// one and an author may mean the other.
fn is_wrong(found: &Diagnostic) -> bool {
    found.code == Code::DuplicateKey || found.severity == Severity::Error && !is_about_names(found.code)
}

/// Skills of the tree go by their `tree_id`; rules for names are for skills that a model finds by name.
fn is_about_names(code: Code) -> bool {
    let word = code.as_str();
    word.starts_with("name-") || word.starts_with("description-")
}
