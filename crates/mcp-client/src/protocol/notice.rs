//! What a server says without being asked, and what is odd about what it says.

use serde_json::Value;

use super::schema::Problem;

/// The most characters of a line or a text that a notice carries.
pub(crate) const MAX_NOTICE_CHARS: usize = 500;

/// The largest data that a log message or an unknown notification carries, in bytes of JSON; what is larger is
/// replaced by its beginning.
pub(crate) const MAX_NOTICE_BYTES: usize = 16 * 1024;

/// Something a server said on its own, or something odd about what it said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A line on standard output that is no message: skipped. The first 20 are reported, all are counted.
    Noise {
        /// The beginning of the line, with control characters replaced; 500 characters at most.
        text: String,
    },
    /// Something was left out, repaired or refused.
    Problem(Problem),
    /// A log message.
    Log {
        /// How severe, as the server wrote it.
        level: String,
        /// Who logs, if it says so.
        logger: Option<String>,
        /// What it logs: often text. 16 KiB of JSON at most.
        data: Value,
    },
    /// A list has changed. Many such notes within a short time are one notice.
    ListChanged(ListKind),
    /// A resource that was subscribed to has changed.
    ResourceUpdated {
        /// Its address.
        uri: String,
    },
    /// A notification this client knows nothing of.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters; 16 KiB of JSON at most.
        params: Value,
    },
}

/// The lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Resources, and resource templates with them.
    Resources,
    /// Prompts.
    Prompts,
}

impl ListKind {
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    /// `tools`, `resources` or `prompts`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// A report of progress.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is; rises with each report.
    pub progress: f64,
    /// How far it will be at the end, if that is known.
    pub total: Option<f64>,
    /// What is being done, in words for people.
    pub message: Option<String>,
}

/// The beginning of a text from outside, safe to print: control characters and invisible direction marks replaced.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    // Four bytes a character at most, and a little for one that is cut.
    let head = bytes.get(..MAX_NOTICE_CHARS * 4).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let visible = |c: char| {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().take(MAX_NOTICE_CHARS).map(visible).collect()
}

/// Data of a notice, unless it is too large to keep.
pub(crate) fn bounded(json: &str, value: Value) -> Value {
    if json.len() <= MAX_NOTICE_BYTES {
        return value;
    }
    Value::String(format!("{}… ({} bytes in all)", excerpt(json.as_bytes()), json.len()))
}
