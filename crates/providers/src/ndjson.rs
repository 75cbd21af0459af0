//! Splits a stream of newline-delimited JSON into lines, without I/O.
//!
//! Bytes go in with [`feed`](LineSplitter::feed) in whatever pieces they arrive, whole lines come out of
//! [`next_line`](LineSplitter::next_line). Every byte is looked at once and copied once, so the cost is linear
//! in the stream however it is cut.

use std::fmt;

/// The longest line that is accepted when the host sets nothing else, in bytes.
///
/// A tool call arrives whole in one line, and a file written through a tool call is the longest thing that a
/// model sends. Eight mebibytes are far above any output limit of today's models.
pub const DEFAULT_MAX_LINE_BYTES: usize = 8 << 20;

/// A line longer than the splitter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// The limit in bytes.
    pub limit: usize,
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line of the stream is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for LineTooLong {}

/// Cuts a byte stream into lines.
///
/// Lines end in LF or CRLF. Blank lines are skipped, a byte order mark at the very start too. What stands after the last line end
/// is held back until more comes, or until [`finish`](Self::finish) says that nothing will.
///
/// ```
/// use haversack_providers::ndjson::LineSplitter;
///
/// let mut lines = LineSplitter::new();
/// lines.feed(b"{\"a\":1}\r\n\n{\"a\"");
/// assert_eq!(lines.next_line()?, Some(&b"{\"a\":1}"[..]));
/// assert_eq!(lines.next_line()?, None);
/// lines.feed(b":2}");
/// lines.finish();
/// assert_eq!(lines.next_line()?, Some(&b"{\"a\":2}"[..]));
/// # Ok::<(), haversack_providers::ndjson::LineTooLong>(())
/// ```
#[derive(Debug)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Where the first line that was not handed out begins.
    start: usize,
    /// Up to where no line end was found yet; never before `start`.
    scanned: usize,
    limit: usize,
    /// Set until the first three bytes were seen.
    may_have_mark: bool,
    finished: bool,
    failed: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::with_limit(DEFAULT_MAX_LINE_BYTES)
    }
}

impl LineSplitter {
    /// A splitter with the default limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// A splitter that takes lines of at most `max_line_bytes` bytes.
    pub fn with_limit(max_line_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit: max_line_bytes,
            may_have_mark: true,
            finished: false,
            failed: false,
        }
    }

    /// Takes the next bytes of the stream. Ignored after [`finish`](Self::finish) and after an error.
    ///
    /// The caller takes all lines out before it feeds again; then no more than one line is held.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.finished || self.failed {
            return;
        }
        // What was handed out is dropped in one move, never line by line.
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that the stream is over: what is left counts as a line.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The next whole line, without its end; `None` until more is fed.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`] when a line passes the limit, complete or not. The splitter takes nothing after that.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        if !self.skip_mark() {
            return Ok(None);
        }
        loop {
            if self.failed {
                return Err(LineTooLong { limit: self.limit });
            }
            let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
            let (begin, end, next) = match memchr::memchr(b'\n', unseen) {
                Some(at) => (self.start, self.scanned + at, self.scanned + at + 1),
                None if self.finished => (self.start, self.buffer.len(), self.buffer.len()),
                None => {
                    self.scanned = self.buffer.len();
                    self.failed = self.scanned - self.start > self.limit;
                    if self.failed {
                        continue;
                    }
                    return Ok(None);
                }
            };
            if end - begin > self.limit {
                self.failed = true;
                continue;
            }
            let over = begin == self.buffer.len();
            (self.start, self.scanned) = (next, next);
            let line = self.buffer.get(begin..end).unwrap_or_default().trim_ascii();
            if over {
                return Ok(None);
            }
            if !line.is_empty() {
                // Cut again from the field: a borrow kept over the loop's next round would not end here.
                return Ok(Some(self.buffer.get(begin..end).unwrap_or_default().trim_ascii()));
            }
        }
    }

    /// Skips a byte order mark at the very start; `false` while it cannot be told yet.
    fn skip_mark(&mut self) -> bool {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.may_have_mark {
            let head = self.buffer.get(..self.buffer.len().min(MARK.len())).unwrap_or_default();
            if head.len() < MARK.len() && MARK.starts_with(head) && !self.finished {
                return false;
            }
            if head == MARK {
                (self.start, self.scanned) = (MARK.len(), MARK.len());
            }
            self.may_have_mark = false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&[u8]], limit: usize) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut splitter = LineSplitter::with_limit(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.feed(piece);
            while let Some(line) = splitter.next_line()? {
                lines.push(line.to_vec());
            }
        }
        splitter.finish();
        while let Some(line) = splitter.next_line()? {
            lines.push(line.to_vec());
        }
        Ok(lines)
    }

    #[test]
    fn lines_come_out_whole_whatever_ends_them() {
        for (input, lines) in [
            (&b""[..], vec![]),
            (b"\n\r\n \n", vec![]),
            (b"a\nb\r\nc", vec!["a", "b", "c"]),
            (b"\xEF\xBB\xBFa\n", vec!["a"]),
            (b"\xEF\xBB", vec!["\u{FFFD}"]),
            (b" a \t\n", vec!["a"]),
        ] {
            let got: Vec<_> = split(&[input], 64)
                .unwrap()
                .iter()
                .map(|l| String::from_utf8_lossy(l).into_owned())
                .collect();
            assert_eq!(got, lines, "{input:?}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_before_its_end_is_seen() {
        assert_eq!(split(&[b"12345678\n"], 8).unwrap().len(), 1);
        assert_eq!(split(&[b"1234", b"56789"], 8), Err(LineTooLong { limit: 8 }));
        assert_eq!(split(&[b"123456789\n"], 8), Err(LineTooLong { limit: 8 }));
        let mut splitter = LineSplitter::with_limit(2);
        splitter.feed(b"abc");
        assert!(splitter.next_line().is_err());
        splitter.feed(b"\nd\n");
        assert!(splitter.next_line().is_err(), "the error stays");
    }

    proptest! {
        #[test]
        fn the_cuts_of_a_stream_do_not_change_its_lines(
            input in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xEF), Just(0xBB), Just(0xBF), any::<u8>()], 0..80),
            size in 1usize..9,
        ) {
            let whole = split(&[&input], 1 << 10).unwrap();
            let pieces: Vec<&[u8]> = input.chunks(size).collect();
            prop_assert_eq!(whole, split(&pieces, 1 << 10).unwrap());
        }
    }
}
