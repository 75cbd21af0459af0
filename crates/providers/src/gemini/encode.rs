//! Writes our messages as Gemini's parts.
//!
//! What is written depends on one message alone, so it can be kept from step to step.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::message::{
    Block, Media, MediaSource, Message, Opaque, Role, Seal, ToolCall, ToolResult,
};
use haversack_agent_core::tool::ToolSpec;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::gemini::schema;
use crate::json as write;
use crate::media;
use crate::names;

/// What Google documents for calls that were not made by Gemini, or whose signature is lost: the newer models
/// refuse a call without a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Whose reasoning goes back, and what becomes of that of others.
#[derive(Debug)]
pub(super) struct Voice {
    /// Whose seals are broken open; nobody's when they were refused.
    pub(super) issuer: Option<Arc<str>>,
    /// Readable reasoning of other models is sent as text instead of being left out.
    pub(super) foreign_reasoning_as_text: bool,
    /// The model refuses calls without a signature.
    pub(super) needs_signatures: bool,
}

impl Voice {
    fn issued(&self, issuer: &str) -> bool {
        self.issuer.as_deref() == Some(issuer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "is_false")]
    thought: bool,
    #[serde(flatten)]
    data: Data<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "the names of the wire")]
enum Data<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        mime_type: &'a str,
        file_uri: &'a str,
    },
    FunctionCall {
        id: &'a str,
        name: Cow<'a, str>,
        args: &'a Value,
    },
    FunctionResponse {
        id: &'a str,
        name: Cow<'a, str>,
        response: Value,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part<'a>>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> Part<'a> {
    fn new(data: Data<'a>) -> Self {
        Self { thought: false, data, thought_signature: None }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Data::Text(text.into()))
    }
}

/// The parts of a message, parted by commas; empty when nothing of it can be sent.
pub(super) fn message(message: &Message, voice: &Voice) -> Vec<u8> {
    let mut out = Vec::new();
    each_part(message, voice, |part| {
        write::push_item(&mut out, part);
        true
    });
    out
}

/// Whether anything of a message is sent.
pub(super) fn has_parts(message: &Message, voice: &Voice) -> bool {
    let mut found = false;
    each_part(message, voice, |_| {
        found = true;
        false
    });
    found
}

/// Hands out the parts in the order of the wire, until one is enough.
fn each_part<'a>(message: &'a Message, voice: &Voice, mut take: impl FnMut(&Item<'a>) -> bool) {
    if message.role == Role::Assistant {
        assistant(message, voice, take);
        return;
    }
    let results = message.tool_results().map(function_response);
    let others = message.blocks.iter().filter_map(|block| match block {
        Block::Opaque(Opaque { issuer, raw, .. }) if voice.issued(issuer) => Some(Item::Raw(raw)),
        _ => of_user(block).map(Item::Part),
    });
    let _ = results.map(Item::Part).chain(others).all(|item| take(&item));
}

/// A part of ours, or one of Gemini's own as it came.
#[derive(Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "lives for one call, on the stack")]
enum Item<'a> {
    Part(Part<'a>),
    Raw(&'a Value),
}

fn of_user(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text { text } => (!text.is_empty()).then(|| Part::text(&**text)),
        Block::Image(media) | Block::Document(media) => Some(part_of(media)),
        _ => None,
    }
}

/// Gemini reads pictures, PDF, sound, video and plain text; of other documents that are text, such as JSON, it is given the
/// text.
fn part_of(media: &Media) -> Part<'_> {
    match &media.source {
        MediaSource::Url(file_uri) => Part::new(Data::FileData { mime_type: &media.media_type, file_uri }),
        MediaSource::Base64(data) => match media::text(media) {
            Some(text) if !media.media_type.starts_with("text/") => Part::text(text),
            _ => Part::new(Data::InlineData { mime_type: &media.media_type, data }),
        },
        _ => Part::text(media::left_out(media, "Gemini")),
    }
}

