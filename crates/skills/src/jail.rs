//! One skill's folder as a place that no path leads out of.
//!
//! A path is opened part by part. Each part is opened in the folder that is already open, never through a link of the
//! system: a link is read here, and its target is walked the same way. So a link that somebody puts in place of a
//! folder between a check and the opening is either read by us or refused by the kernel, and `..` goes back along the
//! folders that were opened, not to wherever they have been moved.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::folder::{Facts, Folder, Kind, Stamp};

/// Links followed in one path; the kernel's own bound is 40.
const LINKS: usize = 16;
/// Parts walked in one path, links written out.
const PARTS: usize = 256;
/// Folders below a skill that are not its text: version control and installed packages. They are neither listed nor
/// read nor covered by a consent.
pub(crate) const FOREIGN: [&str; 4] = [".git", ".hg", ".svn", "node_modules"];
/// Levels below a skill's folder in which its files may lie.
const LEVELS: usize = 16;

/// Why a path could not be opened.
#[derive(Debug)]
pub(crate) enum JailError {
    /// The path is empty, absolute or goes up.
    Shape,
    /// A link leads out.
    Outside,
    /// Too many links or parts.
    TooLong,
    /// There is no such file.
    Missing,
    /// It is a folder, a pipe, a device.
    NotAFile,
    /// It lies in a folder such as `node_modules`.
    Foreign(&'static str),
    /// The system says no.
    Io(io::Error),
}

impl From<io::Error> for JailError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// One file of a folder, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// From the folder, with forward slashes.
    pub(crate) path: String,
    pub(crate) stamp: Stamp,
}

/// An open file of a jail.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) facts: Facts,
    /// Where it is when all links are followed: from the folder, with forward slashes.
    pub(crate) path: String,
}

/// The files of a folder.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) files: Vec<Listed>,
    /// Whether there are more than the bound.
    pub(crate) cut: bool,
}

/// An open folder and its real path.
#[derive(Debug)]
pub(crate) struct Jail {
    root: Folder,
    real: PathBuf,
}

impl Jail {
    /// Opens a folder. The folder itself may be reached through links; what is below it may not lead out of it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { root: Folder::open(path)?, real: path.canonicalize()? })
    }

    /// Opens the file at a path as a model writes it: relative, forward or backward slashes.
    pub(crate) fn file(&self, path: &str) -> Result<Opened, JailError> {
        let path = written(path)?;
        let mut walk = Walk::new(self, &path)?;
        walk.file()
    }

    /// Whether a path names a folder inside, and its real path.
    pub(crate) fn folder(&self, path: &str) -> Result<PathBuf, JailError> {
        let path = written(path)?;
        let mut walk = Walk::new(self, &path)?;
        walk.folder()?;
        Ok(walk.names.iter().fold(self.real.clone(), |path, name| path.join(name)))
    }

    /// Every file below, sorted by bytes, at most `limit`. Links to files are listed when they stay inside; links to
    /// folders are not walked, for what they lead to is listed where it is.
    pub(crate) fn files(&self, limit: usize) -> io::Result<Files> {
        let mut found = Files::default();
        self.list(&self.root, "", LEVELS, limit, &mut found)?;
        found.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn list(
        &self,
        folder: &Folder,
        prefix: &str,
        levels: usize,
        limit: usize,
        found: &mut Files,
    ) -> io::Result<()> {
        let listing = folder.list(limit.saturating_mul(2))?;
        found.cut |= listing.beyond > 0;
        for entry in &listing.entries {
            let Some(name) = entry.name.to_str() else { continue };
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            match entry.kind {
                Kind::Folder if FOREIGN.contains(&name) => {}
                Kind::Folder if levels == 0 => found.cut = true,
                Kind::Folder => {
                    // One folder that cannot be read does not hide the others.
                    if let Ok(below) = folder.child(&entry.name) {
                        self.list(&below, &path, levels - 1, limit, found)?;
                    }
                }
                Kind::File | Kind::Link => {
                    let facts = match entry.kind {
                        Kind::File => folder.stat(Path::new(&entry.name), false).ok(),
                        _ => self.file(&path).ok().map(|opened| opened.facts),
                    };
                    let Some(facts) = facts else { continue };
                    if found.files.len() >= limit {
                        found.cut = true;
                        return Ok(());
                    }
                    found.files.push(Listed { path, stamp: facts.stamp });
                }
                Kind::Other => {}
            }
        }
        Ok(())
    }
}

