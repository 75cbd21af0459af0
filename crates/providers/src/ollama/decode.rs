//! Reads Ollama's lines into [`ModelEvent`]s.
//!
//! Each line is a whole object with a piece of the message; the last one says `done`. A tool call arrives whole in
//! one line. A body that was not streamed is a single such line.

use std::sync::Arc;

use haversack_agent_core::message::Seal;
use haversack_agent_core::model::ModelEvent;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::accumulate::{Accumulator, Assembly};
use crate::fault::{Events, Fault};
use crate::names;

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Accumulates one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    tools: Arc<[Arc<ToolSpec>]>,
    answer: Assembly,
    started: bool,
    stopped: bool,
}

impl Decoder {
    /// A decoder for an answer of at most `max_bytes` of text and arguments. Reasoning is sealed, so that it goes back to
    /// this issuer only, though Ollama wants nothing back but the text.
    pub(crate) fn new(issuer: Arc<str>, max_bytes: usize, tools: Arc<[Arc<ToolSpec>]>) -> Self {
        let answer = Assembly::new(max_bytes).sealing(Seal::new(issuer, Value::Null));
        Self { tools, answer, started: false, stopped: false }
    }

    /// Takes one line, or the body of an answer that was not streamed.
    fn line(&mut self, line: &[u8], out: &mut Events) -> Result<(), Fault> {
        let line = line.trim_ascii();
        if self.stopped || line.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        let line: Line = match serde_json::from_str(&text) {
            Ok(line) => line,
            Err(error) => return Err(Fault::Protocol(format!("a line does not read: {error}"))),
        };
        if line.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(Fault::Reported(serde_json::from_str(&text).unwrap_or_default()));
        }
        if !self.started {
            self.started = true;
            out.push_back(ModelEvent::Started { response_id: None, model: line.model });
        }
        if let Some(message) = line.message {
            self.message(message, out)?;
        }
        if line.done {
            self.answer.finish(out);
            self.stopped = true;
            let mut usage = Usage::default();
            (usage.input, usage.output) = (line.prompt_eval_count, line.eval_count);
            if !usage.is_empty() {
                out.push_back(ModelEvent::Usage(usage));
            }
            let reason = stop_reason(line.done_reason.as_deref(), self.answer.has_calls());
            out.push_back(ModelEvent::Stop { reason, raw: line.done_reason });
        }
        Ok(())
    }

    fn message(&mut self, message: Message, out: &mut Events) -> Result<(), Fault> {
        // Reasoning comes before the text it led to, also when both come in one line.
        self.answer.reasoning(message.thinking.as_deref().unwrap_or_default(), out)?;
        self.answer.text(message.content.as_deref().unwrap_or_default(), out)?;
        for call in message.tool_calls.unwrap_or_default() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(&mut self, call: Call, out: &mut Events) -> Result<(), Fault> {
        let slot = self.answer.begin_call(out)?;
        if let Some(draft) = self.answer.call(slot) {
            let made = draft.index;
            draft.id = Some(call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{made}")));
            draft.name = Some(names::from_wire(&call.function.name, &self.tools));
        }
        self.answer.announce(slot, out);
        let arguments = match call.function.arguments {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.answer.arguments(slot, &arguments, out)?;
        self.answer.finish_call(slot, out);
        Ok(())
    }
}

impl Accumulator for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault> {
        self.line(data, out)
    }

    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        self.line(body, out)
    }

    fn end(&mut self, _out: &mut Events) -> Result<(), Fault> {
        Ok(())
    }

    fn abandon(&mut self, out: &mut Events) {
        self.answer.abandon(out);
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// Why the model stopped: a turn with calls says `stop` too.
fn stop_reason(raw: Option<&str>, has_calls: bool) -> StopReason {
    match raw {
        Some("length") => StopReason::MaxTokens,
        _ if has_calls => StopReason::ToolUse,
        None | Some("stop") => StopReason::EndTurn,
        // `load` and `unload` answer a request without a prompt: there is no answer of the model.
        Some(other) => StopReason::Other(other.to_owned()),
    }
}
