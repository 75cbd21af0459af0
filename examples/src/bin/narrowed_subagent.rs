//! A sub-agent that may do less than the agent that starts it: it reads, and whatever it is told, it writes nothing.
//!
//! ```sh
//! cargo run --bin narrowed_subagent -- FOLDER
//! ```
//!
//! Both models are scripts: the point is what the tools and the policy allow. The explorer tries to write all the same,
//! by a tool that it was not given, and then reports.

use futures_util::StreamExt as _;
use haversack::agent_core::policy::{Mode, Policy};
use haversack::agent_core::subagent::SubAgent;
use haversack::fs_tools::FsTools;
use haversack::prelude::*;
use haversack_agent_core::testing::{Answer, ScriptedModel};
use haversack_examples::terminal::plain;
use serde_json::json;

/// The explorer: reading tools and a policy of its own. What the run above forbids binds it as well. Tools of servers
/// and the `skill` tool are given to it like any other tool.
fn explorer(folder: &str) -> Result<SubAgent, Box<dyn std::error::Error>> {
    let script = ScriptedModel::new([
        Answer::call("e1", "list_files", json!({})),
        Answer::call("e2", "write_file", json!({"path": "planted", "content": "I was here"})),
        Answer::text("There is a file; writing was not possible."),
    ]);
    let agent = Agent::builder(script)
        .section("role", "You look things up and report.")
        .tools(FsTools::new(folder).read_only().tools()?)
        .policy(Policy::new(Mode::ReadOnly))
        .build()?;
    Ok(SubAgent::new("explore", "Looks things up in the project", agent).read_only())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: narrowed_subagent FOLDER")?;
    let script = ScriptedModel::new([
        // The arguments of a sub-agent's call are one text: the whole task, for it sees nothing else.
        Answer::call("m1", "explore", json!({"prompt": "Which files are there?"})),
        Answer::text("The explorer has reported."),
    ]);
    let agent =
        Agent::builder(script).tool(explorer(&folder)?).tools(FsTools::new(&folder).tools()?).build()?;
    let mut session = Session::default();
    let mut run = agent.start(&mut session, "Look around.");
    while let Some(event) = run.next().await {
        match event {
            Event::SubAgent { event, .. } => {
                if let Event::ToolEnded { result, .. } = &*event {
                    println!("  explore: {} {:?}: {}", result.name, result.status, plain(&result.text()));
                }
            }
            Event::ToolEnded { result, .. } => println!("{}: {}", result.name, plain(&result.text())),
            Event::Text { delta, .. } => println!("{}", plain(&delta)),
            _ => {}
        }
    }
    run.outcome().await?;
    Ok(())
}
