//! Literal `|` and folded `>` scalars.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::yaml::cursor::{Fault, Reader, is_blank, is_line_end};

/// What happens to the line breaks at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Clip,
    Strip,
    Keep,
}

struct Header {
    folded: bool,
    chomp: Chomp,
    /// Indentation beyond the parent's, where the header gives it.
    indent: Option<usize>,
}

impl<'a> Reader<'a> {
    /// Reads a block scalar; the reader stands on its indicator. `parent` is the indentation that the text must pass.
    pub(crate) fn block_scalar(&mut self, parent: usize) -> Result<Cow<'a, str>, Fault> {
        let header = self.block_header()?;
        let mut breaks = 0;
        let indent = match header.indent {
            Some(more) => {
                let indent = parent + more - 1;
                self.blank_lines(indent, &mut breaks);
                indent
            }
            None => self.detect_indent(&mut breaks).max(parent),
        };
        Ok(Cow::Owned(self.block_lines(&header, indent, breaks)))
    }

    fn block_header(&mut self) -> Result<Header, Fault> {
        let mut header = Header { folded: self.peek() == b'>', chomp: Chomp::Clip, indent: None };
        self.pos += 1;
        let mut chomped = false;
        loop {
            match self.peek() {
                byte @ (b'-' | b'+') if !chomped => {
                    chomped = true;
                    header.chomp = if byte == b'-' { Chomp::Strip } else { Chomp::Keep };
                }
                byte @ b'1'..=b'9' if header.indent.is_none() => {
                    header.indent = Some(usize::from(byte - b'0'));
                }
                byte if is_blank(byte) || is_line_end(byte) => break,
                _ => return Err(self.fault(Code::BadBlockHeader, BAD_HEADER)),
            }
            self.pos += 1;
        }
        self.skip_blanks();
        if !self.at_line_rest() {
            return Err(self.fault(Code::BadBlockHeader, BAD_HEADER));
        }
        self.skip_line();
        self.line_break();
        Ok(header)
    }

    /// Steps over leading blank lines to the first text; the deepest indentation met.
    fn detect_indent(&mut self, breaks: &mut usize) -> usize {
        let mut deepest = 0;
        loop {
            while self.peek() == b' ' {
                self.pos += 1;
            }
            deepest = deepest.max(self.indent());
            if !self.line_break() {
                return deepest;
            }
            *breaks += 1;
        }
    }

    /// Steps over lines that hold at most `indent` blanks, and over the indentation of the line after them.
    fn blank_lines(&mut self, indent: usize, breaks: &mut usize) {
        loop {
            while self.indent() < indent && self.peek() == b' ' {
                self.pos += 1;
            }
            if !self.line_break() {
                return;
            }
            *breaks += 1;
        }
    }

    /// Reads the lines of the text; the reader stands behind the indentation of the first of them.
    fn block_lines(&mut self, header: &Header, indent: usize, mut breaks: usize) -> String {
        let mut text = String::new();
        let mut ended_line = false;
        while self.indent() == indent && !self.is_at_end() {
            text.extend((0..breaks).map(|_| '\n'));
            breaks = 0;
            let flush = !is_blank(self.peek());
            let start = self.pos;
            self.skip_line();
            text.push_str(self.slice(start, self.pos));
            ended_line = self.line_break();
            self.blank_lines(indent, &mut breaks);
            if self.indent() != indent || self.is_at_end() {
                break;
            }
            if header.folded && flush && !is_blank(self.peek()) {
                if breaks == 0 {
                    text.push(' ');
                }
            } else {
                text.push('\n');
            }
        }
        if ended_line && header.chomp != Chomp::Strip {
            text.push('\n');
        }
        if header.chomp == Chomp::Keep {
            text.extend((0..breaks).map(|_| '\n'));
        }
        text
    }
}

const BAD_HEADER: &str = "behind | or > only a digit from 1 to 9, - or +, and a comment may stand; put the text on \
                          the next line, or the value in quotes";
