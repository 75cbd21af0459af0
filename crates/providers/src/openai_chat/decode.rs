//! Reads Chat Completions answers, streamed or whole, from whatever server.
//!
//! Nothing is trusted alone: not `index`, `id`, `finish_reason`, `usage`, `[DONE]` or the status. The rules, each of
//! which some server made necessary:
//!
//! - A tool call goes on while its index, id and name do not say otherwise; it begins with a new index, a new id under
//!   the same index, or a new name.
//! - The first id and the first name that are not empty count; arguments are joined and parsed once, at the end.
//! - The first finish reason that says more than `stop` counts, later ones only repeat it. The end is put out once, when
//!   the stream is over.
//! - Without a finish reason and without `[DONE]` the answer is not whole.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::message::Seal;
use haversack_agent_core::model::ModelEvent;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Map, Value, json};

use crate::accumulate::{Accumulator, Assembly, Slot};
use crate::endpoint::Limits;
use crate::fault::{Events, Fault};
use crate::lenient::{self, TextOr};
use crate::memo::Memo;
use crate::names;
use crate::openai_chat::reasoning::{Details, parts_of};
use crate::openai_chat::rescue;
use crate::openai_chat::wire::{Call, Chunk, Counts, Delta, Function};
use crate::profile::Profile;
use crate::refusal;
use crate::stop;
use crate::think::{Part, ThinkSplitter};

/// What an event means that differs from the last one only in its string.
#[derive(Clone, Copy, Debug)]
enum Aim {
    Text,
    Reasoning,
    Arguments(Slot),
}

/// One call on the wire, and where it is written.
#[derive(Debug)]
struct Known {
    index: Option<u64>,
    slot: Slot,
    id: Option<String>,
    /// Its arguments came as an object: text after it is none of its own.
    is_whole: bool,
}

/// Whether the model refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    None,
    /// The text that is being written is a refusal.
    Open,
    Done,
}

/// The reader of one answer.
#[derive(Debug)]
pub(crate) struct ChatAccumulator {
    issuer: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    rescues: bool,
    answer: Assembly,
    memo: Memo<Aim>,
    think: Option<ThinkSplitter>,
    calls: Vec<Known>,
    /// The call that went on last.
    current: Option<usize>,
    refusal: Refusal,
    reasoning_field: Option<&'static str>,
    reasoning_details: Details,
    usage: Usage,
    finish: Option<String>,
    /// The finish reason that counts, if it is another than the last one.
    latched: Option<String>,
    started: bool,
    stopped: bool,
}

impl ChatAccumulator {
    pub(super) fn new(
        issuer: Arc<str>,
        profile: &Profile,
        tools: Arc<[Arc<ToolSpec>]>,
        limits: Limits,
    ) -> Self {
        Self {
            issuer,
            rescues: profile.text_tool_rescue && !tools.is_empty(),
            tools,
            answer: Assembly::new(limits.max_answer_bytes).holding_reasoning(),
            memo: Memo::default(),
            think: profile.think_tags.then(ThinkSplitter::default),
            calls: Vec::new(),
            current: None,
            refusal: Refusal::None,
            reasoning_field: None,
            reasoning_details: Details::default(),
            usage: Usage::default(),
            finish: None,
            latched: None,
            started: false,
            stopped: false,
        }
    }

