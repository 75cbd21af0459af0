//! Reads Anthropic's stream of typed events, or its whole message, into [`ModelEvent`]s.
//!
//! Blocks are keyed by their index and may overlap: llama.cpp opens block 1 before it closes block 0. They are
//! given on in the order of the message, each once it is closed. A tool call is whole when its block is closed or
//! the message is, and never before.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use haversack_agent_core::model::ModelEvent;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::StopReason;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::accumulate::Accumulator;
use crate::anthropic::draft::Draft;
use crate::anthropic::wire::{Counts, Event, Head, Kind, Text};
use crate::fault::{Events, Fault};
use crate::memo::Memo;
use crate::names;

/// Blocks that may be open at once. Real servers have one or two open; the bound keeps the search for a block by
/// its index short.
const MAX_OPEN_BLOCKS: usize = 256;

#[derive(Debug)]
struct Slot {
    index: u64,
    closed: bool,
    draft: Draft,
}

/// What the string of a delta is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Text,
    Thinking,
    Json,
    Signature,
}

/// Accumulates one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    issuer: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    max_bytes: usize,
    bytes: usize,
    slots: VecDeque<Slot>,
    calls: u32,
    counts: Counts,
    stop: Option<String>,
    stopped: bool,
    memo: Memo<(u64, Aim)>,
}

impl Decoder {
    /// A decoder that seals what has to go back under this issuer, for an answer of at most `max_bytes` of text.
    pub(crate) fn new(issuer: Arc<str>, max_bytes: usize, tools: Arc<[Arc<ToolSpec>]>) -> Self {
        Self {
            issuer,
            tools,
            max_bytes,
            bytes: 0,
            slots: VecDeque::new(),
            calls: 0,
            counts: Counts::default(),
            stop: None,
            stopped: false,
            memo: Memo::default(),
        }
    }

