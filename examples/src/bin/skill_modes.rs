//! One skill of each mode: a text that the model reads, a pipeline of the host's tools, a sub-agent under a contract.
//!
//! ```sh
//! cargo run --bin skill_modes -- examples/skill_modes
//! ```
//!
//! The model is a script, so that it runs without a network; with a real one only its line changes.

use futures_util::StreamExt as _;
use haversack::agent_core::policy::{Mode, Policy, Rule};
use haversack::agent_core::tool_fn::tool_fn;
use haversack::prelude::*;
use haversack::{Haversack, SkillModes};
use haversack_agent_core::testing::{Answer, ScriptedModel};
use haversack_examples::terminal::plain;
use serde_json::{Value, json};

/// What a model would do, and, fourth, what the model of the sub-agent reports.
fn script() -> ScriptedModel {
    ScriptedModel::new([
        Answer::call("m1", "skill", json!({"name": "greet"})),
        Answer::call("m2", "skill_shout", json!({"words": ["hello", "you"]})),
        Answer::call("m3", "proof-reader", json!({"task": "Read this: Helo you."})),
        Answer::text(json!({"status": "completed", "result": "Helo -> Hello"}).to_string()),
        Answer::text("HELLO YOU"),
    ])
}

/// Two tools of the host, which pipelines are made of. They only read, in the host's word.
fn tools() -> (impl Tool, impl Tool) {
    let upper = tool_fn(
        ToolSpec::new("upper", "Writes in capitals")
            .with_schema(json!({"type": "object", "properties": {"text": {"type": "string"}}}))
            .read_only(),
        async |arguments: Value, _| Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase()),
    );
    let count = tool_fn(
        ToolSpec::new("count", "Counts letters")
            .with_schema(json!({"type": "object", "properties": {"texts": {"type": "array"}}}))
            .read_only(),
        async |arguments: Value, _| {
            let texts = arguments["texts"].as_array().cloned().unwrap_or_default();
            let letters: usize =
                texts.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum();
            Ok(letters.to_string())
        },
    );
    (upper, count)
}

/// The pipeline is asked about; a terminal host would ask a person here.
fn decide(ask: &Ask) -> Verdict {
    println!("asked: {} {}", ask.tool, plain(&ask.arguments.to_string()));
    Verdict::Allow
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: skill_modes FOLDER")?;
    let (upper, count) = tools();
    let haversack = Haversack::builder(script())
        // A folder of the user's own needs no consent; that of a project does.
        .user_skills(folder)
        .tool(upper)
        .tool(count)
        .policy(Policy::new(Mode::Ask).with_rule(Rule::allow("proof-reader")))
        .approver(async |asks: Vec<Ask>| asks.iter().map(decide).collect::<Vec<_>>())
        .skill_modes(SkillModes::new())
        .build()?;

    let equipped = haversack.prepare().await?;
    for skill in &equipped.report().skills {
        println!("skill {}: {}", skill.name, plain(&skill.state.to_string()));
    }
    let mut session = Session::default();
    let mut run = equipped.start(&mut session, "Greet me loudly.");
    while let Some(event) = run.next().await {
        match event {
            Event::ToolEnded { result, .. } => println!("{}:\n{}", result.name, plain(&result.text())),
            Event::Text { delta, .. } => println!("{}", plain(&delta)),
            _ => {}
        }
    }
    run.outcome().await?;
    haversack.close().await;
    Ok(())
}
