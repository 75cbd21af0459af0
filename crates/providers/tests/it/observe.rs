//! What came of a call, in the shape of the corpus' expectations.

use futures_util::StreamExt as _;
use haversack_agent_core::message::{Block, Message};
use haversack_agent_core::model::{Model, ModelError, ModelEvent, ModelRequest};
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Value, json};

/// Everything that a call gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) error: Option<ModelError>,
}

impl Outcome {
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.events
            .iter()
            .filter_map(|e| if let ModelEvent::BlockDone(block) = e { Some(block) } else { None })
    }

    pub(crate) fn stop(&self) -> Option<(&StopReason, Option<&str>)> {
        match self.events.last() {
            Some(ModelEvent::Stop { reason, raw }) => Some((reason, raw.as_deref())),
            _ => None,
        }
    }
}

/// Makes a call and reads it to its end, checking what every call promises.
pub(crate) async fn call(model: &dyn Model, request: ModelRequest) -> Outcome {
    let mut outcome = Outcome::default();
    let mut stream = model.stream(request);
    while let Some(item) = stream.next().await {
        assert!(outcome.error.is_none(), "something after an error");
        assert!(outcome.stop().is_none(), "something after the end");
        match item {
            Ok(event) => outcome.events.push(event),
            Err(error) => outcome.error = Some(error),
        }
    }
    assert_ne!(outcome.stop().is_some(), outcome.error.is_some(), "an end or an error: {outcome:?}");
    outcome
}

/// A request that says something.
pub(crate) fn hello() -> ModelRequest {
    ModelRequest::new([Message::user("hello")].into_iter().collect())
}

/// The outcome in the words of the corpus.
pub(crate) fn shape(api: &str, outcome: &Outcome) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    let mut order: Vec<String> = Vec::new();
    let mut refusal: Option<String> = None;
    let blocks: Vec<&Block> = outcome.blocks().collect();
    for (at, block) in blocks.iter().copied().enumerate() {
        let refused = blocks.get(at + 1).is_some_and(|next| is_refusal_mark(next));
        match block {
            Block::Text { text: more } if refused => refusal.get_or_insert_default().push_str(more),
            Block::Text { text: more } => text.push_str(more),
            Block::Reasoning(more) => reasoning.push_str(&more.text),
            Block::ToolCall(call) => calls.push(json!({
                "id": call.id,
                "name": call.name,
                "arguments": if call.malformed.is_some() { &Value::Null } else { &call.arguments },
                "arguments_valid": call.malformed.is_none(),
            })),
            _ => {}
        }
        // On Chat's wire a refusal is a field and no content.
        if let Some(name) = kind(api, block).filter(|_| !refused || api == "openai_responses") {
            let is_merged = !matches!(api, "anthropic_messages" | "openai_responses")
                && name != "tool_use"
                && order.last() == Some(&name);
            if !is_merged {
                order.push(name);
            }
        }
    }
    let (mut stop, mut stop_raw) =
        outcome.stop().map_or((Value::Null, None), |(reason, raw)| (word(reason, raw), raw));
    // A refusal is filtered to us and an ordinary end in the corpus.
    if refusal.is_some() && stop == "filtered" && matches!(stop_raw, Some("stop" | "completed")) {
        stop = "end".into();
    }
    // The oracle speaks Chat's words about Responses, too.
    if api == "openai_responses" && stop_raw == Some("completed") {
        stop_raw = Some("stop");
    }
    json!({
        "text": text, "reasoning": reasoning, "refusal": refusal, "tool_calls": calls, "stop": stop,
        "stop_raw": stop_raw, "usage": usage(api, outcome), "block_order": order,
        "error": outcome.error.as_ref().map(error),
    })
}

/// What says that the text before it is a refusal.
fn is_refusal_mark(block: &Block) -> bool {
    matches!(block, Block::Opaque(opaque) if opaque.raw["type"] == "refusal")
}

/// What the corpus calls a block; some of ours are no block there.
fn kind(api: &str, block: &Block) -> Option<String> {
    let is_anthropic = api == "anthropic_messages";
    Some(match block {
        Block::Text { .. } => "text".to_owned(),
        Block::Reasoning(reasoning) if is_anthropic => {
            let redacted = reasoning.seal.as_ref().is_some_and(|s| s.data.get("redacted_thinking").is_some());
            if redacted { "redacted_thinking".to_owned() } else { "thinking".to_owned() }
        }
        // A seal without text is no block on Chat's wire.
        Block::Reasoning(reasoning) if api == "openai_chat" && reasoning.text.is_empty() => return None,
        Block::Reasoning(_) => "reasoning".to_owned(),
        Block::ToolCall(_) => "tool_use".to_owned(),
        Block::Image(_) => "inlineData".to_owned(),
        Block::Opaque(opaque) if api == "gemini" => {
            let kinds = ["executableCode", "codeExecutionResult", "inlineData"];
            (*kinds.iter().find(|kind| opaque.raw.get(**kind).is_some())?).to_owned()
        }
        block if is_refusal_mark(block) => return None,
        Block::Opaque(opaque) => opaque.raw["type"].as_str().filter(|kind| *kind != "text")?.to_owned(),
        _ => return None,
    })
}

fn word(reason: &StopReason, raw: Option<&str>) -> Value {
    match reason {
        StopReason::EndTurn if raw.unwrap_or_default().is_empty() => Value::Null,
        StopReason::EndTurn => "end".into(),
        StopReason::ToolUse => "tool_use".into(),
        StopReason::MaxTokens => "max_tokens".into(),
        StopReason::StopSequence => "stop_sequence".into(),
        StopReason::Filtered => "filtered".into(),
        StopReason::Pause => "pause".into(),
        StopReason::ContextWindow => "context_window".into(),
        _ => "other".into(),
    }
}

/// Usage as the provider counts it: ours holds the whole prompt and the whole answer.
fn usage(api: &str, outcome: &Outcome) -> Value {
    let mut sum: Option<Usage> = None;
    for event in &outcome.events {
        if let ModelEvent::Usage(usage) = event {
            sum.get_or_insert_default().merge(*usage);
        }
    }
    let Some(usage) = sum else { return Value::Null };
    match api {
        "anthropic_messages" => {
            let cached = usage.cached.unwrap_or(0) + usage.cache_write.unwrap_or(0);
            json!({"input": usage.input.map(|input| input - cached), "output": usage.output, "cached": usage.cached, "cache_write": usage.cache_write})
        }
        "gemini" => {
            // Thoughts alone leave the count of the answer open.
            let thoughts = usage.reasoning.unwrap_or(0);
            let output =
                usage.output.map(|output| output - thoughts).filter(|output| *output > 0 || thoughts == 0);
            json!({"input": usage.input, "output": output, "cached": usage.cached, "reasoning": usage.reasoning})
        }
        "ollama_chat" => json!({"input": usage.input, "output": usage.output}),
        _ => {
            json!({"input": usage.input, "output": usage.output, "cached": usage.cached, "reasoning": usage.reasoning})
        }
    }
}

fn error(error: &ModelError) -> Value {
    let reply = error.reply.as_deref();
    json!({
        "status": error.status,
        "type": error.error_type,
        "code": reply.and_then(|reply| reply.code.clone()),
        "message": reply.and_then(|reply| reply.message.clone()),
    })
}
