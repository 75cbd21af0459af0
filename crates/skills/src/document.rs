//! One SKILL.md, read: its fields with their places, its body, and what is wrong with it.

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::fence::{BYTE_ORDER_MARK, Split, split};
pub use crate::mend::Rung;
use crate::mend::mend;
use crate::node::Fields;
use crate::yaml::cursor::Limits;
use crate::yaml::parse;

/// What one file may at most be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseOptions {
    /// Bytes of a file; a larger one is not looked at. 256 KiB by default, more than fifty times the longest front
    /// matter in the wild and far more than a body that a model should read. At most 2 GiB.
    pub max_bytes: usize,
    /// Levels of nesting below the root of the front matter. 64 by default and at most; real files have under ten.
    pub max_depth: usize,
    /// Values in the front matter, with aliases written out. 100,000 by default, so that a few lines of aliases cannot
    /// become gigabytes.
    pub max_values: usize,
}

/// Deepest nesting that can be asked for: what the stack of any thread bears.
const DEEPEST: usize = 64;
/// Largest file that can be asked for: positions are 32 bits wide.
const LARGEST: usize = 2 * 1024 * 1024 * 1024 - 1;

impl Default for ParseOptions {
    fn default() -> Self {
        Self { max_bytes: 256 * 1024, max_depth: DEEPEST, max_values: 100_000 }
    }
}

impl ParseOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes files of up to `bytes` bytes.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Takes front matter nested up to `levels` deep; more than 64 is 64.
    #[must_use]
    pub const fn with_max_depth(mut self, levels: usize) -> Self {
        self.max_depth = levels;
        self
    }

    /// Takes front matter of up to `values` values.
    #[must_use]
    pub const fn with_max_values(mut self, values: usize) -> Self {
        self.max_values = values;
        self
    }

    fn limits(&self) -> Limits {
        Limits { depth: self.max_depth.min(DEEPEST), values: self.max_values }
    }
}

/// Why a strict reader refuses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The file is larger than [`ParseOptions::max_bytes`].
    TooLarge,
    /// The bytes are no UTF-8.
    NotUtf8,
    /// There is nothing but blank lines.
    FrontMatterEmpty,
    /// The first line that is not blank is no fence.
    FrontMatterMissing,
    /// No fence closes the front matter.
    FrontMatterUnclosed,
    /// The front matter is no YAML mapping; a diagnostic says where and why.
    Yaml,
}

impl Reason {
    /// The word that reports use, such as `front-matter-missing` or `yaml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::NotUtf8 => "not-utf8",
            Self::FrontMatterEmpty => "front-matter-empty",
            Self::FrontMatterMissing => "front-matter-missing",
            Self::FrontMatterUnclosed => "front-matter-unclosed",
            Self::Yaml => "yaml",
        }
    }
}

