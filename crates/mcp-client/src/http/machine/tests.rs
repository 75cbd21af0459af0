//! The machine without a network: what is sent, and what comes of answers that are cut anywhere.

mod cuts;

use serde_json::json;

use super::*;
use crate::protocol::{ClientConfig, ClientInfo, EraChoice, Outcome, Output, ServerInfo, Timing};

const URL: &str = "http://127.0.0.1:1/mcp";

struct Pair {
    now: Instant,
    client: ClientMachine<&'static str>,
    http: HttpMachine,
    outputs: Vec<Output<&'static str>>,
}

impl Pair {
    fn new(era: EraChoice) -> Self {
        let mut config = ClientConfig::new(ClientInfo::new("test", "0"));
        config.era = era;
        let now = Instant::now();
        let mut client = ClientMachine::new(config);
        client.start(now);
        let config = HttpConfig {
            url: URL.to_owned(),
            address: Address::parse(URL).unwrap(),
            headers: HeaderMap::new(),
            has_tokens: false,
            old_transport: false,
            listens: false,
            max_message_bytes: 1 << 20,
            note_timeout: Duration::from_secs(30),
        };
        Self { now, client, http: HttpMachine::new(config), outputs: Vec::new() }
    }

    fn sent(&mut self) -> Vec<ToSend> {
        self.http.pump(self.now, &mut self.client);
        let outputs = std::iter::from_fn(|| self.http.poll_output());
        outputs
            .filter_map(|output| if let HttpOutput::Send(sent) = output { Some(sent) } else { None })
            .collect()
    }

    fn collect(&mut self) {
        self.outputs.extend(std::iter::from_fn(|| self.client.poll_output()));
    }

    fn steps(&mut self, id: ExchangeId) {
        self.collect();
        while self.http.step(self.now, &mut self.client, id) {
            self.collect();
        }
        self.collect();
    }

    fn head(&mut self, id: ExchangeId, status: u16, headers: &[(&'static str, &str)]) {
        let status = haversack_http::StatusCode::from_u16(status).unwrap();
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        self.http.handle_head(self.now, &mut self.client, id, status, &pairs.collect());
        self.steps(id);
    }

    fn answer(&mut self, id: ExchangeId, kind: &str, pieces: &[&[u8]]) {
        self.head(id, 200, &[("content-type", kind), ("mcp-session-id", "s1")]);
        for piece in pieces {
            let piece = haversack_http::Bytes::copy_from_slice(piece);
            self.http.handle_piece(self.now, &mut self.client, id, piece);
            self.steps(id);
        }
        self.http.handle_end(id);
        self.steps(id);
    }

    /// A legacy connection that is open.
    fn open() -> Self {
        let mut pair = Self::new(EraChoice::Legacy);
        let initialize = pair.sent().remove(0);
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}});
        pair.answer(initialize.exchange, "application/json", &[answer.to_string().as_bytes()]);
        let note = pair.sent().remove(0);
        assert!(note.body.windows(25).any(|part| part == b"notifications/initialized"));
        pair.head(note.exchange, 202, &[]);
        pair.outputs.clear();
        pair
    }

    fn request(&mut self) -> ToSend {
        self.client.request(self.now, "ping", &(), Timing::unlimited(), "tag").unwrap();
        self.sent().remove(0)
    }

    fn outcomes(&self) -> Vec<&Outcome> {
        let mut outcomes = Vec::new();
        for output in &self.outputs {
            if let Output::Settled { outcome, .. } = output {
                outcomes.push(outcome);
            }
        }
        outcomes
    }
}

fn info(pair: &Pair) -> Option<&ServerInfo> {
    pair.outputs.iter().find_map(|output| if let Output::Ready(info) = output { Some(&**info) } else { None })
}

#[test]
fn a_request_waits_until_the_note_that_ends_the_handshake_has_arrived() {
    let mut pair = Pair::new(EraChoice::Legacy);
    let initialize = pair.sent().remove(0);
    assert!(initialize.headers.get(VERSION).is_none());
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}});
    pair.answer(initialize.exchange, "application/json", &[answer.to_string().as_bytes()]);
    assert!(info(&pair).is_some());
    pair.client.request(pair.now, "ping", &(), Timing::unlimited(), "tag").unwrap();
    let sent = pair.sent();
    assert_eq!(sent.len(), 1, "only the note");
    assert_eq!(sent[0].headers[VERSION], "2025-06-18");
    assert_eq!(sent[0].headers[SESSION], "s1");
    pair.head(sent[0].exchange, 202, &[]);
    assert_eq!(pair.sent().len(), 1, "now the request");
}

