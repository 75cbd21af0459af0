//! Connects to an MCP server the way Haversack does and says what it sees: one JSON object on standard output.

use std::process::ExitCode;

use clap::Parser;
use haversack_examples::inspect_mcp::{self, Arguments};
use haversack_examples::terminal::plain;

#[tokio::main]
async fn main() -> ExitCode {
    let report = match inspect_mcp::run(Arguments::parse()).await {
        Ok(report) => report,
        Err(fault) => {
            eprintln!("{}", plain(&format!("inspect-mcp: {fault}")));
            return ExitCode::from(2);
        }
    };
    println!("{report:#}");
    if report["ok"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
