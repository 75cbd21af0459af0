//! Walking a folder without following links.

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::blocking::GivenUp;
use super::jail::JailError;

/// Entries looked at in one walk; beyond that the walk ends and says so.
pub const MAX_WALKED: usize = 100_000;

/// Levels of folders below the one where a walk begins.
pub const MAX_DEPTH: usize = 32;

/// Folders that a walk names and does not enter: version control and what package managers install or build.
pub const SKIPPED_FOLDERS: &[&str] =
    &[".git", ".hg", ".svn", "node_modules", "target", ".venv", "__pycache__", ".next", ".gradle"];

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// One entry, in the order of a listing: a folder comes before what is in it.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// From the root, with `/`.
    pub(super) path: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// The folder that it stands in.
    pub(super) folder: &'a Dir,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Names that are no Unicode, and folders that could not be read.
    pub(super) unreadable: usize,
    /// Whether it ended at a bound.
    pub(super) cut: bool,
}

/// Walks a folder; `visit` says whether to go on.
pub(super) struct Walk<'a, V: FnMut(Entry<'_>) -> bool> {
    pub(super) visit: V,
    pub(super) given_up: &'a GivenUp,
    pub(super) seen: usize,
    pub(super) result: Walked,
}

impl<V: FnMut(Entry<'_>) -> bool> Walk<'_, V> {
    /// Visits what is below a folder, `levels` deep. Gives back whether to go on.
    pub(super) fn folder(&mut self, folder: &Dir, path: &str, levels: usize) -> Result<bool, JailError> {
        let mut entries: Vec<(String, Kind)> = Vec::new();
        for entry in folder.entries()? {
            self.seen += 1;
            if self.seen > MAX_WALKED {
                self.result.cut = true;
                return Ok(false);
            }
            let Ok(entry) = entry else {
                self.result.unreadable += 1;
                continue;
            };
            match (entry.file_name().into_string(), entry.file_type()) {
                (Ok(name), Ok(kind)) => entries.push((name, kind_of(&kind))),
                _ => self.result.unreadable += 1,
            }
        }
        entries.sort_unstable();
        for (name, kind) in &entries {
            if self.given_up.is_so() {
                self.result.cut = true;
                return Ok(false);
            }
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if !(self.visit)(Entry { path: &below, name, kind: *kind, folder }) {
                return Ok(false);
            }
            let enters = *kind == Kind::Folder && levels > 1 && !SKIPPED_FOLDERS.contains(&name.as_str());
            if enters && !self.enter(folder, name, &below, levels - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn enter(&mut self, folder: &Dir, name: &str, path: &str, levels: usize) -> Result<bool, JailError> {
        // One folder that cannot be read does not hide the others.
        let Ok(below) = folder.open_dir_nofollow(name) else {
            self.result.unreadable += 1;
            return Ok(true);
        };
        match self.folder(&below, path, levels) {
            Err(_) => {
                self.result.unreadable += 1;
                Ok(true)
            }
            result => result,
        }
    }
}

fn kind_of(kind: &cap_std::fs::FileType) -> Kind {
    if kind.is_symlink() {
        Kind::Link
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}
