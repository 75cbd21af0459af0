//! An approval that is answered by another process, tomorrow, on another machine: the session is a file in between.
//!
//! ```sh
//! cargo run --bin pause_to_disk -- start  letter.json "Write to Ada that the books have come."
//! cargo run --bin pause_to_disk -- asks   letter.json
//! cargo run --bin pause_to_disk -- answer letter.json DIGEST allow       # or: deny "not today"
//! cargo run --bin pause_to_disk -- resume letter.json
//! ```
//!
//! A verdict belongs to the digest of what was shown. Should tool or arguments be others when the run is resumed, it does
//! not count and the question is asked again; and it is used once.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use futures_util::StreamExt as _;
use haversack::agent_core::model::ModelRequest;
use haversack::agent_core::run::Run;
use haversack::agent_core::tool_fn::tool_fn;
use haversack::prelude::*;
use haversack_agent_core::testing::{Answer, ScriptedModel};
use haversack_examples::quickstart::{load, save};
use haversack_examples::terminal::plain;
use serde::Deserialize;
use serde_json::json;

/// Pauses a run to a file, answers it, and goes on: three processes that share nothing but the file.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Start a run; it pauses at its first question
    Start { session: PathBuf, task: String },
    /// Show the questions that wait
    Asks { session: PathBuf },
    /// Answer one of them; nothing runs yet
    Answer { session: PathBuf, digest: String, verdict: Word, reason: Option<String> },
    /// Go on with the run
    Resume { session: PathBuf },
}

#[derive(Clone, Copy, ValueEnum)]
enum Word {
    Allow,
    Deny,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match step(Arguments::parse().step).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("pause_to_disk: {}", plain(&line));
            ExitCode::FAILURE
        }
    }
}

async fn step(step: Step) -> Result<(), String> {
    match step {
        Step::Start { session: file, task } => {
            let (agent, mut session) = (agent(&file)?, Session::default());
            drive(agent.start(&mut session, task), &file).await
        }
        Step::Resume { session: file } => {
            let (agent, mut session) = (agent(&file)?, load(&file)?);
            drive(agent.resume(&mut session), &file).await
        }
        Step::Asks { session } => {
            for ask in load(&session)?.pending_asks() {
                let arguments = plain(&ask.arguments.to_string());
                println!("{} {} {arguments} ({})", ask.digest, ask.tool, plain(&ask.reason));
            }
            Ok(())
        }
        Step::Answer { session: file, digest, verdict, reason } => {
            let mut session = load(&file)?; // with many people at once: in one transaction with `save`
            let verdict = match verdict {
                Word::Allow => Verdict::Allow,
                Word::Deny => Verdict::deny(reason.unwrap_or_default()),
            };
            let digest = digest.parse().map_err(|e| format!("{digest}: {e}"))?;
            session.answer(&digest, verdict).map_err(|e| e.to_string())?;
            save(&file, &session)
        }
    }
}

/// Polls a run to its end. It is saved whenever a call starts or ends: killed at any moment, this program never makes a
/// call a second time, and knows of one that it cannot vouch for.
async fn drive(mut run: Run<'_>, file: &Path) -> Result<(), String> {
    while let Some(event) = run.next().await {
        match event {
            Event::Text { delta, .. } => print!("{}", plain(&delta)),
            Event::ApprovalAsked { ask } => println!("\nasks for `{}`: {}", ask.tool, ask.digest),
            Event::ToolStarted { .. } => save(file, run.session())?,
            Event::ToolEnded { ref result, .. } => {
                save(file, run.session())?;
                println!("{}: {}", result.name, plain(&result.text()));
            }
            _ => {}
        }
    }
    save(file, run.session())?;
    match run.outcome().await.map_err(|e| e.to_string())? {
        Outcome::Paused => println!("paused; `asks`, `answer` and `resume` go on"),
        outcome => println!("\nended: {outcome:?}"),
    }
    Ok(())
}

/// The same agent in each process. It has no approver, so that its runs pause where others would ask.
fn agent(session: &Path) -> Result<Agent, String> {
    #[derive(Deserialize)]
    struct Letter {
        to: String,
        text: String,
    }
    let spec = ToolSpec::new("send_letter", "Sends a letter").with_schema(json!({
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "text"],
    }));
    let outbox = session.with_extension("outbox");
    let send = tool_fn(spec, move |letter: Letter, _| {
        let outbox = outbox.clone();
        async move {
            tokio::fs::write(outbox, format!("To {}: {}\n", letter.to, letter.text)).await?;
            Ok(format!("sent to {}", letter.to))
        }
    });
    let agent =
        Agent::builder(ScriptedModel::from_fn(clerk)).section("role", "You write letters.").tool(send);
    agent.build().map_err(|e| e.to_string())
}

/// A rule in the place of a model: one letter for the task, then a word about what became of it.
fn clerk(request: &ModelRequest, _: usize) -> Answer {
    let Some(last) = request.messages.last() else { return Answer::text("Nothing to do.") };
    match last.tool_results().next() {
        Some(result) => Answer::text(format!("It is done: {}.", result.text())),
        None => Answer::call("letter-1", "send_letter", json!({"to": "Ada", "text": last.text()})),
    }
}
