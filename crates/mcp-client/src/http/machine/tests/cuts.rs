//! Streams and answers that are cut anywhere, in any order with what else can happen: one outcome, and nothing left.

use proptest::prelude::*;

use super::*;

const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":\"\u{fc}\"}}";

impl Pair {
    fn piece(&mut self, id: ExchangeId, piece: &[u8]) {
        let piece = haversack_http::Bytes::copy_from_slice(piece);
        self.http.handle_piece(self.now, &mut self.client, id, piece);
        self.steps(id);
    }

    fn breaks(&mut self, id: ExchangeId) {
        self.http.handle_break(self.now, &mut self.client, id, "the connection broke".to_owned());
        self.steps(id);
    }

    fn ends(&mut self, id: ExchangeId) {
        self.http.handle_end(id);
        self.steps(id);
    }

    /// Lets the time pass until the next thing is due; says what is sent then.
    fn wait(&mut self) -> Vec<ToSend> {
        let Some(due) = self.http.poll_timeout() else { return Vec::new() };
        self.now = due.max(self.now);
        self.http.handle_timeout(self.now, &mut self.client);
        self.collect();
        self.sent()
    }

    fn is_clean(&self) -> bool {
        self.client.in_flight() == 0 && self.http.exchanges.is_empty() && self.http.taken.is_empty()
    }
}

#[test]
fn a_legacy_stream_cut_at_every_byte_is_resumed_or_fails_and_leaves_nothing() {
    let events = format!("id: ev-1\nretry: 10\ndata:\n\nid: ev-2\ndata: {ANSWER}\n\n");
    let (mut resumed, mut failed, mut whole) = (0, 0, 0);
    for cut in 0..=events.len() {
        for politely in [false, true] {
            let mut pair = Pair::open();
            let request = pair.request();
            pair.head(request.exchange, 200, &[("content-type", "text/event-stream")]);
            pair.piece(request.exchange, &events.as_bytes()[..cut]);
            if politely {
                pair.ends(request.exchange);
            } else {
                pair.breaks(request.exchange);
            }
            match pair.outcomes()[..] {
                [] => {
                    let again = pair.wait().remove(0);
                    assert_eq!(again.method.as_str(), "GET", "cut at {cut}");
                    assert_eq!(again.headers[LAST_EVENT], "ev-1", "cut at {cut}");
                    let rest = format!("id: ev-2\ndata: {ANSWER}\n\n");
                    pair.answer(again.exchange, "text/event-stream", &[rest.as_bytes()]);
                    assert!(matches!(pair.outcomes()[..], [Outcome::Answered(_)]), "cut at {cut}");
                    resumed += 1;
                }
                [Outcome::Answered(_)] => whole += 1,
                [Outcome::Failed(Failure::Connection { .. })] => failed += 1,
                ref odd => panic!("cut at {cut}: {odd:?}"),
            }
            assert!(pair.is_clean() && pair.wait().is_empty(), "cut at {cut}, politely: {politely}");
        }
    }
    assert!(resumed > 0 && failed > 0 && whole > 0, "{resumed} {failed} {whole}");
}

#[test]
fn a_modern_stream_cut_at_every_byte_is_lost_and_never_asked_for_again() {
    // Its id is known when the request is made, and as long as this one.
    let events = format!("id: ev-1\ndata:\n\nid: ev-2\ndata: {ANSWER}\n\n");
    for cut in 0..=events.len() {
        let mut pair = Pair::new(EraChoice::Modern);
        let discover = pair.sent().remove(0);
        let answer = json!({"id": "discover-1", "result": {"supportedVersions": ["2026-07-28"]}}).to_string();
        pair.answer(discover.exchange, "application/json", &[answer.as_bytes()]);
        pair.outputs.clear();
        let id = pair.client.request(pair.now, "tools/list", &(), Timing::unlimited(), "tag").unwrap();
        let list = pair.sent().remove(0);
        let events = events.replace("\"id\":1", &format!("\"id\":{}", id.get()));
        pair.head(list.exchange, 200, &[("content-type", "text/event-stream")]);
        pair.piece(list.exchange, &events.as_bytes()[..cut]);
        pair.breaks(list.exchange);
        let is_answered = matches!(pair.outcomes()[..], [Outcome::Answered(_)]);
        let is_lost = matches!(pair.outcomes()[..], [Outcome::Failed(Failure::Connection { .. })]);
        assert!(
            if cut == events.len() { is_answered } else { is_lost },
            "cut at {cut}: {:?}",
            pair.outcomes()
        );
        assert!(pair.is_clean() && pair.wait().is_empty(), "cut at {cut}");
    }
}

