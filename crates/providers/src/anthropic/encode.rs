//! Writes our messages as Anthropic's content blocks.
//!
//! What is written depends on one message alone, never on its place, so that the bytes of a history stay the same
//! from step to step and can be kept. Only a cache marker changes them.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::message::{
    Block, Media, MediaSource, Message, Opaque, Reasoning, Role, ToolCall, ToolResult,
};
use haversack_agent_core::model::PromptSection;
use haversack_agent_core::tool::ToolSpec;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::json as write;
use crate::media;
use crate::names;

/// Whose reasoning goes back, and what becomes of that of others.
#[derive(Debug)]
pub(super) struct Voice {
    /// Whose seals are broken open; nobody's when they were refused.
    pub(super) issuer: Option<Arc<str>>,
    /// Readable reasoning of other models is sent as text instead of being left out.
    pub(super) foreign_reasoning_as_text: bool,
}

impl Voice {
    fn issued(&self, issuer: &str) -> bool {
        self.issuer.as_deref() == Some(issuer)
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Wire<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a Value>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a Value>,
    },
    RedactedThinking {
        data: &'a Value,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        caller: Option<&'a Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Wire<'a>>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    /// Text that is ours and not the message's.
    #[serde(rename = "text")]
    Note {
        text: String,
    },
    /// A block of Anthropic's own, as it came.
    #[serde(untagged)]
    Raw(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
    Text { media_type: &'static str, data: String },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The content blocks of a message, parted by commas; empty when nothing of it can be sent. With `cache_control` the last
/// block that can carry one gets it.
pub(super) fn message(message: &Message, voice: &Voice, cache_control: Option<&str>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut border = None;
    each_block(message, voice, |wire| {
        write::push_item(&mut out, wire);
        if !matches!(wire, Wire::Thinking { .. } | Wire::RedactedThinking { .. } | Wire::Raw(_)) {
            border = Some(out.len());
        }
        true
    });
    // Thinking takes no marker; a message of nothing else cannot be a border.
    if let (Some(control), Some(border)) = (cache_control, border) {
        let rest = out.split_off(border);
        mark(&mut out, control);
        out.extend_from_slice(&rest);
    }
    out
}

/// Whether anything of a message is sent.
pub(super) fn has_blocks(message: &Message, voice: &Voice) -> bool {
    let mut found = false;
    each_block(message, voice, |_| {
        found = true;
        false
    });
    found
}

/// Hands out the blocks in the order of the wire, until one is enough.
fn each_block<'a>(message: &'a Message, voice: &Voice, mut take: impl FnMut(&Wire<'a>) -> bool) {
    if message.role == Role::Assistant {
        let mut rest = message.blocks.iter().peekable();
        while let Some(block) = rest.next() {
            let citations = rest.peek().and_then(|next| citations(next, voice));
            if let Some(wire) = of_assistant(block, citations, voice)
                && !take(&wire)
            {
                return;
            }
        }
        return;
    }
    // Results first: the API wants them before anything else that the user says.
    let results = message.tool_results().map(tool_result);
    let others = message.blocks.iter().filter_map(|block| match block {
        Block::Opaque(Opaque { issuer, raw, .. }) if voice.issued(issuer) => Some(Wire::Raw(raw)),
        _ => of_user(block),
    });
    let _ = results.chain(others).all(|wire| take(&wire));
}

fn of_assistant<'a>(block: &'a Block, citations: Option<&'a Value>, voice: &Voice) -> Option<Wire<'a>> {
    match block {
        Block::Text { text } => text_block(text, citations),
        Block::Reasoning(reasoning) => thinking(reasoning, voice),
        Block::ToolCall(call) => Some(tool_use(call, voice)),
        Block::Opaque(Opaque { issuer, raw, .. }) if voice.issued(issuer) && raw.get("type")? != "text" => {
            Some(Wire::Raw(raw))
        }
        // An assistant message holds no pictures here: another model drew it.
        Block::Image(media) | Block::Document(media) => Some(note(media)),
        _ => None,
    }
}

fn of_user(block: &Block) -> Option<Wire<'_>> {
    match block {
        Block::Text { text } => text_block(text, None),
        Block::Image(media) => Some(image(media)),
        Block::Document(media) => Some(document(media)),
        _ => None,
    }
}

/// Text of nothing but white space is refused, so it is left out.
fn text_block<'a>(text: &'a str, citations: Option<&'a Value>) -> Option<Wire<'a>> {
    (!text.trim().is_empty()).then_some(Wire::Text { text, citations })
}

/// The citations that stand behind a text block, as the decoder puts them there.
fn citations<'a>(next: &'a Block, voice: &Voice) -> Option<&'a Value> {
    let Block::Opaque(Opaque { issuer, raw, .. }) = next else { return None };
    (voice.issued(issuer) && raw.get("type")? == "text").then(|| raw.get("citations")).flatten()
}

/// Reasoning goes back to the model that wrote it, to the byte; another model refuses its signature.
fn thinking<'a>(reasoning: &'a Reasoning, voice: &Voice) -> Option<Wire<'a>> {
    let seal = reasoning.seal.as_ref().filter(|seal| voice.issued(&seal.issuer));
    match seal {
        Some(seal) => Some(match seal.data.get("redacted_thinking") {
            Some(data) => Wire::RedactedThinking { data },
            None => Wire::Thinking { thinking: &reasoning.text, signature: seal.data.get("signature") },
        }),
        None if voice.foreign_reasoning_as_text => text_block(&reasoning.text, None),
        None => None,
    }
}

