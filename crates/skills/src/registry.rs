//! All skills that the roots hold, merged by precedence. Nothing is lost: losers, invalid ones and what was passed over
//! are kept and can be listed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::Digests;
use crate::discover::{self, Above, Expansion, Found, Known};
use crate::limits::Limits;
use crate::problem::{BoundHit, Skipped};
use crate::roots::Roots;
use crate::skill::{Origin, Skill};

/// Folders above a missing root that are looked at for one to watch: `.agents/skills` and the project around it.
const LEVELS_ABOVE: usize = 3;

/// Every skill of a host's roots, as of the last scan.
///
/// A scan reads the head of each `SKILL.md` and nothing else; a [`rescan`](Self::rescan) with nothing changed reads
/// nothing. A registry is plain data that the host owns: it watches nothing and starts nothing.
///
/// ```
/// use haversack_skills::{Limits, Registry, Roots};
///
/// # let project = tempfile::tempdir()?;
/// let folder = project.path().join(".agents/skills/forms");
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("SKILL.md"), "---\nname: forms\ndescription: Fills in PDF forms.\n---\nUse `pdftk`.\n")?;
///
/// let roots = Roots::preset(project.path(), None::<&str>);
/// let registry = Registry::scan(&roots, &Limits::default());
/// assert_eq!(registry.skills()[0].name(), "forms");
/// assert_eq!(registry.origin(&registry.skills()[0]).label, ".agents/skills");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Registry {
    roots: Roots,
    limits: Limits,
    expansion: Expansion,
    searched: Vec<Found>,
    merged: Merged,
    digests: Digests,
}

/// The result of [`Registry::rescan`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rescan {
    /// Everything is as it was.
    Unchanged,
    /// The registry holds something else now.
    Changed(Changes),
}

/// What a rescan found different, by names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Names that are new.
    pub added: Vec<String>,
    /// Names that are gone.
    pub removed: Vec<String>,
    /// Names whose file is another one, or another text, than before.
    pub changed: Vec<String>,
}

/// A skill that another one of the same name, or of the same folder, stands before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Shadowed {
    /// The one that lost.
    pub skill: Arc<Skill>,
    /// The one that won.
    pub by: Arc<Skill>,
    /// Why.
    pub reason: ShadowReason,
}

/// Why one skill stands before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShadowReason {
    /// Its root comes first, or its folder does within one root.
    Precedence,
    /// It is valid, the other is not.
    Validity,
    /// It is the same folder, reached by another root.
    SameFolder,
}

impl ShadowReason {
    /// `precedence`, `validity` or `same-folder`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Precedence => "precedence",
            Self::Validity => "validity",
            Self::SameFolder => "same-folder",
        }
    }
}

#[derive(Debug, Default)]
struct Merged {
    /// Every skill, by name and then by precedence; the same folder twice is in it once.
    all: Vec<Arc<Skill>>,
    winners: Vec<Arc<Skill>>,
    invalid: Vec<Arc<Skill>>,
    shadowed: Vec<Shadowed>,
}

impl Registry {
    /// Searches the roots. A root that is not there is empty; nothing in a root makes the scan fail.
    #[must_use]
    pub fn scan(roots: &Roots, limits: &Limits) -> Self {
        let expansion = discover::expand(roots, limits, &Expansion::default());
        let mut above = Above::default();
        let mut search =
            |(index, place)| discover::search(place, rank(index), limits, &Known::default(), &mut above);
        let mut searched: Vec<_> = expansion.places.iter().enumerate().map(&mut search).collect();
        let merged = Merged::new(searched.iter_mut().flat_map(|found| std::mem::take(&mut found.skills)));
        Self {
            roots: roots.clone(),
            limits: limits.clone(),
            expansion,
            searched,
            merged,
            digests: Digests::default(),
        }
    }

    /// Looks whether anything has changed on disk, and takes it in. Where nothing has, each file and listed folder costs
    /// one `stat`; a root in which something has is walked again, and only changed files are read.
    pub fn rescan(&mut self) -> Rescan {
        let expansion = discover::expand(&self.roots, &self.limits, &self.expansion);
        let same_places = expansion.places == self.expansion.places;
        let holds = |(place, found): (&discover::Place, &Found)| found.trace.holds(&place.root.path);
        if same_places && expansion.places.iter().zip(&self.searched).all(holds) {
            self.expansion = expansion;
            return Rescan::Unchanged;
        }
        // The oldest trace decides what counts as settled: that errs on the side of reading again.
        let began = self.searched.iter().map(|found| found.trace.began).min().unwrap_or(0);
        let old = std::mem::take(&mut self.merged);
        let known = Known::new(old.all.iter().map(AsRef::as_ref), began);
        let mut above = Above::default();
        let search = |(index, place)| discover::search(place, rank(index), &self.limits, &known, &mut above);
        self.searched = expansion.places.iter().enumerate().map(search).collect();
        self.expansion = expansion;
        self.merged =
            Merged::new(self.searched.iter_mut().flat_map(|found| std::mem::take(&mut found.skills)));
        if old.is_same(&self.merged) { Rescan::Unchanged } else { Rescan::Changed(old.changes(&self.merged)) }
    }

