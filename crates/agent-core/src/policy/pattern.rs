//! What a call touches, and patterns over it.

use std::borrow::Cow;
use std::fmt;

use glob::{MatchOptions, Pattern};
use serde::{Deserialize, Serialize};

/// The longest path or name that a glob is tried on, in bytes: longer than any path a system takes (4,096), and
/// short enough that matching stays cheap. A longer one is denied by every rule that denies its kind, and allowed
/// by none.
pub const MAX_GLOB_KEY_BYTES: usize = 4_096;

/// One thing that a call would touch: what a person wants to know before they say yes, and what rules match.
///
/// A tool names the keys of a call from its arguments; `Tool::approval_keys` has the details.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalKey {
    /// A file or folder, with `/` between segments.
    Path(String),
    /// A command line for a shell, whole.
    Command(String),
    /// Anything else, in the tool's own spelling: a host name, a table, a customer.
    Other(String),
}

impl ApprovalKey {
    /// A path. Backslashes become slashes, repeated slashes and `.` segments go; `..` stays, and keeps every rule
    /// from allowing the path, since nobody but the file system knows where it leads.
    pub fn path(path: impl AsRef<str>) -> Self {
        let path = path.as_ref().replace('\\', "/");
        let root = if path.starts_with('/') { "/" } else { "" };
        let segments: Vec<_> = path.split('/').filter(|s| !s.is_empty() && *s != ".").collect();
        Self::Path(format!("{root}{}", segments.join("/")))
    }

    /// A command line.
    pub fn command(command: impl Into<String>) -> Self {
        Self::Command(command.into())
    }

    /// Anything else.
    pub fn other(key: impl Into<String>) -> Self {
        Self::Other(key.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Path(text) | Self::Command(text) | Self::Other(text) => text,
        }
    }
}

impl fmt::Display for ApprovalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A pattern over names and paths.
///
/// There are two wildcards: `*` is any number of characters within a segment between slashes, and `**` as a whole
/// segment is any number of segments. Everything else means itself, `?`, brackets and braces included:
/// `app/[id]/page.tsx` is the file of that name. Every text is a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Glob {
    source: String,
    exact: Pattern,
    /// In lower case, for rules that tighten.
    folded: Pattern,
}

/// A `*` stays within its segment, and a leading dot is nothing special.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

impl Glob {
    /// A pattern from its text.
    pub fn new(pattern: impl Into<String>) -> Self {
        let source = pattern.into();
        let (exact, folded) = (compile(&source), compile(&source.to_lowercase()));
        Self { source, exact, folded }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole text matches, case by case.
    pub fn matches(&self, text: &str) -> bool {
        self.exact.matches_with(text, OPTIONS)
    }

    /// Whether the whole text matches when case does not count, as on file systems that ignore it.
    pub fn matches_in_any_case(&self, text: &str) -> bool {
        self.matches(text) || self.folded.matches_with(&text.to_lowercase(), OPTIONS)
    }
}

/// Translates our two wildcards into those of the `glob` crate, and everything else into itself.
fn compile(source: &str) -> Pattern {
    let segment = |segment: &str| match segment {
        "**" => segment.to_owned(),
        // Stars in a row are one: two of them inside a segment mean nothing more.
        _ => segment.split('*').map(Pattern::escape).fold(None, joined_by_star).unwrap_or_default(),
    };
    let translated: Vec<String> = source.split('/').map(segment).collect();
    // What does not compile has no wildcard left to mean: it stands for itself, which always compiles.
    Pattern::new(&translated.join("/"))
        .or_else(|_| Pattern::new(&Pattern::escape(source)))
        .unwrap_or_default()
}

fn joined_by_star(before: Option<String>, part: String) -> Option<String> {
    Some(match before {
        None => part,
        Some(before) if part.is_empty() && before.ends_with('*') => before,
        Some(before) => format!("{before}*{part}"),
    })
}

impl From<String> for Glob {
    fn from(pattern: String) -> Self {
        Self::new(pattern)
    }
}

impl From<&str> for Glob {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.source
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// A pattern over the keys of calls.
///
/// It is read in one of two ways. A rule that allows has to be sure: the case counts, a path must not hold `..`, a
/// command must not hold anything by which a shell joins, redirects or computes commands. A rule that asks or denies
/// has to be on the safe side: the case does not count, and each part of a joined command is looked at. This is no
/// parser of shells, and a rule that denies is no sandbox; what matters is that a rule that allows never stretches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyPattern {
    /// Exactly this key and no other.
    Exact(ApprovalKey),
    /// Paths.
    Path(Glob),
    /// Commands that begin with these words.
    Command(String),
    /// Other keys.
    Other(Glob),
}

impl KeyPattern {
    /// Exactly this key.
    pub fn exact(key: ApprovalKey) -> Self {
        Self::Exact(key)
    }

