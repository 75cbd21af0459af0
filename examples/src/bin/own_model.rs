//! A model of the host's own: no server, no key, rules in the place of a network. What a type has to keep to be a
//! [`Model`] is shown here on the smallest thing that streams text and asks for a tool.
//!
//! ```sh
//! cargo run --bin own_model -- 3 4 5
//! ```

use std::process::ExitCode;

use futures_util::{StreamExt as _, stream};
use haversack::agent_core::message::{Role, ToolCall};
use haversack::agent_core::model::{ModelEvent, ModelInfo, ModelRequest, ModelStream};
use haversack::agent_core::tool_fn::tool_fn;
use haversack::agent_core::usage::{StopReason, Usage};
use haversack::prelude::*;
use haversack_examples::terminal::plain;
use serde::Deserialize;
use serde_json::json;

/// Adds up the numbers of the question, two at a time, by the tool `add`, since it cannot add itself.
struct Clerk;

impl Model for Clerk {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("own", "clerk")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        // Lazy: nothing happens before the first poll, and a dropped stream has nothing to clean up.
        Box::pin(
            stream::once(async move { answer(&request) }).flat_map(|events| stream::iter(events).map(Ok)),
        )
    }
}

/// One answer: previews as they come, each block whole when it is whole, the count, and one stop as the last event.
fn answer(request: &ModelRequest) -> Vec<ModelEvent> {
    let mut numbers = open_numbers(request);
    let mut events = Vec::new();
    let mut say = |text: String| {
        events.extend(text.split_inclusive(' ').map(|word| ModelEvent::Text(word.to_owned())));
        events.push(ModelEvent::BlockDone(Block::text(text)));
    };
    let reason = if numbers.len() < 2 {
        say(numbers.pop().map_or("There are no numbers.".to_owned(), |sum| format!("The sum is {sum}.")));
        StopReason::EndTurn
    } else {
        let (a, b) = (numbers.remove(0), numbers.remove(0));
        say(format!("First {a} and {b}. "));
        // An id is unique in the conversation; the loop renames one that is not.
        let call = ToolCall::new(format!("add-{}", request.messages.len()), "add", json!({"a": a, "b": b}));
        events.push(ModelEvent::ToolCallStarted { index: 0, id: call.id.clone(), name: call.name.clone() });
        events.push(ModelEvent::ToolArguments { index: 0, delta: call.arguments.to_string() });
        events.push(ModelEvent::BlockDone(Block::ToolCall(call)));
        StopReason::ToolUse
    };
    let words = |texts: &mut dyn Iterator<Item = String>| texts.map(|t| t.split(' ').count() as u64).sum();
    let read = words(&mut request.messages.iter().map(|message| message.text()));
    events.push(ModelEvent::Usage(Usage::new(read, 4)));
    events.push(ModelEvent::Stop { reason, raw: None });
    events
}

/// The numbers of the question that are still to be added: sums come back as results of the tool.
fn open_numbers(request: &ModelRequest) -> Vec<i64> {
    let mut numbers = Vec::new();
    for message in request.messages.iter() {
        match message.role {
            Role::User => {
                numbers = message.text().split_whitespace().filter_map(|w| w.parse().ok()).collect()
            }
            Role::Assistant => drop(numbers.drain(..(2 * message.tool_calls().count()).min(numbers.len()))),
            _ => {
                let sums = message.tool_results().filter_map(|result| result.text().parse().ok());
                numbers.splice(0..0, sums.collect::<Vec<_>>());
            }
        }
    }
    numbers
}

#[derive(Deserialize)]
struct Pair {
    a: i64,
    b: i64,
}

/// An agent with this model and one tool, which the host vouches for: it only computes, so nobody is asked.
fn agent() -> Result<Agent, Box<dyn std::error::Error>> {
    let spec = ToolSpec::new("add", "Adds two numbers").read_only().with_schema(json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }));
    let add = tool_fn(spec, async |pair: Pair, _| {
        let sum = pair.a.checked_add(pair.b);
        sum.map(|sum| sum.to_string()).ok_or_else(|| ToolError::failed("the sum is too large"))
    });
    Ok(Agent::builder(Clerk).section("role", "You add up numbers.").tool(add).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (agent, mut session) = (agent()?, Session::default());
    let question = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let mut run = agent.start(&mut session, question);
    while let Some(event) = run.next().await {
        match event {
            Event::Text { delta, .. } => print!("{}", plain(&delta)),
            Event::ToolEnded { result, .. } => println!("-> {}", plain(&result.text())),
            _ => {}
        }
    }
    let done = matches!(run.outcome().await?, Outcome::Done { .. });
    println!("\n{} words read", session.ledger().total().input.unwrap_or_default());
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use haversack_agent_core::testing::check_model;

    use super::*;

    /// What everybody who writes a model should run on it: order of events, dropping at each event, two calls at once.
    #[tokio::test]
    async fn the_model_keeps_its_contract() {
        for question in ["1 2", "7", "no numbers"] {
            let request = ModelRequest::new([Message::user(question)].into_iter().collect());
            assert_eq!(check_model(&Clerk, &request).await, [], "{question}");
        }
    }
}
