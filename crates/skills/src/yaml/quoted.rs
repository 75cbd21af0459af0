//! Single- and double-quoted scalars.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::yaml::cursor::{Fault, Reader, is_blank, is_line_end};
use crate::yaml::plain::fold;

impl<'a> Reader<'a> {
    /// Reads a quoted scalar; the reader stands on its opening quote.
    pub(crate) fn quoted(&mut self) -> Result<Cow<'a, str>, Fault> {
        let quote = self.peek();
        let opening = self.here();
        self.pos += 1;
        if let Some(text) = self.simple_quoted(quote) {
            return Ok(Cow::Borrowed(text));
        }
        let mut text = String::new();
        loop {
            self.literal_run(quote, &mut text);
            let byte = self.peek();
            if byte == quote {
                if quote == b'\'' && self.at(self.pos + 1) == quote {
                    text.push('\'');
                    self.pos += 2;
                    continue;
                }
                self.pos += 1;
                return Ok(Cow::Owned(text));
            }
            match byte {
                b'\\' => self.escape(&mut text)?,
                b' ' | b'\t' | b'\n' | b'\r' => self.quoted_space(&mut text)?,
                _ => {
                    let message = "a quoted value never ends; close it with the same quote".to_owned();
                    return Err(Fault { code: Code::UnclosedQuote, at: opening, message });
                }
            }
        }
    }

    /// The text up to the closing quote, where it stands on this line and nothing is escaped.
    fn simple_quoted(&mut self, quote: u8) -> Option<&'a str> {
        let rest = self.bytes_from(self.pos);
        let other = if quote == b'"' { b'\\' } else { b'\n' };
        let size = memchr::memchr3(quote, other, b'\n', rest)?;
        #[cfg(test)]
        crate::yaml::cursor::steps::add(size as u64);
        if memchr::memchr(b'\r', rest.get(..size)?).is_some() {
            return None;
        }
        let end = self.pos + size;
        if self.at(end) != quote || (quote == b'\'' && self.at(end + 1) == quote) {
            return None;
        }
        let text = self.slice(self.pos, end);
        self.pos = end + 1;
        Some(text)
    }

    /// Copies what stands for itself.
    fn literal_run(&mut self, quote: u8, text: &mut String) {
        let rest = self.bytes_from(self.pos);
        // What comes first but the quote is looked for first: where that is far, the text ends with this run, and what
        // was looked at is looked at once more at most.
        let size = if quote == b'"' {
            memchr::memchr3(b'\\', b'\n', b'\r', rest)
        } else {
            memchr::memchr3(quote, b'\n', b'\r', rest)
        };
        let run = rest.get(..size.unwrap_or(rest.len())).unwrap_or_default();
        #[cfg(test)]
        crate::yaml::cursor::steps::add(run.len() as u64);
        let run = run.get(..memchr::memchr(quote, run).unwrap_or(run.len())).unwrap_or_default();
        // Blanks at the end of a line belong to its break.
        let at_end = rest.get(run.len()).is_none_or(|byte| is_line_end(*byte));
        let blanks = if at_end { run.iter().rev().take_while(|byte| is_blank(**byte)).count() } else { 0 };
        let start = self.pos;
        self.pos += run.len() - blanks;
        text.push_str(self.slice(start, self.pos));
    }

    /// Blanks inside quotes: kept on a line, folded around line breaks.
    fn quoted_space(&mut self, text: &mut String) -> Result<(), Fault> {
        let start = self.pos;
        self.skip_blanks();
        if !is_line_end(self.peek()) {
            text.push_str(self.slice(start, self.pos));
            return Ok(());
        }
        let breaks = self.quoted_breaks()?;
        if breaks > 0 {
            fold(text, breaks);
        }
        Ok(())
    }

    /// Steps over line breaks and the blanks around them; how many breaks there were.
    fn quoted_breaks(&mut self) -> Result<u32, Fault> {
        let mut breaks = 0;
        while self.line_break() {
            breaks += 1;
            if self.at_document_mark() {
                return Err(self.fault(Code::UnclosedQuote, "a document mark cannot stand inside quotes"));
            }
            self.skip_blanks();
        }
        Ok(breaks)
    }

    /// Reads one backslash sequence (YAML 1.2, section 5.7).
    fn escape(&mut self, text: &mut String) -> Result<(), Fault> {
        let c = match self.at(self.pos + 1) {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0b',
            b'f' => '\x0c',
            b'r' => '\r',
            b'e' => '\x1b',
            b' ' => ' ',
            b'"' => '"',
            b'/' => '/',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.hex_escape(2, text),
            b'u' => return self.hex_escape(4, text),
            b'U' => return self.hex_escape(8, text),
            b'\n' | b'\r' => {
                self.pos += 1;
                let breaks = self.quoted_breaks()?;
                text.extend((1..breaks).map(|_| '\n'));
                return Ok(());
            }
            _ => return Err(self.fault(Code::BadEscape, BAD_ESCAPE)),
        };
        text.push(c);
        self.pos += 2;
        Ok(())
    }

    fn hex_escape(&mut self, digits: usize, text: &mut String) -> Result<(), Fault> {
        let start = self.pos;
        let Some(first) = self.hex(digits) else {
            return Err(self.fault(Code::BadEscape, BAD_ESCAPE));
        };
        self.pos += 2 + digits;
        let code = match first {
            0xD800..=0xDBFF => match self.low_surrogate() {
                Some(low) => 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00),
                None => first,
            },
            _ => first,
        };
        let Some(c) = char::from_u32(code) else {
            return Err(self.fault_at(Code::BadEscape, start, "an escape that names no character"));
        };
        text.push(c);
        Ok(())
    }

    /// The number of the escape here.
    fn hex(&self, digits: usize) -> Option<u32> {
        let from = self.pos + 2;
        let text = self.bytes_from(from).get(..digits)?;
        text.iter().try_fold(0u32, |sum, byte| Some((sum << 4) | char::from(*byte).to_digit(16)?))
    }

    /// The second half of a surrogate pair, as JSON writes characters beyond U+FFFF.
    fn low_surrogate(&mut self) -> Option<u32> {
        if self.peek() != b'\\' {
            return None;
        }
        let digits = match self.at(self.pos + 1) {
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let low = self.hex(digits).filter(|low| (0xDC00..=0xDFFF).contains(low))?;
        self.pos += 2 + digits;
        Some(low)
    }
}

const BAD_ESCAPE: &str = "no such escape; double the backslash, or use single quotes";
