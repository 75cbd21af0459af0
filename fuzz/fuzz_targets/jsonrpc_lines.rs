//! Any bytes, cut anywhere, as what a server says, in each era: no panic, the same outputs however cut, nothing larger
//! or more than its bounds, and every request's tag back exactly once.
#![no_main]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use haversack_mcp_client::protocol::{
    ClientConfig, ClientInfo, ClientMachine, EraChoice, Line, LineBuffer, LogLevel, Notice, Output,
    RequestId, Timing,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, json};

/// Requests of a run, two of which are cancelled.
const REQUESTS: usize = 6;

/// Bytes that may wait to be sent before answers to the server are dropped.
const QUEUED: usize = 2048;

/// The most that one answer to the server adds: its id, and an excerpt of what it asked.
const REPLY: usize = 8 << 10;

/// The longest text of a notice, in characters: an excerpt of 500, and the words around it.
const NOTICE_CHARS: usize = 1000;

/// How many limits' worth of a line end a stream; when that is noticed depends on the pieces.
const ENDLESS: usize = 32;

const OPENINGS: [&[u8]; 2] = [
    br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#,
    br#"{"jsonrpc":"2.0","id":"discover-1","result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
];

struct Run {
    machine: ClientMachine<usize>,
    now: Instant,
    ids: Vec<RequestId>,
    back: BTreeSet<usize>,
    said: Vec<String>,
}

impl Run {
    fn new(now: Instant, era: EraChoice) -> Self {
        let mut config = ClientConfig::new(ClientInfo::new("fuzz", "1"));
        config.era = era;
        config.log_level = Some(LogLevel::Info);
        config.max_queued_bytes = QUEUED;
        config.capabilities.insert("roots".to_owned(), json!({}));
        config.capabilities.insert("sampling".to_owned(), json!({}));
        let mut machine = ClientMachine::new(config);
        machine.start(now);
        Self { machine, now, ids: Vec::new(), back: BTreeSet::new(), said: Vec::new() }
    }

    fn make_requests(&mut self) {
        let second = Duration::from_secs(1);
        for tag in 0..REQUESTS {
            let (method, timing) = match tag % 3 {
                0 => ("tools/call", Timing::with_progress(second, 3 * second)),
                1 => ("subscriptions/listen", Timing::unlimited()),
                _ => ("tools/list", Timing::fixed(second)),
            };
            self.ids.push(self.machine.request(self.now, method, &Map::new(), timing, tag).unwrap());
        }
        self.cancel(0);
    }

    fn cancel(&mut self, tag: usize) {
        if let Some(id) = self.ids.get(tag)
            && let Some(tag) = self.machine.cancel(*id, "fuzz")
        {
            assert!(self.back.insert(tag), "{tag} came back twice");
        }
    }

    /// Takes the outputs of one input of that many bytes.
    fn drain(&mut self, bytes: usize) {
        let mut count = 0;
        while let Some(output) = self.machine.poll_output() {
            count += 1;
            self.said.push(format!("{output:?}"));
            match output {
                Output::Ready(_) => {
                    assert!(self.ids.is_empty(), "opened twice");
                    self.make_requests();
                }
                Output::Settled { tag, .. } => assert!(self.back.insert(tag), "{tag} came back twice"),
                // Every second one is answered, the others are open at the end.
                Output::Asked { id, .. } if id.as_json().len() % 2 == 0 => {
                    self.machine.answer(&id, Ok(&json!({})))
                }
                Output::Notice(notice) => check_notice(&notice),
                Output::Progress { progress, .. } => {
                    assert!(progress.message.is_none_or(|message| message.chars().count() <= NOTICE_CHARS));
                }
                _ => {}
            }
        }
        // One a message, a message has two bytes at least, and an end settles all that is open.
        assert!(count <= bytes + REQUESTS + 64 + 3, "{count} outputs of {bytes} bytes");
    }

    fn feed(&mut self, lines: &mut LineBuffer, bytes: &[u8]) {
        lines.feed(bytes);
        while let Some(line) = lines.next_line() {
            self.take(line);
        }
    }

    fn take(&mut self, line: Line<'_>) {
        let length = match &line {
            Line::Text(text) => text.as_bytes().len(),
            Line::TooLong { head, .. } => head.len(),
            Line::Endless { .. } => 0,
        };
        self.machine.handle_line(self.now, line);
        self.drain(length);
        // Of a batch each member may be answered, and the first answer beyond the limit is the last.
        assert!(self.machine.outgoing().len() <= QUEUED + REPLY, "{}", self.machine.outgoing().len());
    }
}

fn check_notice(notice: &Notice) {
    let text = match notice {
        Notice::Noise { text } => text,
        Notice::Problem(problem) => &problem.message,
        Notice::Log { level, .. } => level,
        Notice::Notification { method, .. } => method,
        _ => return,
    };
    assert!(text.chars().count() <= NOTICE_CHARS, "{} characters: {text:.80}", text.chars().count());
}

/// Everything that was said, and how many requests there were.
fn run(now: Instant, era: EraChoice, limit: usize, opening: Option<&[u8]>, pieces: &[&[u8]]) -> Vec<String> {
    let mut run = Run::new(now, era);
    let mut lines = LineBuffer::new(limit);
    if let Some(opening) = opening {
        run.machine.handle_message(now, opening);
        run.drain(opening.len());
        assert!(run.machine.is_ready() && run.machine.in_flight() == REQUESTS - 1);
    }
    for piece in pieces {
        run.feed(&mut lines, piece);
        assert!(lines.buffered() <= limit, "{} bytes wait for the end of a line", lines.buffered());
    }
    if let Some(line) = lines.finish() {
        run.take(line);
    }
    run.cancel(REQUESTS - 1);
    for step in 1..=3 {
        run.machine.handle_timeout(now + Duration::from_secs(step));
        run.drain(0);
    }
    run.machine.handle_closed();
    run.drain(0);
    assert_eq!(run.back, (0..run.ids.len()).collect(), "each tag comes back once");
    assert_eq!((run.machine.in_flight(), run.machine.poll_timeout()), (0, None));
    assert!(run.machine.outgoing().is_empty());
    let said = run.said.len();
    run.machine.handle_message(now, br#"{"method":"notifications/message","params":{}}"#);
    run.drain(0);
    assert_eq!(run.said.len(), said, "what is closed says nothing more");
    run.said
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (choice, piece, bytes) = input;
    let now = Instant::now();
    let limit = if choice & 1 == 0 { 4096 } else { 64 };
    let opened = choice & 2 != 0;
    let eras = [
        (EraChoice::Legacy, OPENINGS.first()),
        (EraChoice::Modern, OPENINGS.last()),
        (EraChoice::Auto, OPENINGS.last()),
        (EraChoice::AutoLegacyFirst, OPENINGS.first()),
    ];
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(piece.max(1))).collect();
    for (era, opening) in eras {
        let opening = opening.copied().filter(|_| opened);
        let whole = run(now, era, limit, opening, &[bytes]);
        let cut = run(now, era, limit, opening, &pieces);
        if bytes.len() <= limit * ENDLESS {
            assert_eq!(whole, cut, "the same however it is cut");
        }
    }
});
