//! Streamable HTTP apart from all input and output: messages of the protocol machine in, requests to be sent out; heads,
//! pieces and ends of answers in, messages for the protocol machine out.
//!
//! It stands beside a [`ClientMachine`], which knows nothing of HTTP, and is handed it with each input: what that machine
//! wants to send is taken from it, what the server says is given to it, and what cannot be delivered is told to it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use haversack_http::{HeaderMap, HeaderName, HeaderValue, Secret, SseLimits, header};
use serde_json::Value;

use crate::http::address::Address;
use crate::http::exchange::{Exchange, ExchangeId, Purpose, Stage, ToSend};
use crate::http::marks::ToolMarks;
use crate::http::outgoing::{Head, VERSION};
use crate::http::token::TokenRefusal;
use crate::protocol::{Challenge, ClientMachine, Failure, Revision};

mod incoming;
mod recovery;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How many notifications and answers may be on their way at once; what follows waits in the protocol machine, which
/// has a bound of its own.
const MAX_NOTES: usize = 64;

/// How an HTTP machine behaves.
#[derive(Clone, Debug)]
pub(crate) struct HttpConfig {
    pub(crate) url: String,
    pub(crate) address: Address,
    /// Headers of the host's.
    pub(crate) headers: HeaderMap,
    /// Whether tokens can be asked for.
    pub(crate) has_tokens: bool,
    /// Whether the transport of the first revision is tried last.
    pub(crate) old_transport: bool,
    /// Whether a stream is opened on which a legacy server may speak unasked.
    pub(crate) listens: bool,
    /// How long one answer may be, in bytes.
    pub(crate) max_message_bytes: usize,
    /// How long a notification, and the renewal of a session, may take.
    pub(crate) note_timeout: Duration,
}

/// What the driver has to do.
#[derive(Debug)]
pub(crate) enum HttpOutput {
    /// Send a request.
    Send(ToSend),
    /// Give a request up: drop it, or what is left of its answer.
    Abort(ExchangeId),
    /// Get the token to begin with.
    FirstToken,
    /// Get a better token.
    RenewToken(TokenRefusal),
    /// The connection cannot go on.
    Broken(String),
}

/// Why nothing new is sent for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// The handshake's last note is on its way.
    Initialized,
    /// A new session is being opened.
    Renewal,
    /// A token is being fetched.
    Token,
    /// The stream of the first revision has not said yet where to send to.
    OldStream,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct HttpMachine {
    config: HttpConfig,
    exchanges: BTreeMap<ExchangeId, Exchange>,
    last_id: u64,
    outputs: VecDeque<HttpOutput>,
    hold: Option<Hold>,
    /// Messages that were taken from the protocol machine and are not sent yet.
    taken: VecDeque<Vec<u8>>,
    /// The handshake as it was sent, for a new session.
    initialize: Option<Vec<u8>>,
    session: Option<HeaderValue>,
    session_number: u64,
    token: Option<Secret>,
    token_number: u64,
    /// What was held before a token was needed.
    hold_before_token: Option<Hold>,
    /// The refusal that a better token is being fetched for.
    asked_for: Option<(ExchangeId, u16, Option<Challenge>)>,
    /// Why there is no better token.
    token_fault: Option<String>,
    revision: Option<Revision>,
    marks: ToolMarks,
    /// Where messages go with the transport of the first revision.
    old_endpoint: Option<String>,
    old_tried: bool,
    closed: bool,
}

impl HttpMachine {
    pub(crate) fn new(config: HttpConfig) -> Self {
        let hold = config.has_tokens.then_some(Hold::Token);
        let mut outputs = VecDeque::new();
        if hold.is_some() {
            outputs.push_back(HttpOutput::FirstToken);
        }
        Self {
            config,
            exchanges: BTreeMap::new(),
            last_id: 0,
            outputs,
            hold,
            taken: VecDeque::new(),
            initialize: None,
            session: None,
            session_number: 0,
            token: None,
            token_number: 0,
            hold_before_token: None,
            asked_for: None,
            token_fault: None,
            revision: None,
            marks: ToolMarks::new(),
            old_endpoint: None,
            old_tried: false,
            closed: false,
        }
    }

    pub(crate) fn poll_output(&mut self) -> Option<HttpOutput> {
        self.outputs.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let due = |exchange: &Exchange| match exchange.stage {
            Stage::Resting(until) => Some(until),
            _ => exchange.deadline,
        };
        self.exchanges.values().filter_map(due).min()
    }

    /// Which parameters of which tools travel in headers.
    pub(crate) fn set_marks(&mut self, marks: ToolMarks) {
        self.marks = marks;
    }

    /// Takes what the protocol machine wants to send.
    pub(crate) fn pump<T>(&mut self, now: Instant, client: &mut ClientMachine<T>) {
        self.revision = client.revision().or(self.revision);
        loop {
            while self.may_send() {
                let Some(message) = self.taken.pop_front() else { break };
                self.take(now, client, message);
            }
            if !self.may_send() || client.outgoing().is_empty() {
                return;
            }
            let lines = std::mem::take(client.outgoing());
            let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.taken.extend(lines.map(<[u8]>::to_vec));
        }
    }

    fn may_send(&self) -> bool {
        let is_note = |exchange: &&Exchange| matches!(exchange.purpose, Purpose::Note { .. });
        self.hold.is_none() && !self.closed && self.exchanges.values().filter(is_note).count() < MAX_NOTES
    }