#[test]
fn an_answer_cut_at_every_byte_is_the_same_answer() {
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":\"\u{fc}\"}}";
    let events = format!(": hi\r\nid: 7\r\ndata: \r\n\r\nevent: message\r\ndata: {answer}\r\n\r\n");
    for (kind, whole) in [("application/json", answer), ("text/event-stream; charset=utf-8", events.as_str())]
    {
        for cut in 0..=whole.len() {
            let mut pair = Pair::open();
            let request = pair.request();
            let (one, two) = whole.as_bytes().split_at(cut);
            pair.answer(request.exchange, kind, &[one, two]);
            assert!(matches!(pair.outcomes()[..], [Outcome::Answered(_)]), "{kind} cut at {cut}");
            assert!(pair.http.exchanges.is_empty());
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_asked_for_again_after_its_pause_from_its_last_event_on() {
    let mut pair = Pair::open();
    let request = pair.request();
    pair.answer(request.exchange, "text/event-stream", &[b"id: ev-1\nretry: 300\ndata:\n\n"]);
    assert!(pair.outcomes().is_empty() && pair.sent().is_empty());
    let due = pair.http.poll_timeout().unwrap();
    assert_eq!(due - pair.now, Duration::from_millis(300));
    pair.now = due;
    pair.http.handle_timeout(pair.now, &mut pair.client);
    let again = pair.sent().remove(0);
    assert_eq!((again.method.as_str(), again.exchange), ("GET", request.exchange));
    assert_eq!(again.headers[LAST_EVENT], "ev-1");
    pair.answer(again.exchange, "text/event-stream", &[b"data: {\"id\":2,\"result\":{}}\n\n"]);
    assert!(matches!(pair.outcomes()[..], [Outcome::Answered(_)]));
}

#[test]
fn a_stream_that_always_ends_early_is_given_up() {
    let mut pair = Pair::open();
    let mut exchange = pair.request().exchange;
    pair.answer(exchange, "text/event-stream", &[b"id: ev-1\ndata:\n\n"]);
    for round in 0.. {
        assert!(round < 20, "it is asked for again for ever");
        let Some(due) = pair.http.poll_timeout() else { break };
        pair.now = due;
        pair.http.handle_timeout(pair.now, &mut pair.client);
        exchange = pair.sent().remove(0).exchange;
        pair.answer(exchange, "text/event-stream", &[]);
    }
    assert!(matches!(pair.outcomes()[..], [Outcome::Failed(Failure::Connection { .. })]));
}

#[test]
fn a_forgotten_session_is_opened_anew_once_for_all_and_what_waited_is_sent_again() {
    let mut pair = Pair::open();
    let (one, two) = (pair.request(), pair.request());
    pair.head(one.exchange, 404, &[]);
    pair.head(two.exchange, 404, &[]);
    let sent = pair.sent();
    assert_eq!(sent.len(), 1, "one handshake");
    assert!(sent[0].headers.get(SESSION).is_none());
    let answer = json!({"id": "renewal-1", "result": {"protocolVersion": "2025-06-18"}}).to_string();
    pair.head(sent[0].exchange, 200, &[("content-type", "application/json"), ("mcp-session-id", "s2")]);
    pair.http.handle_piece(pair.now, &mut pair.client, sent[0].exchange, answer.into());
    pair.http.handle_end(sent[0].exchange);
    pair.steps(sent[0].exchange);
    let note = pair.sent().remove(0);
    pair.head(note.exchange, 202, &[]);
    let again = pair.sent();
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|sent| sent.headers[SESSION] == "s2"));
    pair.head(again[0].exchange, 404, &[]);
    assert!(
        matches!(pair.outcomes()[..], [Outcome::Failed(Failure::Status { status: 404, .. })]),
        "not twice"
    );
}

#[test]
fn every_status_has_an_outcome_and_none_hangs() {
    for status in (200..600).filter(|status| *status != 404) {
        let mut pair = Pair::open();
        let request = pair.request();
        pair.head(request.exchange, status, &[("location", "https://evil.example/?token=s3cret")]);
        pair.http.handle_end(request.exchange);
        pair.steps(request.exchange);
        let outcomes = format!("{:?}", pair.outcomes());
        assert!(matches!(pair.outcomes()[..], [Outcome::Failed(_)]), "{status}: {outcomes}");
        assert!(!outcomes.contains("s3cret"), "{outcomes}");
        assert!(pair.http.exchanges.is_empty(), "{status}");
    }
}

#[test]
fn a_cancelled_request_closes_its_stream_and_only_legacy_servers_are_told() {
    let mut pair = Pair::open();
    let request = pair.request();
    let id = pair.client.request(pair.now, "ping", &(), Timing::unlimited(), "other").unwrap();
    pair.sent();
    pair.client.cancel(id, "not wanted");
    pair.http.pump(pair.now, &mut pair.client);
    let outputs: Vec<_> = std::iter::from_fn(|| pair.http.poll_output()).collect();
    assert!(
        outputs
            .iter()
            .any(|output| matches!(output, HttpOutput::Abort(aborted) if *aborted != request.exchange))
    );
    assert!(outputs.iter().any(|output| matches!(output, HttpOutput::Send(_))), "the note");

    let mut pair = Pair::new(EraChoice::Modern);
    let discover = pair.sent().remove(0);
    assert_eq!(discover.headers["mcp-method"], "server/discover");
    let answer = json!({"id": "discover-1", "result": {"supportedVersions": ["2026-07-28"]}}).to_string();
    pair.answer(discover.exchange, "application/json", &[answer.as_bytes()]);
    let id = pair.client.request(pair.now, "tools/list", &(), Timing::unlimited(), "tag").unwrap();
    let list = pair.sent().remove(0);
    assert!(list.headers.get(SESSION).is_none(), "there are no sessions");
    pair.client.cancel(id, "not wanted");
    pair.http.pump(pair.now, &mut pair.client);
    let outputs: Vec<_> = std::iter::from_fn(|| pair.http.poll_output()).collect();
    assert!(matches!(outputs[..], [HttpOutput::Abort(aborted)] if aborted == list.exchange), "{outputs:?}");
}
