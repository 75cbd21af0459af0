//! Lists the tools of an MCP server as a model would see them, and what they cost in every request.
//!
//! ```sh
//! cargo run --bin list_tools -- npx -y @modelcontextprotocol/server-everything
//! ```

use haversack::Haversack;
use haversack_agent_core::testing::ScriptedModel;
use haversack_examples::terminal::plain;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let command = words.next().ok_or("usage: list_tools COMMAND [ARGUMENT]...")?;
    let arguments: Vec<String> = words.collect();
    // Nothing is asked of a model here, so one without answers will do.
    let haversack = Haversack::builder(ScriptedModel::new([]))
        .environment(std::env::vars_os().collect())
        .servers(json!({"server": {"command": command, "args": arguments}}))
        .browse_servers()
        .build()?;
    let equipped = haversack.prepare().await?;
    for tool in equipped.agent().tools() {
        let kind = match tool.effects.read_only {
            Some(true) => "says that it only reads",
            _ => "may change something",
        };
        let first = plain(tool.description.lines().next().unwrap_or_default());
        println!("{} ({kind})\n    {first}", tool.name);
    }
    let report = equipped.report();
    for note in &report.notes {
        println!("! {}", plain(&note.to_string()));
    }
    let tokens: usize = report.sections.iter().map(|section| section.tokens).sum();
    println!("{} tools; about {tokens} tokens in the system prompt", report.tools.len());
    haversack.close().await;
    let ready = report.servers.iter().all(|server| server.is_ready);
    if ready { Ok(()) } else { Err("the server did not start".into()) }
}
