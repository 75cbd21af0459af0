//! Plain scalars: text without quotes, over one line or several.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::yaml::cursor::{Fault, Reader, is_blank, is_flow_mark, is_line_end, is_space};

/// Where plain text stands: what may end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// In a block; lines that continue the text are indented by at least this many blanks.
    Block(usize),
    /// Between brackets, where commas and brackets end the text and lines may continue in any column.
    Flow,
}

impl Surroundings {
    const fn is_flow(self) -> bool {
        matches!(self, Self::Flow)
    }
}

impl<'a> Reader<'a> {
    /// Reads plain text. It ends before a colon that makes it a key (on its first line), a comment, or a line that
    /// does not belong to it.
    pub(crate) fn plain(&mut self, within: Surroundings) -> Result<Cow<'a, str>, Fault> {
        let start = self.pos;
        self.plain_line(within.is_flow());
        let first = self.slice(start, self.pos);
        if !self.continues(within)? {
            return Ok(Cow::Borrowed(first));
        }
        let mut text = first.to_owned();
        loop {
            let before = self.line();
            self.skip_to_text();
            fold(&mut text, self.line() - before);
            let from = self.pos;
            self.plain_line(within.is_flow());
            text.push_str(self.slice(from, self.pos));
            if self.at_key_colon(within) && !within.is_flow() {
                return Err(self.fault(Code::UnquotedColon, UNQUOTED_COLON));
            }
            if !self.continues(within)? {
                return Ok(Cow::Owned(text));
            }
        }
    }

    /// Steps to the end of the text on this line; blanks behind it are left.
    fn plain_line(&mut self, flow: bool) {
        if flow {
            return self.plain_flow_line();
        }
        let line = self.line_rest();
        let colon =
            memchr::memchr_iter(b':', line).find(|at| line.get(at + 1).is_none_or(|next| is_blank(*next)));
        let line = line.get(..colon.unwrap_or(line.len())).unwrap_or_default();
        let is_comment =
            |at: &usize| at.checked_sub(1).is_some_and(|at| line.get(at).is_some_and(|b| is_blank(*b)));
        let comment = memchr::memchr_iter(b'#', line).find(is_comment);
        let line = line.get(..comment.unwrap_or(line.len())).unwrap_or_default();
        self.pos += line.len() - line.iter().rev().take_while(|byte| is_blank(**byte)).count();
    }

    /// The same between brackets, where words are short and many bytes end them.
    fn plain_flow_line(&mut self) {
        let mut end = self.pos;
        let mut index = self.pos;
        loop {
            let byte = self.at(index);
            index += 1;
            match byte {
                0 | b'\n' | b'\r' | b',' | b'[' | b']' | b'{' | b'}' => break,
                b' ' | b'\t' => {
                    if self.at(index) == b'#' {
                        break;
                    }
                    continue;
                }
                b':' if is_space(self.at(index)) || is_flow_mark(self.at(index)) => break,
                _ => {}
            }
            end = index;
        }
        self.pos = end;
    }

    /// Reads a key without quotes: the plain text of this line.
    pub(crate) fn plain_key(&mut self) -> &'a str {
        let start = self.pos;
        self.plain_line(false);
        self.slice(start, self.pos)
    }

    /// Whether a colon that ends a key stands here, blanks before it aside.
    pub(crate) fn at_key_colon(&self, within: Surroundings) -> bool {
        let mut index = self.pos;
        while is_blank(self.at(index)) {
            index += 1;
        }
        let next = self.at(index + 1);
        self.at(index) == b':' && (is_space(next) || (within.is_flow() && is_flow_mark(next)))
    }

    /// Whether the text goes on in a later line. Looks only, and at blank lines only.
    fn continues(&mut self, within: Surroundings) -> Result<bool, Fault> {
        let mark = self.mark();
        self.skip_blanks();
        if !is_line_end(self.peek()) || self.is_at_end() {
            self.back_to(mark);
            return Ok(false);
        }
        let tab = self.skip_to_text();
        let goes_on =
            !self.is_at_end() && self.peek() != b'#' && !self.at_document_mark() && self.fits(within, tab);
        if goes_on && !within.is_flow() && self.at_indicator(b':') {
            return Err(self.fault(Code::UnquotedColon, UNQUOTED_COLON));
        }
        self.back_to(mark);
        Ok(goes_on)
    }

    /// Whether the text of this line may continue plain text.
    fn fits(&self, within: Surroundings, tab: bool) -> bool {
        match within {
            Surroundings::Flow => !is_flow_mark(self.peek()) && !self.at_key_colon(within),
            Surroundings::Block(indent) if tab => self.blanks_before() >= indent,
            Surroundings::Block(indent) => self.indent() >= indent,
        }
    }

    /// The blanks that begin the current line; a tab ends them.
    fn blanks_before(&self) -> usize {
        let line = self.bytes_from(self.pos - self.indent());
        line.iter().take_while(|byte| **byte == b' ').count()
    }

    /// Steps over blanks and line breaks, not over comments; whether a tab stands before the text on its line.
    pub(crate) fn skip_to_text(&mut self) -> bool {
        loop {
            let tab = self.skip_blanks();
            if !self.line_break() {
                return tab;
            }
        }
    }
}

/// Joins lines: one break is a blank, more are one line feed fewer (YAML 1.2, section 6.5).
pub(crate) fn fold(text: &mut String, breaks: u32) {
    if breaks == 1 {
        text.push(' ');
    } else {
        text.extend((1..breaks).map(|_| '\n'));
    }
}

pub(crate) const UNQUOTED_COLON: &str =
    "a colon and a blank cannot stand in a value without quotes; put the value in quotes";
