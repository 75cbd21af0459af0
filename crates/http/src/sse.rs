//! Server-Sent Events without I/O: bytes in, events out.
//!
//! Follows the parsing rules of the HTML standard (section 9.2, "Server-sent events") and adds what a client of
//! model servers needs beside them: bounds, comments as a sign of life, fields outside the standard (some servers
//! send `error: {…}`), and the last event even when no blank line closed it.

mod item;
mod line;

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

pub use crate::sse::item::{SseError, SseEvent, SseItem, SseLimits};
use crate::sse::line::{Part, split};

/// Decodes one stream.
///
/// [`feed`](Self::feed) a piece, call [`next`](Self::next) until it gives nothing, and so on; after the last piece
/// [`finish`](Self::finish) and drain once more. Pieces may be cut anywhere, inside a character or between the
/// two bytes of a line end. An event that lies whole in one piece is handed on without being copied; one that
/// does not is copied once. Memory is bounded by one piece and [`SseLimits`].
#[derive(Debug, Default)]
pub struct SseDecoder {
    limits: SseLimits,
    piece: Bytes,
    /// How far `piece` is read.
    at: usize,
    /// The start of a line whose end is not here yet.
    line: Vec<u8>,
    /// Data of the open event: its lines, joined.
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    id: Vec<u8>,
    /// A comment or unknown field that was pieced together, for as long as it is lent out.
    lent: Vec<u8>,
    /// The open event was handed out by the last call: its buffers are free now.
    delivered: bool,
    /// The last line ended in CR: a LF that follows belongs to it.
    after_cr: bool,
    /// The start of the stream, where a byte order mark may stand, is behind us.
    begun: bool,
    ended: bool,
    failed: bool,
}

/// Where something lies that is about to be lent out.
enum Place {
    Piece(Range<usize>),
    Data,
    Lent(Range<usize>),
}

enum Found {
    Event { data: Place, closed: bool },
    Comment(Place),
    Retry(Duration),
    Field { name: Place, value: Place },
}

