//! The root as a place that no path leads out of.
//!
//! A path is taken apart as text, so that `..` is gone before the file system is asked. Then each part is opened in the
//! folder that is already open, and a link is never followed: it is answered with where it leads. So the path that
//! rules and people judge is the path that is opened, whatever is swapped in between.

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use haversack_agent_core::tool::ToolError;

/// Parts of a path at most: more than any project has, and a bound on the folders opened for one call.
const MAX_PARTS: usize = 64;

/// Why a path could not be opened. The texts are for the model.
#[derive(Debug)]
pub(super) enum JailError {
    /// It is outside the root, or no path at all.
    Shape(&'static str),
    /// A part is a link; where the whole path leads, if that is inside.
    Link { at: String, leads_to: Option<String> },
    /// There is no such thing.
    Missing,
    /// It is something else than what was asked for.
    Kind(&'static str),
    /// It is larger than what is read at once.
    TooLarge { bytes: u64, limit: u64 },
    /// The system says no.
    Io(io::Error),
}

impl From<io::Error> for JailError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::Kind("a part of the path is no folder"),
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for JailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(why) | Self::Kind(why) => f.write_str(why),
            Self::Link { at, leads_to: Some(real) } => {
                write!(f, "`{at}` is a link, and links are not followed; use the path `{real}` instead")
            }
            Self::Link { at, leads_to: None } => {
                write!(f, "`{at}` is a link that leads out of the project or nowhere")
            }
            Self::Missing => f.write_str("there is no such file or folder; `list_files` shows what there is"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "it has {bytes} bytes, and at most {limit} are read")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl JailError {
    /// For the model, with the path as it was written.
    pub(super) fn about(self, path: &str) -> ToolError {
        let text = format!("{path}: {self}");
        match self {
            Self::Io(_) | Self::TooLarge { .. } => ToolError::failed(text),
            _ => ToolError::invalid_arguments(text),
        }
    }
}

/// An open root.
#[derive(Debug)]
pub(super) struct Jail {
    root: Dir,
    /// The root as given and as it really is: an absolute path below one of them is one below the root.
    names: [PathBuf; 2],
}

/// A file or folder to be, or one that is there: the folder that it stands in, and its name.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: Dir,
    pub(super) name: String,
}

impl Jail {
    /// Opens the root, through links.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let real = root.canonicalize()?;
        let given = std::path::absolute(root)?;
        Ok(Self { root: Dir::open_ambient_dir(&real, ambient_authority())?, names: [given, real] })
    }

    /// The real path of the root, to run commands in.
    pub(super) fn real(&self) -> &Path {
        let [_, real] = &self.names;
        real
    }

