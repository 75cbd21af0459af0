//! What is wrong with a skill file, where, and the edit that mends it.

use std::fmt;

/// How much a [`Diagnostic`] matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Good to know; nothing is lost.
    Hint,
    /// The file was read, but not as its author may think, or not by every host.
    Warning,
    /// The file breaks the format: a strict reader refuses it.
    Error,
}

impl Severity {
    /// The word used in reports: `hint`, `warning` or `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Declares [`Code`] once, so that a variant, its word and the list of all codes cannot drift apart.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The kind of a [`Diagnostic`]: stable words that a host can match on, translate or silence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code there is, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code as a word in kebab case, as reports write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

codes! {
    /// The bytes are no UTF-8.
    NotUtf8 = "not-utf8",
    /// The file is larger than the reader's limit and was not looked at.
    TooLarge = "too-large",
    /// The file is empty or holds blank lines only.
    FrontMatterEmpty = "front-matter-empty",
    /// The first line that is not blank is no `---`.
    FrontMatterMissing = "front-matter-missing",
    /// No later line closes the front matter.
    FrontMatterUnclosed = "front-matter-unclosed",
    /// A control character that YAML forbids even in quotes.
    ControlCharacter = "control-character",
    /// A colon and a blank inside a plain value: the commonest fault by far.
    UnquotedColon = "unquoted-colon",
    /// A line that should be a key has no colon and blank.
    MissingColon = "missing-colon",
    /// A line stands in a column that fits nothing above it.
    BadIndentation = "bad-indentation",
    /// A tab where only blanks may indent.
    TabIndentation = "tab-indentation",
    /// A list item or a `?` key begins on the line of its own key.
    InlineBlock = "inline-block",
    /// A plain value begins with a character that YAML keeps for itself.
    ReservedCharacter = "reserved-character",
    /// A quoted value never ends.
    UnclosedQuote = "unclosed-quote",
    /// A `[` or `{` is never closed.
    UnclosedFlow = "unclosed-flow",
    /// Something between brackets that is neither a value, a comma nor the end.
    BadFlow = "bad-flow",
    /// A backslash sequence that YAML has not, or half of a surrogate pair.
    BadEscape = "bad-escape",
    /// Text after a value that is already complete.
    TextAfterValue = "text-after-value",
    /// The line of a `|` or `>` holds more than indentation, chomping and a comment.
    BadBlockHeader = "bad-block-header",
    /// An alias that names nothing before it.
    UnknownAlias = "unknown-alias",
    /// Aliases that would write out more than the limit.
    AliasLimit = "alias-limit",
    /// A malformed anchor or tag.
    BadProperty = "bad-property",
    /// A key that is a list, a mapping or an alias.
    KeyNotText = "key-not-text",
    /// A key that spans lines or more than 1,024 characters.
    KeyTooLong = "key-too-long",
    /// Nested deeper than the limit.
    TooDeep = "too-deep",
    /// More values than the limit.
    TooManyValues = "too-many-values",
    /// A second YAML document inside the front matter, or a directive without one.
    SecondDocument = "second-document",
    /// The front matter is a list or a single value where a mapping belongs.
    RootNotMapping = "root-not-mapping",
    /// Read after dropping control characters.
    MendedControl = "mended-control",
    /// Read after putting a plain value in quotes.
    MendedQuote = "mended-quote",
    /// Read after putting a broken bracketed or quoted value in quotes.
    MendedFlow = "mended-flow",
    /// Only `name` and `description` could be had, line by line.
    MendedScan = "mended-scan",
    /// A key occurs twice in one mapping; the last one counts.
    DuplicateKey = "duplicate-key",
    /// The front matter has no `name`.
    NameMissing = "name-missing",
    /// The `name` is blank, or no text.
    NameEmpty = "name-empty",
    /// The `name` is longer than 64 characters.
    NameTooLong = "name-too-long",
    /// The `name` has capital letters.
    NameNotLowercase = "name-not-lowercase",
    /// The `name` begins or ends with a hyphen.
    NameEdgeHyphen = "name-edge-hyphen",
    /// The `name` has two hyphens in a row.
    NameDoubleHyphen = "name-double-hyphen",
    /// The `name` has characters other than letters, digits and hyphens.
    NameCharacters = "name-characters",
    /// The `name` differs from the folder's.
    NameNotFolder = "name-not-folder",
    /// The front matter has no `description`.
    DescriptionMissing = "description-missing",
    /// The `description` is blank, or no text.
    DescriptionEmpty = "description-empty",
    /// The `description` is longer than 1,024 characters.
    DescriptionTooLong = "description-too-long",
    /// `compatibility` is no text.
    CompatibilityNotText = "compatibility-not-text",
    /// `compatibility` is longer than 500 characters.
    CompatibilityTooLong = "compatibility-too-long",
    /// A field that the open Agent Skills specification does not name.
    UnknownField = "unknown-field",
    /// A pattern of `autoAttach` or `paths` that cannot be used.
    BadPattern = "bad-pattern",
    /// The body is longer than the 500 lines that the format advises.
    BodyTooLong = "body-too-long",
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A replacement of some bytes of a file; everything outside stays as it is, to the byte.
///
/// ```
/// use haversack_skills::diagnostic::Edit;
///
/// let edit = Edit::new(6, 10, "'a: b'");
/// assert_eq!(edit.apply(b"text: a: b\n").as_deref(), Some(&b"text: 'a: b'\n"[..]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// First byte replaced, counted from the start of the file (a byte-order mark included).
    pub start: usize,
    /// First byte after those replaced; equal to `start` for an insertion.
    pub end: usize,
    /// What takes their place.
    pub text: String,
}

impl Edit {
    /// An edit that puts `text` in the place of the bytes `start..end`.
    pub fn new(start: usize, end: usize, text: impl Into<String>) -> Self {
        Self { start, end, text: text.into() }
    }

    /// The file with this edit made, or `None` where the range lies outside `file`.
    pub fn apply(&self, file: &[u8]) -> Option<Vec<u8>> {
        let head = file.get(..self.start)?;
        file.get(self.start..self.end)?;
        let tail = file.get(self.end..)?;
        let mut out = Vec::with_capacity(head.len() + self.text.len() + tail.len());
        out.extend_from_slice(head);
        out.extend_from_slice(self.text.as_bytes());
        out.extend_from_slice(tail);
        Some(out)
    }
}

/// One finding about one skill file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind of finding.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// Line of the file, from 1; the opening fence is line 1 of an ordinary file.
    pub line: u32,
    /// Column in characters (Unicode scalar values), from 1; a byte-order mark has no width.
    pub column: u32,
    /// What is wrong and what to do, in one sentence without a full stop.
    pub message: String,
    /// The edit that mends it, where one is known to be right.
    pub fix: Option<Edit>,
}

impl Diagnostic {
    /// A finding at `line` and `column` (both from 1), without an edit.
    pub fn new(code: Code, severity: Severity, line: u32, column: u32, message: impl Into<String>) -> Self {
        Self { code, severity, line, column, message: message.into(), fix: None }
    }

    /// The same finding with the edit that mends it.
    #[must_use]
    pub fn with_fix(mut self, fix: Edit) -> Self {
        self.fix = Some(fix);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {} [{}]", self.line, self.column, self.severity, self.message, self.code)
    }
}
