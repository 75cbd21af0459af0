//! Reads an answer: pieces of a body in, events out.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use futures_core::Stream as _;
use haversack_agent_core::model::{ModelError, ModelErrorKind, ModelEvent, TimeoutPhase};
use haversack_http::{HeaderMap, HttpError, HttpResponse, ResponseBody, SseDecoder, SseItem, SseLimits};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::accumulate::Accumulator;
use crate::api::{Api, Framing};
use crate::call::timer::Timer;
use crate::call::{broken, packing, redact, timed_out, too_quiet};
use crate::endpoint::Endpoint;
use crate::error::{self, Answer};
use crate::fault::{Events, Fault};
use crate::ndjson::LineSplitter;

/// Pieces that are read after the end of an answer, in the hope to find the end of the body: then the connection
/// can be used again instead of being closed.
const MAX_PIECES_AFTER_END: usize = 8;

/// An answer that is being read.
pub(crate) struct Reading<A: Api> {
    endpoint: Endpoint,
    answer: A::Accumulator,
    status: u16,
    headers: HeaderMap,
    body: ResponseBody,
    decoder: Decoder,
    timer: Timer,
    has_bytes: bool,
    has_events: bool,
    /// Whether an event was handed out since the last piece came.
    has_said: bool,
    events: Events,
    /// Nothing will be read any more; what is left in `events` is still to be handed out, then this.
    over: Option<Option<Box<ModelError>>>,
}

/// What the body turned out to be.
enum Decoder {
    /// Not known yet: nothing but white space came, or half a byte order mark.
    Unknown(Vec<u8>),
    Sse(Box<SseDecoder>),
    Lines(LineSplitter),
    Whole(Vec<u8>),
}

