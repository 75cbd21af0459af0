//! Folders as descriptors.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use crate::folder::{Collector, Entry, Facts, Kind, Listing, Stamp};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Not blocking: opening a pipe without a writer must not hang the host.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

impl Folder {
    /// Opens the folder at a path, through links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { descriptor: rustix::fs::open(path, FOLDER, Mode::empty())? })
    }

    /// Opens a folder below, through links.
    pub(crate) fn sub(&self, relative: &Path) -> io::Result<Self> {
        Ok(Self { descriptor: rustix::fs::openat(&self.descriptor, here(relative), FOLDER, Mode::empty())? })
    }

    /// Opens a folder in this one; a link is an error.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Self> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        Ok(Self { descriptor: rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())? })
    }

    /// Kind and stamp of this folder.
    pub(crate) fn facts(&self) -> io::Result<Facts> {
        Ok(facts(&rustix::fs::fstat(&self.descriptor)?))
    }

    /// Kind and stamp of something below, of the link itself or of what it leads to.
    pub(crate) fn stat(&self, relative: &Path, follow: bool) -> io::Result<Facts> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        Ok(facts(&rustix::fs::statat(&self.descriptor, here(relative), flags)?))
    }

    /// Opens a file below for reading, with its facts as they are *after* opening. With `follow` false a link as the
    /// last part is an error. The caller looks at the kind before it reads.
    pub(crate) fn file(&self, relative: &Path, follow: bool) -> io::Result<(File, Facts)> {
        let flags = if follow { FILE } else { FILE | OFlags::NOFOLLOW };
        let descriptor = rustix::fs::openat(&self.descriptor, relative, flags, Mode::empty())?;
        let facts = facts(&rustix::fs::fstat(&descriptor)?);
        Ok((File::from(descriptor), facts))
    }

    /// Where a link in this folder leads, as written in it.
    pub(crate) fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.descriptor, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Lists this folder: at most `limit` entries, sorted by bytes.
    pub(crate) fn list(&self, limit: usize) -> io::Result<Listing> {
        let mut collector = Collector::new(limit);
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsStr::from_bytes(name);
            let kind = match entry.file_type() {
                // Some file systems do not say; then the entry is asked itself.
                FileType::Unknown => {
                    self.stat(Path::new(name), false).map_or(Kind::Other, |facts| facts.kind)
                }
                told => kind(told),
            };
            collector.push(Entry { name: name.to_owned(), kind, inode: entry.ino() });
        }
        Ok(collector.finish())
    }
}

/// Kind and stamp of an open file, as it is now.
pub(crate) fn facts_of(file: &File) -> io::Result<Facts> {
    Ok(facts(&rustix::fs::fstat(file)?))
}

/// The empty path means the folder itself, which the calls want to hear as a dot.
fn here(relative: &Path) -> &Path {
    if relative.as_os_str().is_empty() { Path::new(".") } else { relative }
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::Directory => Kind::Folder,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    }
}

fn facts(stat: &Stat) -> Facts {
    let identity = (number(stat.st_dev), number(stat.st_ino));
    let modified = nanoseconds(stat.st_mtime, stat.st_mtime_nsec);
    let changed = nanoseconds(stat.st_ctime, stat.st_ctime_nsec);
    let stamp = Stamp { identity, bytes: number(stat.st_size), modified, changed };
    Facts { kind: kind(FileType::from_raw_mode(stat.st_mode)), stamp }
}

/// The systems disagree about the widths and signs of these fields, so the conversion is left to the type.
fn number<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(0)
}

fn nanoseconds<S: TryInto<i64>, N: TryInto<i64>>(seconds: S, nanoseconds: N) -> i64 {
    let seconds = seconds.try_into().unwrap_or(0);
    let nanoseconds = nanoseconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
