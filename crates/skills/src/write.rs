//! Writing skill files: mending one, and making a new one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::diagnostic::Edit;
use crate::document::{Document, ParseOptions};
use crate::lint::read_limited;
use crate::name::is_portable;

/// Why a skill file was not written. Nothing on the disk has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The name is not one that every host accepts: see [`is_portable`].
    #[error("\"{0}\" is no skill name: use 1 to 64 lower-case letters and digits, in runs joined by hyphens")]
    Name(String),
    /// The description is blank, or longer than a front matter can be.
    #[error("a skill needs a description that says what it does and when to use it")]
    Description,
    /// A file or folder of that name is there already; it is never overwritten.
    #[error("{0} exists already and was left as it is")]
    Exists(PathBuf),
    /// The file changed between reading and writing; try again.
    #[error("{0} changed while it was being mended and was left as it is")]
    Changed(PathBuf),
    /// The file system said no.
    #[error("cannot write {path}")]
    Io {
        /// What was to be read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WriteError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// What [`fix`] did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fixed {
    /// The file is strictly right already.
    Right,
    /// No edit is known to mend it; the diagnostics say what a person should do.
    Unknown,
    /// The edit was made, and the file is strictly right now.
    Mended(Edit),
}

/// Mends a file in place with the edit that its diagnostics offer, if that makes it strictly right.
///
/// All bytes outside the edit stay. The new text is written beside the file, flushed to the disk, and put in its place in one
/// step, so that a crash leaves the old file or the new one; permissions are kept, and a link keeps pointing to the file
/// that it points to.
///
/// # Errors
///
/// [`WriteError::Io`] where the file cannot be read or written, [`WriteError::Changed`] where somebody else wrote it
/// meanwhile. The file is as it was then.
pub fn fix(file: &Path, options: &ParseOptions) -> Result<Fixed, WriteError> {
    let target = fs::canonicalize(file).map_err(WriteError::io(file))?;
    let bytes = read_limited(&target, options).map_err(WriteError::io(file))?;
    let document = Document::parse(&bytes, options);
    if document.is_strict() {
        return Ok(Fixed::Right);
    }
    let offered = document.diagnostics().iter().find_map(|found| found.fix.as_ref());
    let Some((edit, mended)) = offered.and_then(|edit| Some((edit, edit.apply(&bytes)?))) else {
        return Ok(Fixed::Unknown);
    };
    if !Document::parse(&mended, options).is_strict() {
        return Ok(Fixed::Unknown);
    }
    let staged = stage(&target, &mended)?;
    if read_limited(&target, options).map_err(WriteError::io(file))? != bytes {
        return Err(WriteError::Changed(file.to_owned()));
    }
    staged.replace(&target)?;
    Ok(Fixed::Mended(edit.clone()))
}

/// A finished file beside the one that it will replace. Dropped unused, it is removed.
struct Staged {
    path: PathBuf,
    is_placed: bool,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_placed {
            // Nothing more can be done about a file that cannot be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Files of the name pattern that are tried; more would mean that something else is wrong.
const MAX_STAGE_NAMES: u32 = 100;

/// Writes `bytes` to a new file beside `target`, with the same permissions.
fn stage(target: &Path, bytes: &[u8]) -> Result<Staged, WriteError> {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let permissions = fs::metadata(target).map_err(WriteError::io(target))?.permissions();
    let mut number = 0;
    let (path, mut file) = loop {
        let path = target.with_file_name(format!(".{name}.{number}.tmp"));
        match fs::File::create_new(&path) {
            Ok(file) => break (path, file),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists && number < MAX_STAGE_NAMES => {
                number += 1;
            }
            Err(fault) => return Err(WriteError::Io { path, source: fault }),
        }
    };
    let staged = Staged { path, is_placed: false };
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::set_permissions(&staged.path, permissions))
        .and_then(|()| file.sync_all());
    written.map_err(WriteError::io(&staged.path))?;
    Ok(staged)
}

impl Staged {
    fn replace(mut self, target: &Path) -> Result<(), WriteError> {
        fs::rename(&self.path, target).map_err(WriteError::io(target))?;
        self.is_placed = true;
        sync_folder(target)
    }
}

/// Makes a rename last through a loss of power, where the system can.
fn sync_folder(file: &Path) -> Result<(), WriteError> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(WriteError::io(folder))
}

/// Makes the folder `name` in `root` with a SKILL.md to fill in, and returns the path of that file.
///
/// `root` and its parents are made where missing. Neither a folder nor a file that is there is ever overwritten: the file
/// is created in one step that fails where there is one.
///
/// ```
/// # let root = tempfile::tempdir().unwrap();
/// use haversack_skills::document::{Document, ParseOptions};
/// use haversack_skills::write::new_skill;
///
/// let file = new_skill(root.path(), "pdf-forms", "Use when: a form has to be filled").unwrap();
/// let bytes = std::fs::read(file).unwrap();
/// let document = Document::parse(&bytes, &ParseOptions::new());
/// assert!(document.is_strict());
/// assert_eq!(document.description(), Some("Use when: a form has to be filled"));
/// assert!(new_skill(root.path(), "pdf-forms", "Another").is_err());
/// ```
///
/// # Errors
///
/// [`WriteError::Name`] and [`WriteError::Description`] for what no host would take, [`WriteError::Exists`] where the skill
/// is there already, [`WriteError::Io`] where the file system says no.
pub fn new_skill(root: &Path, name: &str, description: &str) -> Result<PathBuf, WriteError> {
    if !is_portable(name) {
        return Err(WriteError::Name(name.to_owned()));
    }
    let text = scaffold(name, description).ok_or(WriteError::Description)?;
    let folder = root.join(name);
    fs::create_dir_all(&folder).map_err(WriteError::io(&folder))?;
    let path = folder.join("SKILL.md");
    let mut file = match fs::File::create_new(&path) {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => return Err(WriteError::Exists(path)),
        Err(fault) => return Err(WriteError::Io { path, source: fault }),
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(WriteError::io(&path))?;
    Ok(path)
}

/// The text of a new skill file; `None` for a description that is blank or that no reader would give back unchanged.
pub fn scaffold(name: &str, description: &str) -> Option<String> {
    let words: Vec<&str> = description.split_whitespace().collect();
    let description = words.join(" ");
    if description.is_empty() {
        return None;
    }
    let text = format!(
        "---\nname: {name}\ndescription: '{}'\n# Offer it first while a file like these is open:\n# autoAttach:\n#   - \
         'src/**/*.rs'\n---\n\n# {name}\n\nSay here what to do, step by step. Put long details into files beside this one and name \
         them here.\n",
        description.replace('\'', "''")
    );
    let document = Document::parse(text.as_bytes(), &ParseOptions::new());
    let is_same = document.is_strict() && document.description() == Some(description.as_str());
    is_same.then_some(text)
}
