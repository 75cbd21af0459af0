//! Where decisions are kept.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::consent::{Decision, Remembered};

/// Keeps what users decided, one decision a workspace.
///
/// # Contract
///
/// A host may keep decisions anywhere the repository cannot write. `read` after `write` of the same workspace gives what
/// was written. The calls may block; they are made while a run is set up, never during one. An error means that nothing
/// is known: the skills are then withheld.
pub trait ConsentStore: Send + Sync {
    /// The decision kept for a workspace.
    ///
    /// # Errors
    ///
    /// When what is kept cannot be read.
    fn read(&self, workspace: &str) -> Result<Option<Remembered>, ConsentError>;

    /// Keeps a decision, in place of an earlier one.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn write(&self, workspace: &str, remembered: Remembered) -> Result<(), ConsentError>;

    /// Forgets the decision of a workspace, so that the user is asked again.
    ///
    /// # Errors
    ///
    /// When it cannot be forgotten.
    fn forget(&self, workspace: &str) -> Result<(), ConsentError>;
}

/// Why a store could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsentError {
    /// The file could not be read or written.
    #[error("the consent file {path} could not be {action}")]
    #[non_exhaustive]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried: `read` or `written`.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else; it is left as it is.
    #[error(
        "the consent file {path} is not what this library writes ({reason}); move it away to be asked again"
    )]
    #[non_exhaustive]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A store of the host's failed.
    #[error("the consent store failed")]
    Host(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Keeps decisions for as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<HashMap<String, Remembered>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, Remembered>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConsentStore for MemoryStore {
    fn read(&self, workspace: &str) -> Result<Option<Remembered>, ConsentError> {
        Ok(self.kept().get(workspace).copied())
    }

    fn write(&self, workspace: &str, remembered: Remembered) -> Result<(), ConsentError> {
        self.kept().insert(workspace.to_owned(), remembered);
        Ok(())
    }

    fn forget(&self, workspace: &str) -> Result<(), ConsentError> {
        self.kept().remove(workspace);
        Ok(())
    }
}

/// The field that holds the version of the file's form.
const VERSION: u64 = 1;

/// Keeps decisions in a JSON file that only its owner can read.
///
/// The file is replaced as a whole: written beside itself, flushed, renamed. Several processes may share one on Unix,
/// where a lock on a file beside it (`….lock`) puts their changes in a row.
#[derive(Debug)]
pub struct JsonStore {
    path: PathBuf,
    /// One change at a time in this process.
    turn: Mutex<()>,
}

impl JsonStore {
    /// A store in a file, which need not exist yet. Its folder is made when the first decision is kept. It must not lie
    /// in a workspace.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), turn: Mutex::new(()) }
    }

    fn load(&self) -> Result<Map<String, Value>, ConsentError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(source) => return Err(self.failed("read", source)),
        };
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| self.malformed(error.to_string()))?;
        if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(self.malformed(format!("its version is not {VERSION}")));
        }
        match value.get("workspaces") {
            Some(Value::Object(workspaces)) => Ok(workspaces.clone()),
            _ => Err(self.malformed("it has no workspaces".to_owned())),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), ConsentError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let written = |source| self.failed("written", source);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(written)?;
        }
        let _lock = lock(&beside(&self.path, ".lock")).map_err(written)?;
        let mut workspaces = self.load()?;
        change(&mut workspaces);
        let value = json!({ "version": VERSION, "workspaces": workspaces });
        replace(&self.path, format!("{value:#}\n").as_bytes()).map_err(written)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> ConsentError {
        ConsentError::File { path: self.path.clone(), action, source }
    }

    fn malformed(&self, reason: String) -> ConsentError {
        ConsentError::Malformed { path: self.path.clone(), reason }
    }
}

impl ConsentStore for JsonStore {
    fn read(&self, workspace: &str) -> Result<Option<Remembered>, ConsentError> {
        let workspaces = self.load()?;
        let Some(entry) = workspaces.get(workspace) else { return Ok(None) };
        let decision = match entry.get("decision").and_then(Value::as_str) {
            Some("allowed") => Decision::Allowed,
            Some("refused") => Decision::Refused,
            _ => return Err(self.malformed(format!("the decision for {workspace} is no decision"))),
        };
        let fingerprint = entry.get("fingerprint").and_then(Value::as_str).and_then(|text| text.parse().ok());
        let fingerprint =
            fingerprint.ok_or_else(|| self.malformed(format!("{workspace} has no fingerprint")))?;
        Ok(Some(Remembered { decision, fingerprint }))
    }

    fn write(&self, workspace: &str, remembered: Remembered) -> Result<(), ConsentError> {
        let decision = match remembered.decision {
            Decision::Allowed => "allowed",
            Decision::Refused => "refused",
        };
        let entry = json!({ "decision": decision, "fingerprint": remembered.fingerprint.to_string() });
        self.change(|workspaces| {
            workspaces.insert(workspace.to_owned(), entry);
        })
    }

    fn forget(&self, workspace: &str) -> Result<(), ConsentError> {
        if self.load()?.contains_key(workspace) {
            self.change(|workspaces| {
                workspaces.shift_remove(workspace);
            })?;
        }
        Ok(())
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(unix)]
fn lock(path: &Path) -> io::Result<File> {
    let file = private(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

#[cfg(not(unix))]
fn lock(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes a file so that a reader sees the old text or the new one, whole.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The lock is ours, so the name is; a remainder of a crash is overwritten.
    let new = beside(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(&new)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    drop(file);
    written.and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&new);
    })
}
