//! Line and column of a byte of a file.

use crate::node::Position;

/// Where each line of a text begins, so that many positions can be had for little.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }];
        for index in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let is_half = bytes.get(index) == Some(&b'\r') && bytes.get(index + 1) == Some(&b'\n');
            if !is_half {
                starts.push(index + 1);
            }
        }
        Self { text, starts }
    }

    /// The position of the byte `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        let column = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() + 1;
        Position::new(offset as u32, line as u32, column as u32)
    }
}
