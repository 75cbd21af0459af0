//! Writes messages for Chat Completions.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::message::{Block, Message, Reasoning, Role, ToolCall, ToolResult};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json;
use crate::names;
use crate::openai_chat::content::{part, text_part};
use crate::profile::{EmptyContent, Profile, ReplayReasoning, ToolImages};
use crate::refusal;

/// The writer of one call.
pub(crate) struct Writer<'a> {
    pub(crate) profile: &'a Profile,
    /// Whose seals are sent back.
    pub(crate) issuer: Arc<str>,
}

/// What the model reads before the images of a tool, which stand in a message of the user.
const TOOL_IMAGES: &str = "Images from the tool results above, in order:";

/// What is put between tool results and a user message, for servers that do not take the one behind the other.
const BRIDGE: &str = "I have read the tool results.";

/// An assistant message on the wire.
#[derive(Default, Serialize)]
#[serde(tag = "role", rename = "assistant")]
struct Answer<'m> {
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    #[serde(flatten)]
    reasoning: Map<String, Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    refusal: String,
    #[serde(rename = "tool_calls", skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallOut<'m>>,
}

#[derive(Serialize)]
struct CallOut<'m> {
    id: Cow<'m, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionOut<'m>,
    #[serde(flatten)]
    seal: Option<&'m Map<String, Value>>,
}

#[derive(Serialize)]
struct FunctionOut<'m> {
    name: Cow<'m, str>,
    /// JSON in a string.
    arguments: String,
}

#[derive(Serialize)]
struct ResultOut<'m> {
    role: &'static str,
    tool_call_id: Cow<'m, str>,
    content: Value,
}