#[test]
fn a_plain_answer_that_breaks_at_every_byte_fails_once_and_leaves_nothing() {
    for cut in 0..ANSWER.len() {
        for politely in [false, true] {
            let mut pair = Pair::open();
            let request = pair.request();
            pair.head(request.exchange, 200, &[("content-type", "application/json")]);
            pair.piece(request.exchange, &ANSWER.as_bytes()[..cut]);
            if politely {
                pair.ends(request.exchange);
            } else {
                pair.breaks(request.exchange);
            }
            // Whoever waits for it is told: by a failure, or by an answer that cannot be read.
            let is_told = match pair.outcomes()[..] {
                [Outcome::Failed(_)] => true,
                [Outcome::Answered(answer)] => answer.result().is_err(),
                _ => false,
            };
            assert!(is_told, "cut at {cut}, politely: {politely}: {:?}", pair.outcomes());
            assert!(pair.is_clean() && pair.wait().is_empty(), "cut at {cut}");
        }
    }
}

/// What can happen to a request and to the stream beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happens {
    Answered,
    Cancelled,
    /// The stream of the answer breaks.
    PostBreaks,
    /// The stream on which the server speaks unasked says something.
    Notified,
    /// That stream breaks.
    GetBreaks,
    /// What is due comes due.
    TimePasses,
    Closed,
}

/// All orders of a list.
fn orders(of: &[Happens]) -> Vec<Vec<Happens>> {
    let Some((first, rest)) = of.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(rest) {
        for at in 0..=order.len() {
            let mut order = order.clone();
            order.insert(at, *first);
            all.push(order);
        }
    }
    all
}

/// An open connection with a stream on which the server speaks, and a request under way on a stream of its own.
fn with_both_streams() -> (Pair, ExchangeId, ToSend, crate::protocol::RequestId) {
    let mut pair = Pair::new(EraChoice::Legacy);
    pair.http.config.listens = true;
    let initialize = pair.sent().remove(0);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}).to_string();
    pair.answer(initialize.exchange, "application/json", &[answer.as_bytes()]);
    let note = pair.sent().remove(0);
    pair.head(note.exchange, 202, &[]);
    let listen = pair.sent().remove(0);
    assert_eq!(listen.method.as_str(), "GET");
    pair.head(listen.exchange, 200, &[("content-type", "text/event-stream")]);
    let id = pair.client.request(pair.now, "ping", &(), Timing::unlimited(), "tag").unwrap();
    let request = pair.sent().remove(0);
    pair.head(request.exchange, 200, &[("content-type", "text/event-stream")]);
    pair.piece(request.exchange, b"id: ev-1\nretry: 10\ndata:\n\n");
    pair.outputs.clear();
    (pair, listen.exchange, request, id)
}