    /// Takes a chunk, or a whole answer. `data` are its bytes, to learn the shortcut from.
    fn chunk(&mut self, mut chunk: Chunk<'_>, data: Option<&[u8]>, out: &mut Events) -> Result<(), Fault> {
        if !self.started {
            self.started = true;
            let (response_id, model) = (chunk.id.filled(), chunk.model.filled());
            out.push_back(ModelEvent::Started {
                response_id: response_id.map(Cow::into_owned),
                model: model.map(Cow::into_owned),
            });
        }
        let usage = chunk.usage.0;
        let is_alone = usage.is_none() && chunk.error.is_none() && chunk.choices.0.len() == 1;
        for choice in chunk.choices.0.drain(..) {
            let Some(choice) = choice.0.filter(|choice| matches!(choice.index.0, None | Some(0))) else {
                continue;
            };
            // Some send both in both: the whole message so far in a stream, an empty delta in a whole answer.
            let (delta, finish) = match data {
                Some(_) => (choice.delta.0.or(choice.message.0), choice.finish_reason.filled()),
                None => (choice.message.0.or(choice.delta.0), choice.finish_reason.0),
            };
            // The reason may come with the last text or a whole call: those first.
            if let Some(delta) = delta {
                let learn = data.filter(|_| is_alone && finish.is_none());
                self.delta(delta, learn, out)?;
            }
            if let Some(finish) = finish {
                self.finish(finish);
            }
        }
        if let Some(counts) = usage {
            self.usage(counts, out);
        }
        match chunk.error {
            Some(error) if !error.is_null() => {
                // The reason that came with it says how far the answer was.
                Err(Fault::Reported(json!({"error": error, "finish_reason": self.finish})))
            }
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: Delta<'_>, learn: Option<&[u8]>, out: &mut Events) -> Result<(), Fault> {
        let (text, thought) = match delta.content {
            TextOr::Text(text) => (Some(text), None),
            TextOr::Value(parts) => {
                let (text, thought) = parts_of(&parts);
                (Some(Cow::Owned(text)), Some(thought))
            }
            TextOr::Nothing => (None, None),
        };
        let text = text.filter(|text| !text.is_empty());
        // Some send the same reasoning under two names: one of them is taken.
        let reasoning = delta.reasoning_content.filled().map(|text| ("reasoning_content", text));
        let reasoning = reasoning.or_else(|| Some(("reasoning", delta.reasoning.filled()?)));
        let thought = thought.filter(|text| !text.is_empty()).map(|text| ("thinking", Cow::Owned(text)));
        let reasoning = reasoning.or(thought);

        let plain = delta.reasoning_details.0.is_empty() && delta.refusal.as_filled().is_none();
        if let Some(data) = learn.filter(|_| plain) {
            match (&text, &reasoning, delta.tool_calls.0.as_slice()) {
                (Some(text), None, []) if self.think.is_none() => self.memo.learn(data, text, Aim::Text),
                (None, Some((_, text)), []) => self.memo.learn(data, text, Aim::Reasoning),
                (None, None, [_]) => {} // by the call itself, which knows where it goes
                _ => self.memo.forget(),
            }
        } else {
            self.memo.forget();
        }
        let goes_on = reasoning.is_some() || text.is_some() || !delta.tool_calls.0.is_empty();
        if goes_on {
            self.end_refusal(out)?;
        }
        if let Some((field, text)) = reasoning {
            self.reasoning_field.get_or_insert(field);
            self.answer.reasoning(&text, out)?;
        }
        self.reasoning_details.add(delta.reasoning_details.0)?;
        if let Some(text) = text {
            self.text(&text, out)?;
        }
        if let Some(refusal) = delta.refusal.filled() {
            self.refuse(&refusal, out)?;
        }
        let learn = learn.filter(|_| plain && delta.tool_calls.0.len() == 1);
        for call in delta.tool_calls.0.into_iter().filter_map(|call| call.0) {
            self.call(call, learn, out)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str, out: &mut Events) -> Result<(), Fault> {
        let Some(mut think) = self.think.take_if(|think| !think.is_done()) else {
            return self.answer.text(text, out);
        };
        let mut result = Ok(());
        think.feed(text, |part| result = self.part(part, out).and(std::mem::replace(&mut result, Ok(()))));
        self.think = Some(think);
        result
    }

    /// A refusal is a text block of its own.
    fn refuse(&mut self, text: &str, out: &mut Events) -> Result<(), Fault> {
        if self.refusal != Refusal::Open {
            self.flush_think(out)?;
            self.answer.close(out);
            self.refusal = Refusal::Open;
        }
        self.answer.text(text, out)
    }

    /// Marks the refusal that is being written as such.
    fn end_refusal(&mut self, out: &mut Events) -> Result<(), Fault> {
        if self.refusal != Refusal::Open {
            return Ok(());
        }
        self.refusal = Refusal::Done;
        self.answer.block(refusal::mark(&self.issuer), out)
    }

    fn part(&mut self, part: Part<'_>, out: &mut Events) -> Result<(), Fault> {
        match part {
            Part::Text(text) => self.answer.text(text, out),
            Part::Reasoning(text) => self.answer.reasoning(text, out),
            Part::WasReasoning => {
                self.answer.text_was_reasoning();
                Ok(())
            }
        }
    }

    fn call(&mut self, call: Call<'_>, learn: Option<&[u8]>, out: &mut Events) -> Result<(), Fault> {
        let function = call.function.0.unwrap_or_default();
        let (index, id) = (call.index.0, call.id.filled());
        let Function { name, arguments } = function;
        let name = name.filled();
        let found = self.find(index, id.as_deref(), name.as_deref());
        let at = match found {
            Some(at) => at,
            None => {
                let slot = self.answer.begin_call(out)?;
                self.calls.push(Known { index, slot, id: None, is_whole: false });
                self.calls.len() - 1
            }
        };
        self.current = Some(at);
        let Some(known) = self.calls.get_mut(at) else { return Ok(()) };
        let slot = known.slot;
        if let Some(data) = learn {
            // An id or name that repeats is no news, and then the pieces are alike.
            match &arguments {
                TextOr::Text(text) if found.is_some() && call.extra_content.is_none() && !known.is_whole => {
                    self.memo.learn(data, text, Aim::Arguments(slot));
                }
                _ => self.memo.forget(),
            }
        }
        if let (None, Some(id)) = (&known.id, &id) {
            known.id = Some(id.clone().into_owned());
        }
        if let Some(draft) = self.answer.call(slot) {
            if let (None, Some(id)) = (&draft.id, &id) {
                draft.id = Some(id.clone().into_owned());
            }
            if let (None, Some(name)) = (&draft.name, &name) {
                draft.name = Some(names::from_wire(name, &self.tools));
            }
            if let Some(extra @ Value::Object(_)) = call.extra_content {
                draft.seal = Some(Seal::new(Arc::clone(&self.issuer), json!({"extra_content": extra})));
            }
        }
        self.answer.announce(slot, out);
        match arguments {
            TextOr::Text(text) if !known.is_whole => self.answer.arguments(slot, &text, out)?,
            TextOr::Value(value) => {
                known.is_whole = true;
                if let Some(draft) = self.answer.call(slot) {
                    draft.arguments.clear();
                }
                self.answer.arguments(slot, &value.to_string(), out)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Which of the calls a delta goes on with.
    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let by_id = || self.calls.iter().position(|known| id.is_some() && known.id.as_deref() == id);
        if index.is_none() {
            return by_id().or_else(|| if id.is_none() && name.is_none() { self.current } else { None });
        }
        let at = self.calls.iter().rposition(|known| known.index == index)?;
        let known = self.calls.get(at)?;
        // An index that is used again for another call.
        let other_id = matches!((&known.id, id), (Some(old), Some(new)) if old != new) && name.is_some();
        let is_other = |name| self.answer.has_other_name(known.slot, &names::from_wire(name, &self.tools));
        let other_name = || id.is_none() && name.is_some_and(is_other);
        if other_id || other_name() { None } else { Some(at) }
    }

    fn finish(&mut self, word: Cow<'_, str>) {
        if self.latched.is_none() && !matches!(&*word, "stop") {
            self.latched = Some(word.clone().into_owned());
        }
        self.finish = Some(word.into_owned());
    }

    fn usage(&mut self, counts: Counts, out: &mut Events) {
        let mut usage = Usage::default();
        usage.input = counts.prompt_tokens.0;
        usage.output = counts.completion_tokens.0;
        let details = counts.prompt_tokens_details.0.unwrap_or_default();
        usage.cached = details.cached_tokens.0.or(counts.prompt_cache_hit_tokens.0);
        usage.cache_write = details.cache_write_tokens.0;
        usage.reasoning = counts.completion_tokens_details.0.and_then(|details| details.reasoning_tokens.0);
        self.usage.merge(usage);
        out.push_back(ModelEvent::Usage(self.usage));
    }

    /// Puts out the end.
    fn stop(&mut self, out: &mut Events) -> Result<(), Fault> {
        self.flush_think(out)?;
        let mut reason =
            stop::reason(self.latched.as_deref().or(self.finish.as_deref()), self.answer.has_calls());
        if self.rescues && reason == StopReason::EndTurn && !self.answer.has_calls() {
            rescue::rescue(&mut self.answer, &self.tools, out)?;
            reason = stop::reason(self.finish.as_deref(), self.answer.has_calls());
        }
        self.seal_reasoning()?;
        self.end_refusal(out)?;
        if self.refusal != Refusal::None {
            reason = StopReason::Filtered;
        }
        if self.answer.finish(out) > 0 {
            return Err(Fault::InvalidToolCall("a call without a name".into()));
        }
        self.stopped = true;
        out.push_back(ModelEvent::Stop { reason, raw: self.finish.take() });
        Ok(())
    }

    fn flush_think(&mut self, out: &mut Events) -> Result<(), Fault> {
        let Some(mut think) = self.think.take() else { return Ok(()) };
        let mut result = Ok(());
        think.finish(|part| result = self.part(part, out));
        result
    }

    fn seal_reasoning(&mut self) -> Result<(), Fault> {
        let mut data = Map::new();
        if let Some(field) = self.reasoning_field {
            data.insert("field".into(), field.into());
        }
        let details = std::mem::take(&mut self.reasoning_details.0);
        let mut blocks = self.answer.reasoning_blocks();
        if data.is_empty() && details.is_empty() {
            return Ok(());
        }
        // The details are one list for the whole message: they go with the first block.
        if let Some(first) = blocks.next() {
            let mut with_details = data.clone();
            if !details.is_empty() {
                with_details.insert("reasoning_details".into(), details.into());
            }
            first.seal = Some(Seal::new(Arc::clone(&self.issuer), with_details));
        } else if !details.is_empty() {
            drop(blocks);
            data.insert("reasoning_details".into(), details.into());
            return self.answer.add_sealed_reasoning(Seal::new(Arc::clone(&self.issuer), data));
        }
        for block in blocks {
            block.seal = Some(Seal::new(Arc::clone(&self.issuer), data.clone()));
        }
        Ok(())
    }

    /// Whether every call is whole by its own look: its arguments are an object.
    fn calls_look_whole(&mut self) -> bool {
        let slots: Vec<Slot> = self.calls.iter().map(|known| known.slot).collect();
        slots.into_iter().all(|slot| {
            self.answer
                .call(slot)
                .is_none_or(|call| matches!(serde_json::from_str(&call.arguments), Ok(Value::Object(_))))
        })
    }
}

impl Accumulator for ChatAccumulator {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault> {
        if let Some((aim, text)) = self.memo.recall(data) {
            return match aim {
                Aim::Text => self.answer.text(text, out),
                Aim::Reasoning => self.answer.reasoning(text, out),
                Aim::Arguments(slot) => self.answer.arguments(slot, text, out),
            };
        }
        if data.trim_ascii() == b"[DONE]" {
            return if self.finish.is_some() || self.calls_look_whole() {
                self.stop(out)
            } else {
                Err(Fault::Interrupted("the stream ended inside a tool call".into()))
            };
        }
        match serde_json::from_slice::<Chunk<'_>>(data) {
            Ok(chunk) => self.chunk(chunk, Some(data), out),
            Err(error) => {
                let plainer = lenient::plainer(data).map_err(|_| unreadable(&error))?;
                let chunk = serde_json::from_slice(&plainer).map_err(|error| unreadable(&error))?;
                self.chunk(chunk, Some(&plainer), out)
            }
        }
    }

    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        let plainer;
        let chunk: Chunk<'_> = match serde_json::from_slice(body) {
            Ok(chunk) => chunk,
            Err(error) => {
                plainer = lenient::plainer(body).map_err(|_| unreadable(&error))?;
                serde_json::from_slice(&plainer).map_err(|error| unreadable(&error))?
            }
        };
        if chunk.choices.0.is_empty() {
            let value = serde_json::from_slice::<Value>(body).unwrap_or_default();
            return Err(
                if chunk.error.is_some_and(|error| !error.is_null()) || value.get("detail").is_some() {
                    Fault::Reported(value)
                } else {
                    Fault::Protocol("an answer without choices".into())
                },
            );
        }
        self.chunk(Chunk { error: None, ..chunk }, None, out)?;
        self.stop(out)
    }

    fn end(&mut self, out: &mut Events) -> Result<(), Fault> {
        if self.finish.is_some() { self.stop(out) } else { Ok(()) }
    }

    fn abandon(&mut self, out: &mut Events) {
        // Both fail only when the answer is too long; then there is nothing to add to it, and the failure that led here
        // is the one to report.
        let _too_long =
            self.flush_think(out).and_then(|()| self.end_refusal(out)).and_then(|()| self.seal_reasoning());
        self.answer.abandon(out);
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::Protocol(format!("a chunk that does not read: {error}"))
}