    fn take(&mut self, data: &[u8], out: &mut Events) -> Result<(), Fault> {
        // Anthropic pads its events with blanks of random length.
        let data = data.trim_ascii();
        if self.stopped || data.is_empty() {
            return Ok(());
        }
        if let Some(((index, aim), text)) = self.memo.recall(data) {
            return self.delta(index, aim, Cow::Borrowed(text), out);
        }
        if data == b"[DONE]" {
            // Some gateways close the stream the OpenAI way, in place of the last event or after it.
            return if self.stop.is_some() { self.message_stop(out) } else { Ok(()) };
        }
        let text = String::from_utf8_lossy(data);
        let event = match serde_json::from_str::<Event<'_>>(&text) {
            Ok(event) => event,
            Err(error) => return unreadable(&text, &error),
        };
        match &*event.kind {
            "content_block_delta" => self.block_delta(event, &text, out),
            "content_block_start" => match event.content_block {
                Some(block) => self.block_start(event.index, block, out),
                None => Err(Fault::Protocol("a content_block_start event without a content_block".into())),
            },
            "content_block_stop" => {
                if let Some(slot) = self.slot(event.index) {
                    slot.closed = true;
                }
                self.flush(out);
                Ok(())
            }
            "message_start" => {
                self.head(event.message, out);
                Ok(())
            }
            "message_delta" => {
                self.counts(event.usage, out);
                self.stop = event.delta.and_then(|delta| delta.stop_reason).or(self.stop.take());
                Ok(())
            }
            "message_stop" => self.message_stop(out),
            "error" => Err(Fault::Reported(serde_json::from_str(&text).unwrap_or_default())),
            _ => Ok(()),
        }
    }

    fn whole(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(body);
        let value: Value = serde_json::from_str(text.trim())
            .map_err(|error| Fault::Protocol(format!("the answer is no JSON: {error}")))?;
        if value.get("type").and_then(Value::as_str) == Some("error")
            || value.get("error").is_some_and(|error| !error.is_null())
        {
            return Err(Fault::Reported(value));
        }
        let mut head = Head::deserialize(&value)
            .map_err(|error| Fault::Protocol(format!("the answer is no message: {error}")))?;
        let blocks = head.content.take().unwrap_or_default();
        self.stop = head.stop_reason.take();
        self.head(Some(head), out);
        for (index, block) in blocks.into_iter().enumerate() {
            self.block_start(index as u64, block, out)?;
            self.slots.iter_mut().for_each(|slot| slot.closed = true);
            self.flush(out);
        }
        self.message_stop(out)
    }

    fn head(&mut self, head: Option<Head>, out: &mut Events) {
        let Some(head) = head else { return };
        out.push_back(ModelEvent::Started { response_id: head.id, model: head.model });
        self.counts(head.usage, out);
    }

    fn counts(&mut self, counts: Option<Counts>, out: &mut Events) {
        if let Some(counts) = counts {
            self.counts.merge(counts);
            out.push_back(ModelEvent::Usage(self.counts.normalised()));
        }
    }

    fn slot(&mut self, index: u64) -> Option<&mut Slot> {
        self.slots.iter_mut().rfind(|slot| slot.index == index)
    }

    fn block_start(
        &mut self,
        index: u64,
        mut block: Map<String, Value>,
        out: &mut Events,
    ) -> Result<(), Fault> {
        if self.slots.len() >= MAX_OPEN_BLOCKS {
            return Err(Fault::Protocol(format!(
                "more than {MAX_OPEN_BLOCKS} content blocks are open at once"
            )));
        }
        let mut first = None;
        let draft = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                first = Some((Aim::Text, take_text(&mut block, "text")));
                let citations = block.remove("citations");
                Draft::Text { text: String::new(), citations: array(citations) }
            }
            Some("thinking") => {
                first = Some((Aim::Thinking, take_text(&mut block, "thinking")));
                Draft::Thinking { text: String::new(), signature: take_text(&mut block, "signature") }
            }
            Some("redacted_thinking") => Draft::Redacted { data: block.remove("data").unwrap_or_default() },
            Some("tool_use") => self.call_start(&mut block, out),
            _ => Draft::Other { raw: block, json: String::new() },
        };
        self.end_before(index, out)?;
        let place = self.slots.partition_point(|slot| slot.index <= index);
        self.slots.insert(place, Slot { index, closed: false, draft });
        match first {
            Some((aim, text)) => self.delta(index, aim, Cow::Owned(text), out),
            None => Ok(()),
        }
    }

    /// Ends a block whose index is used again. What it shows is not taken back; a call is not known to be whole.
    fn end_before(&mut self, index: u64, out: &mut Events) -> Result<(), Fault> {
        let Some(slot) = self.slot(index) else { return Ok(()) };
        if matches!(slot.draft, Draft::Call { .. }) && !slot.closed {
            return Err(Fault::Protocol(format!(
                "content block {index} began again in the middle of a call"
            )));
        }
        slot.closed = true;
        self.flush(out);
        Ok(())
    }

    fn call_start(&mut self, block: &mut Map<String, Value>, out: &mut Events) -> Draft {
        let number = self.calls;
        self.calls = self.calls.saturating_add(1);
        let mut id = take_text(block, "id");
        if id.is_empty() {
            id = format!("call_{number}");
        }
        let name = names::from_wire(&take_text(block, "name"), &self.tools);
        out.push_back(ModelEvent::ToolCallStarted {
            index: number,
            id: id.as_str().into(),
            name: Arc::clone(&name),
        });
        // Not streamed, the input stands here; streamed, it is an empty object or left out.
        let input = block.remove("input").unwrap_or_default();
        Draft::Call { number, id, name, json: String::new(), input, caller: block.remove("caller") }
    }

    fn block_delta(&mut self, event: Event<'_>, data: &str, out: &mut Events) -> Result<(), Fault> {
        let Some(delta) = event.delta else { return Ok(()) };
        let found = match &*delta.kind {
            "text_delta" => delta.text.map(|text| (Aim::Text, text)),
            "input_json_delta" => delta.partial_json.map(|text| (Aim::Json, text)),
            "thinking_delta" => delta.thinking.map(|text| (Aim::Thinking, text)),
            "signature_delta" => delta.signature.map(|text| (Aim::Signature, text)),
            "citations_delta" => {
                if let (Some(citation), Some(Slot { draft: Draft::Text { citations, .. }, .. })) =
                    (delta.citation, self.slot(event.index))
                {
                    citations.push(citation);
                }
                return Ok(());
            }
            _ => None,
        };
        let Some((aim, Text(text))) = found else { return Ok(()) };
        self.memo.learn(data.as_bytes(), &text, (event.index, aim));
        self.delta(event.index, aim, text, out)
    }

    fn delta(&mut self, index: u64, aim: Aim, text: Cow<'_, str>, out: &mut Events) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.max_bytes {
            return Err(Fault::Protocol(format!("the answer is longer than {} bytes", self.max_bytes)));
        }
        let Some(slot) = self.slot(index) else { return Ok(()) };
        match (&mut slot.draft, aim) {
            (Draft::Text { text: whole, .. }, Aim::Text) => {
                whole.push_str(&text);
                out.push_back(ModelEvent::Text(text.into_owned()));
            }
            (Draft::Thinking { text: whole, .. }, Aim::Thinking) => {
                whole.push_str(&text);
                out.push_back(ModelEvent::Reasoning(text.into_owned()));
            }
            (Draft::Thinking { signature, .. }, Aim::Signature) => signature.push_str(&text),
            (Draft::Call { number, json, .. }, Aim::Json) => {
                json.push_str(&text);
                out.push_back(ModelEvent::ToolArguments { index: *number, delta: text.into_owned() });
            }
            (Draft::Other { json, .. }, Aim::Json) => json.push_str(&text),
            // A delta of another kind than its block has no meaning that is known.
            _ => {}
        }
        Ok(())
    }

    /// Gives on the blocks at the front that are closed.
    fn flush(&mut self, out: &mut Events) {
        while self.slots.front().is_some_and(|slot| slot.closed) {
            let Some(slot) = self.slots.pop_front() else { return };
            slot.draft.finish(&self.issuer, out);
        }
    }

    fn message_stop(&mut self, out: &mut Events) -> Result<(), Fault> {
        self.slots.iter_mut().for_each(|slot| slot.closed = true);
        self.flush(out);
        self.stopped = true;
        let raw = self.stop.take();
        let reason = stop_reason(raw.as_deref(), self.calls > 0);
        out.push_back(ModelEvent::Stop { reason, raw });
        Ok(())
    }
}

