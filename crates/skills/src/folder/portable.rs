//! Folders as paths, for systems without `openat`.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::folder::{Collector, Entry, Facts, Kind, Listing, Stamp};

/// A folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder at a path, through links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path: path.to_path_buf() })
    }

    /// Opens a folder below, through links.
    pub(crate) fn sub(&self, relative: &Path) -> io::Result<Self> {
        Self::open(&self.path.join(relative))
    }

    /// Opens a folder in this one; a link is an error.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        if !fs::symlink_metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    /// Kind and stamp of this folder.
    pub(crate) fn facts(&self) -> io::Result<Facts> {
        Ok(facts(&self.path, &fs::metadata(&self.path)?))
    }

    /// Kind and stamp of something below, of the link itself or of what it leads to.
    pub(crate) fn stat(&self, relative: &Path, follow: bool) -> io::Result<Facts> {
        let path = self.path.join(relative);
        let metadata = if follow { fs::metadata(&path)? } else { fs::symlink_metadata(&path)? };
        Ok(facts(&path, &metadata))
    }

    /// Opens a file below for reading, with its facts. With `follow` false a link as the last part is an error.
    pub(crate) fn file(&self, relative: &Path, follow: bool) -> io::Result<(File, Facts)> {
        let path = self.path.join(relative);
        if !follow && fs::symlink_metadata(&path)?.file_type().is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        Ok((file, facts(&path, &metadata)))
    }

    /// Where a link in this folder leads, as written in it.
    pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
        fs::read_link(self.path.join(name))
    }

    /// Lists this folder: at most `limit` entries, sorted by bytes.
    pub(crate) fn list(&self, limit: usize) -> io::Result<Listing> {
        let mut collector = Collector::new(limit);
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            collector.push(Entry { name: entry.file_name(), kind: kind(entry.file_type()?), inode: 0 });
        }
        Ok(collector.finish())
    }
}

/// Kind and stamp of an open file, as it is now; without its identity, which only a path has.
pub(crate) fn facts_of(file: &File) -> io::Result<Facts> {
    Ok(facts(Path::new(""), &file.metadata()?))
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

/// There is no inode to ask for without unsafe code, so the identity is a hash of the real path.
fn facts(path: &Path, metadata: &Metadata) -> Facts {
    let mut hasher = DefaultHasher::new();
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()).hash(&mut hasher);
    let modified = metadata.modified().map_or(0, nanoseconds);
    let stamp = Stamp { identity: (0, hasher.finish()), bytes: metadata.len(), modified, changed: 0 };
    Facts { kind: kind(metadata.file_type()), stamp }
}

fn nanoseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}
