//! From the host's list to single roots: up to the repository's root, down into a monorepo, through packages.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discover::ignored::Ignored;
use crate::discover::{Bound, BoundHit, Limits, Notes, Roots, Seen, SkipReason, Skipped, Step, now};
use crate::folder::{Folder, Kind};
use crate::packages;
use crate::roots::{PROJECT_FOLDERS, Project, Root};
use crate::skill::{FILE_NAME, Source};

/// Levels above a project at which its repository is looked for.
const LEVELS_UP: usize = 64;

/// One root to search, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) root: Root,
    /// The project it belongs to.
    pub(crate) project: Option<PathBuf>,
    /// The root of that project's repository, if it is in one.
    pub(crate) repository: Option<PathBuf>,
}

/// The roots of a host's list, in order of precedence.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) places: Vec<Place>,
    parts: Vec<Arc<Part>>,
}

/// The roots that one entry of the list stands for, when finding them took reading.
#[derive(Debug)]
struct Part {
    step: Step,
    places: Vec<Place>,
    notes: Notes,
    seen: Vec<Seen>,
    began: i64,
}

impl Part {
    fn holds(&self) -> bool {
        let unchanged = |seen: &Seen| {
            crate::discover::stamp_of(&seen.path) == seen.stamp
                && seen.stamp.is_none_or(|stamp| stamp.is_settled(self.began))
        };
        self.seen.iter().all(unchanged)
    }
}

impl Expansion {
    /// What finding the roots had to report.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Notes> {
        self.parts.iter().map(|part| &part.notes)
    }
}

/// Finds the single roots; what an earlier expansion found and still holds is taken over.
pub(crate) fn expand(roots: &Roots, limits: &Limits, old: &Expansion) -> Expansion {
    let mut found = Expansion::default();
    for step in &roots.steps {
        match step {
            Step::Root(root) => {
                found.places.push(Place { root: root.clone(), project: None, repository: None });
            }
            Step::Project(project) => {
                let repository = repository(&project.path);
                found.places.extend(upwards(project, repository.as_deref()));
                if project.down {
                    found.add(old, step, || downwards(project, repository, limits));
                }
            }
            Step::Packages { project, links } => found.add(old, step, || {
                let packages = packages::find(project, limits);
                let place = |root: Root| Place {
                    root: root.with_links(*links),
                    project: Some(project.clone()),
                    repository: None,
                };
                let notes = Notes { skipped: packages.skipped, bounds: packages.bounds };
                let seen = packages.seen.into_iter();
                let seen = seen.map(|(path, stamp)| Seen::file(path, stamp)).collect();
                (packages.roots.into_iter().map(place).collect(), notes, seen)
            }),
        }
    }
    found
}

impl Expansion {
    fn add(&mut self, old: &Self, step: &Step, find: impl FnOnce() -> (Vec<Place>, Notes, Vec<Seen>)) {
        let known = old.parts.iter().find(|part| part.step == *step && part.holds());
        let part = known.cloned().unwrap_or_else(|| {
            let began = now();
            let (places, notes, seen) = find();
            Arc::new(Part { step: step.clone(), places, notes, seen, began })
        });
        self.places.extend(part.places.iter().cloned());
        self.parts.push(part);
    }
}

/// The nearest folder, from a project upwards, that has a `.git` of any kind: a worktree has a file there.
fn repository(project: &Path) -> Option<PathBuf> {
    let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    project.ancestors().take(LEVELS_UP).find(has_git).map(Path::to_path_buf)
}

/// The skill folders of a project and of those above it in the same repository.
fn upwards(project: &Project, repository: Option<&Path>) -> Vec<Place> {
    let mut places = Vec::new();
    let mut prefix = String::new();
    for folder in project.path.ancestors().take(LEVELS_UP) {
        for name in PROJECT_FOLDERS {
            places.push(place(project, repository, folder.join(name), format!("{prefix}{name}")));
        }
        prefix.push_str("../");
        if !project.up || repository.is_none_or(|repository| folder == repository) {
            break;
        }
    }
    places
}

fn place(project: &Project, repository: Option<&Path>, path: PathBuf, label: String) -> Place {
    let root = Root::new(path, Source::Project, label).with_links(project.links);
    let within = repository.unwrap_or(&project.path).to_path_buf();
    Place { root, project: Some(within), repository: repository.map(Path::to_path_buf) }
}

