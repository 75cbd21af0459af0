//! The first run: a real agent with skills, a server and a model, on a machine with only Rust. See the README.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use haversack::mcp::environment::Environment;
use haversack_examples::quickstart::{self, Endpoint, Options};
use haversack_examples::terminal::{Terminal, asked_to_stop, plain};

/// Finds skills, starts an MCP server, streams from a model, asks before each call, and finishes the task.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// What to do [default: a field note in the example workspace]
    task: Option<String>,
    /// The project to work in [default: examples/workspace]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// An OpenAI-compatible server, for example http://127.0.0.1:8080/v1 [default: the rehearsal]
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// The model's name on that server
    #[arg(long, value_name = "NAME", requires = "base_url")]
    model: Option<String>,
    /// The name of the environment variable that holds the key for that server
    #[arg(long, value_name = "VAR", requires = "base_url")]
    api_key_env: Option<String>,
    /// Answer every question with yes
    #[arg(long)]
    yes: bool,
    /// Save the session at the end
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Go on with a saved session, also from a pause at an approval; it is saved there again
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Keep the notes of the field-notes server in this file [default: a temporary one]
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let terminal = Terminal::new(arguments.yes);
    let result = run(arguments, terminal).await;
    if let Err(line) = &result {
        // An error quotes what a server said.
        eprintln!("quickstart: {}", plain(line));
    }
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(arguments: Arguments, terminal: Terminal) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let notes = arguments.notes.unwrap_or_else(|| temporary.path().join("field-notes.json"));
    let notes = std::path::absolute(&notes).map_err(|e| format!("{}: {e}", notes.display()))?;
    let server = quickstart::field_notes_program(&terminal);
    let mut options = Options::new(arguments.workspace.unwrap_or_else(example_workspace));
    options.environment = std::env::vars_os()
        .chain([("FIELD_NOTES_SERVER".into(), server.into()), ("FIELD_NOTES_FILE".into(), notes.into())])
        .collect::<Environment>();
    options.task = arguments.task;
    options.pace = Duration::from_millis(15);
    options.save = arguments.save;
    options.resume = arguments.resume;
    if let (Some(base_url), Some(model)) = (arguments.base_url, arguments.model) {
        let mut endpoint = Endpoint::new(base_url, model);
        if let Some(name) = arguments.api_key_env {
            let key = std::env::var(&name).map_err(|e| format!("the key in ${name} cannot be read: {e}"))?;
            endpoint.key = Some(key.into());
        }
        options.endpoint = Some(endpoint);
    }
    quickstart::run(options, terminal, asked_to_stop()).await.map(drop)
}

/// The workspace of this repository, from wherever in it the program is started.
fn example_workspace() -> PathBuf {
    let here = Path::new("examples/workspace");
    if here.is_dir() { here.to_owned() } else { Path::new(env!("CARGO_MANIFEST_DIR")).join("workspace") }
}
