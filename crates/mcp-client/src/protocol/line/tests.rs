use super::*;

/// All that a stream of pieces yields, as text, with `!` for what is too long and `!!` for what is endless.
fn lines_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Vec<String>, LineCounts) {
    let mut buffer = LineBuffer::new(limit);
    let mut found = Vec::new();
    let mut show = |line: Line<'_>| {
        found.push(match line {
            Line::Text(text) => String::from_utf8_lossy(&text.into_vec()).into_owned(),
            Line::TooLong { head, .. } => format!("!{}", String::from_utf8_lossy(&head)),
            Line::Endless { .. } => "!!".to_owned(),
        });
    };
    for piece in pieces {
        buffer.feed(piece);
        while let Some(line) = buffer.next_line() {
            show(line);
        }
    }
    if let Some(line) = buffer.finish() {
        show(line);
    }
    (found, buffer.counts())
}

#[test]
fn only_a_line_feed_ends_a_line() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n\rg\n";
    let (found, counts) = lines_of([text.as_bytes()], 100);
    assert_eq!(found, ["a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f", "\rg"]);
    assert_eq!(counts.carriage_returns, 0);
}

#[test]
fn carriage_returns_blanks_and_a_byte_order_mark_are_taken_off_and_counted() {
    let (found, counts) = lines_of([b"\xef\xbb\xbf{}\r\n\n  \r\n{1}\n\xef\xbb\xbf{2}\nrest".as_slice()], 100);
    assert_eq!(found, ["{}", "{1}", "\u{feff}{2}", "rest"]);
    assert!(counts.byte_order_mark);
    assert_eq!((counts.lines, counts.blank, counts.carriage_returns), (4, 2, 2));
}

#[test]
fn every_cut_of_the_stream_gives_the_same_lines() {
    let stream = "\u{feff}{\"t\":\"äöü\u{2028}\"}\r\n\n0123456789012345678901234567890\nlast\n".as_bytes();
    let whole = lines_of([stream], 30);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let cut = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(lines_of(cut, 30).0, whole.0, "cut at {first} and {second}");
        }
    }
    assert_eq!(lines_of(stream.chunks(1), 30), whole, "byte by byte");
}

#[test]
fn a_line_over_the_limit_is_reported_and_the_next_one_is_read() {
    let (found, counts) = lines_of([b"ok\n123456\nok\n".as_slice()], 5);
    assert_eq!(found, ["ok", "!12345", "ok"]);
    assert_eq!(counts.too_long, 1);
    let (found, _) = lines_of([b"12345".as_slice(), b"678", b"9\nok\n"], 5);
    assert_eq!(found, ["!12345", "ok"]);
}

#[test]
fn what_is_kept_of_a_line_that_is_too_long_is_its_own_and_the_same_however_it_is_cut() {
    let stream = b"{\"id\":1}\n{\"id\":2}\nok\n";
    for pieces in 1..=stream.len() {
        let (found, _) = lines_of(stream.chunks(pieces), 5);
        assert_eq!(found, ["!{\"id\"", "!{\"id\"", "ok"], "in pieces of {pieces}");
    }
    let long = [b'x'; 1000];
    let (found, _) = lines_of([long.as_slice()], 900);
    assert_eq!(found, [format!("!{}", "x".repeat(KEPT_HEAD_BYTES))]);
}

#[test]
fn an_endless_line_is_given_up_with_bounded_memory() {
    let mut buffer = LineBuffer::new(20_000);
    let (mut too_long, mut endless, mut most) = (0, 0, 0);
    for _ in 0..1000 {
        buffer.feed(&[b'x'; 1000]);
        most = most.max(buffer.bytes.capacity());
        match buffer.next_line() {
            Some(Line::TooLong { .. }) => too_long += 1,
            Some(Line::Endless { .. }) => endless += 1,
            Some(Line::Text(_)) => panic!("no line ever ended"),
            None => {}
        }
    }
    assert_eq!((too_long, endless), (1, 1));
    assert!(most <= 80_000, "held {most} bytes");
}

#[test]
fn a_large_line_is_handed_over_without_a_copy_and_an_idle_buffer_is_small() {
    let mut buffer = LineBuffer::new(1 << 20);
    let large = vec![b'x'; 500_000];
    for _ in 0..3 {
        for piece in large.chunks(7_000) {
            buffer.feed(piece);
        }
        buffer.feed(b"\n");
        let Some(Line::Text(text)) = buffer.next_line() else { panic!("one line") };
        let inside = text.as_bytes().as_ptr();
        let taken = text.into_vec();
        assert_eq!(taken.as_ptr(), inside);
        assert_eq!(taken.len(), large.len());
    }
    buffer.feed(b"{}\n");
    assert!(matches!(buffer.next_line(), Some(Line::Text(_))));
    assert!(buffer.bytes.capacity() <= IDLE_CAPACITY_BYTES);
}