/// A line, its end excluded.
enum Line {
    Piece(Range<usize>),
    /// It is whole in `self.line`.
    Joined,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl SseDecoder {
    /// A decoder with the default bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder with other bounds.
    pub fn with_limits(limits: SseLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes the next piece of the stream. Pieces that are fed after [`finish`](Self::finish) are ignored.
    ///
    /// Drain with [`next`](Self::next) before feeding more; what is still unread is kept in front of the new
    /// piece, at the price of a copy.
    pub fn feed(&mut self, piece: impl Into<Bytes>) {
        if self.ended || self.failed {
            return;
        }
        let piece = piece.into();
        let rest = self.piece.get(self.at..).unwrap_or_default();
        self.piece = if rest.is_empty() { piece } else { [rest, &piece].concat().into() };
        self.at = 0;
    }

    /// Says that the stream is over. A line or an event that is still open comes out of [`next`](Self::next).
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// The next item, or nothing when more bytes are needed.
    ///
    /// # Errors
    ///
    /// When the stream goes over one of the [`SseLimits`]; the decoder is silent from then on.
    #[expect(
        clippy::should_implement_trait,
        reason = "items borrow the decoder, which an Iterator cannot express"
    )]
    pub fn next(&mut self) -> Option<Result<SseItem<'_>, SseError>> {
        let found = match self.advance()? {
            Ok(found) => found,
            Err(error) => {
                self.failed = true;
                return Some(Err(error));
            }
        };
        let this = &*self;
        Some(Ok(match found {
            Found::Event { data, closed } => {
                SseItem::Event(SseEvent { name: &this.name, data: this.bytes(&data), id: &this.id, closed })
            }
            Found::Comment(text) => SseItem::Comment(this.bytes(&text)),
            Found::Retry(wait) => SseItem::Retry(wait),
            Found::Field { name, value } => {
                SseItem::Field { name: this.bytes(&name), value: this.bytes(&value) }
            }
        }))
    }

    fn bytes(&self, place: &Place) -> &[u8] {
        match place {
            Place::Piece(range) => self.piece.get(range.clone()),
            Place::Data => Some(&*self.data),
            Place::Lent(range) => self.lent.get(range.clone()),
        }
        .unwrap_or_default()
    }

    fn advance(&mut self) -> Option<Result<Found, SseError>> {
        if self.failed {
            return None;
        }
        if self.delivered {
            self.delivered = false;
            self.close_event();
        }
        loop {
            let line = match self.take_line() {
                Ok(Some(line)) => line,
                Ok(None) => return self.last_event().map(Ok),
                Err(error) => return Some(Err(error)),
            };
            match self.handle_line(line) {
                Ok(None) => {}
                Ok(Some(found)) => return Some(Ok(found)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The event that the end of the stream left open.
    fn last_event(&mut self) -> Option<Found> {
        if !self.ended || !self.has_data {
            return None;
        }
        self.delivered = true;
        Some(Found::Event { data: Place::Data, closed: false })
    }

    fn close_event(&mut self) {
        self.has_data = false;
        self.data.clear();
        self.name.clear();
    }

    /// The next line that is whole. Reads every byte once.
    fn take_line(&mut self) -> Result<Option<Line>, SseError> {
        if self.after_cr && self.at < self.piece.len() {
            self.after_cr = false;
            if self.piece.get(self.at) == Some(&b'\n') {
                self.at += 1;
            }
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let Some(length) = memchr2(b'\n', b'\r', rest) else {
            self.line.extend_from_slice(rest);
            self.at = self.piece.len();
            self.check_line(&self.line)?;
            if !self.ended || self.line.is_empty() {
                return Ok(None);
            }
            return Ok(Some(self.begin(Line::Joined)));
        };
        let start = self.at;
        let end = start + length;
        self.at = end + 1;
        if rest.get(length) == Some(&b'\r') {
            match rest.get(length + 1) {
                Some(b'\n') => self.at += 1,
                Some(_) => {}
                None => self.after_cr = true,
            }
        }
        let line = if self.line.is_empty() {
            Line::Piece(start..end)
        } else {
            self.line.extend_from_slice(rest.get(..length).unwrap_or_default());
            Line::Joined
        };
        self.check_line(self.line_bytes(&line))?;
        Ok(Some(self.begin(line)))
    }

    fn line_bytes(&self, line: &Line) -> &[u8] {
        match line {
            Line::Piece(range) => self.piece.get(range.clone()).unwrap_or_default(),
            Line::Joined => &self.line,
        }
    }

    fn check_line(&self, line: &[u8]) -> Result<(), SseError> {
        // Most lines are short: one comparison for them.
        if line.len() <= self.limits.max_line_bytes.min(self.limits.max_event_bytes) {
            return Ok(());
        }
        if line.starts_with(b"data:") {
            let limit = self.limits.max_event_bytes;
            return if line.len() - 5 > limit.saturating_add(1) {
                Err(SseError::EventTooLong { limit })
            } else {
                Ok(())
            };
        }
        let limit = self.limits.max_line_bytes;
        if line.len() > limit { Err(SseError::LineTooLong { limit }) } else { Ok(()) }
    }

    /// Takes a byte order mark off the first line.
    fn begin(&mut self, line: Line) -> Line {
        if std::mem::replace(&mut self.begun, true) || !self.line_bytes(&line).starts_with(BOM) {
            return line;
        }
        match line {
            Line::Piece(range) => Line::Piece(range.start + BOM.len()..range.end),
            Line::Joined => {
                self.line.drain(..BOM.len());
                Line::Joined
            }
        }
    }

    fn handle_line(&mut self, line: Line) -> Result<Option<Found>, SseError> {
        match line {
            Line::Piece(range) => self.handle_whole(range),
            Line::Joined => {
                let mut line = std::mem::take(&mut self.line);
                let found = self.handle_joined(&line);
                // The buffer goes back, so that a stream of split lines does not allocate for each.
                line.clear();
                self.line = line;
                found
            }
        }
    }

    /// A line that lies in the piece: it is lent out from there.
    fn handle_whole(&mut self, range: Range<usize>) -> Result<Option<Found>, SseError> {
        // Taken out for as long as it is read, since counting another reference to it would be most of the cost of a line.
        let piece = std::mem::take(&mut self.piece);
        let found = self.handle_line_of(&piece, range);
        self.piece = piece;
        found
    }

    fn handle_line_of(&mut self, piece: &Bytes, range: Range<usize>) -> Result<Option<Found>, SseError> {
        let line = piece.get(range.clone()).unwrap_or_default();
        let at = |sub: &[u8]| Place::Piece(range.end - sub.len()..range.end);
        match split(line) {
            Part::Blank => Ok(self.handle_blank()),
            Part::Comment(text) => Ok(Some(Found::Comment(at(text)))),
            Part::Field(b"data", value) => {
                self.check_data(value.len())?;
                if !self.has_data && self.skip_blank_line(piece) {
                    self.delivered = true;
                    return Ok(Some(Found::Event { data: at(value), closed: true }));
                }
                self.push_data(value);
                Ok(None)
            }
            Part::Field(name, value) => Ok(self.handle_field(name, value).then(|| {
                let start = range.start;
                Found::Field { name: Place::Piece(start..start + name.len()), value: at(value) }
            })),
            Part::Retry(wait) => Ok(Some(Found::Retry(wait))),
        }
    }

    /// A line that had to be pieced together: what is lent out of it moves to a buffer of its own.
    fn handle_joined(&mut self, line: &[u8]) -> Result<Option<Found>, SseError> {
        match split(line) {
            Part::Blank => Ok(self.handle_blank()),
            Part::Comment(text) => {
                self.lend(text);
                Ok(Some(Found::Comment(Place::Lent(0..text.len()))))
            }
            Part::Field(b"data", value) => {
                self.check_data(value.len())?;
                self.push_data(value);
                Ok(None)
            }
            Part::Field(name, value) => Ok(self.handle_field(name, value).then(|| {
                self.lend(line);
                let (start, end) = (line.len() - value.len(), line.len());
                Found::Field { name: Place::Lent(0..name.len()), value: Place::Lent(start..end) }
            })),
            Part::Retry(wait) => Ok(Some(Found::Retry(wait))),
        }
    }

    fn lend(&mut self, bytes: &[u8]) {
        self.lent.clear();
        self.lent.extend_from_slice(bytes);
    }

    fn check_data(&self, more: usize) -> Result<(), SseError> {
        let limit = self.limits.max_event_bytes;
        let length = self.data.len().saturating_add(more).saturating_add(usize::from(self.has_data));
        if length > limit { Err(SseError::EventTooLong { limit }) } else { Ok(()) }
    }

    fn push_data(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    /// Reads over the blank line right ahead, if it is all in the piece.
    fn skip_blank_line(&mut self, piece: &[u8]) -> bool {
        let length = match piece.get(self.at..) {
            Some([b'\n', ..]) => 1,
            Some([b'\r', b'\n', ..]) => 2,
            _ => return false,
        };
        // The line before may have ended in a CR at the very end of the last piece.
        if self.after_cr {
            return false;
        }
        self.at += length;
        true
    }

    fn handle_blank(&mut self) -> Option<Found> {
        if !self.has_data {
            self.close_event();
            return None;
        }
        self.delivered = true;
        Some(Found::Event { data: Place::Data, closed: true })
    }

    /// Takes a field of the standard in; says whether it is one that the standard does not have.
    fn handle_field(&mut self, name: &[u8], value: &[u8]) -> bool {
        match name {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" => {
                if !value.contains(&0) {
                    self.id.clear();
                    self.id.extend_from_slice(value);
                }
            }
            b"retry" => {}
            _ => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests;
