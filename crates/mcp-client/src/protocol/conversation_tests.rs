//! The two machines, joined by a link with a clock that jumps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

/// A small generator of numbers (xorshift), so that each conversation can be had again by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let place = self.roll(list.len().max(1) as u64);
        list.get(usize::try_from(place).unwrap())
    }
}

/// A client and a server, and the bytes on their way between them.
struct Pair {
    now: Instant,
    client: ClientMachine<u64>,
    server: ServerMachine,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    client_lines: LineBuffer,
    server_lines: LineBuffer,
    outputs: Vec<Output<u64>>,
    asked: Vec<ServerOutput>,
}

impl Pair {
    fn new(config: ClientConfig, revisions: &[Revision]) -> Self {
        let mut pair = Self {
            now: Instant::now(),
            client: ClientMachine::new(config),
            server: ServerMachine::new(revisions, json!({"tools": {}})),
            to_server: Vec::new(),
            to_client: Vec::new(),
            client_lines: LineBuffer::new(1 << 16),
            server_lines: LineBuffer::new(1 << 16),
            outputs: Vec::new(),
            asked: Vec::new(),
        };
        pair.client.start(pair.now);
        pair
    }

    /// Delivers up to that many bytes each way.
    fn deliver(&mut self, to_server: usize, to_client: usize) {
        self.to_server.append(self.client.outgoing());
        let count = to_server.min(self.to_server.len());
        self.server_lines.feed(&self.to_server.drain(..count).collect::<Vec<_>>());
        while let Some(Line::Text(line)) = self.server_lines.next_line() {
            self.server.handle_line(line.as_bytes());
        }
        while let Some(output) = self.server.poll_output() {
            self.asked.push(output);
        }
        self.to_client.append(self.server.outgoing());
        let count = to_client.min(self.to_client.len());
        self.client_lines.feed(&self.to_client.drain(..count).collect::<Vec<_>>());
        while let Some(line) = self.client_lines.next_line() {
            self.client.handle_line(self.now, line);
            self.outputs.extend(std::iter::from_fn(|| self.client.poll_output()));
        }
    }

    fn settle(&mut self) {
        loop {
            self.deliver(usize::MAX, usize::MAX);
            let waits =
                [self.client.outgoing(), &mut self.to_server, &mut self.to_client, self.server.outgoing()];
            if waits.iter().all(|bytes| bytes.is_empty()) {
                break;
            }
        }
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
        if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.outputs.extend(std::iter::from_fn(|| self.client.poll_output()));
    }

    fn ready(config: ClientConfig, revisions: &[Revision]) -> Self {
        let mut pair = Self::new(config, revisions);
        pair.settle();
        assert!(pair.client.is_ready());
        pair.outputs.clear();
        pair.asked.clear();
        pair
    }
}

fn config(era: EraChoice) -> ClientConfig {
    let mut config = ClientConfig::new(ClientInfo::new("pair", "1"));
    config.era = era;
    config
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_connection_opens_in_the_best_revision_that_both_speak() {
    use Revision::*;
    let all = Revision::ALL;
    let table: [(&[Revision], EraChoice, Option<Revision>); 12] = [
        (&all, EraChoice::Auto, Some(V2026_07_28)),
        (&all, EraChoice::AutoLegacyFirst, Some(V2025_11_25)),
        (&all, EraChoice::Legacy, Some(V2025_11_25)),
        (&all, EraChoice::Modern, Some(V2026_07_28)),
        (&[V2026_07_28], EraChoice::Auto, Some(V2026_07_28)),
        (&[V2026_07_28], EraChoice::AutoLegacyFirst, Some(V2026_07_28)),
        (&[V2026_07_28], EraChoice::Legacy, None),
        (&[V2024_11_05], EraChoice::Auto, Some(V2024_11_05)),
        (&[V2024_11_05], EraChoice::AutoLegacyFirst, Some(V2024_11_05)),
        (&[V2024_11_05], EraChoice::Modern, None),
        (&[V2025_03_26, V2025_06_18], EraChoice::Auto, Some(V2025_06_18)),
        (&[V2025_11_25, V2026_07_28], EraChoice::Auto, Some(V2026_07_28)),
    ];
    for (revisions, era, wanted) in table {
        let mut pair = Pair::new(config(era), revisions);
        pair.settle();
        let got = pair.outputs.iter().find_map(|output| match output {
            Output::Ready(info) => Some(Some(info.protocol_version)),
            Output::OpeningFailed { .. } => Some(None),
            _ => None,
        });
        assert_eq!(got, Some(wanted), "{revisions:?} {era:?}: {:?}", pair.outputs);
    }
}

/// What can happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answer,
    Timeout,
    Cancel,
    Close,
}

