//! The files of one skill, for hosts that pass them on: listed with what tells whether they changed, and read whole.
//!
//! ```
//! use haversack_skills::files::SkillFiles;
//!
//! # let base = tempfile::tempdir()?;
//! # let folder = base.path().join("forms");
//! # std::fs::create_dir_all(folder.join("references"))?;
//! # std::fs::write(folder.join("SKILL.md"), "---\nname: forms\ndescription: Fills in forms.\n---\n")?;
//! # std::fs::write(folder.join("references/fields.md"), "The fields.\n")?;
//! let files = SkillFiles::open(&folder)?;
//! let paths: Vec<_> = files.list(512)?.files.into_iter().map(|file| file.path).collect();
//! assert_eq!(paths, ["SKILL.md", "references/fields.md"]);
//! assert_eq!(files.read("references/fields.md", 1024)?, b"The fields.\n");
//! assert!(files.read("../secret", 1024).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::path::Path;

use crate::discover;
use crate::folder::Stamp;
use crate::jail::{self, Jail, JailError};

/// One skill's folder, open: no path, no link and no race leads out of it.
#[derive(Debug)]
pub struct SkillFiles {
    jail: Jail,
}

/// The files of a skill.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FileListing {
    /// The files, sorted by the bytes of their paths. Version control and installed packages are left out.
    pub files: Vec<FileEntry>,
    /// Whether there are more than were asked for, or some lie too deep.
    pub is_cut: bool,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEntry {
    /// From the skill's folder, with forward slashes.
    pub path: String,
    /// Its size in bytes, as of the listing.
    pub bytes: u64,
    /// What tells whether it has changed.
    pub stamp: FileStamp,
}

/// What tells whether a file has changed since, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp(Stamp);

impl FileStamp {
    /// Whether a change from now on would show in the next stamp: a file that was written a moment ago may be written
    /// again within the same tick of the file system's clock.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled(discover::now())
    }
}

/// Why a file of a skill could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path is empty, absolute, goes up, or leads out by a link.
    #[error("the path leads out of the skill's folder")]
    Outside,
    /// There is no such file, or it is no file.
    #[error("there is no such file")]
    Missing,
    /// It is larger than was asked for.
    #[error("the file has {bytes} bytes, more than {limit}")]
    #[non_exhaustive]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The system says no.
    #[error("the file could not be read: {0}")]
    Io(#[from] io::Error),
}

impl From<JailError> for FileError {
    fn from(error: JailError) -> Self {
        match error {
            JailError::Shape | JailError::Outside | JailError::TooLong => Self::Outside,
            JailError::Missing | JailError::NotAFile | JailError::Foreign(_) => Self::Missing,
            JailError::Io(error) => Self::Io(error),
        }
    }
}

impl SkillFiles {
    /// Opens a skill's folder. The folder itself may be reached through links.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { jail: Jail::open(folder)? })
    }

    /// Its files, at most `limit`. Links to files are listed where they stay inside; links to folders are not walked.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed.
    pub fn list(&self, limit: usize) -> io::Result<FileListing> {
        let found = self.jail.files(limit)?;
        let files = found.files.into_iter().map(|file| FileEntry {
            path: file.path,
            bytes: file.stamp.bytes,
            stamp: FileStamp(file.stamp),
        });
        Ok(FileListing { files: files.collect(), is_cut: found.cut })
    }

    /// The bytes of a file, at most `limit`. The path is relative to the skill's folder.
    ///
    /// # Errors
    ///
    /// When the path leads out, when there is no such file, or when it is larger than the limit.
    pub fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, FileError> {
        let mut opened = self.jail.file(path)?;
        let size = opened.facts.stamp.bytes;
        if size > limit {
            return Err(FileError::TooLarge { bytes: size, limit });
        }
        let bytes = jail::read(&mut opened.file, limit, size)?;
        let read = bytes.len() as u64;
        if read > limit {
            return Err(FileError::TooLarge { bytes: read, limit });
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_and_a_file_over_the_limit_is_no_file_of_the_limit() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("forms");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(base.path().join("secret"), "s").unwrap();
        std::fs::write(folder.join("SKILL.md"), "12345").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        let files = SkillFiles::open(&folder).unwrap();
        for path in ["", "/etc/passwd", "../secret", "sub/../../secret", "..\\secret", "C:\\x", "link"] {
            let refused = files.read(path, 100);
            let is_missing_link = path == "link" && cfg!(not(unix));
            assert!(matches!(refused, Err(FileError::Outside)) || is_missing_link, "{path}: {refused:?}");
        }
        assert!(matches!(files.read("sub", 100), Err(FileError::Missing)));
        assert!(matches!(files.read("SKILL.md", 4), Err(FileError::TooLarge { bytes: 5, limit: 4, .. })));
        assert_eq!(files.read("SKILL.md", 5).unwrap(), b"12345");
        let listed = files.list(10).unwrap();
        assert_eq!(listed.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["SKILL.md"]);
        assert!(!listed.is_cut);
    }

    #[test]
    fn a_stamp_tells_a_changed_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let files = SkillFiles::open(folder.path()).unwrap();
        let before = files.list(10).unwrap().files;
        assert_eq!(files.list(10).unwrap().files, before);
        std::fs::write(folder.path().join("a"), "22").unwrap();
        assert_ne!(files.list(10).unwrap().files, before);
    }
}
