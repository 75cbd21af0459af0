//! Where secrets are read from.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::guard::PathGuard;
use crate::secrets::{Secret, SecretError};

/// Bytes of a secret at most: the longest keys in use have a few thousand.
pub const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Reads secrets of one kind of source: a vault, a key ring of the system.
///
/// # Contract
///
/// - The error names the place, never the value or anything read.
/// - Nothing is kept: each call reads anew, so that a changed secret is the new one.
/// - The future may be dropped at any await.
#[async_trait]
pub trait SecretSource: Send + Sync + 'static {
    /// The secret at this place, the part of the profile's source behind the colon.
    async fn read(&self, place: &str) -> Result<Secret, SecretError>;
}

/// Environment variables, as the host looks them up: `EnvSource::new(|name| std::env::var(name).ok())`.
pub struct EnvSource(Lookup);

type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl EnvSource {
    /// Variables by this function of the host.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Box::new(lookup))
    }
}

impl fmt::Debug for EnvSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvSource")
    }
}

#[async_trait]
impl SecretSource for EnvSource {
    async fn read(&self, place: &str) -> Result<Secret, SecretError> {
        let value = (self.0)(place).filter(|value| !value.is_empty());
        let missing =
            || SecretError::SourceReadFailed(format!("the variable `{place}` is not set, or empty"));
        value.map(Secret::new).ok_or_else(missing)
    }
}

/// Files below a folder. On Unix a file may be read and written by its owner only, who has to be the owner of the folder
/// or root. A link is followed as long as it stays in the folder, and its own mode does not count: that is how
/// orchestrators mount secrets.
#[derive(Clone, Debug)]
pub struct FileSource {
    root: PathBuf,
}

impl FileSource {
    /// Files below this folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn read_file(&self, place: &str) -> Result<String, SecretError> {
        let failed = |why: &str| SecretError::SourceReadFailed(format!("the secret file `{place}` {why}"));
        let guard = PathGuard::new(&self.root).map_err(|_| failed("is in a folder that cannot be read"))?;
        let path = guard.inside(place).map_err(|_| failed("leads out of the folder of secrets"))?;
        let file = File::open(&path).map_err(|_| failed("cannot be opened"))?;
        let facts = file.metadata().map_err(|_| failed("cannot be looked at"))?;
        if !facts.is_file() {
            return Err(failed("is no file"));
        }
        self.check_owner(place, &facts)?;
        let mut text = String::new();
        let read = file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text);
        read.map_err(|_| failed("is no text"))?;
        if u64::try_from(text.len()).is_ok_and(|length| length > MAX_SECRET_BYTES) {
            return Err(failed("is too long for a secret"));
        }
        let value = text.trim_end_matches(['\r', '\n']);
        if value.is_empty() { Err(failed("is empty")) } else { Ok(value.to_owned()) }
    }

    #[cfg(unix)]
    fn check_owner(&self, place: &str, facts: &Metadata) -> Result<(), SecretError> {
        use std::os::unix::fs::MetadataExt as _;

        let insecure =
            |why: String| Err(SecretError::FileModeInsecure(format!("the secret file `{place}` {why}")));
        if facts.mode() & 0o077 != 0 {
            return insecure(format!(
                "may be used by others (mode {:o}); set it to 600",
                facts.mode() & 0o777
            ));
        }
        let owner = std::fs::metadata(&self.root).map(|root| root.uid());
        if facts.uid() != 0 && owner.ok() != Some(facts.uid()) {
            return insecure("belongs to somebody else than its folder".to_owned());
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check_owner(&self, _place: &str, _facts: &Metadata) -> Result<(), SecretError> {
        Ok(())
    }
}

#[async_trait]
impl SecretSource for FileSource {
    async fn read(&self, place: &str) -> Result<Secret, SecretError> {
        // A small local file: reading it does not hold up a run.
        self.read_file(place).map(Secret::new)
    }
}
