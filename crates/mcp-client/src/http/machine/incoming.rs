//! What the server answers: heads, pieces, ends.

use std::time::{Duration, Instant};

use haversack_http::{
    Bytes, HeaderMap, HeaderValue, SseDecoder, SseItem, StatusCode, header, without_secrets,
};
use serde_json::{Value, json};

use super::{Hold, HttpMachine, SESSION};
use crate::http::exchange::{ExchangeId, Purpose, Stage};
use crate::protocol::{Challenge, ClientMachine, Failure, code};
use crate::visible::short;

/// How much of the text that comes with a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// How much of it is quoted, in characters.
const QUOTED_CHARS: usize = 200;

/// The longest that a server may ask to be left alone before a stream is opened again.
const MAX_RETRY: Duration = Duration::from_secs(60);

impl HttpMachine {
    /// The head of an answer is here. Says whether its body is wanted.
    pub(crate) fn handle_head<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let purpose = exchange.purpose.clone();
        // It was sent with a session: with this one, or with one that has been given up since.
        let had_session = self.session.is_some() || exchange.session != self.session_number;
        match status.as_u16() {
            401 => self.refused(now, client, id, status, headers),
            403 if headers.contains_key(header::WWW_AUTHENTICATE) => {
                self.refused(now, client, id, status, headers);
            }
            300..=399 => {
                let to = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
                let to = short(&without_secrets(to), QUOTED_CHARS);
                self.fail(now, client, id, Failure::Redirected { status: status.as_u16(), to });
            }
            404 if had_session && !matches!(purpose, Purpose::Listen | Purpose::Delete) => {
                self.session_lost(now, client, id);
            }
            200..=299 => return self.accepted(now, client, id, status, headers),
            _ if purpose.wants_answer() => {
                self.read_whole(id, status);
                return true;
            }
            _ => {
                let failure = Failure::Status { status: status.as_u16(), said: String::new() };
                self.fail(now, client, id, failure);
            }
        }
        false
    }

    fn read_whole(&mut self, id: ExchangeId, status: StatusCode) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.stage = Stage::Whole { status: status.as_u16(), body: Vec::new(), ended: false };
        }
    }

    fn accepted<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let purpose = exchange.purpose.clone();
        let opens = match &purpose {
            Purpose::Request { method, .. } => method == "initialize",
            Purpose::Renewal { .. } => true,
            _ => false,
        };
        if opens && let Err(failure) = self.take_session(headers) {
            self.fail(now, client, id, failure);
            return false;
        }
        match purpose {
            Purpose::Initialized => {
                self.remove(id);
                self.opened();
                false
            }
            Purpose::Note { .. } | Purpose::Delete => {
                self.remove(id);
                false
            }
            // The answer will come on the stream that is open.
            Purpose::Request { .. } if self.old_endpoint.is_some() => {
                self.remove(id);
                false
            }
            Purpose::Request { .. } | Purpose::Renewal { .. } | Purpose::Listen | Purpose::OldStream => {
                self.choose_reading(now, client, id, status, headers)
            }
        }
    }

    fn choose_reading<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let limits = self.limits();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).map(|kind| kind.trim().to_ascii_lowercase());
        match kind.as_deref() {
            Some("text/event-stream") => {
                let decoder = Box::new(SseDecoder::with_limits(limits));
                exchange.stage = Stage::Stream { decoder, ended: false };
                true
            }
            _ if exchange.purpose.lasts() => {
                let failure = Failure::unusable("it opened no stream of events");
                self.fail(now, client, id, failure);
                false
            }
            // A server that forgets to say what it sends most often sends what it should.
            None | Some("application/json") => {
                self.read_whole(id, status);
                true
            }
            Some(kind) => {
                let kind = short(kind, QUOTED_CHARS);
                let failure =
                    Failure::unusable(format!("it answered with {kind}, which is neither JSON nor events"));
                self.fail(now, client, id, failure);
                false
            }
        }
    }

    fn take_session(&mut self, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(session) = headers.get(SESSION) else { return Ok(()) };
        if session.is_empty() || !session.as_bytes().iter().all(u8::is_ascii_graphic) {
            return Err(Failure::unusable("its session id holds more than visible ASCII characters"));
        }
        self.session = Some(session.clone());
        Ok(())
    }

    /// A piece of a body is here. Take what comes of it with [`step`](Self::step). Says whether more is wanted.
    pub(crate) fn handle_piece<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        piece: Bytes,
    ) -> bool {
        let limit = self.config.max_message_bytes;
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        match &mut exchange.stage {
            Stage::Stream { decoder, .. } => decoder.feed(piece),
            Stage::Whole { status, body, .. } => {
                let limit = if (200..300).contains(status) { limit } else { MAX_REFUSAL_BYTES };
                if body.len().saturating_add(piece.len()) <= limit {
                    body.extend_from_slice(&piece);
                } else if (200..300).contains(status) {
                    let failure =
                        Failure::unusable(format!("its answer is longer than the limit of {limit} bytes"));
                    self.fail(now, client, id, failure);
                    return false;
                } else {
                    // The beginning says enough.
                    self.handle_end(id);
                    return false;
                }
            }
            _ => return false,
        }
        true
    }

    /// A body has ended, politely. Take what comes of it with [`step`](Self::step).
    pub(crate) fn handle_end(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        match &mut exchange.stage {
            Stage::Stream { decoder, ended } => {
                decoder.finish();
                *ended = true;
            }
            Stage::Whole { ended, .. } => *ended = true,
            _ => {}
        }
    }

    /// The connection broke, or never was.
    pub(crate) fn handle_break<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        reason: String,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        match exchange.stage {
            Stage::Stream { .. } => self.stream_ended(now, client, id, reason),
            _ if exchange.purpose == Purpose::Listen => self.stream_ended(now, client, id, reason),
            _ => self.fail(now, client, id, Failure::Connection { reason }),
        }
    }

    /// Hands the next message of an exchange to the protocol machine. Take the outputs of that machine and call it again
    /// until it says that there is nothing more.
    pub(crate) fn step<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        match &exchange.stage {
            Stage::Whole { ended: true, .. } => {
                self.take_whole(now, client, id);
                true
            }
            Stage::Handed => {
                let failure = Failure::unusable("what it answered is no answer to this request");
                self.settle(now, client, id, failure);
                false
            }
            Stage::Stream { .. } => {
                if let Purpose::Request { id: request, .. } = &exchange.purpose
                    && !client.waits_for(request)
                {
                    self.remove(id);
                    return false;
                }
                self.next_event(now, client, id)
            }
            _ => false,
        }
    }

    /// An answer was handed on: if its request still waits, it was none.
    fn settle<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId, failure: Failure) {
        let waits = self.exchanges.get(&id).is_some_and(
            |exchange| matches!(&exchange.purpose, Purpose::Request { id, .. } if client.waits_for(id)),
        );
        if waits {
            self.fail(now, client, id, failure);
        } else {
            self.remove(id);
        }
    }

    fn take_whole<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Stage::Whole { status, body, .. } = std::mem::replace(&mut exchange.stage, Stage::Handed) else {
            return;
        };
        match exchange.purpose.clone() {
            Purpose::Renewal { id: wanted } => self.renewed(now, client, id, &wanted, status, &body),
            Purpose::Request { id: request, method } if !(200..300).contains(&status) => {
                let said =
                    serde_json::from_slice(&body).ok().and_then(|said: Value| refusal_of(said, &request));
                if let Some(said) = said {
                    let unknown =
                        said.pointer("/error/code").and_then(Value::as_i64) == Some(code::METHOD_NOT_FOUND);
                    if status == 404 && unknown && method == "server/discover" {
                        client.note_modern_refusal();
                    }
                    client.handle_message(now, said.to_string().as_bytes());
                    return;
                }
                if method == "initialize" && self.try_old_transport(status, id) {
                    return;
                }
                let said = String::from_utf8_lossy(&body);
                let said = short(said.trim(), QUOTED_CHARS);
                self.fail(now, client, id, Failure::Status { status, said });
            }
            _ if body.iter().all(u8::is_ascii_whitespace) => {
                let failure = Failure::unusable(format!("it answered with status {status} and nothing else"));
                self.fail(now, client, id, failure);
            }
            _ => client.handle_message(now, &body),
        }
    }

    /// The next event of a stream.
    fn next_event<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId) -> bool {
        loop {
            let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
            let Stage::Stream { decoder, ended } = &mut exchange.stage else { return false };
            let event = match decoder.next() {
                None if *ended => {
                    self.stream_ended(now, client, id, "its stream ended without the answer".to_owned());
                    return false;
                }
                None => return false,
                Some(Err(error)) => {
                    self.fail(now, client, id, Failure::unusable(error.to_string()));
                    return false;
                }
                Some(Ok(SseItem::Retry(wait))) => {
                    exchange.retry = Some(wait.min(MAX_RETRY));
                    continue;
                }
                Some(Ok(SseItem::Event(event))) => event,
                Some(Ok(_)) => continue,
            };
            // An event that the end of the stream cut off may be half of one. Then its id does not count either: what comes
            // after it would be asked for, and the event itself be lost.
            let is_whole = event.closed || is_json(event.data);
            if is_whole
                && !event.id.is_empty()
                && let Ok(last) = HeaderValue::from_bytes(event.id)
            {
                exchange.last_event = Some(last);
                exchange.resumes = 0;
            }
            if event.name == b"endpoint" && exchange.purpose == Purpose::OldStream {
                let endpoint = event.data_str().into_owned();
                self.take_endpoint(now, client, id, &endpoint);
                continue;
            }
            let is_message = event.name.is_empty() || event.name == b"message";
            if !is_message || event.data.is_empty() || !is_whole {
                continue;
            }
            if let Purpose::Renewal { id: wanted } = &exchange.purpose {
                let (wanted, data) = (wanted.clone(), event.data.to_vec());
                if serde_json::from_slice::<Value>(&data)
                    .is_ok_and(|message| message.get("id").is_some_and(|id| *id == wanted))
                {
                    self.renewed(now, client, id, &wanted, 200, &data);
                    return false;
                }
                continue;
            }
            client.handle_message(now, event.data);
            return true;
        }
    }

    fn take_endpoint<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        endpoint: &str,
    ) {
        match self.config.address.join(endpoint.trim()) {
            Some(endpoint) if self.old_endpoint.is_none() => {
                self.old_endpoint = Some(endpoint);
                if self.hold == Some(Hold::OldStream) {
                    self.hold = None;
                }
                self.send_waiting();
            }
            Some(_) => {}
            None => {
                let failure = Failure::unusable("it wants messages to be sent to another origin");
                self.fail(now, client, id, failure);
            }
        }
    }

    /// A 401, or a 403 that wants more of the token.
    fn refused<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = Challenge::bearer(values);
        self.unauthorized(now, client, id, status.as_u16(), challenge);
    }
}

fn is_json(data: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

/// A JSON-RPC error that came with a status, as an answer to that request: servers that could not read its id, or did not
/// care to, answer with null or leave it out.
fn refusal_of(mut said: Value, request: &Value) -> Option<Value> {
    let error = said.get_mut("error").filter(|error| error.is_object())?.take();
    match said.get("id") {
        None | Some(Value::Null) => {}
        Some(id) if id == request => {}
        Some(_) => return None,
    }
    Some(json!({"jsonrpc": "2.0", "id": request, "error": error}))
}