    /// The valid skills, one a name, sorted by the bytes of their names.
    #[must_use]
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.merged.winners
    }

    /// The skills that cannot be used, each with its [problems](Skill::problems), sorted by name.
    #[must_use]
    pub fn invalid(&self) -> &[Arc<Skill>] {
        &self.merged.invalid
    }

    /// The skills that others stand before.
    #[must_use]
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.merged.shadowed
    }

    /// What was met and not taken, root by root.
    pub fn skipped(&self) -> impl Iterator<Item = &Skipped> {
        let notes = self.expansion.notes().chain(self.searched.iter().map(|found| &found.notes));
        notes.flat_map(|notes| &notes.skipped)
    }

    /// The bounds that ended a walk early, so that skills may be missing.
    pub fn bounds_hit(&self) -> impl Iterator<Item = &BoundHit> {
        let notes = self.expansion.notes().chain(self.searched.iter().map(|found| &found.notes));
        notes.flat_map(|notes| &notes.bounds)
    }

    /// Where a skill of this registry comes from.
    #[must_use]
    pub fn origin(&self, skill: &Skill) -> Arc<Origin> {
        let found = usize::try_from(skill.found().root).ok().and_then(|root| self.searched.get(root));
        found.map_or_else(|| Arc::new(Origin::unknown()), |found| Arc::clone(&found.origin))
    }

    /// The limits it was scanned with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What a watcher has to look at: the folders that a scan lists, each skill's own, and for a root that is not there
    /// the nearest folder above it that is.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<_> = self.merged.all.iter().map(|skill| skill.folder().to_path_buf()).collect();
        for (place, found) in self.expansion.places.iter().zip(&self.searched) {
            let root = &place.root.path;
            if found.trace.root.is_some() {
                folders.extend(found.trace.folders(root));
            } else {
                folders.extend(
                    root.ancestors()
                        .skip(1)
                        .take(LEVELS_ABOVE)
                        .find(|above| above.is_dir())
                        .map(Path::to_path_buf),
                );
            }
        }
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// Lends out what is known of the skills' files.
    pub(crate) fn take_digests(&mut self) -> Digests {
        std::mem::take(&mut self.digests)
    }

    /// Takes it back.
    pub(crate) fn put_digests(&mut self, digests: Digests) {
        self.digests = digests;
    }

    /// Every skill by name, then precedence.
    pub(crate) fn all(&self) -> &[Arc<Skill>] {
        &self.merged.all
    }
}

fn rank(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Merged {
    fn new(skills: impl Iterator<Item = Arc<Skill>>) -> Self {
        let mut merged = Self::default();
        let skills: Vec<_> = skills.collect();
        // One root has each folder once by itself.
        let one_root = skills
            .iter()
            .all(|skill| skills.first().is_none_or(|first| first.found().root == skill.found().root));
        let mut folders = HashMap::new();
        for skill in skills {
            if one_root {
                merged.all.push(skill);
                continue;
            }
            match folders.get(&skill.found().folder) {
                None => {
                    folders.insert(skill.found().folder, Arc::clone(&skill));
                    merged.all.push(skill);
                }
                Some(first) => {
                    let by = Arc::clone(first);
                    merged.shadowed.push(Shadowed { skill, by, reason: ShadowReason::SameFolder });
                }
            }
        }
        // Stable, so that skills of one name stay in the order of their roots.
        merged.all.sort_by(|a, b| a.name().cmp(b.name()));
        for same in merged.all.chunk_by(|a, b| a.name() == b.name()) {
            let best = same.iter().find(|skill| skill.is_valid()).or_else(|| same.first());
            let Some(best) = best else { continue };
            for skill in same {
                if !skill.is_valid() {
                    merged.invalid.push(Arc::clone(skill));
                }
                if Arc::ptr_eq(skill, best) {
                    if skill.is_valid() {
                        merged.winners.push(Arc::clone(skill));
                    }
                    continue;
                }
                let valid_won = best.is_valid() && !skill.is_valid();
                let reason = if valid_won { ShadowReason::Validity } else { ShadowReason::Precedence };
                merged.shadowed.push(Shadowed { skill: Arc::clone(skill), by: Arc::clone(best), reason });
            }
        }
        merged
    }

    fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Skill>, &Arc<Skill>)| a.folder() == b.folder() && a.found() == b.found();
        self.all.len() == other.all.len() && self.all.iter().zip(&other.all).all(same)
    }

    fn changes(&self, now: &Self) -> Changes {
        let before: HashMap<_, _> = self.winners.iter().map(|skill| (skill.name(), skill)).collect();
        let after: HashMap<_, _> = now.winners.iter().map(|skill| (skill.name(), skill)).collect();
        let mut changes = Changes::default();
        for skill in &now.winners {
            match before.get(skill.name()) {
                None => changes.added.push(skill.name().to_owned()),
                Some(old) if old.folder() != skill.folder() || old.found().stamp != skill.found().stamp => {
                    changes.changed.push(skill.name().to_owned());
                }
                Some(_) => {}
            }
        }
        let gone = self.winners.iter().filter(|skill| !after.contains_key(skill.name()));
        changes.removed.extend(gone.map(|skill| skill.name().to_owned()));
        changes
    }
}
