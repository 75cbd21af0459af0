//! Twice the file, twice the steps: counted, not timed.

use crate::document::{Document, ParseOptions};
use crate::yaml::cursor::steps;

#[path = "../tests/it/adversaries.rs"]
mod adversaries;

/// Bytes of the smaller of two files that are compared.
const SIZE: usize = 20_000;

fn count(front: &str) -> u64 {
    let file = format!("---\n{front}---\n");
    steps::take();
    let _ = Document::parse(file.as_bytes(), &ParseOptions::new());
    steps::take()
}

#[test]
fn steps_grow_no_faster_than_the_file() {
    for (name, make) in adversaries::ADVERSARIES {
        let (once, twice) = (count(&make(SIZE)), count(&make(2 * SIZE)));
        assert!(once > 0, "{name}: nothing was counted");
        assert!(
            twice * 10 <= once * 23 + 10_000,
            "{name}: {once} steps for a file, {twice} for one twice as large"
        );
        assert!(twice <= 64 * 2 * SIZE as u64, "{name}: {twice} steps for {} bytes", 2 * SIZE);
    }
}
