//! Watching the roots, with the `watch` feature: many changes at once become one rescan.
//!
//! A [`Watcher`] looks at the folders a scan lists and at each skill's own folder, not at what is below: a build inside
//! a skill costs no descriptor and no event. It holds no queue; a change only moves a deadline. Whoever owns the registry
//! waits, rescans, and lets the watcher follow:
//!
//! ```
//! use std::time::Duration;
//! use haversack_skills::watch::{WatchOptions, Watcher};
//! use haversack_skills::{Limits, Registry, Rescan, Root, Roots};
//!
//! # let user = tempfile::tempdir()?;
//! let mut registry = Registry::scan(&Roots::new().with_root(Root::user(user.path())), &Limits::default());
//! let mut watcher = Watcher::new(&registry, &WatchOptions::default())?;
//!
//! std::fs::create_dir(user.path().join("forms"))?;
//! std::fs::write(user.path().join("forms/SKILL.md"), "---\nname: forms\ndescription: Fills in PDF forms.\n---\n")?;
//!
//! while registry.skills().is_empty() {
//!     if watcher.wait(Duration::from_secs(5)) {
//!         if let Rescan::Changed(changes) = registry.rescan() {
//!             watcher.follow(&registry);
//!             assert_eq!(changes.added, ["forms"]);
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::registry::Registry;

/// How a watcher gathers changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// How long nothing must have changed before a rescan is due; 200 ms, the time an editor or a checkout takes between
    /// two files.
    pub quiet: Duration,
    /// How long a burst may put a rescan off; 2 s.
    pub longest: Duration,
    /// Folders watched at once; 4,096, half of what Linux grants a user by default. Those beyond are counted, and seen by
    /// the rescans that other changes or the host bring about.
    pub folders: usize,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { quiet: Duration::from_millis(200), longest: Duration::from_secs(2), folders: 4_096 }
    }
}

impl WatchOptions {
    /// Sets [`WatchOptions::quiet`] and [`WatchOptions::longest`].
    #[must_use]
    pub fn with_times(mut self, quiet: Duration, longest: Duration) -> Self {
        self.quiet = quiet;
        self.longest = longest;
        self
    }

    /// Sets [`WatchOptions::folders`].
    #[must_use]
    pub fn with_folders(mut self, folders: usize) -> Self {
        self.folders = folders;
        self
    }
}

/// The system would not watch.
#[derive(Debug, thiserror::Error)]
#[error("skills cannot be watched: {reason}")]
#[non_exhaustive]
pub struct WatchError {
    /// What the system said.
    pub reason: String,
}

/// When a rescan is due, given when changes came. Knows no clock.
#[derive(Debug, Clone)]
struct Burst {
    quiet: Duration,
    longest: Duration,
    /// The first and the last change that no rescan has answered.
    open: Option<(Instant, Instant)>,
}

impl Burst {
    fn new(options: &WatchOptions) -> Self {
        Self { quiet: options.quiet, longest: options.longest, open: None }
    }

    fn handle_change(&mut self, now: Instant) {
        self.open = Some(self.open.map_or((now, now), |(first, _)| (first, now)));
    }

    /// When the rescan is due; `None` while nothing has changed.
    fn due(&self) -> Option<Instant> {
        self.open.map(|(first, last)| (last + self.quiet).min(first + self.longest))
    }

    /// Whether it is due; the next change then begins a new burst.
    fn poll(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.open = None;
        }
        is_due
    }
}

#[derive(Debug)]
struct Shared {
    burst: Mutex<Burst>,
    changed: Condvar,
}

impl Shared {
    fn burst(&self) -> MutexGuard<'_, Burst> {
        self.burst.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says when a registry should rescan. Dropping it ends the watch.
pub struct Watcher {
    system: RecommendedWatcher,
    shared: Arc<Shared>,
    watched: HashSet<PathBuf>,
    unwatched: usize,
    folders: usize,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (watched, unwatched) = (self.watched.len(), self.unwatched);
        f.debug_struct("Watcher")
            .field("watched", &watched)
            .field("unwatched", &unwatched)
            .finish_non_exhaustive()
    }
}

