//! Open folders. This is the only module that lists a folder, and all that a scan or a reader opens, it opens through
//! a [`Folder`].
//!
//! On Unix a folder is a descriptor and what is below it is opened relative to that descriptor, so that nobody can
//! swap the ground under a walk. rustix makes the calls; the crate itself has no unsafe code. Elsewhere a folder is a
//! path, and the checks of [`crate::jail`] are as good as paths allow.

use std::ffi::OsString;

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use portable::{Folder, facts_of};
#[cfg(unix)]
pub(crate) use unix::{Folder, facts_of};

/// Which file or folder this is: device and inode. Equal identities are the same thing under two names.
pub(crate) type Identity = (u64, u64);

/// What an entry is, without following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    /// A pipe, a socket, a device: never opened.
    Other,
}

/// What tells whether something has changed since, without reading it.
///
/// The change time (`ctime`) is in it because nobody can set it by hand: a file whose modification time was put back
/// after an edit still reads as changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) identity: Identity,
    pub(crate) bytes: u64,
    /// Nanoseconds since the epoch.
    pub(crate) modified: i64,
    /// Nanoseconds since the epoch; 0 where the system does not keep it.
    pub(crate) changed: i64,
}

/// A file changed within this time before it was looked at may change again without a new time stamp: kernels stamp
/// with the tick of their clock, at most 10 ms.
const TICK: i64 = 20_000_000;
/// The same for file systems that keep whole seconds, at worst two of them.
const COARSE_TICK: i64 = 2_000_000_000;

impl Stamp {
    /// Whether a change that came right after `now` (nanoseconds since the epoch) would show in the next stamp.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        let last = self.modified.max(self.changed);
        let tick = if last % 1_000_000_000 == 0 { COARSE_TICK } else { TICK };
        now.saturating_sub(last) > tick
    }
}

/// Kind and stamp of one thing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
    /// The inode of the entry itself, 0 where the system does not say.
    pub(crate) inode: u64,
}

/// The entries of a folder, sorted by the bytes of their names.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// How many entries there were beyond the bound. The ones kept are the first by name, whatever order the file
    /// system gives them in.
    pub(crate) beyond: usize,
}

/// Keeps the first `limit` entries by name of as many as are pushed, in memory for `2 * limit`.
struct Collector {
    entries: Vec<Entry>,
    limit: usize,
    beyond: usize,
}

impl Collector {
    fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit, beyond: 0 }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() >= self.limit.saturating_mul(2).saturating_add(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.entries.sort_unstable_by(|a, b| a.name.as_encoded_bytes().cmp(b.name.as_encoded_bytes()));
        self.beyond = self.beyond.saturating_add(self.entries.len().saturating_sub(self.limit));
        self.entries.truncate(self.limit);
    }

    fn finish(mut self) -> Listing {
        self.cut();
        Listing { entries: self.entries, beyond: self.beyond }
    }
}

#[cfg(test)]
mod tests;
