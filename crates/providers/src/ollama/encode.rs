//! Writes our messages as Ollama's.
//!
//! What is written depends on one message alone, so it can be kept from step to step. A message of several tool
//! results becomes as many messages.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::message::{Block, Media, MediaSource, Message, Role, Seal, ToolCall, ToolResult};
use haversack_agent_core::tool::ToolSpec;
use serde::Serialize;
use serde_json::Value;

use crate::json as write;
use crate::media;
use crate::names;

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    /// Base64, without anything around it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a Value,
}

impl<'a> Wire<'a> {
    fn new(role: &'static str) -> Self {
        Self {
            role,
            content: Cow::Borrowed(""),
            thinking: Cow::Borrowed(""),
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
        }
    }

    fn say(&mut self, text: Cow<'a, str>) {
        append(&mut self.content, text, "\n");
    }

    fn show(&mut self, block: &'a Block) {
        match block {
            Block::Text { text } => self.say(Cow::Borrowed(text)),
            Block::Image(Media { source: MediaSource::Base64(data), .. }) => self.images.push(data),
            Block::Image(media) | Block::Document(media) => {
                self.say(Cow::Owned(media::text(media).unwrap_or_else(|| media::left_out(media, "Ollama"))));
            }
            _ => {}
        }
    }
}

/// Appends a text; only when there is already one it has to be copied.
fn append<'a>(whole: &mut Cow<'a, str>, text: Cow<'a, str>, between: &str) {
    if whole.is_empty() {
        *whole = text;
    } else if !text.is_empty() {
        let whole = whole.to_mut();
        whole.push_str(between);
        whole.push_str(&text);
    }
}

/// The system prompt as a message.
pub(super) fn system(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut wire = Wire::new("system");
    wire.content = Cow::Borrowed(text);
    write::push(&mut out, &wire);
    out
}

/// The messages that one of ours becomes, parted by commas; empty when nothing of it can be sent. Reasoning goes
/// back to its issuer.
pub(super) fn message(message: &Message, issuer: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match message.role {
        Role::Assistant => {
            let wire = assistant(message, issuer);
            if !(wire.content.is_empty() && wire.tool_calls.is_empty() && wire.thinking.is_empty()) {
                write::push(&mut out, &wire);
            }
        }
        _ => {
            for result in message.tool_results() {
                write::push_item(&mut out, &tool(result));
            }
            let mut wire = Wire::new("user");
            message.blocks.iter().for_each(|block| wire.show(block));
            if !(wire.content.is_empty() && wire.images.is_empty()) {
                write::push_item(&mut out, &wire);
            }
        }
    }
    out
}

fn assistant<'a>(message: &'a Message, issuer: &str) -> Wire<'a> {
    let own = |seal: &Option<Seal>| seal.as_ref().is_some_and(|seal| &*seal.issuer == issuer);
    let mut wire = Wire::new("assistant");
    for block in &message.blocks {
        match block {
            // Neighbours in one answer are parts of one text, cut where a call or a thought stood between them.
            Block::Text { text } => append(&mut wire.content, Cow::Borrowed(text), ""),
            Block::Reasoning(reasoning) if own(&reasoning.seal) => {
                append(&mut wire.thinking, Cow::Borrowed(&reasoning.text), "");
            }
            Block::ToolCall(ToolCall { id, name, arguments, .. }) => {
                let function = WireFunction { name: names::on_wire(name), arguments };
                wire.tool_calls.push(WireCall { id: id.as_str(), function });
            }
            Block::Image(media) | Block::Document(media) => {
                wire.say(Cow::Owned(media::left_out(media, "Ollama")));
            }
            _ => {}
        }
    }
    wire
}

fn tool(result: &ToolResult) -> Wire<'_> {
    let mut wire = Wire::new("tool");
    if result.status.is_error() {
        // There is no field for it, and the model should not take a failure for an answer.
        wire.say(Cow::Borrowed("Error:"));
    }
    result.content.iter().for_each(|block| wire.show(block));
    wire.tool_name = Some(names::on_wire(&result.name));
    wire.tool_call_id = Some(result.id.as_str());
    wire
}

/// The tools on offer, as a list.
pub(super) fn tools(tools: &[Arc<ToolSpec>]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: Cow<'a, str>,
        description: &'a str,
        parameters: &'a Value,
    }
    let list: Vec<_> = tools
        .iter()
        .map(|tool| Tool {
            r#type: "function",
            function: Function {
                name: names::on_wire(&tool.name),
                description: &tool.description,
                parameters: &tool.input_schema,
            },
        })
        .collect();
    let mut out = Vec::new();
    write::push(&mut out, &list);
    out
}
