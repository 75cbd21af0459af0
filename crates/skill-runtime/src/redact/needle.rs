//! One known value, found in every writing that texts give it: escaped in JSON, percent-encoded, in base64.
//!
//! A writing is not listed but recognised: each character of the value may stand in the text as it is or in any of its
//! escapes, to any depth and in any mixture. So there is no encoder whose choice of characters or of hex digits would
//! have to be guessed.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Letters of a piece of base64 that is searched for where it does not stand at the start of its own encoding; a shorter
/// one occurs in any text.
const MIN_PIECE: usize = 8;

/// Backslashes before one character at most: a text that was put into a text six times over.
const MAX_BACKSLASHES: usize = 63;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needle {
    text: String,
    /// Base64: the padding behind it belongs to it.
    padded: bool,
}

/// A value with its base64: in both alphabets, alone or inside something longer that was encoded as a whole.
pub(super) fn needles(value: &str) -> Vec<Needle> {
    let mut found = vec![Needle { text: value.to_owned(), padded: false }];
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        found.push(Needle { text: engine.encode(value), padded: true });
        for before in 0..3_usize {
            // Letters of which some bits belong to what stands before or behind are not the value's alone.
            let first = before.div_ceil(3) + before;
            let last = (before + value.len()) * 8 / 6;
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(value.as_bytes());
            let piece = engine.encode(bytes).get(first..last).unwrap_or_default().to_owned();
            if piece.len() >= MIN_PIECE {
                found.push(Needle { text: piece, padded: true });
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

impl Needle {
    /// Whether an occurrence may begin with this byte.
    pub(super) fn may_begin_with(&self, byte: u8) -> bool {
        let first = self.text.as_bytes().first().copied();
        first == Some(byte) || b"%\\&".contains(&byte) || (byte == b'+' && first == Some(b' '))
    }

    /// The occurrence that begins here; the longest of several.
    pub(super) fn at(&self, text: &[u8], start: usize) -> Option<Range<usize>> {
        let mut open = vec![start];
        let mut next = Vec::new();
        for c in self.text.chars() {
            for at in open.drain(..) {
                behind(text, at, c, &mut next);
            }
            next.sort_unstable();
            next.dedup();
            std::mem::swap(&mut open, &mut next);
            if open.is_empty() {
                return None;
            }
        }
        let mut end = open.into_iter().max()?;
        while self.padded && end > start {
            let mut behind_padding = Vec::new();
            behind(text, end, '=', &mut behind_padding);
            let Some(longest) = behind_padding.into_iter().max() else { break };
            end = longest;
        }
        Some(start..end)
    }
}

/// All places where the character ends that begins here, in any writing.
fn behind(text: &[u8], at: usize, c: char, ends: &mut Vec<usize>) {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).as_bytes();
    let rest = text.get(at..).unwrap_or_default();
    if rest.starts_with(bytes) {
        ends.push(at + bytes.len());
    }
    match rest.first() {
        Some(b'%') => ends.extend(percent(rest, bytes).map(|length| at + length)),
        Some(b'+') if c == ' ' => ends.push(at + 1),
        Some(b'&') => ends.extend(entity(rest, c).map(|length| at + length)),
        Some(b'\\') => backslash(rest, c, |length| ends.push(at + length)),
        _ => {}
    }
}

/// How often a text may have been percent-encoded over again.
const MAX_ENCODINGS: usize = 5;

/// `%41`, in either case; encoded again, `%2541`. Both readings of `%25` count: of the value itself, and of an encoding.
fn percent<'t>(rest: &'t [u8], bytes: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    (0..MAX_ENCODINGS).filter_map(move |again| {
        let mut at = 0;
        for byte in bytes {
            if rest.get(at) != Some(&b'%') {
                return None;
            }
            at += 1;
            for _ in 0..again {
                rest.get(at..at + 2).filter(|more| more == b"25")?;
                at += 2;
            }
            if hex(rest.get(at..at + 2)) != Some(u32::from(*byte)) {
                return None;
            }
            at += 2;
        }
        Some(at)
    })
}

/// `\"`, `\n`, `\u0041`, `\x41`; behind more than one backslash where texts were put into texts.
fn backslash(rest: &[u8], c: char, mut ends: impl FnMut(usize)) {
    let run = backslashes(rest);
    if c == '\\' {
        // One was pushed already, as the character itself.
        for length in [2, 4, 8] {
            if run >= length {
                ends(length);
            }
        }
    }
    let behind = rest.get(run..).unwrap_or_default();
    let mut buffer = [0; 4];
    let plain = c.encode_utf8(&mut buffer).as_bytes();
    if c != '\\' && !c.is_ascii_alphanumeric() && behind.starts_with(plain) {
        ends(run + plain.len());
    }
    let letter = match c {
        '\n' => Some(b'n'),
        '\r' => Some(b'r'),
        '\t' => Some(b't'),
        '\u{8}' => Some(b'b'),
        '\u{c}' => Some(b'f'),
        _ => None,
    };
    if letter.is_some() && behind.first().copied() == letter {
        ends(run + 1);
    }
    if behind.first() == Some(&b'x') && hex(behind.get(1..3)) == Some(u32::from(c)) {
        ends(run + 3);
    }
    let mut units = [0; 2];
    let mut at = run;
    for (number, unit) in c.encode_utf16(&mut units).iter().enumerate() {
        if number > 0 {
            at += backslashes(rest.get(at..).unwrap_or_default());
        }
        if rest.get(at) != Some(&b'u') || hex(rest.get(at + 1..at + 5)) != Some(u32::from(*unit)) {
            return;
        }
        at += 5;
    }
    ends(at);
}

fn backslashes(rest: &[u8]) -> usize {
    rest.iter().take(MAX_BACKSLASHES).take_while(|byte| **byte == b'\\').count()
}

/// `&amp;` and its kin, `&#39;`, `&#x27;`.
fn entity(rest: &[u8], c: char) -> Option<usize> {
    let end = rest.iter().take(10).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(rest.get(1..end)?).ok()?;
    let meant = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            number.ok().and_then(char::from_u32)
        }
    };
    (meant == Some(c)).then_some(end + 1)
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}
