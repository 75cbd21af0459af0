//! `lint`: every finding about every skill file of a folder, and with `--fix` the edits that are known to be right.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use haversack_skills::Inspection;
use haversack_skills::diagnostic::{Diagnostic, Severity};
use haversack_skills::document::ParseOptions;
use haversack_skills::lint::Linted;
use haversack_skills::write::{Fixed, fix};
use serde_json::{Map, Value, json};

use crate::inspect_skills::parse::diagnostic;
use crate::inspect_skills::place::Place;

/// The arguments of `lint`.
#[derive(Debug, Args)]
pub struct LintArguments {
    #[command(flatten)]
    place: Place,
    /// Makes the edits that turn a file strictly right, and reads it again.
    #[arg(long)]
    fix: bool,
}

/// Lints.
///
/// # Errors
///
/// When the call is at fault or standard output cannot be written. Findings are no fault.
pub fn run(arguments: &LintArguments) -> Result<(), Box<dyn Error>> {
    let registry = arguments.place.scan()?;
    let options = ParseOptions::new();
    let mut inspection = registry.lint(&options);
    let mut fixed = BTreeMap::new();
    if arguments.fix {
        let files = inspection.files.iter().map(|linted| &linted.file);
        fixed.extend(files.map(|file| (file.clone(), mend(file, &options))));
        inspection = arguments.place.scan()?.lint(&options);
    }
    arguments.place.answer(&describe(&inspection, &fixed), &text(&inspection.files, &fixed)?)
}

fn mend(file: &Path, options: &ParseOptions) -> String {
    match fix(file, options) {
        Ok(Fixed::Right) => "right".to_owned(),
        Ok(Fixed::Mended(_)) => "mended".to_owned(),
        Ok(_) => "unknown".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn describe(inspection: &Inspection, fixed: &BTreeMap<PathBuf, String>) -> Value {
    let linted = &inspection.files;
    let mut counts = Map::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Hint] {
        let of = |linted: &Linted| findings(linted).iter().filter(|found| found.severity == severity).count();
        counts.insert(format!("{severity}s"), linted.iter().map(of).sum::<usize>().into());
    }
    let files = linted.iter().map(|linted| {
        json!({
            "file": linted.file,
            "diagnostics": findings(linted).iter().map(diagnostic).collect::<Vec<_>>(),
            "unreadable": linted.outcome.as_ref().err().map(ToString::to_string),
            "fix": fixed.get(&linted.file),
        })
    });
    let skipped = inspection.skipped.iter().map(|skipped| {
        json!({ "path": skipped.path, "reason": skipped.reason.as_str(), "message": skipped.reason.to_string() })
    });
    json!({ "files": files.collect::<Vec<_>>(), "skipped": skipped.collect::<Vec<_>>(), "counts": counts })
}

fn findings(linted: &Linted) -> &[Diagnostic] {
    linted.outcome.as_deref().unwrap_or_default()
}

fn text(linted: &[Linted], fixed: &BTreeMap<PathBuf, String>) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for linted in linted {
        let file = linted.file.display();
        if let Some(outcome) = fixed.get(&linted.file).filter(|outcome| *outcome != "right") {
            writeln!(text, "{file}: fix: {outcome}")?;
        }
        match &linted.outcome {
            Ok(found) => {
                for found in found {
                    writeln!(text, "{file}:{found}")?;
                }
            }
            Err(error) => writeln!(text, "{file}: cannot be read: {error}")?,
        }
    }
    Ok(text)
}