impl Writer<'_> {
    pub(super) fn write(&self, messages: &[Arc<Message>], index: usize, marked: bool, out: &mut Vec<u8>) {
        let Some(message) = messages.get(index) else { return };
        let before = index.checked_sub(1).and_then(|at| messages.get(at));
        match message.role {
            Role::Assistant => {
                self.close_user(before, out);
                self.assistant(message, out);
            }
            Role::Tool => {
                self.close_user(before, out);
                self.tool_results(message, marked, out);
            }
            _ => {
                // A host may put results into a user message: they come first, as every server wants it.
                let has_results = message.tool_results().next().is_some();
                if has_results {
                    self.close_user(before, out);
                    self.tool_results(message, marked, out);
                }
                if !has_results || message.blocks.iter().any(|block| part(self.profile, block).is_some()) {
                    self.user(message, before, has_results, marked, out);
                }
            }
        }
    }

    fn user(
        &self,
        message: &Message,
        before: Option<&Arc<Message>>,
        has_results: bool,
        marked: bool,
        out: &mut Vec<u8>,
    ) {
        let mut parts: Vec<Value> =
            message.blocks.iter().filter_map(|block| part(self.profile, block)).collect();
        if marked {
            self.mark(parts.last_mut());
        }
        let behind_tools = has_results || before.is_some_and(|message| message.role == Role::Tool);
        if behind_tools && self.profile.bridge_after_tools {
            push(out, &json!({"role": "assistant", "content": BRIDGE}));
        }
        if self.profile.merge_user_messages {
            // The message stays open: the next one may go on with it.
            let goes_on = !has_results && before.is_some_and(|message| leaves_open(self.profile, message));
            if parts.is_empty() {
                parts.push(text_part(""));
            }
            if !goes_on {
                out.extend_from_slice(br#",{"role":"user","content":["#);
            }
            let text = parts.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
            if goes_on {
                out.push(b',');
            }
            out.extend_from_slice(text.as_bytes());
            return;
        }
        push(out, &json!({"role": "user", "content": content(parts)}));
    }

    fn close_user(&self, before: Option<&Arc<Message>>, out: &mut Vec<u8>) {
        if before.is_some_and(|message| leaves_open(self.profile, message)) {
            out.extend_from_slice(b"]}");
        }
    }

    fn mark(&self, part: Option<&mut Value>) {
        if let (true, Some(Value::Object(part))) = (self.profile.cache_control_parts, part) {
            part.insert("cache_control".into(), json!({"type": "ephemeral"}));
        }
    }

    fn assistant(&self, message: &Message, out: &mut Vec<u8>) {
        let texts = |wanted: bool| -> String {
            let blocks = refusal::told_apart(&message.blocks, &self.issuer);
            blocks
                .filter(|(_, refused)| *refused == wanted)
                .filter_map(|(block, _)| block.as_text())
                .collect()
        };
        let calls: Vec<CallOut<'_>> = message.tool_calls().map(|call| self.call(call)).collect();
        let mut answer = Answer { refusal: texts(true), calls, ..Answer::default() };
        let text = texts(false);
        let replays = match self.profile.replay_reasoning {
            ReplayReasoning::Never => false,
            ReplayReasoning::SameProvider => true,
            ReplayReasoning::WithTools => !answer.calls.is_empty(),
        };
        if replays {
            self.reasoning(message, &text, &mut answer);
        }
        // An answer of nothing but thoughts says nothing that may be sent: an empty one is refused.
        let is_empty = text.is_empty() && answer.refusal.is_empty() && answer.calls.is_empty();
        if is_empty && answer.content.is_none() {
            return;
        }
        if answer.content.is_none() {
            answer.content = if !text.is_empty() {
                Some(text.into())
            } else if !answer.refusal.is_empty() {
                Some(Value::Null)
            } else {
                match self.profile.empty_content {
                    EmptyContent::Empty => Some("".into()),
                    EmptyContent::Null => Some(Value::Null),
                    EmptyContent::Absent => None,
                }
            };
        }
        push(out, &answer);
    }

    fn call<'m>(&self, call: &'m ToolCall) -> CallOut<'m> {
        let own = call.seal.as_ref().filter(|seal| seal.issuer == self.issuer);
        CallOut {
            id: self.profile.tool_id_format.on_wire(call.id.as_str()),
            kind: "function",
            function: FunctionOut { name: names::on_wire(&call.name), arguments: call.arguments.to_string() },
            seal: own.and_then(|seal| seal.data.as_object()),
        }
    }

    /// Sends reasoning back under the name it came by. The seals say which that was.
    fn reasoning(&self, message: &Message, text: &str, answer: &mut Answer<'_>) {
        let mine = message.blocks.iter().filter_map(|block| match block {
            Block::Reasoning(reasoning) => Some((reasoning, self.own_seal(reasoning)?)),
            _ => None,
        });
        let mut thinking = Vec::new();
        for (reasoning, seal) in mine {
            let field = seal.get("field").and_then(Value::as_str);
            match field {
                Some("thinking") => thinking.push(json!({
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": reasoning.text}],
                })),
                Some(field) => match answer.reasoning.get_mut(field) {
                    Some(Value::String(text)) => text.push_str(&reasoning.text),
                    _ => {
                        answer.reasoning.insert(field.to_owned(), reasoning.text.clone().into());
                    }
                },
                None => {}
            }
            if let Some(details) = seal.get("reasoning_details") {
                answer.reasoning.insert("reasoning_details".into(), details.clone());
            }
        }
        if !thinking.is_empty() {
            if !text.is_empty() {
                thinking.push(text_part(text));
            }
            answer.content = Some(thinking.into());
        }
    }

    fn own_seal<'m>(&self, reasoning: &'m Reasoning) -> Option<&'m Map<String, Value>> {
        let seal = reasoning.seal.as_ref().filter(|seal| seal.issuer == self.issuer)?;
        seal.data.as_object()
    }

    fn tool_results(&self, message: &Message, marked: bool, out: &mut Vec<u8>) {
        let mut images = Vec::new();
        let count = message.tool_results().count();
        for (at, result) in message.tool_results().enumerate() {
            let is_last = at + 1 == count;
            let mut content = self.result_content(result, &mut images);
            if marked && is_last && self.profile.cache_control_parts {
                let mut parts = match content {
                    Value::Array(parts) => parts,
                    text => vec![json!({"type": "text", "text": text})],
                };
                self.mark(parts.last_mut());
                content = parts.into();
            }
            let id = self.profile.tool_id_format.on_wire(result.id.as_str());
            push(out, &ResultOut { role: "tool", tool_call_id: id, content });
        }
        // Texts that a host put among the results are its own words.
        if message.role == Role::Tool {
            images.extend(message.blocks.iter().filter_map(|block| part(self.profile, block)));
        }
        if !images.is_empty() {
            if self.profile.bridge_after_tools {
                push(out, &json!({"role": "assistant", "content": BRIDGE}));
            }
            push(out, &json!({"role": "user", "content": images}));
        }
    }

    /// What a tool message says. Images that it cannot hold are added to `images`.
    fn result_content(&self, result: &ToolResult, images: &mut Vec<Value>) -> Value {
        let text = error_marked(result);
        let mut others: Vec<Value> = result
            .content
            .iter()
            .filter(|block| !matches!(block, Block::Text { .. }))
            .filter_map(|block| part(self.profile, block))
            .collect();
        if others.is_empty() {
            return text.into();
        }
        // What could not be sent is a text by now, and stays with its result.
        let is_text = |part: &Value| part.get("type").is_some_and(|kind| kind == "text");
        if self.profile.tool_images == ToolImages::Inline || others.iter().all(is_text) {
            if !text.is_empty() {
                others.insert(0, text_part(&text));
            }
            return others.into();
        }
        if images.is_empty() {
            images.push(text_part(TOOL_IMAGES));
        }
        let (texts, pictures): (Vec<Value>, Vec<Value>) = others.into_iter().partition(is_text);
        let stands_in = texts.iter().filter_map(|part| part.get("text")?.as_str());
        let note = format!("[{} shown in the next user message]", plural(pictures.len()));
        images.extend(pictures);
        let lines = Some(text.as_str()).filter(|text| !text.is_empty()).into_iter().chain(stands_in);
        lines.chain([note.as_str()]).collect::<Vec<_>>().join("\n").into()
    }
}

fn plural(images: usize) -> String {
    if images == 1 { "1 image is".into() } else { format!("{images} images are") }
}

/// The text of a result. This wire has no flag for failures: the text says it.
fn error_marked(result: &ToolResult) -> String {
    let text = result.text();
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if result.status.is_error() && !says_so { format!("Error: {text}") } else { text }
}

/// One text as a string, which all servers take; anything else as parts.
fn content(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [] => "".into(),
        [Value::Object(only)] if only.len() == 2 && only.contains_key("text") => {
            only.remove("text").unwrap_or_default()
        }
        _ => parts.into(),
    }
}

/// Whether the message was written open, to be gone on with.
fn leaves_open(profile: &Profile, message: &Message) -> bool {
    profile.merge_user_messages
        && message.role == Role::User
        && (message.tool_results().next().is_none()
            || message.blocks.iter().any(|block| part(profile, block).is_some()))
}

/// Closes what the last message left open.
pub(super) fn close(profile: &Profile, messages: &[Arc<Message>], out: &mut Vec<u8>) {
    if messages.last().is_some_and(|message| leaves_open(profile, message)) {
        out.extend_from_slice(b"]}");
    }
}

fn push(out: &mut Vec<u8>, item: &impl Serialize) {
    out.push(b',');
    json::push(out, item);
}