fn tool_use<'a>(call: &'a ToolCall, voice: &Voice) -> Wire<'a> {
    let seal = call.seal.as_ref().filter(|seal| voice.issued(&seal.issuer));
    Wire::ToolUse {
        id: call_id(call.id.as_str()),
        name: names::on_wire(&call.name),
        input: &call.arguments,
        caller: seal.and_then(|seal| seal.data.get("caller")),
    }
}

fn tool_result(result: &ToolResult) -> Wire<'_> {
    Wire::ToolResult {
        tool_use_id: call_id(result.id.as_str()),
        content: result.content.iter().filter_map(of_user).collect(),
        is_error: result.status.is_error(),
    }
}

/// Ids are letters, digits, `_` and `-` here. Others, from other providers, are replaced by a hash of them, the
/// same for the call and its result.
fn call_id(id: &str) -> Cow<'_, str> {
    let legal = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if legal {
        return Cow::Borrowed(id);
    }
    let hash: String =
        Sha256::digest(id.as_bytes()).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(format!("call_{hash}"))
}

fn image(media: &Media) -> Wire<'_> {
    match &media.source {
        MediaSource::Base64(data)
            if matches!(
                media.media_type.as_str(),
                "image/jpeg" | "image/png" | "image/gif" | "image/webp"
            ) =>
        {
            Wire::Image { source: Source::Base64 { media_type: &media.media_type, data } }
        }
        MediaSource::Url(url) => Wire::Image { source: Source::Url { url } },
        _ => note(media),
    }
}

fn document(media: &Media) -> Wire<'_> {
    let title = media.name.as_deref();
    match &media.source {
        MediaSource::Url(url) => Wire::Document { source: Source::Url { url }, title },
        MediaSource::Base64(data) if media.media_type == "application/pdf" => {
            Wire::Document { source: Source::Base64 { media_type: &media.media_type, data }, title }
        }
        _ => match media::text(media) {
            Some(data) => Wire::Document { source: Source::Text { media_type: "text/plain", data }, title },
            None => note(media),
        },
    }
}

fn note(media: &Media) -> Wire<'static> {
    Wire::Note { text: media::left_out(media, "Anthropic") }
}

/// The system prompt: one text, so that it is the same as at any other provider.
pub(super) fn system(sections: &[PromptSection], cache_control: Option<&str>) -> Option<Value> {
    let text = sections.iter().map(|s| &*s.text).collect::<Vec<_>>().join("\n\n");
    if text.trim().is_empty() {
        return None;
    }
    let Some(control) = cache_control.and_then(|control| serde_json::from_str::<Value>(control).ok()) else {
        return Some(text.into());
    };
    Some(json!([{"type": "text", "text": text, "cache_control": control}]))
}

/// The tools on offer, as a list.
pub(super) fn tools(tools: &[Arc<ToolSpec>], cache_control: Option<&str>, strict: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Tool<'a> {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        input_schema: &'a Value,
        #[serde(skip_serializing_if = "is_false")]
        strict: bool,
    }
    let mut list = Vec::new();
    for tool in tools {
        let (name, description) = (names::on_wire(&tool.name), &*tool.description);
        write::push_item(&mut list, &Tool { name, description, input_schema: &tool.input_schema, strict });
    }
    if let Some(control) = cache_control.filter(|_| !list.is_empty()) {
        mark(&mut list, control);
    }
    [b"[", &*list, b"]"].concat()
}

/// Puts a cache marker into the object that ends the text.
fn mark(out: &mut Vec<u8>, control: &str) {
    if out.pop() == Some(b'}') {
        out.extend_from_slice(b",\"cache_control\":");
        out.extend_from_slice(control.as_bytes());
        out.push(b'}');
    }
}
