//! Writes messages as items of a Responses input.

use std::sync::Arc;

use haversack_agent_core::message::{Block, Media, MediaSource, Message, Reasoning, Role, ToolResult};
use serde_json::{Value, json};

use crate::media;
use crate::names;
use crate::refusal;

/// The writer of one call.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Whose seals and raw items are sent back.
    pub(crate) issuer: Arc<str>,
    /// Whether reasoning without encrypted content is refused.
    pub(crate) needs_seal: bool,
}

impl Writer {
    pub(super) fn write(&self, message: &Message, out: &mut Vec<u8>) {
        if message.role == Role::Assistant {
            self.assistant(message, out);
            return;
        }
        for result in message.tool_results() {
            let output = output(result);
            let id = result.id.as_str();
            push(out, &json!({"type": "function_call_output", "call_id": id, "output": output}));
        }
        let parts: Vec<Value> = message.blocks.iter().filter_map(part).collect();
        if !parts.is_empty() || message.role == Role::User && message.tool_results().next().is_none() {
            push(out, &json!({"type": "message", "role": "user", "content": parts}));
        }
    }

    fn assistant(&self, message: &Message, out: &mut Vec<u8>) {
        // A reasoning item belongs to the item that follows it, and alone it is refused.
        let last = message.blocks.iter().rposition(|block| self.is_item(block));
        let blocks = refusal::told_apart(&message.blocks, &self.issuer).take(last.map_or(0, |last| last + 1));
        for (block, refused) in blocks {
            match block {
                Block::Text { text } if refused => {
                    push(out, &assistant_message(&json!({"type": "refusal", "refusal": text})));
                }
                Block::Text { text } if !text.is_empty() => {
                    push(out, &assistant_message(&json!({"type": "output_text", "text": text})));
                }
                Block::Reasoning(reasoning) => {
                    if let Some(item) = self.own_item(reasoning) {
                        push(out, item);
                    }
                }
                Block::ToolCall(call) => push(
                    out,
                    &json!({
                        "type": "function_call",
                        "call_id": call.id.as_str(),
                        "name": names::on_wire(&call.name),
                        "arguments": call.arguments.to_string(),
                    }),
                ),
                Block::Opaque(opaque) if self.is_item(block) => push(out, &opaque.raw),
                _ => {}
            }
        }
    }

    /// Whether a block becomes an item that reasoning may stand before.
    fn is_item(&self, block: &Block) -> bool {
        match block {
            Block::Text { text } => !text.is_empty(),
            Block::ToolCall(_) => true,
            Block::Opaque(opaque) => opaque.issuer == self.issuer && !refusal::is_mark(block),
            _ => false,
        }
    }

    fn own_item<'m>(&self, reasoning: &'m Reasoning) -> Option<&'m Value> {
        let seal = reasoning.seal.as_ref().filter(|seal| seal.issuer == self.issuer)?;
        let is_sealed = seal.data.get("encrypted_content").is_some_and(Value::is_string);
        (is_sealed || !self.needs_seal).then_some(&seal.data)
    }
}

fn assistant_message(part: &Value) -> Value {
    json!({"type": "message", "role": "assistant", "content": [part]})
}

/// What a tool gave back: text as a string, which all servers take; with images as parts. This wire has no flag for
/// failures: the text says it.
fn output(result: &ToolResult) -> Value {
    let text = result.text();
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    let text = if result.status.is_error() && !says_so { format!("Error: {text}") } else { text };
    let others = result.content.iter().filter(|block| !matches!(block, Block::Text { .. }));
    let mut parts: Vec<Value> = others.filter_map(part).collect();
    if parts.is_empty() {
        return text.into();
    }
    if !text.is_empty() {
        parts.insert(0, json!({"type": "input_text", "text": text}));
    }
    parts.into()
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Block::Image(image) => Some(json!({"type": "input_image", "image_url": url(image)})),
        Block::Document(document) => Some(match (&document.source, media::text(document)) {
            (_, Some(text)) => json!({"type": "input_text", "text": text}),
            (MediaSource::Url(url), _) => json!({"type": "input_file", "file_url": url}),
            _ => {
                let name = document.name.as_deref().unwrap_or("document");
                json!({"type": "input_file", "filename": name, "file_data": url(document)})
            }
        }),
        _ => None,
    }
}

fn url(media: &Media) -> String {
    match &media.source {
        MediaSource::Base64(data) => format!("data:{};base64,{data}", media.media_type),
        MediaSource::Url(url) => url.clone(),
        _ => String::new(),
    }
}

fn push(out: &mut Vec<u8>, item: &Value) {
    out.push(b',');
    out.extend_from_slice(item.to_string().as_bytes());
}
