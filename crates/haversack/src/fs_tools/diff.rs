//! Diffs for the person who approves an edit.

use std::time::Duration;

use similar::TextDiff;

/// How long a diff may be worked on; after that it is a coarser one. It is made on the thread that drives the run.
const DIFF_TIME: Duration = Duration::from_millis(100);

/// The unified diff of a file, with three lines around each change.
pub(super) fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let before = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old.unwrap_or_default(), new);
    diff.unified_diff().header(&before, &format!("b/{path}")).to_string()
}