/// A skill file, read. Reading never fails: what could not be had is missing, and a diagnostic says why.
///
/// ```
/// use haversack_skills::document::{Document, ParseOptions};
///
/// let file = b"---\nname: pdf\ndescription: Fills forms\nversion: 1.10\n---\n# PDF\n";
/// let document = Document::parse(file, &ParseOptions::new());
/// assert!(document.is_strict());
/// assert_eq!(document.name(), Some("pdf"));
/// assert_eq!(document.body(), "# PDF\n");
///
/// let version = document.fields().and_then(|fields| fields.get("version")).unwrap();
/// assert_eq!(version.to_json(), serde_json::json!(1.1));
/// assert_eq!(version.as_written(), Some("1.10"));
/// assert_eq!((version.position().line, version.position().column), (4, 10));
/// ```
///
/// The commonest fault of real files, a colon in a value without quotes, is read all the same, and comes with the edit
/// that mends the file:
///
/// ```
/// use haversack_skills::document::{Document, ParseOptions, Rung};
///
/// let file = b"---\nname: pdf\ndescription: Use when: asked\n---\n";
/// let document = Document::parse(file, &ParseOptions::new());
/// assert_eq!(document.rung(), Some(Rung::Quote));
/// assert_eq!(document.description(), Some("Use when: asked"));
///
/// let edit = document.diagnostics().iter().find_map(|found| found.fix.as_ref()).unwrap();
/// let mended = edit.apply(file).unwrap();
/// assert!(Document::parse(&mended, &ParseOptions::new()).is_strict());
/// ```
#[derive(Debug, Clone)]
pub struct Document<'a> {
    text: &'a str,
    reason: Option<Reason>,
    rung: Option<Rung>,
    fields: Option<Fields<'a>>,
    front: Option<Range<usize>>,
    body: Range<usize>,
    duplicates: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Document<'a> {
    /// Reads the bytes of one file.
    ///
    /// Time and memory grow with the size of the file and no faster. One byte-order mark is passed over; lines end at LF,
    /// CR LF or CR; blank lines may come before the opening fence and blanks behind either fence; the first later line
    /// that is a fence from its first column on closes the front matter.
    pub fn parse(bytes: &'a [u8], options: &ParseOptions) -> Self {
        if bytes.len() > options.max_bytes.min(LARGEST) {
            let message =
                format!("the file has {} bytes, more than the limit of {}", bytes.len(), options.max_bytes);
            return Self::refused("", Reason::TooLarge, 0..0, error(Code::TooLarge, (1, 1), message));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(fault) => return Self::not_utf8(bytes, fault.valid_up_to()),
        };
        let (reason, code, line, body, message) = match split(text) {
            Split::Fenced { line, front, body } => return Self::fenced(text, line, front, body, options),
            Split::Empty { body } => {
                let message = "the file is empty; begin it with a line of ---, the fields, and another ---";
                (Reason::FrontMatterEmpty, Code::FrontMatterEmpty, 1, body, message)
            }
            Split::Missing { line, body } => {
                let message =
                    "no front matter; begin the file with a line of ---, the fields, and another ---";
                (Reason::FrontMatterMissing, Code::FrontMatterMissing, line, body, message)
            }
            Split::Unclosed { line, body } => {
                let message = "this front matter is never closed; put a line of --- behind its last field";
                (Reason::FrontMatterUnclosed, Code::FrontMatterUnclosed, line, body, message)
            }
        };
        Self::refused(text, reason, body, error(code, (line, 1), message.to_owned()))
    }

    fn not_utf8(bytes: &'a [u8], valid: usize) -> Self {
        let before = bytes.get(..valid).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let at = crate::lines::Lines::new(before).position(valid);
        let message = "bytes that are no UTF-8; save the file as UTF-8".to_owned();
        Self::refused("", Reason::NotUtf8, 0..0, error(Code::NotUtf8, (at.line, at.column), message))
    }

    fn refused(text: &'a str, reason: Reason, body: Range<usize>, found: Diagnostic) -> Self {
        Self {
            text,
            reason: Some(reason),
            rung: None,
            fields: None,
            front: None,
            body,
            duplicates: Vec::new(),
            diagnostics: vec![found],
        }
    }

    fn fenced(
        text: &'a str,
        line: u32,
        front: Range<usize>,
        body: Range<usize>,
        options: &ParseOptions,
    ) -> Self {
        let mut document = Self {
            text,
            reason: None,
            rung: None,
            fields: None,
            front: Some(front.clone()),
            body,
            duplicates: Vec::new(),
            diagnostics: Vec::new(),
        };
        match parse(text, front.clone(), line, options.limits()) {
            Ok(parsed) => {
                document.fields = Some(parsed.fields);
                for duplicate in parsed.duplicates {
                    let message = format!("`{}` occurs twice; the last one counts", duplicate.key);
                    let (line, column) = (duplicate.at.line, duplicate.at.column);
                    let found = Diagnostic::new(Code::DuplicateKey, Severity::Warning, line, column, message);
                    document.diagnostics.push(found);
                    document.duplicates.push(duplicate.key);
                }
            }
            Err(fault) => {
                document.reason = Some(Reason::Yaml);
                document.diagnostics.push(error(fault.code, (fault.at.line, fault.at.column), fault.message));
                if let Some(mended) = mend(text, front, line, options.limits()) {
                    document.rung = Some(mended.rung);
                    document.fields = Some(mended.fields);
                    document.diagnostics.extend(mended.diagnostics);
                }
            }
        }
        document
    }

    /// Whether a strict reader takes the file: it is UTF-8 with a fenced front matter that is a YAML mapping.
    pub const fn is_strict(&self) -> bool {
        self.reason.is_none()
    }

    /// Why a strict reader refuses the file; `None` where it does not.
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// How the fields were had from a front matter that is no YAML; `None` where it is, or nothing helped.
    pub const fn rung(&self) -> Option<Rung> {
        self.rung
    }

    /// The fields: as a strict reader has them, or else as the lenient ladder had them; `None` where neither did.
    pub const fn fields(&self) -> Option<&Fields<'a>> {
        self.fields.as_ref()
    }

    /// The field `name` as text; `None` where it is missing, null, a list or a mapping.
    pub fn name(&self) -> Option<&str> {
        self.text_field("name")
    }

    /// The field `description` as text; `None` where it is missing, null, a list or a mapping.
    pub fn description(&self) -> Option<&str> {
        self.text_field("description")
    }

    /// A field as text: any scalar as it is written.
    pub fn text_field(&self, key: &str) -> Option<&str> {
        self.fields.as_ref()?.text(key)
    }

    /// The body: all that follows the line of the closing fence, untouched. Where there is no front matter it is the
    /// whole text, and where the bytes are no UTF-8 or too many it is empty.
    pub fn body(&self) -> &'a str {
        self.text.get(self.body.clone()).unwrap_or_default()
    }

    /// The bytes of the file that are the body.
    pub const fn body_range(&self) -> &Range<usize> {
        &self.body
    }

    /// The bytes of the file between the lines of the two fences; `None` without both.
    pub const fn front_matter_range(&self) -> Option<&Range<usize>> {
        self.front.as_ref()
    }

    /// The text between the fences, as it stands in the file.
    pub fn front_matter(&self) -> Option<&'a str> {
        self.text.get(self.front.clone()?)
    }

    /// Whether the file begins with a byte-order mark.
    pub fn has_byte_order_mark(&self) -> bool {
        self.text.starts_with(BYTE_ORDER_MARK)
    }

    /// Keys that occur more than once in their mapping, in the order of the file; the last value of each counts.
    pub fn duplicate_keys(&self) -> &[String] {
        &self.duplicates
    }

    /// What was found while reading, in the order found: first what a strict reader refuses the file for, then each step
    /// that the lenient reading took, with the edit that makes the file strictly right where one is known.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

fn error(code: Code, (line, column): (u32, u32), message: String) -> Diagnostic {
    Diagnostic::new(code, Severity::Error, line, column, message)
}
