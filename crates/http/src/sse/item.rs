//! What comes out of a stream, its bounds, and how it can fail.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Bounds of a [`SseDecoder`](crate::SseDecoder). What is over a bound ends the stream with an error: a server that sends it is
/// broken or hostile, and cutting an event would hand on a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseLimits {
    /// Bytes of the data of one event. 8 MiB unless set: a picture in base64 fits.
    pub max_event_bytes: usize,
    /// Bytes of one line that is no data: names, ids, comments. 64 KiB unless set.
    pub max_line_bytes: usize,
}

impl SseLimits {
    /// Sets the bound of one event's data in bytes.
    #[must_use]
    pub fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets the bound of one line in bytes, data lines excepted.
    #[must_use]
    pub fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }
}

impl Default for SseLimits {
    fn default() -> Self {
        Self { max_event_bytes: 8 << 20, max_line_bytes: 64 << 10 }
    }
}

/// What a stream can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseItem<'a> {
    /// An event with data.
    Event(SseEvent<'a>),
    /// A comment, without its colon. Servers send them to show that they are alive.
    Comment(&'a [u8]),
    /// The server asks to wait this long before a reconnect.
    Retry(Duration),
    /// A field that the standard does not have, reported at once and not tied to an event.
    Field {
        /// What stands before the colon; the whole line where there is none.
        name: &'a [u8],
        /// What stands after it and after one blank.
        value: &'a [u8],
    },
}

/// One event. Everything is bytes as received: whoever reads JSON out of them checks UTF-8 anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The name; empty when the server gave none, which the standard reads as `message`.
    pub name: &'a [u8],
    /// The data, lines joined by line feeds.
    pub data: &'a [u8],
    /// The last id that the stream gave, of this event or an earlier one; empty when there was none.
    pub id: &'a [u8],
    /// Whether a blank line closed the event. The standard drops an event that the end of the stream cuts off;
    /// it is handed on here, marked, and the caller decides (data that is whole JSON is whole).
    pub closed: bool,
}

impl<'a> SseEvent<'a> {
    /// The name as text, bad UTF-8 replaced.
    pub fn name_str(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// The data as text, bad UTF-8 replaced.
    pub fn data_str(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.data)
    }

    /// The id as text, bad UTF-8 replaced.
    pub fn id_str(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.id)
    }
}

impl fmt::Debug for SseEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseEvent")
            .field("name", &self.name_str())
            .field("data", &self.data_str())
            .field("id", &self.id_str())
            .field("closed", &self.closed)
            .finish()
    }
}

/// A stream that goes over a bound. It comes once, and the decoder gives nothing after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseError {
    /// The data of one event is too long.
    EventTooLong {
        /// The bound.
        limit: usize,
    },
    /// A line that is no data is too long.
    LineTooLong {
        /// The bound.
        limit: usize,
    },
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventTooLong { limit } => {
                write!(f, "an event of the stream has more than {limit} bytes of data")
            }
            Self::LineTooLong { limit } => write!(f, "a line of the stream has more than {limit} bytes"),
        }
    }
}

impl std::error::Error for SseError {}
