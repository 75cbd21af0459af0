//! Where the reader stands, and the moves that all kinds of values share.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::Code;
use crate::node::{Content, Node, Position};
use crate::yaml::character::first_forbidden;

/// What a front matter may at most hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Levels of nesting below the root.
    pub(crate) depth: usize,
    /// Values, with aliases written out.
    pub(crate) values: usize,
}

/// Longest key without a question mark before it, in characters (YAML 1.2, section 7.4.2).
pub(crate) const MAX_KEY_CHARS: usize = 1024;

pub(crate) const KEY_TOO_LONG: &str = "a key must end on its line and within 1,024 characters";

/// Text that anchors and aliases may copy, in bytes: a few times the largest file of the default limit.
const MAX_ALIAS_BYTES: usize = 1024 * 1024;

/// Why a front matter is no YAML, and where.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) at: Position,
    pub(crate) message: String,
}

/// A key that occurred before in its mapping.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) at: Position,
    pub(crate) key: String,
}

/// A reader over the front matter of `text`.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    /// The file up to the end of its front matter, so that positions are those of the file.
    bytes: &'a [u8],
    pub(crate) pos: usize,
    line: u32,
    line_start: usize,
    /// A byte of the current line whose column is known, so that columns cost one pass over each line.
    known: (usize, u32),
    ascii: bool,
    limits: Limits,
    values: usize,
    /// Values and bytes that anchors and aliases have copied.
    anchored: usize,
    alias_bytes: usize,
    pub(crate) anchors: BTreeMap<&'a str, Node<'a>>,
    pub(crate) directives: bool,
    pub(crate) duplicates: Vec<Duplicate>,
}

/// A place to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pos: usize,
    line: u32,
    line_start: usize,
}

pub(crate) const fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A line break, or the end of the front matter (where [`Reader::at`] answers 0).
pub(crate) const fn is_line_end(byte: u8) -> bool {
    matches!(byte, 0 | b'\n' | b'\r')
}

pub(crate) const fn is_space(byte: u8) -> bool {
    is_blank(byte) || is_line_end(byte)
}

