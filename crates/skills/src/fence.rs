//! Splits a file into front matter and body.

use std::ops::Range;

/// How a file divides. Ranges are bytes of the file, a byte-order mark included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Split {
    /// Nothing but blank lines.
    Empty { body: Range<usize> },
    /// The first line that is not blank opens no front matter.
    Missing { line: u32, body: Range<usize> },
    /// No line closes it.
    Unclosed { line: u32, body: Range<usize> },
    /// A front matter whose first line has the number `line`, and the body behind its closing fence.
    Fenced { line: u32, front: Range<usize>, body: Range<usize> },
}

/// What a fence begins with; only blanks may follow.
const FENCE: &[u8] = b"---";
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Divides `text` at its fences: lines of `---` and maybe blanks behind it. Blank lines may come first.
pub(crate) fn split(text: &str) -> Split {
    let bytes = text.as_bytes();
    let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut at = start;
    let mut number = 1;
    let opening = loop {
        let Some(line) = Line::at(bytes, at) else {
            return Split::Empty { body: start..bytes.len() };
        };
        if !line.text.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            break line;
        }
        at = line.next;
        number += 1;
    };
    if !opening.is_fence() {
        return Split::Missing { line: number, body: start..bytes.len() };
    }
    let front = opening.next;
    match closing(bytes, front) {
        Some(fence) => {
            Split::Fenced { line: number + 1, front: front..fence.start, body: fence.end..bytes.len() }
        }
        None => Split::Unclosed { line: number, body: front..bytes.len() },
    }
}

/// The first line at or behind `start`, where a line begins, that is a fence; its break belongs to it.
///
/// Dashes are rarer than lines, so they are what is looked for. A run of them that begins a line is met at its first
/// one, since none of the matches before it goes over a line's end.
pub(crate) fn closing(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let from = bytes.get(start..)?;
    let begins_line =
        |at: &usize| at.checked_sub(1).is_none_or(|before| matches!(from.get(before), Some(b'\n' | b'\r')));
    memchr::memmem::find_iter(from, FENCE).filter(begins_line).find_map(|at| {
        let line = Line::at(bytes, start + at)?;
        line.is_fence().then_some(start + at..line.next)
    })
}

/// One line, which LF, CR LF, a lone CR or the end of the file ends.
struct Line<'a> {
    text: &'a [u8],
    /// The first byte of the next line.
    next: usize,
}

impl<'a> Line<'a> {
    fn at(bytes: &'a [u8], start: usize) -> Option<Self> {
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let size = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let ending = match (rest.get(size), rest.get(size + 1)) {
            (Some(b'\r'), Some(b'\n')) => 2,
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        Some(Self { text: rest.get(..size).unwrap_or_default(), next: start + size + ending })
    }

    fn is_fence(&self) -> bool {
        self.text.strip_prefix(FENCE).is_some_and(|rest| rest.iter().all(|byte| matches!(byte, b' ' | b'\t')))
    }
}