impl<A: Api> Reading<A> {
    pub(crate) fn new(
        endpoint: &Endpoint,
        answer: A::Accumulator,
        framing: Framing,
        response: HttpResponse,
        timer: Timer,
    ) -> Self {
        let decoder = match (framing, endpoint.streaming) {
            (Framing::Lines, true) => {
                Decoder::Lines(LineSplitter::with_limit(endpoint.limits.max_event_bytes))
            }
            (Framing::Lines, false) => Decoder::Whole(Vec::new()),
            (Framing::Sse, _) => Decoder::Unknown(Vec::new()),
        };
        Self {
            endpoint: endpoint.clone(),
            answer,
            status: response.status.as_u16(),
            headers: response.headers,
            body: response.body,
            decoder,
            timer,
            has_bytes: false,
            has_events: false,
            has_said: true,
            events: VecDeque::new(),
            over: None,
        }
    }

    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ModelEvent, Box<ModelError>>>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                self.has_said = true;
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(error) = &mut self.over {
                return Poll::Ready(error.take().map(Err));
            }
            match self.decoder.step(&mut self.answer, &mut self.events) {
                Err(fault) => self.fail_with(fault),
                Ok(_) if self.answer.is_stopped() => self.stop(cx),
                Ok(Step::Event) => self.has_events = true,
                Ok(Step::Noise) => {}
                Ok(Step::NeedsBytes) => ready!(self.poll_bytes(cx)),
            }
        }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.was_too_quiet() && !self.has_said {
            self.fail(too_quiet(&self.endpoint));
            return Poll::Ready(());
        }
        match Pin::new(&mut self.body).poll_next(cx) {
            Poll::Ready(Some(Ok(piece))) => {
                if let (false, Some(packing)) = (self.has_bytes, packing(&self.headers, &piece)) {
                    let what = format!(
                        "the body is compressed ({packing}), which nobody asked for; turn that off in the server or \
                         in the proxy before it"
                    );
                    self.fail_with(Fault::Protocol(what));
                    return Poll::Ready(());
                }
                self.has_bytes = true;
                self.timer.piece(std::mem::take(&mut self.has_said));
                if let Err(fault) = self.decoder.feed(piece, &self.endpoint) {
                    self.fail_with(fault);
                }
                Poll::Ready(())
            }
            Poll::Ready(Some(Err(error))) => {
                self.end(Some(&error));
                Poll::Ready(())
            }
            Poll::Ready(None) => {
                self.end(None);
                Poll::Ready(())
            }
            Poll::Pending => {
                ready!(self.timer.poll(cx));
                let phase = if self.has_bytes { TimeoutPhase::Idle } else { TimeoutPhase::FirstByte };
                let error = if self.timer.is_too_quiet() {
                    too_quiet(&self.endpoint)
                } else {
                    timed_out(&self.endpoint, phase)
                };
                self.fail(error);
                Poll::Ready(())
            }
        }
    }

    /// The answer is over: what is left of the body is read if it is here, and dropped if it is not.
    fn stop(&mut self, cx: &mut Context<'_>) {
        for _ in 0..MAX_PIECES_AFTER_END {
            if !matches!(Pin::new(&mut self.body).poll_next(cx), Poll::Ready(Some(Ok(_)))) {
                break;
            }
        }
        self.body = ResponseBody::from_chunks([]);
        self.over = Some(None);
    }

    /// The body is over, or broke off: the answer is whole if it says so.
    fn end(&mut self, lost: Option<&HttpError>) {
        let result = self.decoder.finish(&mut self.answer, &mut self.events);
        let result = result
            .and_then(|()| if self.answer.is_stopped() { Ok(()) } else { self.answer.end(&mut self.events) });
        match result {
            Err(fault) => self.fail_with(fault),
            Ok(()) if self.answer.is_stopped() => self.over = Some(None),
            Ok(()) => {
                if let (None, Some(kind)) = (lost, self.foreign_kind()) {
                    let what = format!("the body is no answer of this API: its type is {kind}");
                    return self.fail_with(Fault::Protocol(what));
                }
                let mut error = if let Some(error) = lost {
                    broken(&self.endpoint, ModelErrorKind::Interrupted, error)
                } else {
                    let what = if self.has_bytes {
                        "ended the stream before the answer was complete"
                    } else {
                        "sent an empty answer"
                    };
                    let mut text = format!("{} {what}", self.endpoint.place());
                    self.endpoint.redact(&mut text);
                    Box::new(ModelError::new(ModelErrorKind::Interrupted, text))
                };
                error.status = Some(self.status);
                self.fail(error);
            }
        }
    }

    /// The content type of a body from which no event came and that does not claim to be a stream of them: the page
    /// of a proxy, most often. A stream that only kept the connection alive was cut off instead.
    fn foreign_kind(&self) -> Option<String> {
        let kind = self.headers.get("content-type").and_then(|v| v.to_str().ok()).unwrap_or("not given");
        let is_stream = ["text/event-stream", "application/x-ndjson"].iter().any(|s| kind.starts_with(s));
        (self.has_bytes && !self.has_events && !is_stream).then(|| kind.to_owned())
    }

    fn fail_with(&mut self, fault: Fault) {
        let provider = self.endpoint.provider();
        let mut error = match fault {
            Fault::Protocol(what) => {
                let mut error = error::protocol(provider, &what);
                error.status = Some(self.status);
                error
            }
            Fault::Reported(value) => {
                let now = SystemTime::now();
                let answer = Answer { provider, status: self.status, headers: &self.headers, now };
                // Before anything is cut: half a key is a leak too.
                let mut text = value.to_string();
                self.endpoint.redact(&mut text);
                error::from_value(answer, &serde_json::from_str(&text).unwrap_or(value))
            }
            Fault::Interrupted(what) => {
                let mut error =
                    Box::new(ModelError::new(ModelErrorKind::Interrupted, format!("{provider}: {what}")));
                error.status = Some(self.status);
                error
            }
            Fault::InvalidToolCall(word) => {
                let text = format!(
                    "{provider}: the model wrote a tool call that the server could not read ({word})"
                );
                let mut error = Box::new(ModelError::new(ModelErrorKind::InvalidToolCall, text));
                error.status = Some(self.status);
                error
            }
        };
        redact(&self.endpoint, &mut error);
        self.fail(error);
    }

    fn fail(&mut self, error: Box<ModelError>) {
        self.answer.abandon(&mut self.events);
        self.body = ResponseBody::from_chunks([]);
        self.over = Some(Some(error));
    }
}

enum Step {
    /// An event was taken; it may have led to nothing.
    Event,
    /// A line that no stream of events has: every text is full of them.
    Noise,
    NeedsBytes,
}

