//! A store in one JSON file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::consent::decision::Decision;
use crate::consent::store::{ConsentStore, ConsentStoreError, Ledger};
use crate::fingerprint::Fingerprint;

/// The most bytes that are read: more than a full ledger with long paths has.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The layout of the file; another number is a file of a later version, and is left alone.
const VERSION: u32 = 1;

/// Keeps answers in one JSON file, readable and writable by its owner only.
///
/// A change is written to a new file beside it, which then takes its place: a reader sees the old answers or the new
/// ones, and a crash loses at most the last answer. The folder is made when it is missing. Two programs that record at
/// the same moment may lose one of the two answers, which is then asked for again.
///
/// The file belongs in the host's own storage, never in the repository that it is about.
///
/// The work is done on the runtime's threads for blocking calls, or in place outside a runtime.
#[derive(Clone, Debug)]
pub struct FileConsentStore {
    file: Arc<ConsentFile>,
}

#[derive(Debug)]
struct ConsentFile {
    path: PathBuf,
    /// Held while the file is read, changed and written, so that no change of this process is lost.
    changing: Mutex<()>,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    ledger: Ledger,
}

impl FileConsentStore {
    /// A store in the given file, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { file: Arc::new(ConsentFile { path: path.into(), changing: Mutex::new(()) }) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    async fn with_file<T: Send + 'static>(
        &self,
        action: impl FnOnce(&ConsentFile) -> Result<T, ConsentStoreError> + Send + 'static,
    ) -> Result<T, ConsentStoreError> {
        let file = Arc::clone(&self.file);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return action(&file);
        };
        runtime
            .spawn_blocking(move || action(&file))
            .await
            .unwrap_or_else(|lost| Err(ConsentStoreError::Host(lost.into())))
    }
}

#[async_trait]
impl ConsentStore for FileConsentStore {
    async fn decision(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
    ) -> Result<Option<Decision>, ConsentStoreError> {
        let workspace = workspace.to_owned();
        self.with_file(move |file| Ok(file.read()?.decision(&workspace, fingerprint))).await
    }

    async fn record(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), ConsentStoreError> {
        let workspace = workspace.to_owned();
        self.with_file(move |file| {
            file.change(|ledger| {
                ledger.record(&workspace, fingerprint, decision);
                true
            })
        })
        .await
    }

    async fn forget(&self, workspace: &str) -> Result<(), ConsentStoreError> {
        let workspace = workspace.to_owned();
        self.with_file(move |file| file.change(|ledger| ledger.forget(&workspace))).await
    }
}

impl ConsentFile {
    fn read(&self) -> Result<Ledger, ConsentStoreError> {
        let mut text = Vec::new();
        match File::open(&self.path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ledger::default()),
            Err(error) => return Err(self.failed("read", error)),
        }
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(self.damaged(format!("more than {MAX_FILE_BYTES} bytes")));
        }
        let content: Content =
            serde_json::from_slice(&text).map_err(|error| self.damaged(error.to_string()))?;
        if content.version != VERSION {
            return Err(self.damaged(format!("version {} is not known", content.version)));
        }
        Ok(content.ledger)
    }

    /// Reads, changes, and writes if `change` says that something is different.
    fn change(&self, change: impl FnOnce(&mut Ledger) -> bool) -> Result<(), ConsentStoreError> {
        let _held = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ledger = self.read()?;
        if !change(&mut ledger) {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&Content { version: VERSION, ledger })
            .map_err(|error| self.failed("write", error.into()))?;
        self.replace(&text).map_err(|error| self.failed("write", error))
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent()
            && !folder.as_os_str().is_empty()
        {
            make_folder(folder)?;
        }
        let (beside, mut file) = self.create_beside()?;
        let written = file.write_all(text).and_then(|()| file.sync_all());
        drop(file);
        let replaced = written.and_then(|()| fs::rename(&beside, &self.path));
        if replaced.is_err() {
            // The reason above is what matters; a leftover is harmless.
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    /// A new file in the same folder, never one that exists: a name that somebody has prepared is passed over.
    fn create_beside(&self) -> io::Result<(PathBuf, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        const ATTEMPTS: u32 = 100;
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        for _ in 0..ATTEMPTS {
            let mut beside = name.clone();
            beside.push(format!(".{}.tmp", COUNTER.fetch_add(1, Ordering::Relaxed)));
            let beside = self.path.with_file_name(beside);
            match create_private(&beside) {
                Ok(file) => return Ok((beside, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn failed(&self, action: &'static str, source: io::Error) -> ConsentStoreError {
        ConsentStoreError::Io { action, path: self.path.clone(), source }
    }

    fn damaged(&self, reason: String) -> ConsentStoreError {
        ConsentStoreError::Damaged { path: self.path.clone(), reason }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
