//! Trees to test on.

use std::fs;
use std::path::{Path, PathBuf};

use haversack_skills::consent::Consent;
use haversack_skills::{Filter, Limits, Reader, Registry, Root, Roots, Snapshot};

/// A folder that goes away with the test.
pub(crate) struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file, folders and all.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes an ordinary skill.
    pub(crate) fn skill(&self, folder: &str, name: &str) -> &Self {
        self.write(&format!("{folder}/SKILL.md"), skill(name, &format!("Does {name}.")))
    }

    #[cfg(unix)]
    pub(crate) fn link(&self, target: impl AsRef<Path>, link: &str) -> &Self {
        let link = self.at(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
        self
    }

    /// Scans with the preset, `user` as the user's folder.
    pub(crate) fn scan(&self, project: &str) -> Registry {
        Registry::scan(&Roots::preset(self.at(project), Some(self.at("user"))), &Limits::default())
    }

    /// The skills of the folder `user`.
    pub(crate) fn user(&self) -> Snapshot {
        let roots = Roots::new().with_root(Root::user(self.at("user")));
        Registry::scan(&roots, &Limits::default()).snapshot(&Filter::new(Consent::not_needed()))
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(self.user())
    }
}

pub(crate) fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nHow to do {name}.\n")
}

pub(crate) fn names(registry: &Registry) -> Vec<&str> {
    registry.skills().iter().map(|skill| skill.name()).collect()
}

/// What was skipped, as paths from the tree's root, and why.
pub(crate) fn skipped(tree: &Tree, registry: &Registry) -> Vec<(String, &'static str)> {
    let relative = |path: &Path| path.strip_prefix(tree.path()).unwrap().to_string_lossy().into_owned();
    registry.skipped().map(|skipped| (relative(&skipped.path), skipped.reason.as_str())).collect()
}

/// Waits until a change of a file would show in its time stamp, by watching the clock of the file system.
pub(crate) fn next_tick(tree: &Tree) {
    let probe = tree.at(".tick");
    let stamp = || {
        fs::write(&probe, "x").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let first = stamp();
    while stamp() == first {
        std::thread::yield_now();
    }
}
