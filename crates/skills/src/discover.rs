//! Discovery: from roots to skills, and back to "has anything changed?".
//!
//! Each root is walked level by level. A level's folders are listed in byte order, then every folder in those listings
//! is tried for a `SKILL.md` (on two threads when there are many); one that has it is a skill and is not entered, so a
//! `SKILL.md` among a skill's own files is just a file; one that has not is listed on the next level.
//!
//! While it walks, a root writes down the stamp of all that it looked at. When all of these still hold, a second walk
//! would find the same, so it is not made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::folder::{Facts, Folder, Stamp};
use crate::limits::Limits;
use crate::problem::{Bound, BoundHit, SkipReason, Skipped};
use crate::roots::{Roots, Step};
use crate::skill::{self, Origin, Skill};

mod ignored;
mod read;

mod expand;
mod walk;

pub(crate) use expand::{Expansion, Place, expand};
pub(crate) use ignored::Above;
use walk::Walk;

/// What one root gave.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) origin: Arc<Origin>,
    pub(crate) skills: Vec<Arc<Skill>>,
    pub(crate) notes: Notes,
    pub(crate) trace: Trace,
}

/// What a walk has to report.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) bounds: Vec<BoundHit>,
}

/// All that a walk looked at, as it was.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The root itself; `None` when there was none.
    pub(crate) root: Option<Facts>,
    /// What was looked at below the root, links followed.
    pub(crate) below: Vec<Seen>,
    /// What was looked at elsewhere: `.gitignore` files above the root.
    pub(crate) elsewhere: Vec<Seen>,
    /// When the walk began, in nanoseconds since the epoch.
    pub(crate) began: i64,
}

/// A path and its stamp; `None` when there was nothing.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: Box<Path>,
    pub(crate) stamp: Option<Stamp>,
    /// Whether it is a folder that was listed.
    pub(crate) is_folder: bool,
}

impl Seen {
    pub(crate) fn file(path: impl Into<Box<Path>>, stamp: Option<Stamp>) -> Self {
        Self { path: path.into(), stamp, is_folder: false }
    }

    pub(crate) fn folder(path: impl Into<Box<Path>>, stamp: Option<Stamp>) -> Self {
        Self { path: path.into(), stamp, is_folder: true }
    }
}

impl Trace {
    /// Whether everything is as it was. Never true of something that was changed in the very moment of the walk, since
    /// a second change might bear the same time.
    pub(crate) fn holds(&self, root: &Path) -> bool {
        let settled = |stamp: Stamp| stamp.is_settled(self.began);
        let now = Folder::open(root).ok();
        let root_now = now.as_ref().and_then(|folder| folder.facts().ok());
        let same_root = root_now.map(|facts| facts.stamp) == self.root.map(|facts| facts.stamp);
        let below = |seen: &Seen| match (&now, seen.stamp) {
            (Some(folder), Some(stamp)) => {
                settled(stamp) && folder.stat(&seen.path, true).is_ok_and(|facts| facts.stamp == stamp)
            }
            (Some(folder), None) => folder.stat(&seen.path, true).is_err(),
            (None, stamp) => stamp.is_none(),
        };
        let elsewhere = |seen: &Seen| stamp_of(&seen.path) == seen.stamp && seen.stamp.is_none_or(settled);
        same_root
            && self.root.is_none_or(|facts| settled(facts.stamp))
            && self.elsewhere.iter().all(elsewhere)
            && self.below.iter().all(below)
    }
}

impl Trace {
    /// The folders that were listed.
    pub(crate) fn folders(&self, root: &Path) -> Vec<PathBuf> {
        let listed = self.below.iter().filter(|seen| seen.is_folder).map(|seen| root.join(&seen.path));
        self.root.iter().map(|_| root.to_path_buf()).chain(listed).collect()
    }
}

/// The stamp of a path, links followed.
pub(crate) fn stamp_of(path: &Path) -> Option<Stamp> {
    let parent = Folder::open(path.parent()?).ok()?;
    parent.stat(Path::new(path.file_name()?), true).ok().map(|facts| facts.stamp)
}

/// The skills of an earlier scan, by folder, to be taken over where their files are unchanged.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    skills: HashMap<&'a Path, &'a Skill>,
    /// When the earlier scan began.
    began: i64,
}

impl<'a> Known<'a> {
    pub(crate) fn new(skills: impl Iterator<Item = &'a Skill>, began: i64) -> Self {
        Self { skills: skills.map(|skill| (skill.folder(), skill)).collect(), began }
    }

    /// The skill of a folder, if its file is what it was.
    fn unchanged(&self, root: &Folder, relative: &Path, folder: &Path, found: skill::Found) -> Option<Skill> {
        let skill = *self.skills.get(folder)?;
        let facts = root.stat(&relative.join(skill::FILE_NAME), true).ok()?;
        let stamp = skill.found().stamp;
        (facts.stamp == stamp && stamp.is_settled(self.began))
            .then(|| skill.clone().found_again(skill::Found { stamp, ..found }))
    }
}

/// Searches one root. `index` is its rank among the roots; `known` gives a skill of an earlier scan whose file is
/// unchanged.
/// `above` keeps the ignore rules that the roots of one scan share.
pub(crate) fn search(
    root: &Place,
    index: u32,
    limits: &Limits,
    known: &Known<'_>,
    above: &mut Above,
) -> Found {
    let origin = Arc::new(Origin::new(root.root.source, root.root.label.clone(), root.root.path.clone()));
    let walk = Walk::new(root, index, limits, known, now());
    walk.run(origin, above)
}

/// Now, in nanoseconds since the epoch: this module talks to the file system, whose stamps are times of the day.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}
