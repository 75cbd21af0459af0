//! The last part of what a server writes to standard error: drained always, kept bounded, quoted in errors.

use std::collections::VecDeque;

/// The end of a stream of bytes.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
    cut: bool,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, cut: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fitting = bytes.get(bytes.len().saturating_sub(self.limit)..).unwrap_or(bytes);
        let over = (self.bytes.len() + fitting.len()).saturating_sub(self.limit);
        self.cut |= over > 0 || fitting.len() < bytes.len();
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(fitting);
    }

    /// The text; from the first whole line on, if the beginning was cut off.
    pub(crate) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some((_, rest)) if self.cut && !rest.is_empty() => rest.to_owned(),
            _ => text.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_from_a_whole_line_on() {
        let mut tail = Tail::new(10);
        tail.push(b"one\n");
        assert_eq!(tail.text(), "one\n");
        tail.push(b"two\nthree\n");
        assert_eq!(tail.text(), "three\n");
        tail.push(&[b'x'; 100]);
        assert_eq!((tail.text().len(), tail.bytes.len()), (10, 10));
    }
}
