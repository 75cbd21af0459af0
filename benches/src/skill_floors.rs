//! The least that finding skills can cost: what every scan is measured beside.
//!
//! Both floors hold the root open and name the files relative to it, as a fast walk does, so that nothing is won by the
//! floor's long paths. They know that the skills are the direct sub-folders, look at nothing else, keep nothing, and run
//! on one thread.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes that are read of each `SKILL.md`: what nearly every front matter fits into.
pub const HEAD: usize = 4 * 1024;

/// Lists `root` and reads the first 4 KiB of each `SKILL.md` in its sub-folders. Returns how many there were, and the
/// bytes of all.
///
/// # Errors
///
/// The root cannot be listed.
pub fn read_heads(root: &Path) -> io::Result<(usize, usize)> {
    let mut buffer = vec![0; HEAD];
    let (mut files, mut bytes) = (0, 0);
    each(root, |root, file| {
        if let Ok(mut file) = open(root, file) {
            files += 1;
            bytes += file.read(&mut buffer).unwrap_or(0);
        }
    })?;
    Ok((files, bytes))
}

/// Lists `root` and asks for the facts of each `SKILL.md` in its sub-folders. Returns how many there were, and the bytes
/// of all.
///
/// # Errors
///
/// The root cannot be listed.
pub fn stat_all(root: &Path) -> io::Result<(usize, u64)> {
    let (mut files, mut bytes) = (0, 0);
    each(root, |root, file| {
        if let Some(size) = size(root, file) {
            files += 1;
            bytes += size;
        }
    })?;
    Ok((files, bytes))
}

#[cfg(unix)]
fn each(root: &Path, mut visit: impl FnMut(&rustix::fd::OwnedFd, &Path)) -> io::Result<()> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{Dir, FileType, Mode, OFlags};

    let root = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut path = Vec::new();
    for entry in Dir::read_from(&root)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if entry.file_type() == FileType::Directory && name != b"." && name != b".." {
            path.clear();
            path.extend_from_slice(name);
            path.extend_from_slice(b"/SKILL.md");
            visit(&root, Path::new(OsStr::from_bytes(&path)));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn open(root: &rustix::fd::OwnedFd, file: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    Ok(rustix::fs::openat(root, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
}

#[cfg(unix)]
fn size(root: &rustix::fd::OwnedFd, file: &Path) -> Option<u64> {
    use rustix::fs::{AtFlags, statat};

    statat(root, file, AtFlags::empty()).ok().map(|facts| facts.st_size.unsigned_abs())
}

#[cfg(not(unix))]
fn each(root: &Path, mut visit: impl FnMut(&Path, &Path)) -> io::Result<()> {
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            visit(root, &Path::new(&entry.file_name()).join("SKILL.md"));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn open(root: &Path, file: &Path) -> io::Result<File> {
    File::open(root.join(file))
}

#[cfg(not(unix))]
fn size(root: &Path, file: &Path) -> Option<u64> {
    std::fs::metadata(root.join(file)).ok().map(|facts| facts.len())
}
