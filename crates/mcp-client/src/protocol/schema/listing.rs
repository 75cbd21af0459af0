//! Lists, page by page, from which one bad entry never takes the others along.

use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::json::Object;

/// Something that was left out, repaired or refused, beside the part that is good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What kind of problem.
    pub code: ProblemCode,
    /// What happened, where, and what was done about it.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The kinds of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemCode {
    /// An entry of a list is not what it should be and was left out.
    BadEntry,
    /// An entry of a list has the name of an earlier one and was left out.
    Duplicate,
    /// A page of a list could not be had; the pages before it were kept.
    PageFailed,
    /// A page repeated the one before it; the list was ended there.
    PageRepeated,
    /// A list is longer than its limits; the part within them was kept.
    ListTooLong,
    /// A member of an answer is of the wrong kind and was read as well as it can be.
    OddShape,
    /// The server does not declare what was asked for, so it was not asked.
    NotDeclared,
    /// An answer came that nothing of ours waits for.
    UnknownAnswer,
    /// The server says that it could not read something we sent.
    PeerCouldNotRead,
    /// A line or a batch passed its limit; the rest was dropped.
    TooLong,
    /// The server asked for something that it may not ask in this revision; it got no answer.
    ForbiddenRequest,
    /// Too much is waiting to be sent or answered; something was dropped.
    Overload,
    /// What was sent after the end of a call, or to a progress token nobody holds.
    Stray,
    /// The transport saw something odd: a note that was not taken, a stream that could not be opened.
    Transport,
    /// A tool was left out: it wants its parameters in headers in a way that the revision forbids.
    BadHeaderMark,
}

impl ProblemCode {
    /// The code as a word, for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadEntry => "bad_entry",
            Self::Duplicate => "duplicate",
            Self::PageFailed => "page_failed",
            Self::PageRepeated => "page_repeated",
            Self::ListTooLong => "list_too_long",
            Self::OddShape => "odd_shape",
            Self::NotDeclared => "not_declared",
            Self::UnknownAnswer => "unknown_answer",
            Self::PeerCouldNotRead => "peer_could_not_read",
            Self::TooLong => "too_long",
            Self::ForbiddenRequest => "forbidden_request",
            Self::Overload => "overload",
            Self::Stray => "stray",
            Self::Transport => "transport",
            Self::BadHeaderMark => "bad_header_mark",
        }
    }
}

/// A whole list: what could be read of it, and what could not.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listing<T> {
    /// The entries, in the server's order.
    pub items: Vec<T>,
    /// What was left out, and why the list may be incomplete.
    pub problems: Vec<Problem>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { items: Vec::new(), problems: Vec::new() }
    }
}

impl<T> Listing<T> {
    /// A list without problems, for tests and for hosts that make their own.
    pub fn of(items: Vec<T>) -> Self {
        Self { items, problems: Vec::new() }
    }
}

/// An entry of a list.
pub(crate) trait Item: Sized {
    /// What one is called in messages.
    const KIND: &'static str;
    /// Reads one; the error says what is missing.
    fn from_object(object: Object) -> Result<Self, String>;
    /// What must not occur twice in a list.
    fn key(&self) -> &str;
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) next_cursor: Option<String>,
    /// Size of the page as it came, in bytes.
    pub(crate) bytes: usize,
}

/// Reads the members of a list result: entries one by one, each on its own, so that an entry which is too deep or of
/// the wrong shape costs only itself.
pub(crate) fn read_page<T: Item>(entries: Option<&RawValue>, cursor: Option<Value>, first: usize) -> Page<T> {
    let mut page = Page { items: Vec::new(), problems: Vec::new(), next_cursor: None, bytes: 0 };
    page.next_cursor = match cursor {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(other) => {
            let message =
                format!("the cursor of the next page is no text but {other}; the list was ended there");
            page.problems.push(Problem::new(ProblemCode::OddShape, message));
            None
        }
    };
    let Some(entries) = entries else {
        let message = format!("the answer holds no list of {}s", T::KIND);
        page.problems.push(Problem::new(ProblemCode::OddShape, message));
        return page;
    };
    page.bytes = entries.get().len();
    let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(entries.get()) else {
        let message = format!("what should be the list of {}s is none", T::KIND);
        page.problems.push(Problem::new(ProblemCode::OddShape, message));
        return page;
    };
    for (place, entry) in entries.into_iter().enumerate() {
        match read_entry(entry) {
            Ok(item) => page.items.push(item),
            Err(reason) => {
                let message = format!("{} {} was left out: {reason}", T::KIND, first + place + 1);
                page.problems.push(Problem::new(ProblemCode::BadEntry, message));
            }
        }
    }
    page
}

fn read_entry<T: Item>(entry: &RawValue) -> Result<T, String> {
    match serde_json::from_str(entry.get()) {
        Ok(Value::Object(object)) => T::from_object(object),
        Ok(Value::Null) => Err("it is null".to_owned()),
        Ok(_) => Err("it is no object".to_owned()),
        // The text is valid JSON, or the whole answer would not have been read; what is left is depth and numbers.
        Err(error) => Err(format!("{}{error}", named(entry))),
    }
}

/// The name of an entry that cannot be read as a whole, for the message.
fn named(entry: &RawValue) -> String {
    #[derive(serde::Deserialize)]
    struct Head {
        name: Option<String>,
    }
    let head = serde_json::from_str::<Head>(entry.get()).ok();
    head.and_then(|head| head.name).map_or_else(String::new, |name| format!("\"{name}\": "))
}
