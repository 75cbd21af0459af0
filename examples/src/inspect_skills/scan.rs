//! `scan`: what is found, what is not taken, and why.

use std::error::Error;
use std::fmt::Write as _;

use clap::Args;
use haversack_skills::document::{Document, ParseOptions};
use haversack_skills::lint::check;
use haversack_skills::{Registry, Skill};
use serde_json::{Value, json};

use crate::inspect_skills::parse::diagnostic;
use crate::inspect_skills::place::Place;

/// The arguments of `scan`.
#[derive(Debug, Args)]
pub struct ScanArguments {
    #[command(flatten)]
    place: Place,
}

/// Scans and tells.
///
/// # Errors
///
/// When the call is at fault or standard output cannot be written.
pub fn run(arguments: &ScanArguments) -> Result<(), Box<dyn Error>> {
    let registry = arguments.place.scan()?;
    arguments.place.answer(&describe(&registry), &text(&registry)?)
}

fn describe(registry: &Registry) -> Value {
    let skills =
        |skills: &[std::sync::Arc<Skill>]| skills.iter().map(|one| skill(registry, one)).collect::<Vec<_>>();
    let shadowed = registry.shadowed().iter().map(|shadowed| {
        json!({
            "name": shadowed.skill.name(),
            "folder": shadowed.skill.folder(),
            "origin": registry.origin(&shadowed.skill).label,
            "by": shadowed.by.folder(),
            "reason": shadowed.reason.as_str(),
        })
    });
    let skipped = registry.skipped().map(|skipped| {
        let (reason, message) = (skipped.reason.as_str(), skipped.reason.to_string());
        json!({ "path": skipped.path, "reason": reason, "message": message })
    });
    let bounds = registry.bounds_hit().map(|hit| {
        json!({ "bound": hit.bound.as_str(), "limit": hit.limit, "root": hit.root, "at": hit.at, "message": hit.to_string() })
    });
    json!({
        "skills": skills(registry.skills()),
        "invalid": skills(registry.invalid()),
        "shadowed": shadowed.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "bounds_hit": bounds.collect::<Vec<_>>(),
    })
}

fn skill(registry: &Registry, skill: &Skill) -> Value {
    let origin = registry.origin(skill);
    // The registry keeps what decides; the file itself says the rest.
    let bytes = std::fs::read(skill.file()).unwrap_or_default();
    let document = Document::parse(&bytes, &ParseOptions::new());
    let folder = skill.folder().file_name().map(|name| name.to_string_lossy().into_owned());
    let checked = check(&document, folder.as_deref());
    let mut diagnostics: Vec<_> = Vec::new();
    for one in skill.problems().iter().chain(&checked).map(diagnostic) {
        if !diagnostics.contains(&one) {
            diagnostics.push(one);
        }
    }
    json!({
        "name": skill.name(),
        "description": skill.description(),
        "origin": origin.label,
        "source": origin.source.as_str(),
        "folder": skill.folder(),
        "valid": skill.is_valid(),
        "model_invocable": skill.is_for_model(),
        "user_invocable": skill.is_for_user(),
        "diagnostics": diagnostics,
    })
}

fn text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for skill in registry.skills() {
        let origin = registry.origin(skill);
        writeln!(text, "{} ({}): {}", skill.name(), origin.label, skill.description())?;
    }
    for skill in registry.invalid() {
        let why: Vec<_> = skill.problems().iter().map(ToString::to_string).collect();
        writeln!(text, "invalid: {}: {}", skill.file().display(), why.join("; "))?;
    }
    for shadowed in registry.shadowed() {
        let (loser, winner) = (shadowed.skill.folder().display(), shadowed.by.folder().display());
        writeln!(text, "shadowed: {loser} by {winner} ({})", shadowed.reason.as_str())?;
    }
    for skipped in registry.skipped() {
        writeln!(text, "skipped: {skipped}")?;
    }
    for hit in registry.bounds_hit() {
        writeln!(text, "bound: {hit}")?;
    }
    Ok(text)
}