/// A path as written by a model, taken apart.
fn written(path: &str) -> Result<PathBuf, JailError> {
    // On Unix a drive is a name like any other and a backslash too; but the model means what it means elsewhere.
    let path = path.replace('\\', "/");
    let drive =
        path.as_bytes().get(1) == Some(&b':') && path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let up = path.split('/').any(|part| part == "..");
    if path.trim().is_empty() || path.starts_with('/') || path.contains('\0') || drive || up {
        return Err(JailError::Shape);
    }
    Ok(PathBuf::from(path))
}

/// The parts of a path, the next one last.
fn reversed(path: &Path) -> Result<Vec<Part>, JailError> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => parts.push(Part::Up),
            Component::Normal(name) => parts.push(Part::Down(name.to_owned())),
            Component::RootDir | Component::Prefix(_) => return Err(JailError::Outside),
        }
    }
    parts.reverse();
    Ok(parts)
}

enum Part {
    Up,
    Down(OsString),
}

/// A path being opened.
struct Walk<'a> {
    jail: &'a Jail,
    /// The folders opened below the root, the innermost last, and their names.
    opened: Vec<Folder>,
    names: Vec<OsString>,
    rest: Vec<Part>,
    links: usize,
    parts: usize,
}

impl<'a> Walk<'a> {
    fn new(jail: &'a Jail, path: &Path) -> Result<Self, JailError> {
        Ok(Self { jail, opened: Vec::new(), names: Vec::new(), rest: reversed(path)?, links: 0, parts: 0 })
    }

    fn here(&self) -> &Folder {
        self.opened.last().unwrap_or(&self.jail.root)
    }

    fn file(&mut self) -> Result<Opened, JailError> {
        while let Some(name) = self.next()? {
            match self.here().stat(Path::new(&name), false)?.kind {
                Kind::Link => self.follow(&name)?,
                Kind::Folder => self.enter(name)?,
                Kind::File if self.rest.is_empty() => {
                    let (file, facts) = self.here().file(Path::new(&name), false)?;
                    if facts.kind != Kind::File {
                        return Err(JailError::NotAFile);
                    }
                    let parts = self.names.iter().chain([&name]).map(|part| part.to_string_lossy());
                    let path = parts.collect::<Vec<_>>().join("/");
                    return Ok(Opened { file, facts, path });
                }
                Kind::File => return Err(JailError::Missing),
                Kind::Other => return Err(JailError::NotAFile),
            }
        }
        Err(JailError::NotAFile)
    }

    fn folder(&mut self) -> Result<(), JailError> {
        while let Some(name) = self.next()? {
            match self.here().stat(Path::new(&name), false)?.kind {
                Kind::Link => self.follow(&name)?,
                Kind::Folder => self.enter(name)?,
                Kind::File | Kind::Other => return Err(JailError::Missing),
            }
        }
        Ok(())
    }

    /// The next part that leads down.
    fn next(&mut self) -> Result<Option<OsString>, JailError> {
        while let Some(part) = self.rest.pop() {
            self.parts += 1;
            if self.parts > PARTS {
                return Err(JailError::TooLong);
            }
            match part {
                Part::Down(name) => return Ok(Some(name)),
                Part::Up => {
                    self.opened.pop().ok_or(JailError::Outside)?;
                    self.names.pop();
                }
            }
        }
        Ok(None)
    }

    fn enter(&mut self, name: OsString) -> Result<(), JailError> {
        if let Some(foreign) = FOREIGN.iter().find(|foreign| name == **foreign) {
            return Err(JailError::Foreign(foreign));
        }
        let folder = self.here().child(&name)?;
        self.opened.push(folder);
        self.names.push(name);
        Ok(())
    }

    fn follow(&mut self, name: &OsString) -> Result<(), JailError> {
        self.links += 1;
        if self.links > LINKS {
            return Err(JailError::TooLong);
        }
        let target = self.here().link_target(name)?;
        // An absolute link may name a place inside; then it is walked from the root of the jail.
        let inside = if target.has_root() {
            let inside = target.strip_prefix(&self.jail.real).map_err(|_| JailError::Outside)?.to_path_buf();
            self.opened.clear();
            self.names.clear();
            inside
        } else {
            target
        };
        self.rest.extend(reversed(&inside)?);
        Ok(())
    }
}

/// Reads a file whole, at most `limit` bytes of it and one more to tell that there is more.
pub(crate) fn read(file: &mut File, limit: u64, expected: u64) -> io::Result<Vec<u8>> {
    let room = usize::try_from(expected.min(limit)).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(room);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
