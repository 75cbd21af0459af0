//! A run is written down, and played again without its model and its tools, to the same bytes: for tests of a host, for
//! reports of a fault, for demonstrations without a network.
//!
//! ```sh
//! cargo run --bin record_replay -- record run.json "Measure at the pond. Then measure in the wood."
//! cargo run --bin record_replay -- replay run.json
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, Subcommand};
use futures_util::StreamExt as _;
use haversack::agent_core::tool_fn::tool_fn;
use haversack::http::ReqwestClient;
use haversack::prelude::*;
use haversack::providers::presets::openai_compatible;
use haversack_agent_core::testing::{Recorder, Recording, Replay};
use haversack_examples::quickstart::{load, save};
use haversack_examples::rehearsal::{MODEL, Rehearsal};
use haversack_examples::terminal::plain;
use serde::Deserialize;
use serde_json::json;

/// Records a run, or replays it and compares.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Run with a model over HTTP and a tool that never says the same twice; keep what they said
    Record { file: PathBuf, task: String },
    /// Run again from the recording alone, and compare the sessions byte for byte
    Replay { file: PathBuf },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Arguments::parse().step {
        Step::Record { file, task } => record(&file, &task).await,
        Step::Replay { file } => replay(&file).await,
    };
    match result {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("record_replay: {}", plain(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

type Line = Result<String, Box<dyn std::error::Error>>;

async fn record(file: &Path, task: &str) -> Line {
    let rehearsal = Rehearsal::start(Duration::ZERO).await?;
    let recorder = Recorder::new();
    let model = recorder.model(openai_compatible(ReqwestClient::new()?, rehearsal.base_url(), MODEL));
    let session = play(model, recorder.tool(thermometer()), task).await?;
    std::fs::write(file, serde_json::to_vec_pretty(&recorder.recording())?)?;
    save(&session_file(file), &session)?;
    Ok(format!("recorded {} messages in {}", session.messages().len(), file.display()))
}

async fn replay(file: &Path) -> Line {
    let recording: Recording = serde_json::from_slice(&std::fs::read(file)?)?;
    let recorded = load(&session_file(file))?;
    let task = recorded.messages().first().map(|message| message.text()).unwrap_or_default();
    let replay = Replay::new(recording);
    // The tool gives its description and schema; what it said comes from the recording, and it is not called.
    let session = play(replay.model(), replay.tool(thermometer().spec().clone()), &task).await?;
    if serde_json::to_vec(&session)? != serde_json::to_vec(&recorded)? {
        return Err("the replay differs from what was recorded".into());
    }
    Ok(format!("replayed {} messages, the same to the byte", session.messages().len()))
}

/// One run with whatever model and tool there are. The agent is the same for both: its prompt is part of each request,
/// and a request that is not the recorded one is refused, with the part that differs.
async fn play(model: impl Model, tool: impl Tool, task: &str) -> Result<Session, Box<dyn std::error::Error>> {
    let agent = Agent::builder(model).section("role", "You measure.").tool(tool).build()?;
    let mut session = Session::default();
    let mut run = agent.start(&mut session, task);
    while let Some(event) = run.next().await {
        if let Event::Text { delta, .. } = event {
            print!("{}", plain(&delta));
        }
    }
    run.outcome().await?;
    Ok(session)
}

/// Gives another temperature each time.
fn thermometer() -> impl Tool {
    #[derive(Deserialize)]
    struct Place {
        place: String,
    }
    let spec =
        ToolSpec::new("measure", "Measures the temperature at a place").read_only().with_schema(json!({
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        }));
    tool_fn(spec, async |place: Place, _| {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| ToolError::failed(e.to_string()))?;
        Ok(format!("{}: {}.{:09} degrees", place.place, now.as_secs() % 20, now.subsec_nanos()))
    })
}

/// Beside the recording stands the session that came of it.
fn session_file(file: &Path) -> PathBuf {
    file.with_extension("session.json")
}
