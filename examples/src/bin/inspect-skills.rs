//! Shows how skills are read, found and disclosed: JSON on standard output, one subcommand a question.

use std::process::ExitCode;

use clap::Parser;
use haversack_examples::inspect_skills::parse::{self, ParseArguments};

/// Reads SKILL.md files the way Haversack does and says what it sees.
#[derive(Debug, Parser)]
#[command(name = "inspect-skills")]
enum Command {
    /// Reads skill files given as JSON lines on standard input, one answer a line.
    Parse(ParseArguments),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Parse(arguments) => parse::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("inspect-skills: {fault}");
            ExitCode::FAILURE
        }
    }
}
