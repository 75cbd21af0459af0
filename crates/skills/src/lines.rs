//! Line and column of a byte of a file.

use crate::node::Position;

/// Bytes between two places whose count of characters is remembered.
const STRIDE: usize = 256;

/// Where each line of a text begins, so that each of many positions can be had for little, however long a line is.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    starts: Vec<usize>,
    /// Characters before each multiple of [`STRIDE`].
    characters: Vec<usize>,
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
        let mut characters = vec![0];
        let mut sum = 0;
        for chunk in bytes.chunks(STRIDE) {
            sum += count(chunk);
            characters.push(sum);
        }
        Self { bytes, starts, characters }
    }

    /// The position of the byte `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let column = self.before(offset).saturating_sub(self.before(start)) + 1;
        Position::new(offset as u32, line as u32, column as u32)
    }

    /// Characters before the byte `offset`.
    fn before(&self, offset: usize) -> usize {
        let stride = offset / STRIDE;
        let known = self.characters.get(stride).copied().unwrap_or_default();
        known + count(self.bytes.get(stride * STRIDE..offset).unwrap_or_default())
    }
}

/// Characters that begin in `bytes`.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}