pub(crate) const fn is_flow_mark(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, range: Range<usize>, line: u32, limits: Limits) -> Result<Self, Fault> {
        let bytes = text.as_bytes().get(..range.end).unwrap_or_default();
        let mut reader = Self {
            text,
            bytes,
            pos: range.start,
            line,
            line_start: range.start,
            known: (range.start, 1),
            ascii: true,
            limits,
            values: 0,
            anchored: 0,
            alias_bytes: 0,
            anchors: BTreeMap::new(),
            directives: false,
            duplicates: Vec::new(),
        };
        reader.check_characters(range.start)?;
        if reader.rest().starts_with('\u{feff}') {
            reader.pos += '\u{feff}'.len_utf8();
        }
        Ok(reader)
    }

    /// One look at every byte: no control characters, and is it ASCII?
    fn check_characters(&mut self, start: usize) -> Result<(), Fault> {
        let front = self.bytes.get(start..).unwrap_or_default();
        #[cfg(test)]
        steps::add(front.len() as u64);
        self.ascii = front.is_ascii();
        match first_forbidden(front) {
            None => Ok(()),
            Some((index, forbidden)) => {
                let mark = self.mark();
                while self.pos < start + index {
                    if !self.line_break() {
                        self.pos += 1;
                    }
                }
                let message = format!(
                    "the control character U+{:04X} is not allowed here; take it out, or write it as an escape in \
                     double quotes",
                    u32::from(forbidden)
                );
                let fault = self.fault_at(Code::ControlCharacter, start + index, message);
                self.back_to(mark);
                Err(fault)
            }
        }
    }

    /// The byte at `index`; 0 behind the end, which no front matter holds otherwise.
    pub(crate) fn at(&self, index: usize) -> u8 {
        #[cfg(test)]
        steps::add(1);
        self.bytes.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn peek(&self) -> u8 {
        self.at(self.pos)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn bytes_from(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..).unwrap_or_default()
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.slice(self.pos, self.bytes.len())
    }

    pub(crate) const fn line(&self) -> u32 {
        self.line
    }

    /// Bytes since the start of the line: the measure of indentation.
    pub(crate) const fn indent(&self) -> usize {
        self.pos - self.line_start
    }

    pub(crate) const fn mark(&self) -> Mark {
        Mark { pos: self.pos, line: self.line, line_start: self.line_start }
    }

    pub(crate) const fn back_to(&mut self, mark: Mark) {
        self.pos = mark.pos;
        self.line = mark.line;
        self.line_start = mark.line_start;
    }

    /// Steps over one line break (LF, CR LF or CR), if one is here.
    pub(crate) fn line_break(&mut self) -> bool {
        match self.peek() {
            b'\n' => self.pos += 1,
            b'\r' if self.at(self.pos + 1) == b'\n' => self.pos += 2,
            b'\r' => self.pos += 1,
            _ => return false,
        }
        self.line += 1;
        self.line_start = self.pos;
        true
    }

    /// Steps over blanks and tabs; whether a tab was among them.
    pub(crate) fn skip_blanks(&mut self) -> bool {
        let mut tab = false;
        loop {
            match self.peek() {
                b' ' => {}
                b'\t' => tab = true,
                _ => return tab,
            }
            self.pos += 1;
        }
    }

    /// Steps over the rest of the line, but not its break.
    pub(crate) fn skip_line(&mut self) {
        self.pos += self.line_rest().len();
    }

    /// The rest of the line, without its break.
    pub(crate) fn line_rest(&self) -> &'a [u8] {
        let rest = self.bytes_from(self.pos);
        let size = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        #[cfg(test)]
        steps::add(size as u64);
        rest.get(..size).unwrap_or_default()
    }

    /// Whether only a comment or nothing is left of the line.
    pub(crate) fn at_line_rest(&self) -> bool {
        let byte = self.peek();
        is_line_end(byte) || byte == b'#'
    }

    /// Steps over blanks, comments and line breaks; whether a tab stands before what follows on its line.
    pub(crate) fn skip_lines(&mut self) -> bool {
        loop {
            let tab = self.skip_blanks();
            if self.peek() == b'#' {
                self.skip_line();
            }
            if !self.line_break() {
                return tab;
            }
        }
    }

    /// Steps to the next value or key of a block, where tabs may not indent.
    pub(crate) fn next_in_block(&mut self) -> Result<(), Fault> {
        let (line, is_fresh) = (self.line, self.pos == self.line_start);
        let tab = self.skip_lines();
        if tab && (is_fresh || self.line != line) && !self.is_at_end() {
            let at = self.bytes.get(self.line_start..self.pos).unwrap_or_default();
            let tab_at = self.line_start + memchr::memchr(b'\t', at).unwrap_or_default();
            return Err(self.fault_at(
                Code::TabIndentation,
                tab_at,
                "a tab cannot indent; use blanks".to_owned(),
            ));
        }
        Ok(())
    }

    /// Whether `---` or `...` stands here at the start of a line with nothing or a blank behind it.
    pub(crate) fn at_document_mark(&self) -> bool {
        self.pos == self.line_start
            && matches!(self.peek(), b'-' | b'.')
            && (self.bytes_from(self.pos).starts_with(b"---")
                || self.bytes_from(self.pos).starts_with(b"..."))
            && is_space(self.at(self.pos + 3))
    }

    /// Whether an indicator with a blank or a line's end behind it stands here.
    pub(crate) fn at_indicator(&self, byte: u8) -> bool {
        self.peek() == byte && is_space(self.at(self.pos + 1))
    }

    /// The place of `pos`, which must not lie before the start of the current line.
    pub(crate) fn place(&mut self, pos: usize) -> Position {
        let column = if self.ascii {
            pos.saturating_sub(self.line_start) as u32 + 1
        } else {
            let (from, column) = if self.known.0 >= self.line_start && self.known.0 <= pos {
                self.known
            } else {
                (self.line_start, 1)
            };
            let between = self.bytes.get(from..pos).unwrap_or_default();
            let column = column + between.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u32;
            self.known = (pos, column);
            column
        };
        Position::new(pos as u32, self.line, column)
    }

    pub(crate) fn here(&mut self) -> Position {
        self.place(self.pos)
    }

    /// Makes a node that ends here.
    pub(crate) fn node(&self, content: Content<'a>, start: Position) -> Node<'a> {
        Node::new(content, start, self.pos as u32)
    }

    /// Counts a value and judges how deep it lies.
    pub(crate) fn count(&mut self, depth: usize) -> Result<(), Fault> {
        self.values += 1;
        if depth > self.limits.depth {
            let message = format!("nested deeper than {} levels", self.limits.depth);
            return Err(self.fault(Code::TooDeep, message));
        }
        if self.values > self.limits.values {
            let message = format!("more than {} values", self.limits.values);
            return Err(self.fault(Code::TooManyValues, message));
        }
        Ok(())
    }

    /// Takes back the count of a value that turned out to be a key.
    pub(crate) const fn uncount_key(&mut self) {
        self.values = self.values.saturating_sub(1);
    }

    /// Counts what an alias writes out.
    pub(crate) fn count_alias(&mut self, node: &Node<'_>, depth: usize) -> Result<(), Fault> {
        let (values, bytes) = node.weight();
        self.values = self.values.saturating_add(values - 1);
        self.charge_bytes(bytes)?;
        self.count(depth)
    }

    /// Counts the copy that an anchor keeps, so that anchors within anchors cannot fill the memory.
    pub(crate) fn count_anchor(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        let (values, bytes) = node.weight();
        self.anchored = self.anchored.saturating_add(values);
        if self.anchored > self.limits.values {
            return Err(self.fault(Code::AliasLimit, "anchors hold too much; write the values themselves"));
        }
        self.charge_bytes(bytes)
    }

    fn charge_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > MAX_ALIAS_BYTES {
            let message = format!(
                "anchors and aliases copy more than {MAX_ALIAS_BYTES} bytes; write the values themselves"
            );
            return Err(self.fault(Code::AliasLimit, message));
        }
        Ok(())
    }

    pub(crate) fn fault(&mut self, code: Code, message: impl Into<String>) -> Fault {
        self.fault_at(code, self.pos, message.into())
    }

    /// A fault at `pos`, which must not lie before the start of the current line.
    pub(crate) fn fault_at(&mut self, code: Code, pos: usize, message: impl Into<String>) -> Fault {
        Fault { code, at: self.place(pos), message: message.into() }
    }

    pub(crate) fn not_a_mapping(&self, at: Position) -> Fault {
        Fault {
            code: Code::RootNotMapping,
            at,
            message: "the front matter must be a mapping of keys to values".to_owned(),
        }
    }

    pub(crate) fn into_duplicates(mut self) -> Vec<Duplicate> {
        self.duplicates.sort_by_key(|duplicate| duplicate.at.offset);
        self.duplicates
    }
}

/// Counts looks at bytes, so that a test can tell how time grows without a clock.
#[cfg(test)]
pub(crate) mod steps {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn add(steps: u64) {
        STEPS.set(STEPS.get() + steps);
    }

    /// The steps since the last call, on this thread.
    pub(crate) fn take() -> u64 {
        STEPS.replace(0)
    }
}
