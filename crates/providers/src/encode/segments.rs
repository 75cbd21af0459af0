//! A long byte string that only grows at its end, in few pieces and without being copied for each addition.

use std::ops::Range;

use bytes::Bytes;

/// Pieces in order. A new piece is merged with the one before it while that is less than twice as long, so there are
/// never more than a logarithm of them, and each byte is copied a logarithm of times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    pieces: Vec<Bytes>,
    length: usize,
}

impl Segments {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let mut first = self.pieces.len();
        let mut merged = bytes.len();
        while let Some(before) = first.checked_sub(1).and_then(|at| self.pieces.get(at))
            && before.len() < 2 * merged
        {
            merged += before.len();
            first -= 1;
        }
        let mut joined = Vec::with_capacity(merged);
        for piece in self.pieces.drain(first..) {
            joined.extend_from_slice(&piece);
        }
        joined.extend_from_slice(bytes);
        self.pieces.push(joined.into());
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        let mut left = length;
        for piece in &mut self.pieces {
            piece.truncate(left);
            left -= piece.len();
        }
        self.pieces.retain(|piece| !piece.is_empty());
        self.length = self.length.min(length);
    }

    /// Appends the pieces that make up a range. Copies no bytes.
    pub(crate) fn copy_range(&self, range: Range<usize>, out: &mut Vec<Bytes>) {
        let mut start = 0;
        for piece in &self.pieces {
            let end = start + piece.len();
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                out.push(piece.slice(from - start..to - start));
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_few_and_in_order() {
        let mut segments = Segments::default();
        let mut whole = Vec::new();
        for n in 0..2000_usize {
            let piece = format!("[{n}]").into_bytes();
            whole.extend_from_slice(&piece);
            segments.push(&piece);
            assert!(segments.pieces.len() <= 16, "{} pieces", segments.pieces.len());
        }
        for range in [0..whole.len(), 5..5, 17..4000, whole.len() - 3..whole.len()] {
            let mut chunks = Vec::new();
            segments.copy_range(range.clone(), &mut chunks);
            assert_eq!(chunks.concat(), whole[range]);
        }
        segments.truncate(1234);
        let mut chunks = Vec::new();
        segments.copy_range(0..segments.len(), &mut chunks);
        assert_eq!(chunks.concat(), whole[..1234]);
    }
}
