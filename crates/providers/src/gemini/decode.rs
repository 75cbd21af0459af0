//! Reads Gemini's responses into [`ModelEvent`]s.
//!
//! Each event of the stream is a whole response whose parts go on where those of the last one ended; a body that
//! was not streamed is one response, a stream without `alt=sse` an array of them.
//!
//! A `thoughtSignature` has to go back on the part it came with. On a call and on a thought it is the block's
//! seal. Text has no seal, so the signature follows it as an opaque block of its own, which stands for "the rest
//! of the part before": the part that was signed is never joined with its neighbours.

use std::sync::Arc;

use haversack_agent_core::message::{Block, Media, Opaque, Reasoning, Seal};
use haversack_agent_core::model::ModelEvent;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::{StopReason, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::accumulate::{Accumulator, Assembly, Slot};
use crate::fault::{Events, Fault};
use crate::gemini::partial::PartialArguments;
use crate::names;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Option<Counts>,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    response_id: Option<String>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<Value>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Option<Vec<Map<String, Value>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
}

#[derive(Clone, Copy, Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Counts {
    /// Gemini counts thoughts apart from the answer; a [`Usage`] holds them together.
    fn normalised(self) -> Usage {
        let mut usage = Usage::default();
        usage.input = self.prompt_token_count;
        usage.output = match (self.candidates_token_count, self.thoughts_token_count) {
            (None, None) => None,
            (text, thoughts) => Some(text.unwrap_or(0).saturating_add(thoughts.unwrap_or(0))),
        };
        usage.cached = self.cached_content_token_count;
        usage.reasoning = self.thoughts_token_count;
        usage
    }
}

/// Accumulates one answer.
#[derive(Debug)]
pub(crate) struct Decoder {
    issuer: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    answer: Assembly,
    started: bool,
    counted: bool,
    /// A call whose arguments come in pieces.
    open_call: Option<(Slot, PartialArguments)>,
    counts: Option<Counts>,
    stop: Option<String>,
    stopped: bool,
}

impl Decoder {
    /// A decoder that seals what has to go back under this issuer, for an answer of at most `max_bytes` of text.
    pub(crate) fn new(issuer: Arc<str>, max_bytes: usize, tools: Arc<[Arc<ToolSpec>]>) -> Self {
        let seal = Seal::new(Arc::clone(&issuer), Value::Null);
        Self {
            issuer,
            tools,
            answer: Assembly::new(max_bytes).sealing(seal),
            started: false,
            counted: false,
            open_call: None,
            counts: None,
            stop: None,
            stopped: false,
        }
    }

    fn take(&mut self, data: &[u8], out: &mut Events) -> Result<(), Fault> {
        let data = data.trim_ascii();
        if self.stopped || data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let text = String::from_utf8_lossy(data);
        let response = match serde_json::from_str::<Response>(&text) {
            Ok(response) => response,
            Err(error) => {
                // An error object may hold anything beside the error.
                return match serde_json::from_str::<Value>(&text) {
                    Ok(value) if has_error(&value) => Err(Fault::Reported(value)),
                    _ => Err(Fault::Protocol(format!("an event does not read: {error}"))),
                };
            }
        };
        if response.error.as_ref().is_some_and(|error| !error.is_null()) {
            return Err(Fault::Reported(serde_json::from_str(&text).unwrap_or_default()));
        }
        self.response(response, out)
    }

    fn value(&mut self, value: Value, out: &mut Events) -> Result<(), Fault> {
        if has_error(&value) {
            return Err(Fault::Reported(value));
        }
        let response = serde_json::from_value(value)
            .map_err(|error| Fault::Protocol(format!("a response does not read: {error}")))?;
        self.response(response, out)
    }

