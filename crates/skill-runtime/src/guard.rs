//! Paths that must stay inside a folder, links and all.
//!
//! ```
//! use haversack_skill_runtime::guard::PathGuard;
//!
//! # let folder = std::env::temp_dir().join(format!("haversack-guard-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! let guard = PathGuard::new(&folder)?;
//! assert!(guard.inside("new/SKILL.md").is_ok());
//! assert!(guard.inside("..x/SKILL.md").is_ok(), "a name that only begins with two dots");
//! assert!(guard.inside("../elsewhere").is_err());
//! assert!(guard.inside(folder.with_file_name("sibling")).is_err());
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), haversack_skill_runtime::guard::GuardError>(())
//! ```
//!
//! The answer holds for the moment of the question: somebody who may write in the folder can put a link there later.
//! Reading of skills goes through `haversack-skills`, which opens paths part by part instead.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// A folder that paths are kept in.
#[derive(Clone, Debug)]
pub struct PathGuard {
    /// As the host wrote it.
    given: PathBuf,
    /// Without links.
    real: PathBuf,
}

/// Why a path is not let through.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuardError {
    /// It leads out of the folder, by its parts or through a link.
    #[error("{path} leads out of {root}", path = path.display(), root = root.display())]
    Outside {
        /// The path.
        path: PathBuf,
        /// The folder.
        root: PathBuf,
    },
    /// The system would not tell where it leads.
    #[error("{path} cannot be looked at", path = path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl PathGuard {
    /// Guards this folder, which has to exist.
    ///
    /// # Errors
    ///
    /// When it does not exist, or may not be looked at.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self, GuardError> {
        let given = root.into();
        let real = given.canonicalize().map_err(|source| GuardError::Io { path: given.clone(), source })?;
        Ok(Self { given, real })
    }

    /// The folder, without links.
    pub fn root(&self) -> &Path {
        &self.real
    }

    /// Where `path` really leads: it lies in the folder or is the folder, and no part of it that exists is a link out
    /// of it. A relative path starts in the folder; parts that do not exist yet are taken as written.
    ///
    /// # Errors
    ///
    /// When it leads out, or the system does not tell.
    pub fn inside(&self, path: impl AsRef<Path>) -> Result<PathBuf, GuardError> {
        let path = path.as_ref();
        let outside = || GuardError::Outside { path: path.to_owned(), root: self.given.clone() };
        let mut existing = self.real.join(path);
        if existing.components().any(|part| part == Component::ParentDir) {
            // `a/../b` is not `b` when `a` is a link; nobody needs such a path.
            return Err(outside());
        }
        let mut missing: Vec<OsString> = Vec::new();
        let real = loop {
            match existing.canonicalize() {
                Ok(real) => break real,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A link that leads nowhere exists, and where it leads nobody can tell.
                    if existing.symlink_metadata().is_ok() {
                        return Err(outside());
                    }
                    let name = existing.file_name().ok_or_else(outside)?.to_owned();
                    missing.push(name);
                    if !existing.pop() {
                        return Err(outside());
                    }
                }
                Err(source) => return Err(GuardError::Io { path: path.to_owned(), source }),
            }
        };
        if !real.starts_with(&self.real) {
            return Err(outside());
        }
        Ok(missing.iter().rev().fold(real, |path, name| path.join(name)))
    }
}
