//! A file of state: replaced whole, readable by its owner only, shared by processes, and never lost when it is corrupt.
//!
//! ```
//! use haversack_skill_runtime::state_file::StateFile;
//! use serde_json::json;
//!
//! # let folder = std::env::temp_dir().join(format!("haversack-state-{}", std::process::id()));
//! let file = StateFile::new(folder.join("things.json"), "things");
//! file.change("2026-01-01T00:00:00Z", |things| {
//!     things.insert("a".to_owned(), json!(1));
//! })?;
//! assert_eq!(file.load()?.entries.get("a"), Some(&json!(1)));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), haversack_skill_runtime::state_file::StateError>(())
//! ```
//!
//! The file is an object of `version` (1), the entries under a name of the store's own, and `updatedAt`. A change takes a
//! lock on a file beside it (`….lock`), reads what is there, writes a new file, flushes it, and renames it over the old
//! one. A file that cannot be read is set aside as `….corrupt-1` (and so on) before anything is written, and the change
//! says so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use thiserror::Error;

/// The layout that this version writes and reads.
pub const VERSION: u64 = 1;

/// Bytes of a state file at most. A larger one was not written here.
pub const MAX_STATE_BYTES: u64 = 16 * 1024 * 1024;

/// Corrupt files that are kept beside one state file; beyond that a change is refused, for nobody looks.
const MAX_CORRUPT: usize = 100;

/// A file with named entries. The calls block; they are made while things are set up or by a person's wish.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    entries_key: &'static str,
}

/// What was in the file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The entries; none where there is no file, or a corrupt one.
    pub entries: Map<String, Value>,
    /// Why the file that is there could not be read.
    pub corrupt: Option<String>,
}

/// What a change did beside the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// Where a file is kept now that could not be read, and why it could not.
    pub set_aside: Option<(PathBuf, String)>,
}

/// Why a state file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The system refused.
    #[error("{path} cannot be {action}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `read`, `written`, `locked` or `set aside`.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The entries would not fit into [`MAX_STATE_BYTES`].
    #[error("{path} would have {bytes} bytes, more than {MAX_STATE_BYTES}; remove entries that are not needed", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it would be.
        bytes: u64,
    },
}

impl StateFile {
    /// A file that need not exist, with its entries under `entries_key`. Its folder is made, for its owner only, when
    /// something is written.
    pub fn new(path: impl Into<PathBuf>, entries_key: &'static str) -> Self {
        Self { path: path.into(), entries_key }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file. One that is not there is empty; one that is corrupt is empty too, and says why.
    ///
    /// # Errors
    ///
    /// When the system does not let it be read.
    pub fn load(&self) -> Result<Loaded, StateError> {
        let size = match fs::metadata(&self.path) {
            Ok(facts) => facts.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::default()),
            Err(source) => return Err(self.failed("read", source)),
        };
        let read = if size > MAX_STATE_BYTES {
            Err(format!("it has {size} bytes, more than {MAX_STATE_BYTES}"))
        } else {
            let bytes = fs::read(&self.path).map_err(|source| self.failed("read", source))?;
            self.entries(&bytes)
        };
        Ok(match read {
            Ok(entries) => Loaded { entries, corrupt: None },
            Err(why) => Loaded { entries: Map::new(), corrupt: Some(why) },
        })
    }

    fn entries(&self, bytes: &[u8]) -> Result<Map<String, Value>, String> {
        let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(format!("its version is not {VERSION}"));
        }
        match value.get_mut(self.entries_key).map(Value::take) {
            Some(Value::Object(entries)) => Ok(entries),
            _ => Err(format!("it has no mapping `{}`", self.entries_key)),
        }
    }

    /// Changes the entries, alone among all processes that use this file. `time` is the host's, in its writing.
    ///
    /// # Errors
    ///
    /// When the system refuses; then the file is what it was.
    pub fn change(
        &self,
        time: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Changed, StateError> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_folder(folder).map_err(|source| self.failed("written", source))?;
        }
        let lock =
            private(&beside(&self.path, ".lock"), false).map_err(|source| self.failed("locked", source))?;
        fs4::FileExt::lock(&lock).map_err(|source| self.failed("locked", source))?;
        let loaded = self.load()?;
        let mut changed = Changed::default();
        if let Some(why) = loaded.corrupt {
            let kept = self.set_aside().map_err(|source| self.failed("set aside", source))?;
            changed.set_aside = Some((kept, why));
        }
        let mut entries = loaded.entries;
        change(&mut entries);
        let value = json!({"version": VERSION, self.entries_key: entries, "updatedAt": time});
        let text = format!("{value:#}\n");
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if bytes > MAX_STATE_BYTES {
            return Err(StateError::TooLarge { path: self.path.clone(), bytes });
        }
        self.replace(text.as_bytes()).map_err(|source| self.failed("written", source))?;
        // The lock ends with the file that holds it.
        drop(lock);
        Ok(changed)
    }

    fn set_aside(&self) -> io::Result<PathBuf> {
        for number in 1..=MAX_CORRUPT {
            let kept = beside(&self.path, &format!(".corrupt-{number}"));
            if kept.symlink_metadata().is_err() {
                fs::rename(&self.path, &kept)?;
                return Ok(kept);
            }
        }
        Err(io::Error::other(format!("{MAX_CORRUPT} corrupt files lie beside it already; look at them")))
    }

    /// A reader sees the old text or the new one, whole, also after a crash.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        // The lock is ours, so the name is; what a crash left there goes.
        let new = beside(&self.path, ".new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private(&new, true)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        drop(file);
        written.and_then(|()| fs::rename(&new, &self.path)).inspect_err(|_| {
            // The first error is the one to tell.
            let _ = fs::remove_file(&new);
        })?;
        sync_folder(&self.path)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> StateError {
        StateError::Io { path: self.path.clone(), action, source }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).create_new(new);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Makes the rename itself last; elsewhere than on Unix folders cannot be flushed.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests;
