//! Shows how skills are read, found and disclosed: JSON on standard output, one subcommand a question.

use std::process::ExitCode;

use clap::Parser;
use haversack_examples::inspect_skills::disclose::{
    self, CatalogueArguments, LoadArguments, ResourceArguments, SearchArguments,
};
use haversack_examples::inspect_skills::lint::{self, LintArguments};
use haversack_examples::inspect_skills::parse::{self, ParseArguments};
use haversack_examples::inspect_skills::scan::{self, ScanArguments};
use haversack_examples::terminal::plain;

/// Reads SKILL.md files the way Haversack does and says what it sees.
#[derive(Debug, Parser)]
#[command(name = "inspect-skills")]
enum Command {
    /// Reads skill files given as JSON lines on standard input, one answer a line.
    Parse(ParseArguments),
    /// Finds skills; tells what was found, what was not taken, and why.
    Scan(ScanArguments),
    /// Renders the catalogue that a model would see (level 1).
    Catalogue(CatalogueArguments),
    /// Loads a page of a skill's body (level 2).
    Load(LoadArguments),
    /// Loads a page of a file that a skill brings along (level 3).
    Resource(ResourceArguments),
    /// Searches names, descriptions and headings.
    Search(SearchArguments),
    /// Lists every finding about every skill file; mends what is known to be mendable with --fix.
    Lint(LintArguments),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Parse(arguments) => parse::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Catalogue(arguments) => disclose::catalogue(&arguments),
        Command::Load(arguments) => disclose::load(&arguments),
        Command::Resource(arguments) => disclose::resource(&arguments),
        Command::Search(arguments) => disclose::search(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{}", plain(&format!("inspect-skills: {fault}")));
            ExitCode::FAILURE
        }
    }
}