#[test]
fn whatever_happens_first_to_a_request_is_its_only_outcome() {
    const FATES: [Fate; 4] = [Fate::Answer, Fate::Timeout, Fate::Cancel, Fate::Close];
    let mut orders = 0;
    for first in FATES {
        for second in FATES {
            for third in FATES {
                for fourth in FATES {
                    let order = [first, second, third, fourth];
                    let distinct = (0..4).all(|a| (0..a).all(|b| order[a] != order[b]));
                    for era in [EraChoice::Legacy, EraChoice::Modern] {
                        if distinct {
                            orders += 1;
                            run_in_order(order, era);
                        }
                    }
                }
            }
        }
    }
    assert_eq!(orders, 48);
}

fn run_in_order(order: [Fate; 4], era: EraChoice) {
    let mut pair = Pair::ready(config(era), &Revision::ALL);
    let timing = Timing::with_progress(SECOND, 2 * SECOND);
    let id = pair.client.request(pair.now, "tools/call", &(), timing, 7).unwrap();
    pair.deliver(usize::MAX, 0);
    let cancelled_by_host = order[0] == Fate::Cancel;
    for fate in order {
        match fate {
            Fate::Answer => {
                let line = format!("{{\"id\":{id},\"result\":{{}}}}\n");
                pair.server.send_raw(line.as_bytes());
                pair.deliver(0, usize::MAX);
            }
            Fate::Timeout => pair.advance(SECOND),
            Fate::Cancel => {
                assert_eq!(pair.client.cancel(id, "test").is_some(), cancelled_by_host, "{order:?}");
            }
            Fate::Close => {
                pair.client.handle_closed();
                pair.outputs.extend(std::iter::from_fn(|| pair.client.poll_output()));
            }
        }
    }
    let outcomes: Vec<&Outcome> = pair
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Settled { tag: 7, outcome } => Some(outcome),
            _ => None,
        })
        .collect();
    match (order[0], outcomes.as_slice()) {
        (Fate::Answer, [Outcome::Answered(_)])
        | (Fate::Timeout, [Outcome::TimedOut { .. }])
        | (Fate::Close, [Outcome::Closed])
        | (Fate::Cancel, []) => {}
        (first, outcomes) => panic!("{order:?}: after {first:?} came {outcomes:?}"),
    }
    assert_eq!(pair.client.in_flight(), 0);
    assert_eq!(pair.client.poll_timeout(), None, "{order:?}");
    // A late answer to what was given up is no news, unless the connection is closed anyway.
    let strays = pair.outputs.iter().filter(|output| matches!(output, Output::Notice(_))).count();
    assert_eq!(strays, 0, "{order:?}: {:?}", pair.outputs);
}

