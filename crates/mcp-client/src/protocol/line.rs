//! Bytes in, lines out: the framing of the stdio transport.
//!
//! One message per line, ended by `\n` and nothing else (MCP, "Transports", stdio): U+2028 and its kin may stand raw
//! inside a JSON string, so the split is on bytes and decoding comes later. Around that rule the buffer is lenient:
//! a carriage return before the end is taken off, blank lines are skipped, a byte order mark at the very start is
//! skipped, and each of these is counted.

use std::mem;

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes of a line that is too long that are kept, to find out what it would have answered; fewer if the limit is lower.
const KEPT_HEAD_BYTES: usize = 256;

/// From this length on a line is handed over in the buffer it was read into, instead of being copied out.
const HAND_OVER_BYTES: usize = 16 * 1024;

/// What an empty buffer keeps allocated: enough for ordinary messages, little enough for hundreds of idle connections.
const IDLE_CAPACITY_BYTES: usize = 64 * 1024;

/// How many limits' worth of an overlong line are dropped while waiting for its end, before the stream is given up: real
/// answers are known to be ten times too long and still to end.
const ENDLESS_LIMITS: usize = 32;

/// How much room a read is given at least.
const READ_BYTES: usize = 8 * 1024;

/// How a [`LineBuffer`] has been fed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineCounts {
    /// Lines that were not blank.
    pub lines: u64,
    /// Blank lines, skipped.
    pub blank: u64,
    /// Lines that ended in CR LF.
    pub carriage_returns: u64,
    /// Lines over the limit, dropped.
    pub too_long: u64,
    /// Whether the stream began with a byte order mark.
    pub byte_order_mark: bool,
}

/// Cuts a stream of bytes into lines, in time linear in the bytes whatever the sizes of the pieces.
///
/// A line longer than the limit is reported once, at the moment it passes the limit, then dropped up to its end, and
/// the buffer goes on with the next line. If the end does not come within 32 limits' worth of bytes, the stream is
/// given up as endless. The buffer never holds more than about twice the limit.
///
/// ```
/// use haversack_mcp_client::protocol::{Line, LineBuffer};
///
/// let mut buffer = LineBuffer::new(1024);
/// buffer.feed(b"{\"a\":1}\r\n\n{\"b\"");
/// match buffer.next_line() {
///     Some(Line::Text(line)) => assert_eq!(line.as_bytes(), b"{\"a\":1}"),
///     other => panic!("{other:?}"),
/// }
/// assert!(buffer.next_line().is_none(), "the second message has not ended yet");
/// assert_eq!(buffer.counts().blank, 1);
/// ```
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the current line begins in `bytes`.
    start: usize,
    /// Up to where `bytes` is known to hold no line end after `start`.
    scanned: usize,
    max_line_bytes: usize,
    /// Bytes of an overlong line dropped so far, while one is being dropped.
    dropping: Option<usize>,
    at_start_of_stream: bool,
    endless: bool,
    counts: LineCounts,
}

/// What a [`LineBuffer`] found.
#[derive(Debug)]
pub enum Line<'a> {
    /// A line without its end; never empty.
    Text(LineText<'a>),
    /// A line that is longer than the limit: only its first bytes are known, the rest is dropped.
    TooLong {
        /// The first bytes, to find out what it would have answered.
        head: Vec<u8>,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A line so long that its end is not worth waiting for: nothing more can be read from this stream.
    Endless {
        /// How many bytes of it were read, at least.
        bytes: usize,
        /// The limit of a line, in bytes.
        limit: usize,
    },
}

/// One line, still in its buffer.
#[derive(Debug)]
pub struct LineText<'a> {
    buffer: &'a mut LineBuffer,
    start: usize,
    end: usize,
}

impl LineText<'_> {
    /// The line, without its end.
    pub fn as_bytes(&self) -> &[u8] {
        self.buffer.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// The line as bytes of its own: a copy if it is small, the buffer itself if it is large and alone in it.
    pub fn into_vec(self) -> Vec<u8> {
        let length = self.end - self.start;
        let alone = self.start == 0 && self.buffer.start >= self.buffer.bytes.len();
        if length < HAND_OVER_BYTES || !alone {
            return self.as_bytes().to_vec();
        }
        let mut taken = mem::take(&mut self.buffer.bytes);
        self.buffer.start = 0;
        self.buffer.scanned = 0;
        taken.truncate(self.end);
        taken
    }
}

