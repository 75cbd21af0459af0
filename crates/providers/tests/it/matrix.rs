//! A history that one provider wrote goes on with every other.

use std::sync::Arc;

use haversack_agent_core::history::History;
use haversack_agent_core::message::{Author, Block, Media, Message, Role, ToolResult, ToolStatus};
use haversack_agent_core::model::{Model, ModelRequest};
use haversack_agent_core::testing::Wire;
use haversack_agent_core::usage::StopReason;
use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};
use serde_json::Value;

use crate::corpus::{Record, records_of_all};
use crate::memory::Memory;
use crate::observe::call;

type Make = fn(Memory) -> Box<dyn Model>;

/// Each API with the rules that its body is held to. Ollama has next to none.
const TARGETS: [(&str, Option<Wire>, Make); 5] = [
    ("openai_chat", Some(Wire::OpenAiChat), |http| Box::new(OpenAiChat::new(http, "http://a", "m"))),
    ("openai_responses", Some(Wire::OpenAiResponses), |http| {
        Box::new(OpenAiResponses::new(http, "http://a", "m"))
    }),
    ("anthropic_messages", Some(Wire::Anthropic), |http| Box::new(Anthropic::new(http, "http://a", "m"))),
    ("gemini", Some(Wire::Gemini), |http| Box::new(Gemini::new(http, "http://a", "gemini-3-pro"))),
    ("ollama_chat", None, |http| Box::new(Ollama::new(http, "http://a", "m"))),
];

/// The conversation that goes on after an answer: results of all kinds, and another question.
async fn history(record: &Record) -> Option<History> {
    let outcome = record.with_body(record.reply.body.clone(), 1000).await;
    let (reason, _) = outcome.stop()?;
    let blocks: Vec<Block> = outcome.blocks().cloned().collect();
    let model = record.model(Memory::default(), "http://a").info();
    let answer = Message::new(Role::Assistant, blocks)
        .with_author(Author::new(model.provider, model.model))
        .with_stop(reason.clone());
    let calls: Vec<_> = answer.tool_calls().cloned().collect();
    // A cut call is not run, and the loop answers it all the same.
    let whole = matches!(reason, StopReason::EndTurn | StopReason::ToolUse);
    let results = calls.iter().enumerate().map(|(at, call)| {
        let (status, content) = match at % 3 {
            _ if !whole || call.malformed.is_some() => (ToolStatus::NotStarted, vec![Block::text("not run")]),
            0 => (
                ToolStatus::Ok,
                vec![Block::text("sunny"), Block::Image(Media::base64("image/png", "iVBORw0KGgo="))],
            ),
            1 => (ToolStatus::Error, vec![Block::text("no such city")]),
            _ => (ToolStatus::Ok, Vec::new()),
        };
        Block::ToolResult(ToolResult::new(call.id.clone(), Arc::clone(&call.name), status, content))
    });
    let results: Vec<_> = results.collect();
    let mut history: History = [Message::user("hello"), answer].into_iter().collect();
    if !results.is_empty() {
        history.push(Message::new(Role::Tool, results));
    }
    history.push(Message::user("go on"));
    Some(history)
}

#[tokio::test]
async fn every_recorded_answer_goes_on_with_every_api() {
    let (mut count, mut problems) = (0, Vec::new());
    for record in records_of_all().iter().filter(|record| record.reply.status < 400) {
        let Some(history) = history(record).await else { continue };
        for (api, wire, make) in TARGETS {
            let http = Memory::default();
            call(&*make(http.clone()), ModelRequest::new(history.clone())).await;
            let body = http.only().json();
            count += 1;
            let violations = wire.map(|wire| wire.check_body(&body)).unwrap_or_default();
            problems.extend(violations.iter().map(|v| format!("{} {} to {api}: {v}", record.api, record.id)));
            problems.extend(
                lost(&history, &body).map(|what| format!("{} {} to {api}: {what}", record.api, record.id)),
            );
            problems.extend(leaked(&history, record, api, &body));
        }
    }
    eprintln!("{count} histories went on");
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        problems[..problems.len().min(60)].join("\n")
    );
}

/// Names and arguments of calls, which have to reach every API.
fn lost(history: &History, body: &Value) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    collect_calls(body, &mut found);
    let calls = history.iter().flat_map(|message| message.tool_calls().cloned().collect::<Vec<_>>());
    let lost: Vec<_> = calls
        .filter(|call| !found.contains(&(call.name.to_string(), call.arguments.clone())))
        .map(|call| format!("the call of {} with {} is lost", call.name, call.arguments))
        .collect();
    lost.into_iter()
}

/// Everything with a name and arguments, under the names of each wire.
fn collect_calls(value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
            let arguments = ["arguments", "input", "args"].iter().find_map(|key| map.get(*key));
            if let (Some(Value::String(name)), Some(arguments)) = (map.get("name"), arguments) {
                let parsed = arguments
                    .as_str()
                    .map_or_else(|| Some(arguments.clone()), |text| serde_json::from_str(text).ok());
                out.push((name.clone(), parsed.unwrap_or_default()));
            }
            map.values().for_each(|value| collect_calls(value, out));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_calls(value, out)),
        _ => {}
    }
}

/// Sealed data of another API, which would be refused there.
fn leaked(history: &History, record: &Record, api: &str, body: &Value) -> Vec<String> {
    if record.api == api {
        return Vec::new();
    }
    let text = body.to_string();
    let mut seals = Vec::new();
    for block in history.iter().flat_map(|message| message.blocks.iter()) {
        match block {
            Block::Reasoning(reasoning) => texts(reasoning.seal.as_ref().map(|seal| &seal.data), &mut seals),
            Block::ToolCall(call) => texts(call.seal.as_ref().map(|seal| &seal.data), &mut seals),
            Block::Opaque(opaque) => texts(Some(&opaque.raw), &mut seals),
            _ => {}
        }
    }
    // Base64 of some length; addresses that are cited stand in the text as well.
    let is_seal = |seal: &&String| {
        seal.len() >= 40
            && seal
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-'))
    };
    let long = seals.iter().filter(is_seal).filter(|seal| text.contains(seal.as_str()));
    long.map(|seal| format!("{} {} to {api}: {seal:.40} is sealed for another", record.api, record.id))
        .collect()
}

fn texts(value: Option<&Value>, out: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => out.push(text.clone()),
        Some(Value::Array(items)) => items.iter().for_each(|value| texts(Some(value), out)),
        Some(Value::Object(map)) => map.values().for_each(|value| texts(Some(value), out)),
        _ => {}
    }
}
