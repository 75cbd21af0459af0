//! Any bytes, in any pieces, to lines: no panic, the same lines however cut, nothing but blanks lost.
#![no_main]

use haversack_providers::ndjson::LineSplitter;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 64;

fn lines(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut splitter = LineSplitter::with_limit(LIMIT);
    let mut lines = Vec::new();
    for piece in bytes.chunks(piece).map(Some).chain([None]) {
        match piece {
            Some(piece) => splitter.feed(piece),
            None => splitter.finish(),
        }
        loop {
            match splitter.next_line() {
                Ok(Some(line)) => lines.push(line.to_vec()),
                Ok(None) => break,
                Err(_) => return (lines, false),
            }
        }
    }
    (lines, true)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let (whole, ok) = lines(bytes, usize::MAX);
    assert_eq!(lines(bytes, usize::from(piece.max(1))), (whole.clone(), ok));
    assert!(whole.iter().all(|line| !line.is_empty() && line.len() <= LIMIT));
    if ok {
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let wanted: Vec<_> = text
            .split(|b| *b == b'\n')
            .map(|line| line.trim_ascii().to_vec())
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(whole, wanted);
    }
});
