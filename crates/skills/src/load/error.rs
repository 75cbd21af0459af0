//! Why a text could not be given.

use std::io;

use crate::jail::JailError;
use crate::page;

/// Why a text could not be given. The message is written for the model: it says what to do instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No skill of this name may be loaded.
    #[error("there is no skill {name:?}; {known}")]
    #[non_exhaustive]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are, in words.
        known: String,
    },
    /// There is no such page.
    #[error("there is no page {page} of {of_what}; pages go from 1 to {pages}")]
    #[non_exhaustive]
    NoSuchPage {
        /// The page asked for.
        page: usize,
        /// The last page.
        pages: usize,
        /// The skill or file.
        of_what: String,
    },
    /// The skill is no longer what the user agreed to.
    #[error(
        "{what} is not what the user agreed to any more; it can be used again when the user has been asked anew"
    )]
    #[non_exhaustive]
    Changed {
        /// The skill or file.
        what: String,
    },
    /// The path is no path of a bundled file.
    #[error("{path:?} {why}")]
    #[non_exhaustive]
    Path {
        /// The path asked for.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file is no text, or too much of it.
    #[error("{path} {why} ({bytes} bytes) and is not shown")]
    #[non_exhaustive]
    NotText {
        /// The file.
        path: String,
        /// Its size in bytes.
        bytes: u64,
        /// `is not a text` or `is too large`.
        why: &'static str,
    },
    /// The system would not read it.
    #[error("{what} could not be read")]
    #[non_exhaustive]
    Io {
        /// The skill or file.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

pub(super) fn refused(path: &str, name: &str, error: JailError) -> LoadError {
    let why = match error {
        JailError::Shape => format!("must be a path inside the folder of the skill {name}, relative to it"),
        JailError::Outside => format!("leads out of the folder of the skill {name}"),
        JailError::TooLong => "goes through too many links or folders".to_owned(),
        JailError::Missing => format!("is no file of the skill {name}"),
        JailError::NotAFile => format!("is a folder or no ordinary file of the skill {name}"),
        JailError::Foreign(folder) => format!("lies in {folder}, which is not part of the skill {name}"),
        JailError::Io(source) => {
            return LoadError::Io { what: format!("{path} of the skill {name}"), source };
        }
    };
    LoadError::Path { path: page::shorten(path, 200).0, why }
}
