//! `haversack-skill-server`: folders of skills as an MCP server, and what goes with it on the command line.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