    fn take<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, message: Vec<u8>) {
        let Some(head) = Head::read(&message) else { return };
        let is_modern = client.revision().is_some_and(|revision| revision == Revision::NEWEST_MODERN);
        let headers = head.modern_headers(&message, &self.marks);
        let cancelled = head.cancelled().cloned();
        let purpose = match (head.id, head.method) {
            (Some(id), Some(method)) => {
                if method == "initialize" {
                    // The question that came before it is not of interest any more.
                    self.abort_requests(|_, method| method == "server/discover");
                    self.initialize = Some(message.clone());
                }
                Purpose::Request { id, method }
            }
            (None, Some(method)) if method == "notifications/cancelled" => {
                self.abort_requests(|other, _| Some(other) == cancelled.as_ref());
                if is_modern {
                    // There, closing the stream says it.
                    return;
                }
                Purpose::Note { what: method }
            }
            (None, Some(method)) if method == "notifications/initialized" => {
                self.hold = Some(Hold::Initialized);
                Purpose::Initialized
            }
            (None, Some(method)) => Purpose::Note { what: method },
            (_, None) => Purpose::Note { what: "an answer".to_owned() },
        };
        let mut exchange = Exchange::new(purpose, message, headers);
        if !exchange.purpose.wants_answer() {
            exchange.deadline = now.checked_add(self.config.note_timeout);
        }
        self.begin(exchange);
    }

    /// Gives up the requests of which that is true; nobody is told, since whoever asked knows.
    fn abort_requests(&mut self, is_meant: impl Fn(&Value, &str) -> bool) {
        let meant: Vec<_> = self
            .exchanges
            .iter()
            .filter(|(_, exchange)| match &exchange.purpose {
                Purpose::Request { id, method } => is_meant(id, method),
                _ => false,
            })
            .map(|(id, _)| *id)
            .collect();
        for id in meant {
            self.remove(id);
        }
    }

    /// Forgets an exchange; whatever of it is still on its way is dropped.
    fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&id)?;
        self.outputs.push_back(HttpOutput::Abort(id));
        Some(exchange)
    }

    fn begin(&mut self, exchange: Exchange) -> ExchangeId {
        self.last_id += 1;
        let id = ExchangeId(self.last_id);
        self.exchanges.insert(id, exchange);
        self.send(id);
        id
    }

    /// Sends an exchange, for the first time or once more.
    fn send(&mut self, id: ExchangeId) {
        let headers = {
            let Some(exchange) = self.exchanges.get(&id) else { return };
            self.headers_of(exchange)
        };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.stage = Stage::Sent;
        exchange.session = self.session_number;
        exchange.token = self.token_number;
        let method = exchange.method();
        let body =
            if method == haversack_http::Method::POST { exchange.body.clone() } else { Default::default() };
        let url = match &self.old_endpoint {
            Some(endpoint) if method == haversack_http::Method::POST => endpoint.clone(),
            _ => self.config.url.clone(),
        };
        self.outputs.push_back(HttpOutput::Send(ToSend { exchange: id, method, url, headers, body }));
    }

    fn headers_of(&self, exchange: &Exchange) -> HeaderMap {
        let mut headers = self.config.headers.clone();
        let is_post = exchange.method() == haversack_http::Method::POST;
        let accept = if is_post { "application/json, text/event-stream" } else { "text/event-stream" };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        if is_post {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        {
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let opens = match &exchange.purpose {
            Purpose::Renewal { .. } => true,
            Purpose::Request { method, .. } => method == "initialize",
            _ => false,
        };
        if exchange.headers.is_empty() && !opens {
            if let Some(revision) = self.revision.filter(|revision| *revision >= Revision::V2025_06_18) {
                headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
            }
            if let Some(session) = &self.session {
                headers.insert(SESSION, session.clone());
            }
        }
        if let Some(last) = &exchange.last_event {
            headers.insert(LAST_EVENT, last.clone());
        }
        headers.extend(exchange.headers.clone());
        headers
    }

    fn limits(&self) -> SseLimits {
        SseLimits::default().with_max_event_bytes(self.config.max_message_bytes)
    }

    /// An exchange has failed: whoever waits for it is told, or it is reported.
    fn fail<T>(&mut self, now: Instant, client: &mut ClientMachine<T>, id: ExchangeId, failure: Failure) {
        let Some(exchange) = self.remove(id) else { return };
        match exchange.purpose {
            Purpose::Request { id, .. } => client.handle_failure(now, &id, failure),
            Purpose::Initialized => {
                client.report(format!("notifications/initialized was not taken: {failure}"));
                self.opened();
            }
            Purpose::Note { what } => client.report(format!("{what} was not taken: {failure}")),
            Purpose::Renewal { .. } => {
                self.hold = None;
                for id in self.waiting() {
                    self.fail(now, client, id, failure.clone());
                }
            }
            Purpose::OldStream => {
                self.hold = None;
                for id in self.waiting() {
                    self.fail(now, client, id, failure.clone());
                }
                if self.old_endpoint.is_some() {
                    self.outputs.push_back(HttpOutput::Broken(failure.to_string()));
                }
            }
            // That it offers none is no fault.
            Purpose::Listen | Purpose::Delete => {}
        }
    }

    /// The exchanges that wait to be sent again.
    fn waiting(&self) -> Vec<ExchangeId> {
        let waits = |exchange: &Exchange| matches!(exchange.stage, Stage::Waiting);
        self.exchanges.iter().filter(|(_, exchange)| waits(exchange)).map(|(id, _)| *id).collect()
    }

    fn send_waiting(&mut self) {
        for id in self.waiting() {
            self.send(id);
        }
    }

    /// The session is open: what waited is sent, and the stream for what the server says unasked is opened.
    fn opened(&mut self) {
        self.hold = None;
        self.send_waiting();
        let listens = self.exchanges.values().any(|exchange| exchange.purpose.lasts());
        if self.config.listens && !listens {
            self.begin(Exchange::new(Purpose::Listen, Vec::new(), HeaderMap::new()));
        }
    }
}

#[cfg(test)]
mod tests;