impl Decoder {
    fn feed(&mut self, piece: Bytes, endpoint: &Endpoint) -> Result<(), Fault> {
        match self {
            Self::Sse(decoder) => decoder.feed(piece),
            Self::Lines(lines) => lines.feed(&piece),
            Self::Whole(body) => {
                let limit = endpoint.limits.max_body_bytes;
                if body.len().saturating_add(piece.len()) > limit {
                    return Err(Fault::Protocol(format!("a body of more than {limit} bytes")));
                }
                body.extend_from_slice(&piece);
            }
            Self::Unknown(start) => {
                let piece = if start.is_empty() { piece } else { [start, &*piece].concat().into() };
                if let Some(decoder) = Self::sniff(&piece, endpoint) {
                    *self = decoder;
                    return self.feed(piece, endpoint);
                }
                // White space says nothing and is not kept; half a mark is at most two bytes.
                let rest = piece.trim_ascii_start();
                *start = rest.to_vec();
            }
        }
        Ok(())
    }

    /// JSON where a stream was asked for, or the other way round: the first byte tells. (Servers that report an
    /// error, gateways that do not stream; blank lines before it are a way to keep the connection alive.)
    fn sniff(start: &[u8], endpoint: &Endpoint) -> Option<Self> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let text = start.trim_ascii_start();
        let text = text.strip_prefix(MARK).map_or(text, |after| after.trim_ascii_start());
        match text.first() {
            None => None,
            Some(b'{' | b'[') => Some(Self::Whole(Vec::new())),
            Some(_) if MARK.starts_with(text) => None,
            Some(_) => {
                let limits = SseLimits::default().with_max_event_bytes(endpoint.limits.max_event_bytes);
                Some(Self::Sse(Box::new(SseDecoder::with_limits(limits))))
            }
        }
    }

    /// Takes at most one event.
    fn step(&mut self, answer: &mut impl Accumulator, out: &mut Events) -> Result<Step, Fault> {
        match self {
            Self::Unknown(_) | Self::Whole(_) => Ok(Step::NeedsBytes),
            Self::Lines(lines) => match lines.next_line() {
                Ok(Some(line)) => answer.event(b"", line, out).map(|()| Step::Event),
                Ok(None) => Ok(Step::NeedsBytes),
                Err(error) => Err(Fault::Protocol(error.to_string())),
            },
            Self::Sse(decoder) => match decoder.next() {
                None => Ok(Step::NeedsBytes),
                Some(Ok(item)) => {
                    let step = if matches!(item, SseItem::Field { .. }) { Step::Noise } else { Step::Event };
                    sse_item(item, answer, out).map(|()| step)
                }
                Some(Err(error)) => Err(Fault::Protocol(error.to_string())),
            },
        }
    }

    /// Takes what the end of the body makes whole.
    fn finish(&mut self, answer: &mut impl Accumulator, out: &mut Events) -> Result<(), Fault> {
        match self {
            Self::Unknown(_) => return Ok(()),
            Self::Sse(decoder) => decoder.finish(),
            Self::Lines(lines) => lines.finish(),
            Self::Whole(body) => {
                let body = std::mem::take(body);
                let text = body.trim_ascii();
                let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
                return if text.is_empty() { Ok(()) } else { answer.body(text.trim_ascii(), out) };
            }
        }
        while !answer.is_stopped() && !matches!(self.step(answer, out)?, Step::NeedsBytes) {}
        Ok(())
    }
}

fn sse_item(item: SseItem<'_>, answer: &mut impl Accumulator, out: &mut Events) -> Result<(), Fault> {
    match item {
        SseItem::Event(event) if event.data.trim_ascii().is_empty() => Ok(()),
        // Cut off by the end of the stream: it counts if it is whole.
        SseItem::Event(event)
            if !event.closed
                && !event.data.starts_with(b"[DONE]")
                && serde_json::from_slice::<IgnoredAny>(event.data).is_err() =>
        {
            Ok(())
        }
        SseItem::Event(event) => answer.event(event.name, event.data, out),
        // An error as a field of its own (older llama.cpp), or as bare JSON on a line (proxies).
        SseItem::Field { name: b"error", value } => Err(Fault::Reported(json_or_text(value))),
        SseItem::Field { name, value } if name.starts_with(b"{") => {
            let line = [name, b":", value].concat();
            match serde_json::from_slice::<Value>(&line) {
                Ok(value) if value.get("error").is_some_and(|e| !e.is_null()) => Err(Fault::Reported(value)),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn json_or_text(value: &[u8]) -> Value {
    serde_json::from_slice(value).unwrap_or_else(|_| {
        let text: Cow<'_, str> = String::from_utf8_lossy(value);
        serde_json::json!({"error": text})
    })
}
