//! What reading a front matter for its modes found: nothing is dropped without a word.

use std::fmt;

use haversack_skills::diagnostic::Severity;
use haversack_skills::node::Position;

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingCode {
    /// A field that the format does not have.
    UnknownField,
    /// A field that stands in two places with different values; one of them counts.
    ShadowedField,
    /// A value of another type than the field takes.
    WrongType,
    /// A word that is none of those the field takes.
    UnknownWord,
    /// A number that the field cannot hold.
    OutOfRange,
    /// A field without which its mapping means nothing is missing or empty.
    Missing,
    /// More entries than are kept.
    TooMany,
    /// A template that stands without quotes, which YAML reads as a mapping.
    UnquotedTemplate,
}

impl FindingCode {
    /// The code as a word, as reports write it: `unknown_field`, `wrong_type` and so on.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownField => "unknown_field",
            Self::ShadowedField => "shadowed_field",
            Self::WrongType => "wrong_type",
            Self::UnknownWord => "unknown_word",
            Self::OutOfRange => "out_of_range",
            Self::Missing => "missing",
            Self::TooMany => "too_many",
            Self::UnquotedTemplate => "unquoted_template",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something about one field that its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind.
    pub code: FindingCode,
    /// An error keeps the skill from running: the field says what the skill may do, and it cannot be read. Otherwise a
    /// warning.
    pub severity: Severity,
    /// Which field, from the top: `agent_config.deny`, `tool_schema.steps[1].tool`.
    pub field: String,
    /// Line of the file, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong and what to do, in one sentence without a full stop.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(
        code: FindingCode,
        severity: Severity,
        field: impl Into<String>,
        at: Position,
        message: impl Into<String>,
    ) -> Self {
        let (line, column) = (at.line, at.column);
        Self { code, severity, field: field.into(), line, column, message: message.into() }
    }

    /// Whether it keeps the skill from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, field, line, column, message } = self;
        write!(f, "{line}:{column}: {severity}: `{field}`: {message} [{code}]")
    }
}
