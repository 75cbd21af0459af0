//! The requests that wait for an answer: their ids, their deadlines, and the tombstones of those given up.
//!
//! This is the one place where ids are given and looked up.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::message::RequestId;

/// How many ids of requests given up are remembered, so that their late answers are dropped quietly.
const TOMBSTONES: usize = 256;

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// The time without an answer after which the request is given up; `None` for never.
    pub timeout: Option<Duration>,
    /// The time after which it is given up whatever progress it reports; `None` for the same as `timeout`.
    ///
    /// A request with a limit asks the server for progress, and each report starts `timeout` anew.
    pub limit: Option<Duration>,
}

impl Timing {
    /// A request that is given up after that time, whatever progress it makes.
    pub const fn fixed(timeout: Duration) -> Self {
        Self { timeout: Some(timeout), limit: None }
    }

    /// A request that is given up when it has made no progress for `timeout`, and in any case after `limit`.
    pub const fn with_progress(timeout: Duration, limit: Duration) -> Self {
        Self { timeout: Some(timeout), limit: Some(limit) }
    }

    /// A request that waits until it is answered, cancelled or the connection ends.
    pub const fn unlimited() -> Self {
        Self { timeout: None, limit: None }
    }

    /// Which of the two times has run out for a request that has taken so long: the limit if it is reached, else the
    /// time without progress.
    fn run_out(self, taken: Duration) -> Duration {
        match (self.timeout, self.limit) {
            (_, Some(limit)) if limit <= taken => limit,
            (Some(timeout), _) => timeout,
            (None, _) => taken,
        }
    }
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) tag: T,
    pub(crate) method: Cow<'static, str>,
    /// Whether the server has acknowledged it; of interest to subscriptions only.
    pub(crate) acknowledged: bool,
    started: Instant,
    timing: Timing,
    deadline: Option<Instant>,
    last_progress: Option<f64>,
}

/// What became of a progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reported {
    /// It is news.
    News,
    /// It is not higher than the last one, or no number.
    NotRising,
    /// Nobody waits for it.
    Stray,
}

/// The table of waiting requests.
#[derive(Debug)]
pub(crate) struct PendingTable<T> {
    entries: BTreeMap<u64, Entry<T>>,
    last_id: u64,
    /// No deadline is earlier than this. It may be earlier than all of them, which costs one look at the table.
    earliest: Option<Instant>,
    tombstones: VecDeque<u64>,
}

