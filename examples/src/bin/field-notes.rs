//! The `field-notes` MCP server on standard input and output; see `examples/workspace/.mcp.json`.

use std::path::PathBuf;

use clap::Parser;

/// Stores notes in a JSON file and finds them again; speaks MCP on standard input and output.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The file that holds the notes; made with the first note.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    haversack_examples::field_notes::serve(Arguments::parse().file).await
}