    /// A path as a model writes it, as parts joined by `/` from the root: empty for the root itself.
    pub(super) fn written(&self, path: &str) -> Result<String, JailError> {
        let inside = self.names.iter().find_map(|root| Path::new(path).strip_prefix(root).ok());
        let path = inside.and_then(Path::to_str).unwrap_or(path).replace('\\', "/");
        if path.chars().any(char::is_control) {
            return Err(JailError::Shape("a path holds no control characters"));
        }
        let is_drive = path.as_bytes().get(1) == Some(&b':');
        if path.starts_with('/') || is_drive {
            return Err(JailError::Shape("it is outside the project; give a path from the project's root"));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    let up = "it leads out of the project; give a path from the project's root";
                    parts.pop().ok_or(JailError::Shape(up))?;
                }
                part if !is_plain(part) => {
                    return Err(JailError::Shape("a part of the path has another meaning on this system"));
                }
                part => parts.push(part),
            }
        }
        if parts.len() > MAX_PARTS {
            return Err(JailError::Shape("the path has too many parts"));
        }
        Ok(parts.join("/"))
    }

    /// The folder at a path that [`written`](Self::written) gave.
    pub(super) fn folder(&self, written: &str) -> Result<Dir, JailError> {
        self.descend(written, false, written)
    }

    /// Reads a file whole, at most `limit` bytes.
    pub(super) fn read(&self, written: &str, limit: u64) -> Result<(Vec<u8>, Metadata), JailError> {
        let place = self.place(written, false)?;
        let mut file = self.file(&place, written)?;
        let metadata = file.metadata()?;
        if metadata.len() > limit {
            return Err(JailError::TooLarge { bytes: metadata.len(), limit });
        }
        // What grows while it is read is cut off as well.
        let mut bytes = Vec::new();
        let read = file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        match u64::try_from(read) {
            Ok(read) if read <= limit => Ok((bytes, metadata)),
            _ => Err(JailError::TooLarge { bytes: metadata.len(), limit }),
        }
    }

    /// The folder and the name of a path; with `make`, folders on the way are created.
    pub(super) fn place(&self, written: &str, make: bool) -> Result<Place, JailError> {
        let (parent, name) = written.rsplit_once('/').unwrap_or(("", written));
        if name.is_empty() {
            return Err(JailError::Kind("it is the project's root, which is a folder"));
        }
        Ok(Place { folder: self.descend(parent, make, written)?, name: name.to_owned() })
    }

    /// Opens a regular file for reading. A pipe or a device is told by its kind before it is opened, and the opening
    /// does not wait should one be swapped in.
    fn file(&self, place: &Place, written: &str) -> Result<File, JailError> {
        self.is_file(&place.folder, &place.name, written)?;
        let file = open_file(&place.folder, &place.name).map_err(|error| self.explained(error, written))?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(JailError::Kind("it is no regular file")) }
    }

    /// Checks that an entry is a regular file, without opening it.
    pub(super) fn is_file(&self, folder: &Dir, name: &str, written: &str) -> Result<Metadata, JailError> {
        let metadata = folder.symlink_metadata(name)?;
        if metadata.is_symlink() {
            return Err(self.link(written, written));
        }
        if metadata.is_dir() {
            return Err(JailError::Kind("it is a folder; `list_files` shows what is in it"));
        }
        if !metadata.is_file() {
            return Err(JailError::Kind("it is no regular file"));
        }
        Ok(metadata)
    }

    /// Opens the folder at `path`, which is a beginning of `written`.
    fn descend(&self, path: &str, make: bool, written: &str) -> Result<Dir, JailError> {
        let mut folder = self.root.try_clone()?;
        let mut so_far = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !so_far.is_empty() {
                so_far.push('/');
            }
            so_far.push_str(part);
            folder = match folder.open_dir_nofollow(part) {
                Ok(below) => below,
                Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                    folder.create_dir(part)?;
                    folder.open_dir_nofollow(part)?
                }
                Err(_) if folder.symlink_metadata(part).is_ok_and(|m| m.is_symlink()) => {
                    return Err(self.link(&so_far, written));
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(folder)
    }

    fn explained(&self, error: io::Error, written: &str) -> JailError {
        match self.root.symlink_metadata(written) {
            Ok(metadata) if metadata.is_symlink() => self.link(written, written),
            _ => error.into(),
        }
    }

    fn link(&self, at: &str, written: &str) -> JailError {
        let real = self.root.canonicalize(written).ok();
        let leads_to = real.and_then(|real| slashed(&real));
        JailError::Link { at: at.to_owned(), leads_to }
    }
}

/// Opens an entry of a folder for reading: not through a link, and without waiting for a writer of a pipe.
pub(super) fn open_file(folder: &Dir, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits();
        options.custom_flags(flags.cast_signed());
    }
    folder.open_with(name, &options)
}

/// A path with `/` between its parts; `None` when it is no Unicode.
fn slashed(path: &Path) -> Option<String> {
    let parts: Option<Vec<_>> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/")).filter(|path| !path.is_empty())
}

/// Whether a part of a path names one file and nothing else. On Windows `a:b` is a stream of `a`, `a.` is `a`, and
/// `SECRET~1` is another name of a longer one.
fn is_plain(part: &str) -> bool {
    let means_more = part.contains(':')
        || part.ends_with(['.', ' '])
        || part.rsplit_once('~').is_some_and(|(_, end)| end.starts_with(|c: char| c.is_ascii_digit()));
    !(cfg!(windows) && means_more)
}