/// The skill folders below a project, in byte order by level. Links are not followed: this is somebody's source tree.
fn downwards(
    project: &Project,
    repository: Option<PathBuf>,
    limits: &Limits,
) -> (Vec<Place>, Notes, Vec<Seen>) {
    let mut down = Down {
        project,
        repository,
        limits,
        entries: 0,
        places: vec![],
        notes: Notes::default(),
        seen: vec![],
    };
    let mut waiting = VecDeque::from([(PathBuf::new(), 0, None)]);
    let mut folders = 0;
    let mut visited = HashSet::new();
    while let Some((relative, depth, rules)) = waiting.pop_front() {
        if folders >= limits.folders {
            down.bound(Bound::Folders, limits.folders, &relative);
            break;
        }
        folders += 1;
        let folder = project.path.join(&relative);
        match Folder::open(&folder) {
            Ok(open) => down.list(&open, &relative, depth, rules, &mut visited, &mut waiting),
            Err(error) => {
                down.notes.skipped.push(Skipped::new(folder, SkipReason::Unreadable(error.to_string())));
            }
        }
    }
    (down.places, down.notes, down.seen)
}

struct Down<'a> {
    project: &'a Project,
    repository: Option<PathBuf>,
    limits: &'a Limits,
    entries: usize,
    places: Vec<Place>,
    notes: Notes,
    seen: Vec<Seen>,
}

type Waiting = VecDeque<(PathBuf, usize, Option<Arc<Ignored>>)>;

impl Down<'_> {
    fn list(
        &mut self,
        open: &Folder,
        relative: &Path,
        depth: usize,
        rules: Option<Arc<Ignored>>,
        visited: &mut HashSet<(u64, u64)>,
        waiting: &mut Waiting,
    ) {
        let folder = self.project.path.join(relative);
        let Ok(facts) = open.facts() else { return };
        self.seen.push(Seen::folder(folder.clone(), Some(facts.stamp)));
        if !visited.insert(facts.stamp.identity) {
            return;
        }
        let Ok(listing) = open.list(self.limits.entries.saturating_sub(self.entries)) else { return };
        self.entries += listing.entries.len();
        if listing.beyond > 0 {
            self.bound(Bound::Entries, self.limits.entries, relative);
        }
        // What is in a skill is a skill's.
        if listing.entries.iter().any(|entry| entry.name == FILE_NAME) {
            return;
        }
        let rules = self.rules(open, &folder, rules);
        for entry in listing.entries.iter().filter(|entry| entry.kind == Kind::Folder) {
            let name = entry.name.to_string_lossy();
            let below = relative.join(&entry.name);
            if name.starts_with('.') || matches!(name.as_ref(), "node_modules" | "target") {
                continue;
            }
            if rules.as_ref().is_some_and(|rules| rules.covers(&folder.join(&entry.name))) {
                continue;
            }
            self.look_into(open, &entry.name, &below);
            if depth >= self.limits.depth {
                self.bound(Bound::Depth, self.limits.depth, &below);
            } else {
                waiting.push_back((below, depth + 1, rules.clone()));
            }
        }
    }

    /// Looks for skill folders in a sub-folder. That is done before it is listed itself, so that the many packages of a
    /// monorepo are found even where the bound on folders comes before their turn.
    fn look_into(&mut self, parent: &Folder, name: &OsStr, relative: &Path) {
        let folder = self.project.path.join(relative);
        let facts = parent.stat(Path::new(name), false).ok();
        self.seen.push(Seen::file(folder.clone(), facts.map(|facts| facts.stamp)));
        for path in PROJECT_FOLDERS {
            let outer = Path::new(name).join(path.split('/').next().unwrap_or(path));
            if parent.stat(&outer, true).is_ok_and(|facts| facts.kind == Kind::Folder) {
                let label = relative.join(path).to_string_lossy().into_owned();
                let place = place(self.project, self.repository.as_deref(), folder.join(path), label);
                self.places.push(place);
            }
        }
    }

    fn rules(&mut self, open: &Folder, folder: &Path, outer: Option<Arc<Ignored>>) -> Option<Arc<Ignored>> {
        let Ok((mut file, facts)) = open.file(Path::new(".gitignore"), true) else { return outer };
        self.seen.push(Seen::file(folder.join(".gitignore"), Some(facts.stamp)));
        match crate::jail::read(&mut file, self.limits.file_bytes, facts.stamp.bytes) {
            Ok(bytes) if facts.kind == Kind::File => {
                Ignored::read(&String::from_utf8_lossy(&bytes), folder.to_path_buf(), outer)
            }
            _ => outer,
        }
    }

    fn bound(&mut self, bound: Bound, limit: usize, at: &Path) {
        if !self.notes.bounds.iter().any(|hit| hit.bound == bound) {
            let root = self.project.path.clone();
            let at = root.join(at);
            self.notes.bounds.push(BoundHit::new(bound, limit, root, at));
        }
    }
}
