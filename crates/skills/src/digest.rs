//! Fingerprints of skills: what a consent is bound to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::discover;
use crate::folder::{Folder, Identity, Stamp};
use crate::jail::{Jail, JailError, Listed};
use crate::limits::Limits;
use crate::skill::{FILE_NAME, Skill};

/// SHA-256.
pub(crate) type Hash = [u8; 32];

/// What a skill's files were when they were hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkillDigest {
    /// Of the `SKILL.md` alone, so that loading a body takes one read.
    pub(crate) document: Hash,
    /// Of all files: paths, sizes and bytes.
    pub(crate) files: Hash,
}

/// The hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// A hash as 64 lower-case hexadecimal digits.
pub(crate) fn hex(hash: &Hash) -> String {
    use std::fmt::Write as _;
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The hash of each file of a skill that a consent covers, by path.
pub(crate) type FileHashes = HashMap<String, Hash>;

/// Hashes the files of a skill: its `SKILL.md`, then the first [`Limits::skill_files`] by name, of at most
/// [`Limits::skill_bytes`] together. What is beyond is not covered, and so never shown under a consent.
pub(crate) fn digest(skill: &Skill, limits: &Limits) -> io::Result<(SkillDigest, FileHashes)> {
    Files::open(skill, limits)?.hash(limits)
}

/// The files of a skill, listed and not yet read.
struct Files {
    /// The skill's folder, for the one file that may be a link to elsewhere, since a scan follows it.
    folder: Folder,
    document: Stamp,
    jail: Jail,
    others: Vec<Listed>,
}

impl Files {
    fn open(skill: &Skill, limits: &Limits) -> io::Result<Self> {
        let folder = Folder::open(skill.folder())?;
        let document = folder.stat(Path::new(FILE_NAME), true)?.stamp;
        let jail = Jail::open(skill.folder())?;
        let mut others = jail.files(limits.skill_files)?.files;
        others.retain(|file| file.path != FILE_NAME);
        Ok(Self { folder, document, jail, others })
    }

    fn hash(&self, limits: &Limits) -> io::Result<(SkillDigest, FileHashes)> {
        let mut hashes = FileHashes::new();
        let mut whole = Sha256::new();
        let mut left = limits.skill_bytes;
        let (mut file, _) = self.folder.file(Path::new(FILE_NAME), true)?;
        let document = Covered::read(&mut file, &mut left)?;
        document.cover(FILE_NAME, &mut whole);
        for listed in &self.others {
            let mut opened = match self.jail.file(&listed.path) {
                Ok(opened) => opened,
                Err(JailError::Io(error)) if error.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(error);
                }
                // Gone meanwhile, or not for us: not covered.
                Err(_) => continue,
            };
            let covered = Covered::read(&mut opened.file, &mut left)?;
            if left == 0 {
                break;
            }
            covered.cover(&listed.path, &mut whole);
            hashes.insert(listed.path.clone(), covered.hash);
        }
        hashes.insert(FILE_NAME.to_owned(), document.hash);
        Ok((SkillDigest { document: document.hash, files: whole.finalize().into() }, hashes))
    }

    /// A hash over the stamps of all files, and whether every stamp would show a change from now on.
    fn stamps(&self) -> (Hash, bool) {
        let now = discover::now();
        let mut settled = true;
        let mut hasher = Sha256::new();
        let document = std::iter::once((FILE_NAME, self.document));
        for (path, stamp) in document.chain(self.others.iter().map(|file| (file.path.as_str(), file.stamp))) {
            settled &= stamp.is_settled(now);
            hasher.update((path.len() as u64).to_le_bytes());
            hasher.update(path);
            let (device, inode) = stamp.identity;
            for number in
                [device, inode, stamp.bytes, stamp.modified.cast_unsigned(), stamp.changed.cast_unsigned()]
            {
                hasher.update(number.to_le_bytes());
            }
        }
        (hasher.finalize().into(), settled)
    }
}

/// One file, hashed.
struct Covered {
    bytes: u64,
    hash: Hash,
}

impl Covered {
    /// Hashes a file while there is room for it; a file that is larger takes all that is left.
    fn read(file: &mut File, left: &mut u64) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let bytes = copy(file, *left, &mut hasher)?;
        *left = left.saturating_sub(bytes);
        Ok(Self { bytes, hash: hasher.finalize().into() })
    }

    fn cover(&self, path: &str, whole: &mut Sha256) {
        for part in [path.as_bytes(), &self.bytes.to_le_bytes(), &self.hash] {
            whole.update((part.len() as u64).to_le_bytes());
            whole.update(part);
        }
    }
}

/// Feeds a file to a hasher; returns how many bytes it has, or one more than `limit`.
fn copy(file: &mut impl Read, limit: u64, hasher: &mut Sha256) -> io::Result<u64> {
    let mut buffer = [0; 8 * 1024];
    let mut total = 0_u64;
    while total <= limit {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => {
                hasher.update(buffer.get(..read).unwrap_or_default());
                total = total.saturating_add(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(limit.saturating_add(1))
}

/// Digests of skills whose files have not changed since they were hashed.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    known: HashMap<Identity, (Hash, SkillDigest)>,
}

impl Digests {
    /// The digest of a skill; its files are read only when one of their stamps is new.
    pub(crate) fn of(&mut self, skill: &Skill, limits: &Limits) -> io::Result<SkillDigest> {
        let files = Files::open(skill, limits)?;
        let (stamps, settled) = files.stamps();
        let folder = skill.found().folder;
        if let Some((known, digest)) = self.known.get(&folder)
            && *known == stamps
        {
            return Ok(*digest);
        }
        let (digest, _) = files.hash(limits)?;
        if settled {
            self.known.insert(folder, (stamps, digest));
        }
        Ok(digest)
    }
}
