//! What is done when something is lost: a session, a stream, the authorization, time.

use std::time::{Duration, Instant};

use haversack_http::{HeaderMap, Secret};
use serde_json::{Value, json};

use super::{Hold, HttpMachine, HttpOutput};
use crate::http::exchange::{Exchange, ExchangeId, Purpose, Stage};
use crate::http::token::{TokenError, TokenRefusal};
use crate::protocol::{Challenge, ClientMachine, Failure, Revision, in_words};

/// How often one request may be refused for want of authorization before it fails.
const MAX_REFUSALS: u32 = 3;

/// How often a stream is opened again in a row without anything coming of it.
const MAX_RESUMES: u32 = 5;

/// How long a stream rests before it is opened again, where the server does not say.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

impl HttpMachine {
    /// The server has forgotten the session: a new one is opened, once for all, and the message is sent again.
    pub(super) fn session_lost<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if std::mem::replace(&mut exchange.replayed, true) {
            let failure = Failure::Status { status: 404, said: "it forgot the session twice".to_owned() };
            return self.fail(now, client, id, failure);
        }
        exchange.stage = Stage::Waiting;
        if exchange.session != self.session_number {
            // Somebody else has seen it before.
            if self.hold.is_none() {
                self.send(id);
            }
            return;
        }
        let Some(body) =
            self.initialize.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok())
        else {
            return;
        };
        client.report("it forgot the session: a new one is opened".to_owned());
        self.session = None;
        self.session_number += 1;
        // The stream belongs to the session that is gone.
        let listens: Vec<_> =
            self.exchanges.iter().filter(|(_, exchange)| exchange.purpose == Purpose::Listen).collect();
        for id in listens.into_iter().map(|(id, _)| *id).collect::<Vec<_>>() {
            self.remove(id);
        }
        let id = format!("renewal-{}", self.session_number);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": body.get("params")});
        self.hold = Some(Hold::Renewal);
        let mut renewal = Exchange::new(Purpose::Renewal { id }, body.to_string(), HeaderMap::new());
        renewal.deadline = now.checked_add(self.config.note_timeout);
        self.begin(renewal);
    }

    /// The answer to the new handshake.
    pub(super) fn renewed<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        wanted: &str,
        status: u16,
        body: &[u8],
    ) {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let version =
            answer.pointer("/result/protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
        if answer.get("id").is_none_or(|id| *id != wanted) || version.is_none() || version != self.revision {
            let failure = Failure::Status {
                status,
                said: "it opened no new session like the one it forgot".to_owned(),
            };
            return self.fail(now, client, id, failure);
        }
        self.remove(id);
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        self.hold = Some(Hold::Initialized);
        let mut note = Exchange::new(Purpose::Initialized, body, HeaderMap::new());
        note.deadline = now.checked_add(self.config.note_timeout);
        self.begin(note);
    }

    /// A stream has ended, or broke. What is still due on it is asked for again if the server can do that.
    pub(super) fn stream_ended<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        reason: String,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let may_resume = match &exchange.purpose {
            Purpose::Request { id: request, .. } if !client.waits_for(request) => {
                self.remove(id);
                return;
            }
            // A modern message has headers of its own; there, what was lost is lost.
            Purpose::Request { .. } => exchange.last_event.is_some() && exchange.headers.is_empty(),
            Purpose::Listen => true,
            _ => false,
        };
        if !may_resume || exchange.resumes >= MAX_RESUMES {
            return self.fail(now, client, id, Failure::Connection { reason });
        }
        // The first time as soon as the server allows; where nothing comes of it, ever later.
        let pause = exchange.retry.unwrap_or(DEFAULT_RETRY).saturating_mul(1 << exchange.resumes);
        exchange.resumes += 1;
        exchange.stage = Stage::Resting(now.checked_add(pause).unwrap_or(now));
        self.outputs.push_back(HttpOutput::Abort(id));
    }

    /// With the transport of the first revision, a stream comes first. Says whether it is tried.
    pub(super) fn try_old_transport(&mut self, status: u16, id: ExchangeId) -> bool {
        let may = self.config.old_transport && !self.old_tried && matches!(status, 400 | 404 | 405);
        if !may {
            return false;
        }
        self.old_tried = true;
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.stage = Stage::Waiting;
        }
        self.hold = Some(Hold::OldStream);
        self.begin(Exchange::new(Purpose::OldStream, Vec::new(), HeaderMap::new()));
        true
    }

    /// A request was refused for want of authorization.
    pub(super) fn unauthorized<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        id: ExchangeId,
        status: u16,
        challenge: Option<Challenge>,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.refusals += 1;
        let attempt = exchange.refusals;
        let is_asked =
            self.config.has_tokens && !matches!(exchange.purpose, Purpose::Listen | Purpose::Delete);
        if !is_asked || attempt > MAX_REFUSALS {
            let reason = self.token_fault.clone();
            return self.fail(now, client, id, Failure::Unauthorized { status, challenge, reason });
        }
        exchange.stage = Stage::Waiting;
        if exchange.token != self.token_number {
            // Somebody else's refusal has brought a new one meanwhile.
            return self.send(id);
        }
        if self.hold == Some(Hold::Token) {
            return;
        }
        self.hold_before_token = self.hold.replace(Hold::Token);
        self.asked_for = Some((id, status, challenge.clone()));
        self.outputs.push_back(HttpOutput::RenewToken(TokenRefusal {
            server_url: self.config.url.clone(),
            status,
            challenge,
            token: self.token.clone(),
            attempt,
        }));
    }

    /// What the source of tokens gives.
    pub(crate) fn handle_token<T>(
        &mut self,
        now: Instant,
        client: &mut ClientMachine<T>,
        token: Result<Option<Secret>, TokenError>,
    ) {
        if self.hold != Some(Hold::Token) {
            return;
        }
        self.hold = self.hold_before_token.take();
        let refusal = self.asked_for.take();
        let fault = match token {
            Ok(Some(token)) => {
                self.token = Some(token);
                self.token_number += 1;
                self.token_fault = None;
                return self.send_refused();
            }
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        self.token_fault.clone_from(&fault);
        let Some((_, status, challenge)) = refusal else { return };
        let refused = |exchange: &Exchange| matches!(exchange.stage, Stage::Waiting) && exchange.refusals > 0;
        let refused: Vec<_> =
            self.exchanges.iter().filter(|(_, exchange)| refused(exchange)).map(|(id, _)| *id).collect();
        for id in refused {
            let failure =
                Failure::Unauthorized { status, challenge: challenge.clone(), reason: fault.clone() };
            self.fail(now, client, id, failure);
        }
    }

    /// Sends again what was refused; what waits for a session goes on waiting.
    fn send_refused(&mut self) {
        for id in self.waiting() {
            if self.exchanges.get(&id).is_some_and(|exchange| exchange.refusals > 0) {
                self.send(id);
            }
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout<T>(&mut self, now: Instant, client: &mut ClientMachine<T>) {
        let due: Vec<_> = self
            .exchanges
            .iter()
            .filter_map(|(id, exchange)| match exchange.stage {
                Stage::Resting(until) => (until <= now).then_some((*id, true)),
                _ => exchange.deadline.is_some_and(|deadline| deadline <= now).then_some((*id, false)),
            })
            .collect();
        for (id, rests) in due {
            if rests {
                self.send(id);
            } else {
                let reason = format!("no answer within {}", in_words(self.config.note_timeout));
                self.fail(now, client, id, Failure::Connection { reason });
            }
        }
    }

    /// The end: everything is given up, and a session is told so.
    pub(crate) fn close(&mut self) {
        for id in self.exchanges.keys().copied().collect::<Vec<_>>() {
            self.remove(id);
        }
        self.taken.clear();
        self.closed = true;
        if self.session.is_some() && self.hold != Some(Hold::Renewal) {
            self.begin(Exchange::new(Purpose::Delete, Vec::new(), HeaderMap::new()));
        }
    }
}