impl LineBuffer {
    /// An empty buffer for lines of at most that many bytes.
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            scanned: 0,
            max_line_bytes,
            dropping: None,
            at_start_of_stream: true,
            endless: false,
            counts: LineCounts::default(),
        }
    }

    /// Appends bytes as they came.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.endless {
            return;
        }
        self.make_room();
        self.bytes.extend_from_slice(bytes);
    }

    /// The buffer with room for the next read, to append to directly.
    pub fn read_target(&mut self) -> &mut Vec<u8> {
        self.make_room();
        if self.bytes.capacity() - self.bytes.len() < READ_BYTES / 2 {
            // Doubling keeps the cost per byte of a large line constant.
            self.bytes.reserve(self.bytes.len().max(READ_BYTES));
        }
        &mut self.bytes
    }

    /// What the stream looked like so far.
    pub fn counts(&self) -> LineCounts {
        self.counts
    }

    /// Bytes held at the moment.
    pub fn buffered(&self) -> usize {
        self.bytes.len().saturating_sub(self.start)
    }

    /// The next whole line, or `None` until more bytes are fed.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            if self.endless {
                return None;
            }
            let from = self.scanned.max(self.start);
            let found = self.bytes.get(from..).and_then(|rest| memchr::memchr(b'\n', rest));
            let Some(offset) = found else {
                self.scanned = self.bytes.len();
                return self.unfinished();
            };
            let (start, end) = (self.start, from + offset);
            self.start = end + 1;
            self.scanned = end + 1;
            if self.dropping.take().is_some() {
                continue;
            }
            if end - start > self.max_line_bytes {
                return Some(self.too_long(start));
            }
            if let Some((start, end)) = self.trim(start, end) {
                return Some(Line::Text(LineText { buffer: self, start, end }));
            }
        }
    }

    /// The end of the stream: what is left without a line end, if it is not blank.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        if self.endless || self.dropping.take().is_some() {
            return None;
        }
        let (start, end) = (self.start, self.bytes.len());
        self.start = end;
        self.scanned = end;
        if start >= end {
            return None;
        }
        let (start, end) = self.trim(start, end)?;
        Some(Line::Text(LineText { buffer: self, start, end }))
    }

    /// No line end in sight: is the line within its limit?
    fn unfinished(&mut self) -> Option<Line<'_>> {
        let pending = self.bytes.len() - self.start;
        if let Some(dropped) = self.dropping {
            let dropped = dropped.saturating_add(pending);
            self.start = self.bytes.len();
            self.dropping = Some(dropped);
            if dropped > self.max_line_bytes.saturating_mul(ENDLESS_LIMITS) {
                self.endless = true;
                self.bytes = Vec::new();
                self.start = 0;
                self.scanned = 0;
                return Some(Line::Endless { bytes: dropped, limit: self.max_line_bytes });
            }
            return None;
        }
        if pending > self.max_line_bytes {
            let start = self.start;
            self.start = self.bytes.len();
            self.dropping = Some(0);
            return Some(self.too_long(start));
        }
        None
    }

    fn too_long(&mut self, start: usize) -> Line<'static> {
        self.counts.lines += 1;
        self.counts.too_long += 1;
        self.at_start_of_stream = false;
        // The line is longer than its limit, so that many bytes are its own, and they are there however it was cut.
        let end = start.saturating_add(KEPT_HEAD_BYTES.min(self.max_line_bytes));
        let head = self.bytes.get(start..end).unwrap_or_default().to_vec();
        Line::TooLong { head, limit: self.max_line_bytes }
    }

    /// Takes off what surrounds a line; `None` if nothing is left.
    fn trim(&mut self, mut start: usize, mut end: usize) -> Option<(usize, usize)> {
        let line = self.bytes.get(start..end)?;
        if mem::take(&mut self.at_start_of_stream) && line.starts_with(BYTE_ORDER_MARK) {
            self.counts.byte_order_mark = true;
            start += BYTE_ORDER_MARK.len();
        }
        if self.bytes.get(start..end)?.ends_with(b"\r") {
            self.counts.carriage_returns += 1;
            end -= 1;
        }
        if self.bytes.get(start..end)?.iter().all(u8::is_ascii_whitespace) {
            self.counts.blank += 1;
            return None;
        }
        self.counts.lines += 1;
        Some((start, end))
    }

    /// Forgets the lines already given out, without moving bytes more often than they are read.
    fn make_room(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            self.scanned = 0;
            if self.bytes.capacity() > IDLE_CAPACITY_BYTES {
                self.bytes = Vec::new();
            }
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests;
