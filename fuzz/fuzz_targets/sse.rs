//! Any bytes as an event stream: no panic, and the same items however the bytes are cut.
#![no_main]

use haversack_http::{SseDecoder, SseItem, SseLimits};
use libfuzzer_sys::fuzz_target;

/// Everything that a stream says, in a form that does not borrow.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let limits = SseLimits::default().with_max_event_bytes(300).with_max_line_bytes(60);
    let mut decoder = SseDecoder::with_limits(limits);
    let mut seen = Vec::new();
    let drain = |decoder: &mut SseDecoder, seen: &mut Vec<String>| {
        while let Some(item) = decoder.next() {
            seen.push(match item {
                Ok(SseItem::Event(event)) => format!("{event:?}"),
                other => format!("{other:?}"),
            });
        }
    };
    for piece in pieces {
        decoder.feed(piece.to_vec());
        drain(&mut decoder, &mut seen);
    }
    decoder.finish();
    drain(&mut decoder, &mut seen);
    seen
}

fuzz_target!(|data: &[u8]| {
    let Some((size, stream)) = data.split_first() else { return };
    let whole = decode(std::iter::once(stream));
    let cut = decode(stream.chunks(usize::from(*size % 16) + 1));
    // A line over its bound is noticed before its end comes, so what the stream said before it is what has to agree.
    let sound = |items: &[String]| {
        items.iter().take_while(|item| !item.starts_with("Err")).cloned().collect::<Vec<_>>()
    };
    let fails = |items: &[String]| items.last().is_some_and(|item| item.starts_with("Err"));
    assert_eq!(sound(&whole), sound(&cut));
    assert_eq!(fails(&whole), fails(&cut));
});