impl<T> PendingTable<T> {
    pub(crate) fn new() -> Self {
        Self { entries: BTreeMap::new(), last_id: 0, earliest: None, tombstones: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An id that was never given before.
    pub(crate) fn next_id(&mut self) -> RequestId {
        self.last_id += 1;
        RequestId(self.last_id)
    }

    pub(crate) fn insert(
        &mut self,
        now: Instant,
        id: RequestId,
        method: Cow<'static, str>,
        timing: Timing,
        tag: T,
    ) {
        let after = |time: Option<Duration>| time.and_then(|time| now.checked_add(time));
        let deadline = earlier(after(timing.timeout), after(timing.limit));
        let entry =
            Entry { tag, method, acknowledged: false, started: now, timing, deadline, last_progress: None };
        self.earliest = earlier(self.earliest, deadline);
        self.entries.insert(id.0, entry);
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Entry<T>> {
        self.entries.get_mut(&id.0)
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Entry<T>> {
        self.entries.get(&id.0)
    }

    /// Takes out a request that was answered.
    pub(crate) fn settle(&mut self, id: u64) -> Option<Entry<T>> {
        self.entries.remove(&id)
    }

    /// Takes out a request that is given up, and remembers its id.
    pub(crate) fn give_up(&mut self, id: RequestId) -> Option<Entry<T>> {
        let entry = self.entries.remove(&id.0)?;
        if self.tombstones.len() == TOMBSTONES {
            self.tombstones.pop_front();
        }
        self.tombstones.push_back(id.0);
        Some(entry)
    }

    /// Whether an id is that of a request given up not long ago; forgets it, since one answer is due at most.
    pub(crate) fn take_tombstone(&mut self, id: u64) -> bool {
        let found = self.tombstones.iter().position(|tombstone| *tombstone == id);
        found.is_some_and(|place| self.tombstones.remove(place).is_some())
    }

    /// Notes a progress report; each starts the timeout anew, up to the limit.
    pub(crate) fn progress(&mut self, now: Instant, id: u64, progress: Option<f64>) -> Reported {
        let Some(entry) = self.entries.get_mut(&id) else { return Reported::Stray };
        let (Some(limit), Some(timeout)) = (entry.timing.limit, entry.timing.timeout) else {
            return Reported::Stray;
        };
        let rises = match (progress, entry.last_progress) {
            (Some(new), Some(last)) => new > last,
            (Some(new), None) => !new.is_nan(),
            (None, _) => false,
        };
        if !rises {
            return Reported::NotRising;
        }
        entry.last_progress = progress;
        let last = entry.started.checked_add(limit);
        entry.deadline = earlier(now.checked_add(timeout), last);
        Reported::News
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.earliest
    }

    /// The ids of all requests whose time is up, and which time that is, as it was set.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<(RequestId, Duration)> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        let mut earliest = None;
        for (id, entry) in &self.entries {
            match entry.deadline {
                Some(deadline) if deadline <= now => {
                    expired.push((
                        RequestId(*id),
                        entry.timing.run_out(now.saturating_duration_since(entry.started)),
                    ));
                }
                deadline => earliest = earlier(earliest, deadline),
            }
        }
        self.earliest = earliest;
        expired
    }

    /// Takes out all requests.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry<T>> + use<T> {
        self.earliest = None;
        std::mem::take(&mut self.entries).into_values()
    }
}

/// The earlier of two points in time that may not be set.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn table_with(now: Instant, timing: Timing) -> (PendingTable<()>, RequestId) {
        let mut table = PendingTable::new();
        let id = table.next_id();
        table.insert(now, id, "tools/call".into(), timing, ());
        (table, id)
    }

    #[test]
    fn progress_starts_the_timeout_anew_up_to_the_limit() {
        let start = Instant::now();
        let (mut table, id) = table_with(start, Timing::with_progress(10 * SECOND, 25 * SECOND));
        let mut now = start;
        for step in 1..=3 {
            now += 8 * SECOND;
            assert!(table.expired(now).is_empty(), "step {step}");
            assert_eq!(table.progress(now, id.0, Some(f64::from(step))), Reported::News);
        }
        assert!(table.expired(start + 24 * SECOND).is_empty());
        assert_eq!(table.expired(start + 25 * SECOND), [(id, 25 * SECOND)]);
    }

    #[test]
    fn progress_that_does_not_rise_is_no_progress() {
        let start = Instant::now();
        let (mut table, id) = table_with(start, Timing::with_progress(10 * SECOND, 60 * SECOND));
        assert_eq!(table.progress(start, id.0, Some(5.0)), Reported::News);
        for odd in [Some(5.0), Some(2.0), Some(f64::NAN), None] {
            assert_eq!(table.progress(start + 9 * SECOND, id.0, odd), Reported::NotRising);
        }
        assert_eq!(table.progress(start, 99, Some(1.0)), Reported::Stray);
        assert_eq!(table.expired(start + 10 * SECOND).len(), 1);
    }

    #[test]
    fn progress_that_was_not_asked_for_changes_nothing() {
        let start = Instant::now();
        let (mut table, id) = table_with(start, Timing::fixed(10 * SECOND));
        assert_eq!(table.progress(start + 9 * SECOND, id.0, Some(1.0)), Reported::Stray);
        assert_eq!(table.expired(start + 10 * SECOND).len(), 1);
    }

    #[test]
    fn tombstones_are_bounded_and_used_once() {
        let now = Instant::now();
        let mut table = PendingTable::new();
        for _ in 0..TOMBSTONES + 10 {
            let id = table.next_id();
            table.insert(now, id, "ping".into(), Timing::fixed(SECOND), ());
            assert!(table.give_up(id).is_some());
        }
        assert_eq!(table.tombstones.len(), TOMBSTONES);
        assert!(!table.take_tombstone(1), "the oldest are forgotten");
        assert!(table.take_tombstone(200));
        assert!(!table.take_tombstone(200), "a second late answer is a stray");
    }
}