fn assistant<'a>(message: &'a Message, voice: &Voice, mut take: impl FnMut(&Item<'a>) -> bool) {
    let mut rest = message.blocks.iter().peekable();
    let mut is_first_call = true;
    while let Some(block) = rest.next() {
        // A signature that stands behind a block belongs to its part.
        let behind = rest.peek().and_then(|next| lone_signature(next, voice));
        let item = match block {
            Block::Opaque(Opaque { issuer, raw, .. })
                if voice.issued(issuer) && lone_signature(block, voice).is_none() =>
            {
                Item::Raw(raw)
            }
            Block::ToolCall(call) => {
                let is_first = std::mem::take(&mut is_first_call);
                Item::Part(function_call(call, is_first, voice))
            }
            _ => match of_assistant(block, voice) {
                Some(mut part) => {
                    if let Some(signature) = behind {
                        part.thought_signature = Some(Cow::Borrowed(signature));
                    }
                    Item::Part(part)
                }
                None => continue,
            },
        };
        if !take(&item) {
            return;
        }
    }
}

fn of_assistant<'a>(block: &'a Block, voice: &Voice) -> Option<Part<'a>> {
    match block {
        Block::Reasoning(reasoning) => {
            let seal = reasoning.seal.as_ref().filter(|seal| voice.issued(&seal.issuer));
            match seal {
                Some(seal) => Some(Part {
                    thought: true,
                    data: Data::Text(Cow::Borrowed(&reasoning.text)),
                    thought_signature: signature(seal),
                }),
                None if voice.foreign_reasoning_as_text && !reasoning.text.is_empty() => {
                    Some(Part::text(&*reasoning.text))
                }
                None => None,
            }
        }
        _ => of_user(block),
    }
}

/// The signature in an opaque block that holds nothing else: "the rest of the part before", as the decoder writes it.
fn lone_signature<'a>(block: &'a Block, voice: &Voice) -> Option<&'a Value> {
    let Block::Opaque(Opaque { issuer, raw: Value::Object(raw), .. }) = block else { return None };
    (voice.issued(issuer) && raw.len() == 1).then(|| raw.get("thoughtSignature")).flatten()
}

fn signature(seal: &Seal) -> Option<Cow<'_, Value>> {
    seal.data.get("thoughtSignature").map(Cow::Borrowed)
}

fn function_call<'a>(call: &'a ToolCall, is_first: bool, voice: &Voice) -> Part<'a> {
    let seal = call.seal.as_ref().filter(|seal| voice.issued(&seal.issuer));
    let args = &call.arguments;
    let mut part =
        Part::new(Data::FunctionCall { id: call.id.as_str(), name: names::on_wire(&call.name), args });
    part.thought_signature = seal.and_then(signature);
    // In a batch of calls only the first is signed.
    if part.thought_signature.is_none() && is_first && voice.needs_signatures {
        part.thought_signature = Some(Cow::Owned(NO_SIGNATURE.into()));
    }
    part
}

/// The response has to be an object, so text goes under a key of its own.
fn function_response(result: &ToolResult) -> Part<'_> {
    let key = if result.status.is_error() { "error" } else { "result" };
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for block in &result.content {
        match block {
            Block::Text { text } => texts.push(Cow::Borrowed(&**text)),
            Block::Image(media) | Block::Document(media) => match media::text(media) {
                Some(text) => texts.push(Cow::Owned(text)),
                None => parts.push(part_of(media)),
            },
            _ => {}
        }
    }
    let response = Map::from_iter([(key.to_owned(), json!(texts.join("\n")))]);
    Part::new(Data::FunctionResponse {
        id: result.id.as_str(),
        name: names::on_wire(&result.name),
        response: response.into(),
        parts,
    })
}

/// How a tool's schema is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaForm {
    /// `parametersJsonSchema`, which takes JSON Schema as it is.
    #[default]
    JsonSchema,
    /// `parameters`, for endpoints that do not know the other: what the subset of `OpenAPI` cannot say is left out.
    OpenApi,
}

/// The tools on offer, as a list.
pub(super) fn tools(tools: &[Arc<ToolSpec>], form: SchemaForm) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Declaration<'a> {
        name: Cow<'a, str>,
        description: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters_json_schema: Option<Cow<'a, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<Value>,
    }
    let mut list = Vec::new();
    for tool in tools {
        let mut declaration = Declaration {
            name: names::on_wire(&tool.name),
            description: &tool.description,
            parameters_json_schema: None,
            parameters: None,
        };
        match form {
            SchemaForm::JsonSchema => {
                declaration.parameters_json_schema = Some(schema::without_dialect(&tool.input_schema));
            }
            SchemaForm::OpenApi => declaration.parameters = schema::open_api(&tool.input_schema),
        }
        write::push_item(&mut list, &declaration);
    }
    [b"[{\"functionDeclarations\":[", &*list, b"]}]"].concat()
}