#[test]
fn every_cut_of_the_bytes_gives_the_same_outputs() {
    let mut pair = Pair::ready(config(EraChoice::Legacy), &Revision::ALL);
    for tag in 0..3 {
        let timing = Timing::with_progress(SECOND, SECOND);
        pair.client.request(pair.now, "tools/call", &(), timing, tag).unwrap();
    }
    let mut stream = b"noise\r\n\n".to_vec();
    stream.extend("{\"id\":3,\"result\":{\"t\":\"ä\u{2028}\"}}\r\n".as_bytes());
    stream.extend(b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n");
    stream
        .extend(b"[{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":4,\"progress\":1}},");
    stream.extend(b"{\"id\":4,\"error\":{\"code\":1,\"message\":\"no\"}}]\n{\"id\":99,\"result\":{}}\n");
    stream.extend(b"{\"result\":{},\"jsonrpc\":\"2.0\",\"id\":2}\n");
    let run = |cut: usize, second: usize| {
        let mut machine = ClientMachine::new(config(EraChoice::Legacy));
        let now = Instant::now();
        machine.start(now);
        let mut lines = LineBuffer::new(1000);
        lines.feed(b"{\"id\":1,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n");
        while let Some(line) = lines.next_line() {
            machine.handle_line(now, line);
        }
        while machine.poll_output().is_some() {}
        machine.outgoing().clear();
        for tag in 0..3 {
            machine.request(now, "tools/call", &(), Timing::with_progress(SECOND, SECOND), tag).unwrap();
        }
        machine.outgoing().clear();
        let mut seen = Vec::new();
        for piece in [&stream[..cut], &stream[cut..second], &stream[second..]] {
            lines.feed(piece);
            while let Some(line) = lines.next_line() {
                machine.handle_line(now, line);
                seen.extend(std::iter::from_fn(|| machine.poll_output()).map(|output| format!("{output:?}")));
            }
        }
        (seen, machine.outgoing().clone(), machine.in_flight())
    };
    let whole = run(0, 0);
    assert_eq!(whole.0.len(), 6, "{:#?}", whole.0);
    assert_eq!(whole.2, 0);
    for cut in 0..=stream.len() {
        for second in (cut..=stream.len()).step_by(7).chain([stream.len()]) {
            assert_eq!(run(cut, second), whole, "cut at {cut} and {second}");
        }
    }
}

/// What a random conversation has seen.
#[derive(Default)]
struct Ledger {
    made: BTreeMap<u64, (RequestId, Instant)>,
    cancelled: BTreeSet<u64>,
    settled: BTreeMap<u64, String>,
    server_ids: BTreeSet<String>,
    open: Vec<(PeerId, u64)>,
    seen: usize,
    asked: usize,
    ready: usize,
}

const TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn ten_thousand_random_conversations_settle_every_request_exactly_once() {
    for seed in 1..=10_000 {
        converse(seed);
    }
}

fn converse(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let eras = [EraChoice::Auto, EraChoice::AutoLegacyFirst, EraChoice::Legacy, EraChoice::Modern];
    let era = *dice.pick(&eras).unwrap();
    let mut settings = config(era);
    settings.max_in_flight = 5;
    let mut pair = Pair::new(settings, &Revision::ALL);
    let mut ledger = Ledger::default();
    let mut next_tag = 0;
    for _ in 0..dice.roll(40) + 15 {
        match dice.roll(14) {
            0..=2 => {
                let timing = if dice.roll(2) == 0 {
                    Timing::fixed(TIMEOUT)
                } else {
                    Timing::with_progress(TIMEOUT, 3 * TIMEOUT)
                };
                let params = json!({"name": format!("t{next_tag}"), "tag": next_tag});
                let made = pair.client.request(
                    pair.now,
                    "tools/call",
                    params.as_object().unwrap(),
                    timing,
                    next_tag,
                );
                match made {
                    Ok(id) => drop(ledger.made.insert(next_tag, (id, pair.now))),
                    Err(Refusal::NotOpen) => assert!(!pair.client.is_ready()),
                    Err(Refusal::TooManyInFlight { limit: 5 }) => assert_eq!(pair.client.in_flight(), 5),
                    Err(other) => panic!("seed {seed}: {other}"),
                }
                next_tag += 1;
            }
            3 => {
                let tags: Vec<u64> = ledger.made.keys().copied().collect();
                if let Some(tag) = dice.pick(&tags)
                    && pair.client.cancel(ledger.made[tag].0, "changed my mind").is_some()
                {
                    assert!(ledger.cancelled.insert(*tag), "seed {seed}: {tag} was cancelled twice");
                    assert!(!ledger.settled.contains_key(tag), "seed {seed}");
                }
            }
            4..=7 => {
                let (there, back) = (dice.roll(300), dice.roll(300));
                pair.deliver(usize::try_from(there).unwrap(), usize::try_from(back).unwrap());
            }
            8..=10 => server_acts(&mut dice, &mut pair, &mut ledger),
            11 => pair.advance(Duration::from_millis(dice.roll(4000))),
            12 if dice.roll(8) == 0 => pair.advance(Duration::from_secs(dice.roll(40))),
            _ => pair.settle(),
        }
        check(seed, &mut pair, &mut ledger);
    }
    end(seed, &mut pair, &mut ledger);
}

/// Closes, and checks that every request has had its one end.
fn end(seed: u64, pair: &mut Pair, ledger: &mut Ledger) {
    pair.client.handle_closed();
    pair.outputs.extend(std::iter::from_fn(|| pair.client.poll_output()));
    check(seed, pair, ledger);
    for tag in ledger.made.keys() {
        let ends =
            usize::from(ledger.cancelled.contains(tag)) + usize::from(ledger.settled.contains_key(tag));
        assert_eq!(ends, 1, "seed {seed}: {tag} has {ends} ends");
    }
    assert!(ledger.ready <= 1);
    assert_eq!((pair.client.in_flight(), pair.client.poll_timeout()), (0, None), "seed {seed}");
    assert!(pair.client.outgoing().is_empty());
}

/// The server does something, right or wrong.
fn server_acts(dice: &mut Dice, pair: &mut Pair, ledger: &mut Ledger) {
    let chosen = usize::try_from(dice.roll(ledger.open.len().max(1) as u64)).unwrap();
    match dice.roll(9) {
        0..=3 if chosen < ledger.open.len() => {
            let (id, tag) = ledger.open.swap_remove(chosen);
            let result = if dice.roll(4) == 0 {
                Err(RpcError::new(-32000, format!("tag {tag}")))
            } else {
                Ok(json!({"content": [], "tag": tag}))
            };
            pair.server.answer(&id, result);
        }
        4 if chosen < ledger.open.len() => {
            let id: Value = serde_json::from_str(ledger.open[chosen].0.as_json()).unwrap();
            let progress = dice.roll(10);
            pair.server.notify("notifications/progress", &json!({"progressToken": id, "progress": progress}));
        }
        5 => pair.server.notify("notifications/tools/list_changed", &json!({})),
        6 => drop(pair.server.ask("ping", &Object::new())),
        // Before, an error without an id would be an answer to the question that opens a connection.
        7 if pair.client.is_ready() => pair.server.send_raw(
            b"INFO something\n\n[1,{}]\n{\"id\":null,\"error\":{}}\n{\"id\":123456,\"result\":{}}\n",
        ),
        _ => {}
    }
}

fn check(seed: u64, pair: &mut Pair, ledger: &mut Ledger) {
    for output in &pair.outputs[ledger.seen..] {
        match output {
            Output::Ready(_) => ledger.ready += 1,
            Output::Settled { tag, outcome } => {
                let (_, since) = ledger.made[tag];
                let how = match outcome {
                    Outcome::Answered(answer) => {
                        match answer.result() {
                            Ok(result) => {
                                assert_eq!(result["tag"], *tag, "seed {seed}: an answer of another");
                            }
                            Err(error) => assert!(
                                error.to_string().contains(&format!("tag {tag} ")),
                                "seed {seed}: {error}"
                            ),
                        }
                        "answered"
                    }
                    Outcome::TimedOut { after } => {
                        assert!(*after >= TIMEOUT && since + TIMEOUT <= pair.now, "seed {seed}: too early");
                        "timed out"
                    }
                    Outcome::Closed => "closed",
                    other => panic!("seed {seed}: {other:?}"),
                };
                let before = ledger.settled.insert(*tag, how.to_owned());
                assert_eq!(before, None, "seed {seed}: {tag} was settled twice");
                assert!(!ledger.cancelled.contains(tag), "seed {seed}: {tag} was cancelled before");
            }
            Output::OpeningFailed { error, .. } => {
                let stopped = matches!(error, OpeningError::Closed { .. } | OpeningError::TimedOut { .. });
                assert!(stopped, "seed {seed}: {error}");
            }
            Output::Broken { reason } => panic!("seed {seed}: {reason}"),
            _ => {}
        }
    }
    ledger.seen = pair.outputs.len();
    for output in &pair.asked[ledger.asked..] {
        match output {
            ServerOutput::Request { id, params, .. } => {
                assert!(
                    ledger.server_ids.insert(id.as_json().to_owned()),
                    "seed {seed}: id {id:?} was used twice"
                );
                ledger.open.push((id.clone(), params["tag"].as_u64().unwrap()));
            }
            ServerOutput::Cancelled { id } => {
                assert!(ledger.server_ids.contains(id.as_json()), "seed {seed}: never asked: {id:?}");
                ledger.open.retain(|(open, _)| open != id);
            }
            ServerOutput::Noise(line) => panic!("seed {seed}: we sent {}", String::from_utf8_lossy(line)),
            _ => {}
        }
    }
    ledger.asked = pair.asked.len();
}
