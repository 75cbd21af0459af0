//! One line of a stream: a field, a comment, or the blank that closes an event.

use std::time::Duration;

/// What a line is.
pub(super) enum Part<'a> {
    Blank,
    Comment(&'a [u8]),
    Retry(Duration),
    Field(&'a [u8], &'a [u8]),
}

/// Reads a line, its end excluded.
pub(super) fn split(line: &[u8]) -> Part<'_> {
    // The field of nearly every line, without a search for the colon.
    if let Some(value) = line.strip_prefix(b"data:") {
        return Part::Field(b"data", value.strip_prefix(b" ").unwrap_or(value));
    }
    match memchr::memchr(b':', line) {
        None if line.is_empty() => Part::Blank,
        None => Part::Field(line, line.get(line.len()..).unwrap_or_default()),
        Some(0) => Part::Comment(line.get(1..).unwrap_or_default()),
        Some(colon) => {
            let (name, value) = line.split_at_checked(colon).unwrap_or((line, &[]));
            let value = value.get(1..).unwrap_or_default();
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match (name, retry(value)) {
                (b"retry", Some(wait)) => Part::Retry(wait),
                _ => Part::Field(name, value),
            }
        }
    }
}

/// Milliseconds, if the value is digits and nothing else.
fn retry(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}
