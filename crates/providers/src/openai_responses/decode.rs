//! Reads Responses answers.
//!
//! The items that arrive whole are what counts (`response.output_item.done`, or the list in the last event for servers
//! that send no such events; some send an empty list there instead). Deltas are a preview. Unknown events and items
//! appear all the time: events are skipped, items kept raw.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use haversack_agent_core::message::{Block, CallId, Opaque, Reasoning, Seal, ToolCall};
use haversack_agent_core::model::ModelEvent;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::accumulate::Accumulator;
use crate::fault::{Events, Fault};
use crate::lenient::{self, Count, Text};
use crate::names;
use crate::refusal;
use crate::stop;

/// Items that one answer may have.
const MAX_ITEMS: usize = 4096;

/// One event. Fields of all kinds in one struct, since the kind may come last.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    item_id: Text<'a>,
    output_index: Count,
    item: Option<Value>,
    response: Option<Value>,
}

/// The text that is being written, for the case that its item never comes whole.
#[derive(Debug)]
enum Open {
    Text(String),
    Reasoning(String),
    Refusal(String),
}

/// The reader of one answer.
#[derive(Debug)]
pub(crate) struct ResponsesAccumulator {
    issuer: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    max_bytes: usize,
    bytes: usize,
    open: Option<Open>,
    /// Calls that were told of, by the id of their item or its place.
    calls: HashMap<String, u32>,
    next_call: u32,
    items: usize,
    has_calls: bool,
    has_refusal: bool,
    started: bool,
    stopped: bool,
}

impl ResponsesAccumulator {
    pub(super) fn new(issuer: Arc<str>, tools: Arc<[Arc<ToolSpec>]>, max_bytes: usize) -> Self {
        Self {
            issuer,
            tools,
            max_bytes,
            bytes: 0,
            open: None,
            calls: HashMap::new(),
            next_call: 0,
            items: 0,
            has_calls: false,
            has_refusal: false,
            started: false,
            stopped: false,
        }
    }

    fn handle(&mut self, event: Event<'_>, data: &[u8], out: &mut Events) -> Result<(), Fault> {
        let kind = event.kind.0.as_deref().unwrap_or_default();
        match kind {
            "response.output_text.delta" => {
                let delta = event.delta.filled().unwrap_or_default();
                self.preview(delta, false, out)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = event.delta.filled().unwrap_or_default();
                self.preview(delta, true, out)
            }
            "response.refusal.delta" => {
                let delta = event.delta.filled().unwrap_or_default();
                self.refusal(delta, out)
            }
            "response.function_call_arguments.delta" => {
                let key = key(event.item_id.as_filled(), event.output_index);
                let delta = event.delta.filled().unwrap_or_default();
                self.grow(delta.len())?;
                if let (Some(index), false) = (self.calls.get(&*key), delta.is_empty()) {
                    out.push_back(ModelEvent::ToolArguments { index: *index, delta: delta.into_owned() });
                }
                Ok(())
            }
            "response.output_item.added" => {
                self.announce(&event.item.unwrap_or_default(), event.output_index, out)
            }
            "response.output_item.done" => self.item(event.item.unwrap_or_default(), out),
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start(event.response.as_ref(), out);
                Ok(())
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.finish(event.response.unwrap_or_default(), out)
            }
            "error" => Err(Fault::Reported(serde_json::from_slice(data).unwrap_or_default())),
            // Servers that answer with Chat's way of reporting an error.
            "" => match serde_json::from_slice::<Value>(data) {
                Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => {
                    Err(Fault::Reported(value))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.max_bytes {
            return Err(Fault::Protocol(format!("the answer is longer than {} bytes", self.max_bytes)));
        }
        Ok(())
    }

    fn preview(&mut self, delta: Cow<'_, str>, is_reasoning: bool, out: &mut Events) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        match (&mut self.open, is_reasoning) {
            // An item that refuses and says something as well: the preview is of what came first.
            (Some(Open::Refusal(_)), false) => return Ok(()),
            (Some(Open::Text(text)), false) | (Some(Open::Reasoning(text)), true) => text.push_str(&delta),
            (open, true) => *open = Some(Open::Reasoning(delta.clone().into_owned())),
            (open, false) => *open = Some(Open::Text(delta.clone().into_owned())),
        }
        let delta = delta.into_owned();
        out.push_back(if is_reasoning { ModelEvent::Reasoning(delta) } else { ModelEvent::Text(delta) });
        Ok(())
    }

    /// A refusal reads as text and is a block of its own.
    fn refusal(&mut self, delta: Cow<'_, str>, out: &mut Events) -> Result<(), Fault> {
        self.grow(delta.len())?;
        match &mut self.open {
            Some(Open::Text(_)) => return Ok(()),
            Some(Open::Refusal(text)) => text.push_str(&delta),
            open => *open = Some(Open::Refusal(delta.clone().into_owned())),
        }
        if !delta.is_empty() {
            out.push_back(ModelEvent::Text(delta.into_owned()));
        }
        Ok(())
    }

    fn start(&mut self, response: Option<&Value>, out: &mut Events) {
        if !std::mem::replace(&mut self.started, true) {
            let text = |name: &str| response?.get(name)?.as_str().map(str::to_owned);
            out.push_back(ModelEvent::Started { response_id: text("id"), model: text("model") });
        }
    }

    /// Tells of a call when its item begins.
    fn announce(&mut self, item: &Value, place: Count, out: &mut Events) -> Result<(), Fault> {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if text("type") != Some("function_call") {
            return Ok(());
        }
        let (Some(id), Some(name)) = (text("call_id").or(text("id")), text("name")) else { return Ok(()) };
        if self.calls.len() >= MAX_ITEMS {
            return Err(Fault::Protocol(format!("more than {MAX_ITEMS} calls")));
        }
        let index = self.next_call;
        self.next_call += 1;
        self.calls.insert(key(text("id"), place).into_owned(), index);
        let name = names::from_wire(name, &self.tools);
        out.push_back(ModelEvent::ToolCallStarted { index, id: CallId::new(id), name });
        Ok(())
    }

    /// Puts out an item that is whole.
    fn item(&mut self, item: Value, out: &mut Events) -> Result<(), Fault> {
        self.open = None;
        self.items += 1;
        if self.items > MAX_ITEMS {
            return Err(Fault::Protocol(format!("more than {MAX_ITEMS} items")));
        }
        let Value::Object(object) = item else { return Ok(()) };
        match object.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message" => self.message(&object, out),
            "reasoning" => out.push_back(ModelEvent::BlockDone(self.reasoning(object))),
            "function_call" => {
                self.has_calls = true;
                let call = self.function_call(&object)?;
                out.push_back(ModelEvent::BlockDone(call.into()));
            }
            _ => out.push_back(ModelEvent::BlockDone(self.opaque(Value::Object(object)))),
        }
        Ok(())
    }