    fn response(&mut self, response: Response, out: &mut Events) -> Result<(), Fault> {
        if !self.started {
            self.started = true;
            let Response { response_id, model_version: model, .. } = &response;
            out.push_back(ModelEvent::Started { response_id: response_id.clone(), model: model.clone() });
        }
        if let Some(counts) = response.usage_metadata {
            // The last one is right as a whole, so only the prompt is told before the end.
            self.counts = Some(counts);
            if let (false, Some(input)) = (self.counted, counts.prompt_token_count) {
                self.counted = true;
                let mut usage = Usage::default();
                usage.input = Some(input);
                out.push_back(ModelEvent::Usage(usage));
            }
        }
        if let Some(reason) = response.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            self.stop = Some(reason);
        }
        let Some(candidate) = response.candidates.and_then(|list| list.into_iter().next()) else {
            return Ok(());
        };
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            self.part(part, out)?;
        }
        match candidate.finish_reason {
            Some(Value::String(reason)) if !reason.is_empty() => self.stop = Some(reason),
            Some(Value::Number(reason)) => self.stop = Some(reason.to_string()),
            _ => {}
        }
        Ok(())
    }

    fn part(&mut self, mut part: Map<String, Value>, out: &mut Events) -> Result<(), Fault> {
        let signature = part.get("thoughtSignature").filter(|s| !s.is_null()).cloned();
        if let Some(Value::Object(call)) = part.get_mut("functionCall") {
            let call = std::mem::take(call);
            return self.call(call, signature, out);
        }
        if let Some(Value::String(text)) = part.get_mut("text") {
            let text = std::mem::take(text);
            return if part.get("thought") == Some(&Value::Bool(true)) {
                self.thought(&text, signature, out)
            } else {
                self.text(&text, signature, out)
            };
        }
        if let Some(media) = image(&part) {
            self.answer.block(Block::Image(media), out)?;
            self.rest_of_the_part_before(signature, out)
        } else {
            self.opaque(part, out)
        }
    }

    fn text(&mut self, text: &str, signature: Option<Value>, out: &mut Events) -> Result<(), Fault> {
        let Some(signature) = signature else { return self.answer.text(text, out) };
        self.answer.close(out);
        if text.is_empty() {
            let part = [("text".to_owned(), Value::from("")), ("thoughtSignature".to_owned(), signature)];
            return self.opaque(Map::from_iter(part), out);
        }
        self.answer.text(text, out)?;
        self.rest_of_the_part_before(Some(signature), out)
    }

    fn thought(&mut self, text: &str, signature: Option<Value>, out: &mut Events) -> Result<(), Fault> {
        let Some(signature) = signature else { return self.answer.reasoning(text, out) };
        if !text.is_empty() {
            out.push_back(ModelEvent::Reasoning(text.to_owned()));
        }
        let seal = self.seal(Map::from_iter([("thoughtSignature".to_owned(), signature)]));
        self.answer.block(Block::Reasoning(Reasoning::new(text).with_seal(seal)), out)
    }

    fn rest_of_the_part_before(&mut self, signature: Option<Value>, out: &mut Events) -> Result<(), Fault> {
        match signature {
            Some(signature) => self.opaque(Map::from_iter([("thoughtSignature".to_owned(), signature)]), out),
            None => Ok(()),
        }
    }

    fn opaque(&mut self, part: Map<String, Value>, out: &mut Events) -> Result<(), Fault> {
        let raw = Opaque::new(Arc::clone(&self.issuer), Value::Object(part));
        self.answer.block(Block::Opaque(raw), out)
    }

    fn call(
        &mut self,
        mut call: Map<String, Value>,
        signature: Option<Value>,
        out: &mut Events,
    ) -> Result<(), Fault> {
        let goes_on = call.get("willContinue") == Some(&Value::Bool(true));
        let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() || self.open_call.is_none() {
            self.close_call(out)?;
            let slot = self.open(&call, signature, out)?;
            self.open_call = Some((slot, PartialArguments::new(call.remove("args").unwrap_or_default())));
        }
        if let (Some((_, arguments)), Some(Value::Array(pieces))) =
            (&mut self.open_call, call.remove("partialArgs"))
        {
            pieces.into_iter().try_for_each(|piece| arguments.add(piece)).map_err(Fault::Protocol)?;
        }
        if goes_on { Ok(()) } else { self.close_call(out) }
    }

    fn open(
        &mut self,
        call: &Map<String, Value>,
        signature: Option<Value>,
        out: &mut Events,
    ) -> Result<Slot, Fault> {
        let slot = self.answer.begin_call(out)?;
        let text = |key| call.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let seal = signature.map(|s| self.seal(Map::from_iter([("thoughtSignature".to_owned(), s)])));
        if let Some(draft) = self.answer.call(slot) {
            let made = draft.index;
            draft.id = Some(text("id").map_or_else(|| format!("call_{made}"), str::to_owned));
            draft.name = Some(names::from_wire(text("name").unwrap_or_default(), &self.tools));
            draft.seal = seal;
        }
        self.answer.announce(slot, out);
        Ok(slot)
    }

    fn close_call(&mut self, out: &mut Events) -> Result<(), Fault> {
        let Some((slot, arguments)) = self.open_call.take() else { return Ok(()) };
        let arguments = match arguments.into_value() {
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        };
        self.answer.arguments(slot, &arguments, out)?;
        self.answer.finish_call(slot, out);
        Ok(())
    }

    fn seal(&self, data: Map<String, Value>) -> Seal {
        Seal::new(Arc::clone(&self.issuer), data)
    }
}

impl Accumulator for Decoder {
    fn event(&mut self, _name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault> {
        self.take(data, out)
    }

    /// One response, or an array of them: a stream without `alt=sse`.
    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        if text.starts_with('[') {
            let responses: Vec<Value> = serde_json::from_str(text)
                .map_err(|error| Fault::Protocol(format!("the answer is no JSON: {error}")))?;
            responses.into_iter().try_for_each(|value| self.value(value, out))?;
        } else {
            self.take(text.as_bytes(), out)?;
        }
        self.end(out)
    }

    /// There is no end mark: the answer is whole when a candidate named its finish reason.
    fn end(&mut self, out: &mut Events) -> Result<(), Fault> {
        let Some(raw) = self.stop.take() else { return Ok(()) };
        self.close_call(out)?;
        self.answer.finish(out);
        self.stopped = true;
        if let Some(counts) = self.counts {
            out.push_back(ModelEvent::Usage(counts.normalised()));
        }
        if FAULTS.contains(&raw.as_str()) {
            return Err(Fault::InvalidToolCall(raw));
        }
        out.push_back(ModelEvent::Stop {
            reason: stop_reason(&raw, self.answer.has_calls()),
            raw: Some(raw),
        });
        Ok(())
    }

    fn abandon(&mut self, out: &mut Events) {
        self.answer.abandon(out);
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// Finish reasons that mean a fault of the model and no end: trying again may help.
const FAULTS: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
];

/// A picture that the model made.
fn image(part: &Map<String, Value>) -> Option<Media> {
    let data = part.get("inlineData")?;
    let media_type = data.get("mimeType")?.as_str().filter(|media_type| media_type.starts_with("image/"))?;
    Some(Media::base64(media_type, data.get("data")?.as_str()?))
}

fn has_error(value: &Value) -> bool {
    value.get("error").is_some_and(|error| !error.is_null())
}

/// Why the model stopped: a turn with calls says `STOP` too.
fn stop_reason(raw: &str, has_calls: bool) -> StopReason {
    match raw {
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "PROHIBITED_CONTENT"
        | "BLOCKLIST"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Filtered,
        _ if has_calls => StopReason::ToolUse,
        "STOP" => StopReason::EndTurn,
        other => StopReason::Other(other.to_owned()),
    }
}