    /// Paths that match this glob.
    pub fn path(glob: impl Into<Glob>) -> Self {
        Self::Path(glob.into())
    }

    /// Commands that begin with these whole words: `git log` covers `git log -3` and not `git logs`.
    pub fn command(words: impl Into<String>) -> Self {
        Self::Command(words.into())
    }

    /// Other keys that match this glob.
    pub fn other(glob: impl Into<Glob>) -> Self {
        Self::Other(glob.into())
    }

    /// Whether a rule that allows may take this key for covered.
    pub(super) fn covers(&self, key: &ApprovalKey) -> bool {
        match (self, key) {
            (Self::Exact(exact), key) => exact == key,
            (Self::Path(glob), ApprovalKey::Path(path)) => {
                path.len() <= MAX_GLOB_KEY_BYTES && !climbs(path) && glob.matches(path)
            }
            (Self::Command(prefix), ApprovalKey::Command(command)) => {
                // No words would cover every command; a rule for the whole tool says that in the open.
                !prefix.trim().is_empty()
                    && is_plain_command(command)
                    && begins_with_words(command, prefix, |a, b| a == b)
            }
            (Self::Other(glob), ApprovalKey::Other(text)) => {
                text.len() <= MAX_GLOB_KEY_BYTES && glob.matches(text)
            }
            _ => false,
        }
    }

    /// Whether a rule that asks or denies has to take this key for meant.
    pub(super) fn touches(&self, key: &ApprovalKey) -> bool {
        match (self, key) {
            (Self::Exact(exact), key) => {
                std::mem::discriminant(exact) == std::mem::discriminant(key)
                    && exact.as_str().to_lowercase() == key.as_str().to_lowercase()
            }
            (Self::Path(glob), ApprovalKey::Path(text)) => {
                text.len() > MAX_GLOB_KEY_BYTES
                    || glob.matches_in_any_case(text)
                    || (climbs(text) && glob.matches_in_any_case(&resolved(text)))
            }
            (Self::Other(glob), ApprovalKey::Other(text)) => {
                text.len() > MAX_GLOB_KEY_BYTES || glob.matches_in_any_case(text)
            }
            (Self::Command(prefix), ApprovalKey::Command(command)) => {
                command.split(is_shell_syntax).any(|part| {
                    let part = without_quotes(part);
                    begins_with_words(&part, prefix, |a, b| a.eq_ignore_ascii_case(b))
                })
            }
            _ => false,
        }
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(key) => write!(f, "exactly `{key}`"),
            Self::Path(glob) => write!(f, "paths like `{glob}`"),
            Self::Command(words) => write!(f, "commands that begin with `{words}`"),
            Self::Other(glob) => write!(f, "`{glob}`"),
        }
    }
}

/// Whether a command is one program with its arguments: nothing in it joins, redirects, substitutes or hides.
pub(super) fn is_plain_command(command: &str) -> bool {
    !command.contains(|c| is_shell_syntax(c) || is_invisible(c))
}

/// What a POSIX shell or `cmd.exe` gives a meaning beyond its own letter.
fn is_shell_syntax(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '^' | '%' | '!' | '\n' | '\r')
}

/// Characters that a person does not see, or that change the order in which they see the others (Unicode's bidi
/// controls, zero-width and tag characters).
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Compares word by word. No words at all are the beginning of every command.
fn begins_with_words(command: &str, prefix: &str, same: impl Fn(&str, &str) -> bool) -> bool {
    let mut words = command.split_whitespace();
    prefix.split_whitespace().all(|wanted| words.next().is_some_and(|word| same(word, wanted)))
}

/// The command without quotes and without the folder of its program, for rules that tighten.
fn without_quotes(part: &str) -> String {
    let bare: String = part.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let bare = bare.trim_start();
    let (program, rest) = bare.split_at(bare.find(char::is_whitespace).unwrap_or(bare.len()));
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    format!("{name}{rest}")
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|segment| segment == "..")
}

/// The path with `..` taken literally, each one undoing the segment before it.
fn resolved(path: &str) -> Cow<'_, str> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        if segment == ".." && segments.last().is_some_and(|last| !last.is_empty() && *last != "..") {
            segments.pop();
        } else {
            segments.push(segment);
        }
    }
    segments.join("/").into()
}