    fn opaque(&self, raw: Value) -> Block {
        Block::Opaque(Opaque::new(Arc::clone(&self.issuer), raw))
    }

    fn message(&mut self, item: &Map<String, Value>, out: &mut Events) {
        let mut texts: Vec<(bool, String)> = Vec::new();
        for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
            let (refused, field) = match part.get("type").and_then(Value::as_str) {
                Some("output_text") => (false, "text"),
                Some("refusal") => (true, "refusal"),
                _ => continue,
            };
            let text = part.get(field).and_then(Value::as_str).unwrap_or_default();
            match texts.last_mut() {
                Some((before, joined)) if *before == refused => joined.push_str(text),
                _ => texts.push((refused, text.to_owned())),
            }
        }
        if texts.len() > 1 {
            texts.retain(|(_, text)| !text.is_empty());
        }
        if texts.is_empty() {
            texts.push((false, String::new()));
        }
        for (refused, text) in texts {
            out.push_back(ModelEvent::BlockDone(Block::Text { text }));
            if refused {
                self.has_refusal = true;
                out.push_back(ModelEvent::BlockDone(refusal::mark(&self.issuer)));
            }
        }
    }

    fn reasoning(&self, mut item: Map<String, Value>) -> Block {
        let texts = |list: &str, kind: Option<&str>| -> String {
            let parts = item.get(list).and_then(Value::as_array).into_iter().flatten();
            let parts = parts
                .filter(|part| kind.is_none_or(|kind| part.get("type").is_some_and(|found| found == kind)));
            parts.filter_map(|part| part.get("text")?.as_str()).collect()
        };
        let has_summary = item.get("summary").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let text =
            if has_summary { texts("summary", None) } else { texts("content", Some("reasoning_text")) };
        // The server's own remark, which it does not take back.
        item.remove("status");
        let seal = Seal::new(Arc::clone(&self.issuer), Value::Object(item));
        Block::Reasoning(Reasoning::new(text).with_seal(seal))
    }

    fn function_call(&self, item: &Map<String, Value>) -> Result<ToolCall, Fault> {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(name) = text("name") else {
            return Err(Fault::InvalidToolCall("a call without a name".into()));
        };
        let id = text("call_id").or(text("id")).map_or_else(|| format!("call_{}", self.items), str::to_owned);
        let name = names::from_wire(name, &self.tools);
        Ok(match item.get("arguments") {
            Some(Value::String(arguments)) => ToolCall::from_text(id, name, arguments),
            Some(Value::Null) | None => ToolCall::from_text(id, name, ""),
            Some(other) => ToolCall::from_text(id, name, &other.to_string()),
        })
    }

    /// Takes the response as a whole, and puts out the end.
    fn finish(&mut self, mut response: Value, out: &mut Events) -> Result<(), Fault> {
        self.start(Some(&response), out);
        if let Some(Value::Array(items)) = response.get_mut("output").map(Value::take) {
            // Items that came by events stand there again.
            for item in items.into_iter().skip(self.items) {
                self.item(item, out)?;
            }
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            out.push_back(ModelEvent::Usage(usage_of(usage)));
        }
        let status = response.get("status").and_then(Value::as_str);
        let error = response.get("error").filter(|error| !error.is_null());
        if status == Some("failed") || error.is_some_and(Value::is_object) {
            return Err(Fault::Reported(json!({"error": error, "status": status})));
        }
        let detail = response.get("incomplete_details").and_then(|details| details.get("reason")?.as_str());
        let raw = detail.or(status).map(str::to_owned);
        let mut reason = stop::reason(raw.as_deref(), self.has_calls);
        if self.has_refusal {
            reason = haversack_agent_core::usage::StopReason::Filtered;
        }
        self.stopped = true;
        out.push_back(ModelEvent::Stop { reason, raw });
        Ok(())
    }
}