impl Watcher {
    /// Begins to watch what a registry has found. The system's own thread of notify reports changes.
    ///
    /// # Errors
    ///
    /// When the system has no watch to give.
    pub fn new(registry: &Registry, options: &WatchOptions) -> Result<Self, WatchError> {
        let shared = Arc::new(Shared { burst: Mutex::new(Burst::new(options)), changed: Condvar::new() });
        let reported = Arc::clone(&shared);
        let system = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Looking is not changing: a rescan must not bring about the next one. An error may hide a change.
            if !event.is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
                reported.burst().handle_change(Instant::now());
                reported.changed.notify_all();
            }
        });
        let system = system.map_err(|error| WatchError { reason: error.to_string() })?;
        let watched = HashSet::new();
        let mut watcher = Self { system, shared, watched, unwatched: 0, folders: options.folders };
        watcher.follow(registry);
        Ok(watcher)
    }

    /// Watches what a registry has found by now, and nothing else. To be called after each rescan that changed it.
    pub fn follow(&mut self, registry: &Registry) {
        let wanted = registry.folders();
        let kept: HashSet<&Path> = wanted.iter().map(PathBuf::as_path).collect();
        let gone: Vec<_> =
            self.watched.iter().filter(|path| !kept.contains(path.as_path())).cloned().collect();
        for path in gone {
            // What is gone from the disk is gone from the system's list too.
            let _ = self.system.unwatch(&path);
            self.watched.remove(&path);
        }
        self.unwatched = 0;
        for path in wanted {
            if self.watched.contains(&path) {
                continue;
            }
            let has_room = self.watched.len() < self.folders;
            if has_room && self.system.watch(&path, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(path);
            } else {
                self.unwatched += 1;
            }
        }
    }

    /// Waits until a rescan is due, at most for `timeout`; true when it is. A burst is answered once, when it has been
    /// quiet for [`WatchOptions::quiet`] or has lasted for [`WatchOptions::longest`].
    ///
    /// Blocks the thread. A host with a runtime calls it where blocking is allowed, or asks with a zero timeout.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now().checked_add(timeout);
        let mut burst = self.shared.burst();
        loop {
            let now = Instant::now();
            if burst.poll(now) {
                return true;
            }
            if end.is_some_and(|end| end <= now) {
                return false;
            }
            let next = [burst.due(), end].into_iter().flatten().min();
            let pause = next.map_or(Duration::from_secs(3600), |next| next.saturating_duration_since(now));
            let waited = self.shared.changed.wait_timeout(burst, pause);
            burst = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many folders are watched.
    #[must_use]
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// How many folders should be and are not: beyond [`WatchOptions::folders`], or refused by the system.
    #[must_use]
    pub fn unwatched(&self) -> usize {
        self.unwatched
    }
}

const _: () = {
    const fn shared<T: Send + Sync + 'static>() {}
    shared::<Watcher>();
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_burst_is_answered_once_it_is_quiet_or_has_lasted_long() {
        let options = WatchOptions::default().with_times(ms(100), ms(250));
        let start = Instant::now();
        for (changes, want) in [
            (&[][..], None),
            (&[0], Some(100)),
            (&[0, 50, 90], Some(190)),
            (&[0, 90, 180, 240], Some(250)),
            (&[10, 20], Some(120)),
        ] {
            let mut burst = Burst::new(&options);
            for at in changes {
                burst.handle_change(start + ms(*at));
            }
            assert_eq!(burst.due(), want.map(|at| start + ms(at)), "{changes:?}");
            if let Some(at) = want {
                assert!(!burst.poll(start + ms(at - 1)));
                assert!(burst.poll(start + ms(at)));
                assert!(!burst.poll(start + ms(at + 1_000)), "answered once");
            }
        }
    }

    proptest! {
        /// However changes come, each is answered no later than the bound, and a burst never twice.
        #[test]
        fn every_change_is_answered_in_time(gaps in prop::collection::vec(0u64..300, 1..60)) {
            let options = WatchOptions::default().with_times(ms(100), ms(250));
            let start = Instant::now();
            let mut burst = Burst::new(&options);
            let (mut now, mut oldest, mut answers) = (start, None, 0);
            for gap in &gaps {
                let next = now + ms(*gap);
                if let Some(due) = burst.due().filter(|due| *due <= next) {
                    prop_assert!(burst.poll(due));
                    prop_assert!(due - oldest.take().unwrap() <= ms(250));
                    answers += 1;
                }
                now = next;
                burst.handle_change(now);
                oldest.get_or_insert(now);
            }
            prop_assert!(burst.poll(now + ms(250)));
            prop_assert!(answers < gaps.len());
        }
    }
}
