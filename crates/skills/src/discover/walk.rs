//! The walk over one root.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discover::ignored::{self, Above, IGNORE_FILE, Ignored};
use crate::discover::read::{self, Probe};
use crate::discover::{
    Bound, BoundHit, Facts, Found, Known, Limits, Notes, Place, Seen, SkipReason, Skipped, Trace,
};
use crate::folder::{Entry, Folder, Identity, Kind, Stamp};
use crate::roots::LinkPolicy;
use crate::skill::{FILE_NAME, Origin, Skill};

mod probes;

/// Folders that hold no skills, whatever is in them.
const FOREIGN: [&str; 5] = [".git", ".hg", ".svn", "node_modules", "target"];

/// A folder to be listed.
struct Pending {
    relative: PathBuf,
    identity: Identity,
    through_link: bool,
    ignored: Option<Arc<Ignored>>,
}

/// A folder that may be a skill.
struct Candidate {
    folder: Pending,
    is_link: bool,
}

pub(crate) struct Walk<'a> {
    place: &'a Place,
    index: u32,
    limits: &'a Limits,
    known: &'a Known<'a>,
    notes: Notes,
    trace: Trace,
    folders: usize,
    entries: usize,
    visited: HashSet<Identity>,
    skills: Vec<(PathBuf, Arc<Skill>)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        place: &'a Place,
        index: u32,
        limits: &'a Limits,
        known: &'a Known<'a>,
        began: i64,
    ) -> Self {
        Self {
            place,
            index,
            limits,
            known,
            notes: Notes::default(),
            trace: Trace { began, ..Trace::default() },
            folders: 0,
            entries: 0,
            visited: HashSet::new(),
            skills: Vec::new(),
        }
    }

    pub(crate) fn run(mut self, origin: Arc<Origin>, above: &mut Above) -> Found {
        match self.open() {
            Ok(Some((root, facts))) if self.place.root.is_skill => self.one_skill(&root, facts),
            Ok(Some((root, facts))) => self.levels(&root, facts, above),
            Ok(None) => {}
            Err(error) => self.skip(Path::new(""), SkipReason::Unreadable(error.to_string())),
        }
        self.skills
            .sort_by(|(a, _), (b, _)| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
        let skills = self.skills.into_iter().map(|(_, skill)| skill).collect();
        Found { origin, skills, notes: self.notes, trace: self.trace }
    }

    /// Opens the root; one that is not there holds nothing, which is no fault.
    fn open(&mut self) -> io::Result<Option<(Folder, Facts)>> {
        let root = match Folder::open(&self.place.root.path) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let facts = root.facts()?;
        self.trace.root = Some(facts);
        Ok(Some((root, facts)))
    }

    fn one_skill(&mut self, root: &Folder, facts: Facts) {
        let folder = Pending {
            relative: PathBuf::new(),
            identity: facts.stamp.identity,
            through_link: false,
            ignored: None,
        };
        let candidate = Candidate { folder, is_link: false };
        let probe = self.probe(root, &candidate, &mut Vec::new());
        if matches!(probe, Probe::Empty) {
            let reason = SkipReason::BadPackageSkill(format!("there is no {FILE_NAME} in it"));
            self.skip(Path::new(""), reason);
        } else {
            self.take(root, candidate, probe);
        }
    }

    fn levels(&mut self, root: &Folder, facts: Facts, above: &mut Above) {
        let ignored = self.rules_above(above);
        let identity = facts.stamp.identity;
        self.visited.insert(identity);
        let mut level = vec![Pending { relative: PathBuf::new(), identity, through_link: false, ignored }];
        for depth in 1.. {
            let mut candidates = Vec::new();
            for pending in &level {
                if !self.list(root, pending, depth, &mut candidates) {
                    break;
                }
            }
            if candidates.is_empty() {
                return;
            }
            let probes = self.probe_all(root, &candidates);
            level = self.take_all(root, candidates, probes, depth);
        }
    }

    /// The `.gitignore` rules of the folders around the root, unless they ignore the root itself: then somebody keeps
    /// it out of the repository on purpose, and it was named as a root on purpose too.
    fn rules_above(&mut self, above: &mut Above) -> Option<Arc<Ignored>> {
        let repository = self.place.repository.as_deref()?;
        let root = &self.place.root.path;
        let rules = above.of(repository, root, self.limits.file_bytes, &mut self.trace.elsewhere);
        rules.filter(|rules| !rules.covers_any_above(root))
    }

    /// Lists one folder; false when a bound ends the walk.
    fn list(
        &mut self,
        root: &Folder,
        pending: &Pending,
        depth: usize,
        candidates: &mut Vec<Candidate>,
    ) -> bool {
        if self.folders >= self.limits.folders {
            self.bound(Bound::Folders, self.limits.folders, &pending.relative);
            return false;
        }
        self.folders += 1;
        let left = self.limits.entries.saturating_sub(self.entries);
        let listed = root.sub(&pending.relative).and_then(|folder| {
            let facts = folder.facts()?;
            Ok((folder.list(left)?, facts, folder))
        });
        let (listing, facts, folder) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.saw_folder(root, &pending.relative);
                self.skip(&pending.relative, SkipReason::Unreadable(error.to_string()));
                return true;
            }
        };
        self.trace.below.push(Seen::folder(pending.relative.as_path(), Some(facts.stamp)));
        self.entries += listing.entries.len();
        let ignored = self.rules_of(&folder, &listing.entries, pending);
        for entry in &listing.entries {
            match entry.kind {
                Kind::Folder | Kind::Link => {
                    self.consider(root, entry, pending, ignored.as_ref(), candidates);
                }
                Kind::File | Kind::Other => {}
            }
            self.hint(entry, &pending.relative, depth == 1);
        }
        if listing.beyond > 0 {
            self.bound(Bound::Entries, self.limits.entries, &pending.relative);
        }
        listing.beyond == 0
    }

    fn rules_of(&mut self, folder: &Folder, entries: &[Entry], pending: &Pending) -> Option<Arc<Ignored>> {
        let outer = pending.ignored.clone();
        let name = Path::new(IGNORE_FILE);
        if !entries.iter().any(|entry| entry.name == name.as_os_str()) {
            return outer;
        }
        let opened = folder.file(name, true);
        let stamp = opened.as_ref().ok().map(|(_, facts)| facts.stamp);
        self.saw(&pending.relative.join(name), stamp);
        match opened.and_then(|(file, facts)| ignored::text(file, facts, self.limits.file_bytes)) {
            Ok(text) => Ignored::read(&text, self.place.root.path.join(&pending.relative), outer),
            Err(error) => {
                self.skip(&pending.relative.join(name), SkipReason::Unreadable(error.to_string()));
                outer
            }
        }
    }

    /// Decides whether a folder, or a link to one, is tried.
    fn consider(
        &mut self,
        root: &Folder,
        entry: &Entry,
        parent: &Pending,
        ignored: Option<&Arc<Ignored>>,
        candidates: &mut Vec<Candidate>,
    ) {
        let relative = read::join(&parent.relative, Path::new(&entry.name));
        let is_link = entry.kind == Kind::Link;
        let name = entry.name.as_encoded_bytes();
        let refuse = if FOREIGN.iter().any(|foreign| name == foreign.as_bytes()) {
            Some(SkipReason::Foreign)
        } else if name.starts_with(b".") {
            Some(SkipReason::Hidden)
        } else if ignored.is_some_and(|rules| rules.covers(&self.place.root.path.join(&relative))) {
            Some(SkipReason::Ignored)
        } else {
            None
        };
        if let Some(reason) = refuse {
            if !is_link || self.leads_to_folder(root, &relative) {
                self.skip(&relative, reason);
            }
            return;
        }
        let identity = if is_link || entry.inode == 0 {
            match self.resolve(root, &relative, is_link) {
                Some(identity) => identity,
                None => return,
            }
        } else {
            (parent.identity.0, entry.inode)
        };
        let through_link = parent.through_link || is_link;
        let folder = Pending { relative, identity, through_link, ignored: ignored.cloned() };
        candidates.push(Candidate { folder, is_link });
    }

    fn leads_to_folder(&self, root: &Folder, relative: &Path) -> bool {
        root.stat(relative, true).is_ok_and(|facts| facts.kind == Kind::Folder)
    }

    /// The identity of the folder a link leads to, if it leads to one and may be followed.
    fn resolve(&mut self, root: &Folder, relative: &Path, is_link: bool) -> Option<Identity> {
        let Ok(facts) = root.stat(relative, true) else {
            self.saw(relative, None);
            self.skip(relative, SkipReason::LinkBroken);
            return None;
        };
        if facts.kind != Kind::Folder {
            return None;
        }
        if is_link && !self.may_follow(relative) {
            self.skip(relative, SkipReason::LinkForbidden);
            return None;
        }
        Some(facts.stamp.identity)
    }

    fn may_follow(&self, relative: &Path) -> bool {
        match self.place.root.links {
            LinkPolicy::Follow => true,
            LinkPolicy::Never => false,
            LinkPolicy::Inside => {
                let real = |path: &Path| path.canonicalize().ok();
                let within = real(self.place.project.as_deref().unwrap_or(&self.place.root.path));
                let target = real(&self.place.root.path.join(relative));
                within.zip(target).is_some_and(|(within, target)| target.starts_with(within))
            }
        }
    }

    /// Says of a file that looks like a skill why it is none.
    fn hint(&mut self, entry: &Entry, folder: &Path, at_root: bool) {
        let name = entry.name.to_string_lossy();
        let exact = name == FILE_NAME;
        let reason = if exact && entry.kind == Kind::Link {
            // The walk lists this folder because the file could not be opened.
            SkipReason::LinkBroken
        } else if entry.kind != Kind::File {
            return;
        } else if !exact && name.eq_ignore_ascii_case(FILE_NAME) {
            SkipReason::WrongCase
        } else if at_root
            && name.to_ascii_lowercase().ends_with(".md")
            && !name.eq_ignore_ascii_case("readme.md")
        {
            SkipReason::FlatFile
        } else {
            return;
        };
        self.skip(&folder.join(&entry.name), reason);
    }

    /// Takes the skills of a level; returns the folders of the next one.
    fn take_all(
        &mut self,
        root: &Folder,
        candidates: Vec<Candidate>,
        probes: Vec<Probe>,
        depth: usize,
    ) -> Vec<Pending> {
        let mut tried: Vec<_> = candidates.into_iter().zip(probes).collect();
        // A folder that is both here and behind a link is taken as itself.
        tried.sort_by_key(|(candidate, _)| candidate.is_link);
        let mut next = Vec::new();
        for (candidate, probe) in tried {
            if !matches!(probe, Probe::Empty) {
                self.take(root, candidate, probe);
            } else if depth >= self.limits.depth {
                self.saw_folder(root, &candidate.folder.relative);
                self.bound(Bound::Depth, self.limits.depth, &candidate.folder.relative);
            } else if self.visited.insert(candidate.folder.identity) {
                next.push(candidate.folder);
            } else {
                self.skip(&candidate.folder.relative, SkipReason::SeenBefore);
            }
        }
        next.sort_by(|a, b| {
            let bytes = |pending: &Pending| pending.relative.as_os_str().as_encoded_bytes().to_vec();
            bytes(a).cmp(&bytes(b))
        });
        next
    }

    fn take(&mut self, root: &Folder, candidate: Candidate, probe: Probe) {
        let relative = candidate.folder.relative;
        match probe {
            Probe::Skill(skill, file) => {
                self.trace.below.push(Seen::file(file, Some(skill.found().stamp)));
                if self.visited.insert(candidate.folder.identity) {
                    self.skills.push((relative, skill));
                } else {
                    self.skip(&relative, SkipReason::SeenBefore);
                }
            }
            Probe::Failed(error) => {
                self.saw_folder(root, &relative);
                let file = relative.join(FILE_NAME);
                let is_link = root.stat(&file, false).is_ok_and(|facts| facts.kind == Kind::Link);
                let reason = if is_link && self.place.root.links != LinkPolicy::Follow {
                    SkipReason::LinkForbidden
                } else {
                    SkipReason::Unreadable(error.to_string())
                };
                self.skip(&file, reason);
            }
            Probe::Empty => {}
        }
    }

    fn saw(&mut self, path: &Path, stamp: Option<Stamp>) {
        self.trace.below.push(Seen::file(path, stamp));
    }

    fn saw_folder(&mut self, root: &Folder, relative: &Path) {
        let stamp = root.stat(relative, true).ok().map(|facts| facts.stamp);
        self.saw(relative, stamp);
    }

    fn skip(&mut self, relative: &Path, reason: SkipReason) {
        let path = self.at(relative);
        if self.notes.skipped.len() < self.limits.notes {
            self.notes.skipped.push(Skipped::new(path, reason));
        } else if !self.notes.bounds.iter().any(|hit| hit.bound == Bound::Notes) {
            let root = self.place.root.path.clone();
            self.notes.bounds.push(BoundHit::new(Bound::Notes, self.limits.notes, root, path));
        }
    }

    fn bound(&mut self, bound: Bound, limit: usize, at: &Path) {
        if !self.notes.bounds.iter().any(|hit| hit.bound == bound) {
            let hit = BoundHit::new(bound, limit, self.place.root.path.clone(), self.at(at));
            self.notes.bounds.push(hit);
        }
    }

    fn at(&self, relative: &Path) -> PathBuf {
        let root = &self.place.root.path;
        if relative.as_os_str().is_empty() { root.clone() } else { root.join(relative) }
    }
}
