//! What happened, as numbered lines that pages read at their own pace.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

/// Lines that are kept. A page that was away for longer is told that it missed some.
pub const MAX_LINES: usize = 20_000;

/// Numbered lines. There is no queue for each reader: a reader asks for the line after its last one, so that a slow one
/// costs nothing, and one that comes back (a page that was reloaded) goes on wherever it likes.
pub struct Log {
    lines: Mutex<Lines>,
    /// The number of the next line, for readers that wait for it.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<String>,
    /// The number of the first line that is kept.
    first: u64,
}

impl Log {
    /// An empty one.
    pub fn new() -> Self {
        Self { lines: Mutex::default(), next: watch::Sender::new(0) }
    }

    /// Adds a line.
    pub fn add(&self, line: &Value) {
        let next = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.kept.push_back(line.to_string());
            if lines.kept.len() > MAX_LINES {
                lines.kept.pop_front();
                lines.first += 1;
            }
            lines.first + lines.kept.len() as u64
        };
        self.next.send_replace(next);
    }

    /// The line of this number or the first one after it that is kept, with its number. Waits until there is one.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn read(&self, number: u64) -> (u64, String) {
        let mut next = self.next.subscribe();
        loop {
            // Looked at before the lines are: a line that comes in between wakes the wait below.
            next.borrow_and_update();
            if let Some(found) = self.look(number) {
                return found;
            }
            if next.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn look(&self, number: u64) -> Option<(u64, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number.max(lines.first);
        let place = usize::try_from(number - lines.first).ok()?;
        lines.kept.get(place).map(|line| (number, line.clone()))
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn readers_go_on_where_they_were_and_wait_at_the_end() {
        let log = Log::new();
        assert!(log.read(0).now_or_never().is_none());
        log.add(&json!("a"));
        log.add(&json!("b"));
        assert_eq!(log.read(0).now_or_never(), Some((0, "\"a\"".to_owned())));
        assert_eq!(log.read(1).now_or_never(), Some((1, "\"b\"".to_owned())));
        assert!(log.read(2).now_or_never().is_none());
    }

    #[test]
    fn the_oldest_lines_go_and_a_reader_is_given_the_first_that_is_left() {
        let log = Log::new();
        for number in 0..MAX_LINES + 5 {
            log.add(&json!(number));
        }
        assert_eq!(log.read(0).now_or_never(), Some((5, "5".to_owned())));
    }
}