impl Accumulator for ResponsesAccumulator {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault> {
        // OpenRouter closes this stream, too, the Chat way. It says nothing about the answer.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        match serde_json::from_slice::<Event<'_>>(data) {
            Ok(event) => self.handle(event, data, out),
            Err(error) => {
                let plainer = lenient::plainer(data).map_err(|_| unreadable(&error))?;
                let event = serde_json::from_slice(&plainer).map_err(|error| unreadable(&error))?;
                self.handle(event, &plainer, out)
            }
        }
    }

    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        let response: Value = match serde_json::from_slice(body) {
            Ok(response) => response,
            Err(error) => {
                let plainer = lenient::plainer(body).map_err(|_| unreadable(&error))?;
                serde_json::from_slice(&plainer).map_err(|error| unreadable(&error))?
            }
        };
        if response.get("output").is_none() {
            let is_error = ["error", "detail", "message"]
                .iter()
                .any(|name| response.get(name).is_some_and(|value| !value.is_null()));
            return Err(if is_error {
                Fault::Reported(response)
            } else {
                Fault::Protocol("a response without output".into())
            });
        }
        self.finish(response, out)
    }

    fn end(&mut self, _out: &mut Events) -> Result<(), Fault> {
        Ok(())
    }

    fn abandon(&mut self, out: &mut Events) {
        match self.open.take() {
            Some(Open::Text(text)) => out.push_back(ModelEvent::BlockDone(Block::Text { text })),
            Some(Open::Refusal(text)) => {
                out.push_back(ModelEvent::BlockDone(Block::Text { text }));
                out.push_back(ModelEvent::BlockDone(refusal::mark(&self.issuer)));
            }
            Some(Open::Reasoning(text)) => {
                out.push_back(ModelEvent::BlockDone(Block::Reasoning(Reasoning::new(text))));
            }
            None => {}
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// What ties the events of an item together: its id, or its place where servers leave that out.
fn key(id: Option<&str>, place: Count) -> Cow<'_, str> {
    id.map_or_else(|| Cow::Owned(format!("#{}", place.0.unwrap_or_default())), Cow::Borrowed)
}

fn usage_of(usage: &Value) -> Usage {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64);
    let detail = |list: &str, name: &str| count(usage.get(list).and_then(|details| details.get(name)));
    let mut counts = Usage::default();
    counts.input = count(usage.get("input_tokens"));
    counts.output = count(usage.get("output_tokens"));
    counts.cached = detail("input_tokens_details", "cached_tokens");
    counts.cache_write = detail("input_tokens_details", "cache_write_tokens");
    counts.reasoning = detail("output_tokens_details", "reasoning_tokens");
    counts
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::Protocol(format!("an event that does not read: {error}"))
}