impl Accumulator for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault> {
        self.take(data, out)
    }

    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        self.whole(body, out)
    }

    /// The end mark is an event; without it the answer may be cut anywhere.
    fn end(&mut self, _out: &mut Events) -> Result<(), Fault> {
        Ok(())
    }

    fn abandon(&mut self, out: &mut Events) {
        for slot in std::mem::take(&mut self.slots) {
            match slot.draft {
                // A thought that is cut off has no signature, so it could never go back as what it is.
                Draft::Text { ref text, .. } if !text.is_empty() => slot.draft.finish(&self.issuer, out),
                _ => {}
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// Why the model stopped. An answer with tool calls that simply ended is a tool turn, whatever word was used.
fn stop_reason(raw: Option<&str>, has_calls: bool) -> StopReason {
    match raw {
        Some("max_tokens" | "length") => StopReason::MaxTokens,
        Some("stop_sequence") => StopReason::StopSequence,
        Some("refusal" | "content_filter") => StopReason::Filtered,
        Some("pause_turn") => StopReason::Pause,
        Some("model_context_window_exceeded") => StopReason::ContextWindow,
        Some("tool_use" | "tool_calls") => StopReason::ToolUse,
        _ if has_calls => StopReason::ToolUse,
        None | Some("end_turn" | "stop") => StopReason::EndTurn,
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

/// An event that does not parse: of a kind that is not known it is skipped, since kinds are added all the time.
fn unreadable(text: &str, error: &serde_json::Error) -> Result<(), Fault> {
    const KNOWN: [&str; 7] = [
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "message_start",
        "message_delta",
        "message_stop",
        "error",
    ];
    match serde_json::from_str::<Kind<'_>>(text) {
        Ok(event) if !KNOWN.contains(&&*event.kind) => Ok(()),
        Ok(event) if event.kind == "error" => {
            Err(Fault::Reported(serde_json::from_str(text).unwrap_or_default()))
        }
        Ok(event) => Err(Fault::Protocol(format!("a {} event does not read: {error}", event.kind))),
        Err(_) => Err(Fault::Protocol(format!("an event is no JSON: {error}"))),
    }
}

fn take_text(map: &mut Map<String, Value>, key: &str) -> String {
    match map.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn array(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