#[test]
fn a_request_has_one_outcome_in_every_order_of_what_can_happen_to_both_streams() {
    use Happens::{Answered, Cancelled, Closed, GetBreaks, Notified, PostBreaks, TimePasses};

    let all = [Answered, Cancelled, PostBreaks, Notified, GetBreaks, TimePasses, Closed];
    for order in orders(&all) {
        let (mut pair, listen, request, id) = with_both_streams();
        let (mut cancelled, mut closed) = (false, false);
        for happens in &order {
            match happens {
                Answered => pair.piece(request.exchange, format!("data: {ANSWER}\n\n").as_bytes()),
                Cancelled => cancelled |= pair.client.cancel(id, "not wanted").is_some(),
                PostBreaks => pair.breaks(request.exchange),
                Notified => {
                    pair.piece(listen, b"data: {\"method\":\"notifications/tools/list_changed\"}\n\n");
                }
                GetBreaks => pair.breaks(listen),
                TimePasses => {
                    for sent in pair.wait() {
                        // Whatever is asked for again finds a server that has nothing to say.
                        pair.head(sent.exchange, 200, &[("content-type", "text/event-stream")]);
                    }
                }
                Closed => {
                    closed = true;
                    pair.http.close();
                    pair.client.handle_closed();
                }
            }
            pair.sent();
            pair.collect();
        }
        let settled = pair.outcomes().len() + usize::from(cancelled);
        assert_eq!(settled, 1, "{order:?}: {:?}, cancelled: {cancelled}", pair.outcomes());
        assert!(closed && pair.client.in_flight() == 0, "{order:?}");
        let left: Vec<_> = pair.http.exchanges.values().map(|exchange| &exchange.purpose).collect();
        assert!(left.iter().all(|purpose| **purpose == Purpose::Delete), "{order:?}: {left:?}");
    }
}

proptest! {
    #[test]
    fn after_a_lost_session_there_is_one_handshake_and_each_request_is_sent_once_more(
        order in (1..6_usize).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle()),
        late in 0..6_usize,
        again in any::<bool>(),
    ) {
        let mut pair = Pair::open();
        let requests: Vec<_> = order.iter().map(|_| pair.request()).collect();
        // Some are told before the new session is open, the others after.
        let (before, after) = order.split_at(late.clamp(1, order.len()));
        for at in before {
            pair.head(requests[*at].exchange, 404, &[]);
        }
        let renewal = pair.sent();
        prop_assert_eq!(renewal.len(), 1);
        let answer = json!({"id": "renewal-1", "result": {"protocolVersion": "2025-06-18"}}).to_string();
        pair.head(renewal[0].exchange, 200, &[("content-type", "application/json"), ("mcp-session-id", "s2")]);
        pair.piece(renewal[0].exchange, answer.as_bytes());
        pair.ends(renewal[0].exchange);
        let note = pair.sent().remove(0);
        pair.head(note.exchange, 202, &[]);
        let mut replayed = pair.sent();
        for at in after {
            pair.head(requests[*at].exchange, 404, &[]);
            replayed.extend(pair.sent());
        }
        // Each once, with the body that it had, and under the new session.
        let mut expected: Vec<_> = requests.iter().map(|sent| (sent.exchange, sent.body.clone())).collect();
        let mut seen: Vec<_> = replayed.iter().map(|sent| (sent.exchange, sent.body.clone())).collect();
        expected.sort();
        seen.sort();
        prop_assert_eq!(seen, expected);
        prop_assert!(replayed.iter().all(|sent| sent.headers[SESSION] == "s2"));
        prop_assert!(pair.outcomes().is_empty());

        for sent in &replayed {
            if again {
                pair.head(sent.exchange, 404, &[]);
            } else {
                let message: Value = serde_json::from_slice(&sent.body).unwrap();
                let answer = json!({"id": message["id"], "result": {}}).to_string();
                pair.head(sent.exchange, 200, &[("content-type", "application/json")]);
                pair.piece(sent.exchange, answer.as_bytes());
                pair.ends(sent.exchange);
            }
        }
        prop_assert!(pair.sent().is_empty(), "nothing is sent a third time");
        prop_assert_eq!(pair.outcomes().len(), requests.len());
        let right = |outcome: &&Outcome| matches!((again, outcome), (true, Outcome::Failed(_)) | (false, Outcome::Answered(_)));
        prop_assert!(pair.outcomes().iter().all(right), "{:?}", pair.outcomes());
        prop_assert!(pair.is_clean());
    }
}
