use super::*;

/// Everything that a stream says, in a form that does not borrow.
fn decode(pieces: &[&[u8]]) -> Vec<String> {
    decode_with(SseLimits::default(), pieces)
}

fn decode_with(limits: SseLimits, pieces: &[&[u8]]) -> Vec<String> {
    let mut decoder = SseDecoder::with_limits(limits);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece.to_vec());
        drain(&mut decoder, &mut seen);
    }
    decoder.finish();
    drain(&mut decoder, &mut seen);
    seen
}

fn drain(decoder: &mut SseDecoder, seen: &mut Vec<String>) {
    while let Some(item) = decoder.next() {
        seen.push(match item {
            Ok(SseItem::Event(e)) => {
                let open = if e.closed { "" } else { " open" };
                format!("{}#{}={:?}{open}", e.name_str(), e.id_str(), e.data_str())
            }
            Ok(SseItem::Comment(text)) => format!(":{}", String::from_utf8_lossy(text)),
            Ok(SseItem::Retry(wait)) => format!("retry {}", wait.as_millis()),
            Ok(SseItem::Field { name, value }) => {
                format!("{}?{}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            }
            Err(error) => format!("! {error}"),
        });
    }
}

const CASES: &[(&str, &str, &[&str])] = &[
    ("one event", "data: a\n\n", &["#=\"a\""]),
    ("no blank after the colon", "data:a\n\n", &["#=\"a\""]),
    ("only one blank is taken off", "data:  a\n\n", &["#=\" a\""]),
    ("lines of data are joined", "data: a\ndata: b\ndata:\ndata: c\n\n", &["#=\"a\\nb\\n\\nc\""]),
    ("a field without a colon has an empty value", "data\n\ndata\ndata\n\n", &["#=\"\"", "#=\"\\n\""]),
    ("an event without data is none, and its name is forgotten", "event: x\n\ndata: a\n\n", &["#=\"a\""]),
    (
        "names belong to one event, ids stay",
        "id: 7\nevent: x\ndata: a\n\ndata: b\n\n",
        &["x#7=\"a\"", "#7=\"b\""],
    ),
    ("a name may come after its data", "data: a\nevent: x\n\n", &["x#=\"a\""]),
    ("an id with a NUL is ignored", "id: a\nid: b\0\ndata: x\n\n", &["#a=\"x\""]),
    ("an empty id takes the id back", "id: a\nid\ndata: x\n\n", &["#=\"x\""]),
    ("comments come at once", "data: a\n: ping\n:\n\n", &[": ping", ":", "#=\"a\""]),
    ("retry is digits", "retry: 1500\nretry: soon\nretry:\nretry: -1\n\n", &["retry 1500"]),
    (
        "fields outside the standard are told",
        "error: {\"a\":1}\nfoo\ndata: a\n\n",
        &["error?{\"a\":1}", "foo?", "#=\"a\""],
    ),
    ("field names are exact", "Data: a\n data: b\n\n", &["Data?a", " data?b"]),
    ("the last event needs no blank line", "data: a\n\ndata: b\n", &["#=\"a\"", "#=\"b\" open"]),
    ("nor a line end", "data: a\n\ndata: b", &["#=\"a\"", "#=\"b\" open"]),
    (
        "one byte order mark is taken off",
        "\u{feff}data: a\n\n\u{feff}data: b\n\n",
        &["#=\"a\"", "\u{feff}data?b"],
    ),
    ("a mark and nothing else", "\u{feff}", &[]),
    ("blank lines are nothing", "\n\n\n\ndata: a\n\n\n\n", &["#=\"a\""]),
    ("characters of several bytes", "data: grüße 🌧\n\n", &["#=\"grüße 🌧\""]),
];

#[test]
fn the_rules_hold_for_every_line_end_and_every_cut() {
    for (rule, text, expected) in CASES {
        for end in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', end).into_bytes();
            for size in 1..=bytes.len() {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                assert_eq!(decode(&pieces), *expected, "{rule}, line end {end:?}, pieces of {size}");
            }
            for cut in 0..=bytes.len() {
                let (a, b) = bytes.split_at(cut);
                assert_eq!(decode(&[a, b]), *expected, "{rule}, line end {end:?}, cut at {cut}");
            }
        }
    }
}

#[test]
fn line_ends_may_be_mixed() {
    assert_eq!(decode(&[b"data: a\r\ndata: b\rdata: c\n\r\n"]), ["#=\"a\\nb\\nc\""]);
    assert_eq!(decode(&[b"data: a\r\r\ndata: b\n\r"]), ["#=\"a\"", "#=\"b\""]);
    assert_eq!(decode(&[b"data: a\n\r\ndata: b\r\n\n"]), ["#=\"a\"", "#=\"b\""]);
}

#[test]
fn a_line_feed_after_a_carriage_return_at_the_end_of_a_piece_is_no_blank_line() {
    assert_eq!(decode(&[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]), ["#=\"a\\nb\""]);
    assert_eq!(decode(&[b"data: a\r", b"", b"\ndata: b\n\n"]), ["#=\"a\\nb\""]);
}

#[test]
fn what_is_over_a_bound_is_an_error_once_and_then_silence() {
    let limits = SseLimits::default().with_max_event_bytes(4).with_max_line_bytes(8);
    let long = |piece: &[u8]| decode_with(limits, &[piece]);
    assert_eq!(long(b"data: 1234\n\n"), ["#=\"1234\""]);
    assert_eq!(long(b"data:1234\n\n"), ["#=\"1234\""]);
    let event = "! an event of the stream has more than 4 bytes of data";
    let line = "! a line of the stream has more than 8 bytes";
    for (bytes, error) in [
        ("data: 12345\n\ndata: a\n\n", event),
        ("data: 12345", event),
        ("data:12345\n\n", event),
        ("data: 12\ndata: 34\n\n", event),
        (": 12345678\n", line),
        ("event: 12345678", line),
    ] {
        assert_eq!(long(bytes.as_bytes()), [error], "{bytes:?}");
        let ones: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(decode_with(limits, &ones), [error], "{bytes:?} byte by byte");
    }
}

#[test]
fn memory_is_bounded_while_a_line_never_ends() {
    let mut decoder = SseDecoder::with_limits(SseLimits::default().with_max_event_bytes(1000));
    decoder.feed(&b"data: "[..]);
    for _ in 0..10_000 {
        decoder.feed(vec![b'x'; 100]);
        while decoder.next().is_some() {}
        assert!(decoder.line.len() <= 1200, "{}", decoder.line.len());
    }
}

#[test]
fn pieces_fed_before_the_last_was_drained_are_kept() {
    let mut decoder = SseDecoder::new();
    let mut seen = Vec::new();
    decoder.feed(&b"data: a\n\nda"[..]);
    decoder.feed(&b"ta: b\n\n"[..]);
    drain(&mut decoder, &mut seen);
    assert_eq!(seen, ["#=\"a\"", "#=\"b\""]);
}

/// The standard's algorithm written down naively over the whole text, as a second opinion.
fn naive(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let mut seen = Vec::new();
    let (mut name, mut data, mut id) = (String::new(), Vec::new(), String::new());
    let mut dispatch = |name: &mut String, data: &mut Vec<String>, id: &str, open: &str| {
        if !data.is_empty() {
            seen.push(format!("{name}#{id}={:?}{open}", data.join("\n")));
        }
        name.clear();
        data.clear();
    };
    for line in text.split('\n') {
        if line.is_empty() {
            dispatch(&mut name, &mut data, &id, "");
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.push(value.to_owned()),
            "event" => value.clone_into(&mut name),
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            _ => {}
        }
    }
    // `split` yields one empty piece after a closing line end, which is no line.
    if !data.is_empty() {
        dispatch(&mut name, &mut data, &id, " open");
    }
    seen
}

proptest::proptest! {
    #[test]
    fn any_stream_in_any_pieces_reads_like_the_standard(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "data", "event", "id", ":", ": ", " ", "\n", "\n", "\r", "\r\n", "\n\n", "x", "ü", "\u{feff}", "data: y\n", "retry", "1",
        ]), 0..40),
        cuts in proptest::collection::vec(1usize..9, 1..10),
    ) {
        let text = parts.concat();
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        for size in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let events: Vec<String> = decode(&pieces).into_iter().filter(|s| s.contains("#")).collect();
        // The naive reading cannot tell "data: a\n" from "data: a\n\n" at the very end: both orders are checked.
        let mut expected = naive(&text);
        let ends_in_line_end = text.ends_with(['\n', '\r']);
        if ends_in_line_end && let (Some(mine), Some(last)) = (events.last(), expected.last_mut()) && mine.ends_with(" open") && !last.ends_with(" open") {
            last.push_str(" open");
        }
        proptest::prop_assert_eq!(events, expected);
    }
}
