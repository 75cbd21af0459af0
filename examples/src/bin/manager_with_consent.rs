//! Starts the MCP servers of a project after their exact commands were agreed to, and keeps the answer.
//!
//! ```sh
//! cargo run --bin manager_with_consent -- PROJECT FOLDER_FOR_ANSWERS
//! ```
//!
//! Run it twice: the second time nothing is asked, until a command in the project's `.mcp.json` changes.

use haversack::{ConsentQuestion, ConsentSubject, Haversack};
use haversack_agent_core::testing::ScriptedModel;
use haversack_examples::terminal::{Answer, Terminal, plain};

/// Asks about servers; this host has no use for skills and answers nothing about them.
async fn consent(terminal: Terminal, question: ConsentQuestion) -> Option<bool> {
    if question.subject != ConsentSubject::Servers {
        return None;
    }
    match terminal.ask(&format!("{}\nStart them?", question.text.trim_end()), "[y/n]").await {
        Answer::Yes | Answer::Always => Some(true),
        Answer::No(_) => Some(false),
        Answer::Nobody => None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [project, answers] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: manager_with_consent PROJECT FOLDER_FOR_ANSWERS")?;
    let terminal = Terminal::new(false);
    let haversack = Haversack::builder(ScriptedModel::new([]))
        .project(project)
        .environment(std::env::vars_os().collect())
        .consent(move |question| consent(terminal.clone(), question))
        .consent_folder(answers)
        .build()?;
    let equipped = haversack.prepare().await?;
    for server in &equipped.report().servers {
        println!("{}: {}, {} tools", server.name, plain(&server.state), server.tools);
    }
    for note in &equipped.report().notes {
        println!("! {}", plain(&note.to_string()));
    }
    // In order: input closed, then a signal, then the next. No process is left when this returns.
    haversack.close().await;
    Ok(())
}
