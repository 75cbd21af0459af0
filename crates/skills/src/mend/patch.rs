//! Edits of a text, and the way back through them.

use std::borrow::Cow;

use crate::diagnostic::Edit;

/// The text with `edits` made, which are in order and do not touch each other.
pub(crate) fn patch<'a>(text: &'a str, edits: &[Edit]) -> Cow<'a, str> {
    if edits.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(out)
}

/// The way from an edited text back to the text before, by binary search.
#[derive(Debug)]
pub(crate) struct WayBack {
    /// For each edit: where its text begins in the edited text, how long it is, and the bytes it replaced.
    steps: Vec<(usize, usize, usize, usize)>,
}

impl WayBack {
    pub(crate) fn new(edits: &[Edit]) -> Self {
        let (mut grown, mut shrunk) = (0, 0);
        let steps = edits.iter().map(|edit| {
            let start = edit.start + grown - shrunk;
            grown += edit.text.len();
            shrunk += edit.end - edit.start;
            (start, edit.text.len(), edit.start, edit.end)
        });
        Self { steps: steps.collect() }
    }

    /// Where the byte `offset` of the edited text was; inside new text, where that text begins.
    pub(crate) fn before(&self, offset: usize) -> usize {
        let passed = self.steps.partition_point(|step| step.0 <= offset);
        match passed.checked_sub(1).and_then(|last| self.steps.get(last)) {
            None => offset,
            Some((start, size, old_start, _)) if offset < start + size => *old_start,
            Some((start, size, _, old_end)) => offset - (start + size) + old_end,
        }
    }
}

/// One edit that does what `fixed` differs by: the bytes between the common start and the common end.
pub(crate) fn difference(text: &str, fixed: &str) -> Edit {
    let (old, new) = (text.as_bytes(), fixed.as_bytes());
    let mut head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    while !text.is_char_boundary(head) || !fixed.is_char_boundary(head) {
        head -= 1;
    }
    let longest = old.len().min(new.len()) - head;
    let mut tail = old.iter().rev().zip(new.iter().rev()).take(longest).take_while(|(a, b)| a == b).count();
    while !text.is_char_boundary(old.len() - tail) || !fixed.is_char_boundary(new.len() - tail) {
        tail -= 1;
    }
    Edit::new(head, old.len() - tail, fixed.get(head..new.len() - tail).unwrap_or_default())
}
