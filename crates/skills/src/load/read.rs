//! Reading a `SKILL.md` that others may be writing.

use std::io;
use std::path::Path;

use crate::folder::{self, Folder, Kind, Stamp};
use crate::jail;
use crate::load::LoadError;
use crate::skill::FILE_NAME;

/// Tries to read a file that is being written.
const TRIES: usize = 3;

/// Why a document could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    TooLarge(u64),
    Io(io::Error),
}

impl ReadError {
    pub(super) fn of(self, what: &str) -> LoadError {
        match self {
            Self::TooLarge(bytes) => LoadError::NotText { path: what.to_owned(), bytes, why: "is too large" },
            Self::Io(source) => LoadError::Io { what: what.to_owned(), source },
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a `SKILL.md` whole. A file replaced meanwhile is read as it was; one that is written to in place is read again.
pub(super) fn read_document(folder: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let folder = Folder::open(folder)?;
    for _ in 0..TRIES {
        let (mut file, before) = folder.file(Path::new(FILE_NAME), true)?;
        if before.kind != Kind::File {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        let bytes = jail::read(&mut file, limit, before.stamp.bytes)?;
        if bytes.len() as u64 > limit || before.stamp.bytes > limit {
            return Err(ReadError::TooLarge(before.stamp.bytes));
        }
        let after = folder::facts_of(&file)?.stamp;
        let when = |stamp: Stamp| (stamp.bytes, stamp.modified, stamp.changed);
        if when(after) == when(before.stamp) {
            return Ok(bytes);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being written").into())
}
