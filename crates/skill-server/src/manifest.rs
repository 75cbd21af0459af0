//! The files of skills as resources, and the manifests of the skills extension (SEP-2640): what files there are, with their
//! sizes and digests. Files are listed anew for each question and hashed only when they have changed since.

mod media;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haversack_skills::FILE_NAME;
use haversack_skills::files::{FileError, FileStamp, SkillFiles};
use haversack_skills::limits::{SKILL_BYTES, SKILL_FILES};
use rmcp::model::{
    DIRECTORY_MIME_TYPE, Resource, ResourceContents, Skill, SkillFrontmatter, SkillResource, SkillResources,
};

use crate::name::hex;
use crate::served::ServedSkill;
use crate::uri;

/// Entries that are looked at for one skill: hidden ones are passed over, and must not hide the others.
const LOOKED_AT: usize = 4 * SKILL_FILES;

/// Whether a path has a part that begins with a dot. Such files (keys, editor settings) are not served.
pub(crate) fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') && part != ".")
}

/// Digests of files that have not changed since they were hashed, by folder and path.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    known: Mutex<HashMap<PathBuf, Digests>>,
}

type Digests = HashMap<String, (FileStamp, String)>;

/// One file of a skill, listed.
struct Listed {
    path: String,
    bytes: u64,
    stamp: FileStamp,
}

impl Manifests {
    /// The entry of a skill. Reads files that are new; may block.
    ///
    /// # Errors
    ///
    /// Why the skill cannot be given whole.
    pub(crate) fn entry(&self, skill: &ServedSkill) -> Result<Skill, String> {
        if !skill.is_listed {
            return Err("its name or its front matter is not one that the extension takes".to_owned());
        }
        let files = SkillFiles::open(&skill.folder).map_err(|error| error.to_string())?;
        let listed = listed(&files).map_err(|error| error.to_string())?;
        let total: u64 = listed.iter().map(|file| file.bytes).sum();
        if listed.len() > SKILL_FILES || total > SKILL_BYTES {
            return Err(format!(
                "it has {} files and {total} bytes; {SKILL_FILES} files and {SKILL_BYTES} bytes are the most",
                listed.len()
            ));
        }
        let before = self.known().get(&skill.folder).cloned().unwrap_or_default();
        let mut digests = Digests::new();
        let mut resources = Vec::new();
        for Listed { path, bytes, stamp } in listed {
            let (digest, size) = match before.get(&path) {
                Some((known, digest)) if *known == stamp => (digest.clone(), bytes),
                _ => {
                    let read = files.read(&path, SKILL_BYTES).map_err(|error| format!("{path}: {error}"))?;
                    (hex(&read), read.len() as u64)
                }
            };
            resources.push(SkillResource::new(uri::of(&skill.name, &path), format!("sha256:{digest}"), size));
            // A file that was written a moment ago may change once more without a new stamp.
            if stamp.is_settled() {
                digests.insert(path, (stamp, digest));
            }
        }
        self.known().insert(skill.folder.clone(), digests);
        let mut front_matter = SkillFrontmatter::new(skill.name.as_str(), text(skill, "description"));
        for (key, value) in &skill.front_matter {
            if key != "name" && key != "description" {
                front_matter = front_matter.with_field(key.as_str(), value.clone());
            }
        }
        let entry =
            Skill::new(uri::of(&skill.name, FILE_NAME), front_matter, SkillResources::Files(resources));
        entry.validate().map_err(|error| error.to_string())?;
        Ok(entry)
    }

    /// Forgets skills that are gone.
    pub(crate) fn retain(&self, is_there: impl Fn(&PathBuf) -> bool) {
        self.known().retain(|folder, _| is_there(folder));
    }

    /// A panic of another thread leaves the map whole.
    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Digests>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text<'s>(skill: &'s ServedSkill, key: &str) -> &'s str {
    skill.front_matter.get(key).and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// The files that are served, by path.
fn listed(files: &SkillFiles) -> std::io::Result<Vec<Listed>> {
    let listing = files.list(LOOKED_AT)?;
    let visible = listing.files.into_iter().filter(|file| !is_hidden(&file.path));
    Ok(visible.map(|file| Listed { path: file.path, bytes: file.bytes, stamp: file.stamp }).collect())
}

/// The `SKILL.md` of a skill as a resource.
pub(crate) fn resource(skill: &ServedSkill) -> Resource {
    Resource::new(uri::of(&skill.name, FILE_NAME), skill.name.as_str())
        .with_description(skill.description.as_str())
        .with_mime_type("text/markdown")
}

/// The contents of a file. Reads it; may block.
///
/// # Errors
///
/// [`FileError::Missing`] also for files that are not served.
pub(crate) fn contents(skill: &ServedSkill, path: &str) -> Result<ResourceContents, FileError> {
    if path.is_empty() || is_hidden(path) {
        return Err(FileError::Missing);
    }
    let bytes = SkillFiles::open(&skill.folder)?.read(path, SKILL_BYTES)?;
    let (uri, mime) = (uri::of(&skill.name, path), media::mime_type(path));
    let contents = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => ResourceContents::text(text, uri),
        Ok(text) => ResourceContents::blob(BASE64_STANDARD.encode(text), uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    Ok(contents.with_mime_type(mime))
}

/// What lies directly in a folder of a skill, by name; `None` where there is no such folder. May block.
pub(crate) fn children(skill: &ServedSkill, folder: &str) -> std::io::Result<Option<Vec<Resource>>> {
    let files = listed(&SkillFiles::open(&skill.folder)?)?;
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut children = BTreeMap::new();
    for file in &files {
        let Some(rest) = file.path.strip_prefix(&prefix) else { continue };
        let (name, is_folder) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
        let resource = Resource::new(uri::of(&skill.name, &format!("{prefix}{name}")), name);
        let resource = if is_folder {
            resource.with_mime_type(DIRECTORY_MIME_TYPE)
        } else if file.path == FILE_NAME {
            self::resource(skill).with_size(file.bytes)
        } else {
            resource.with_mime_type(media::mime_type(name)).with_size(file.bytes)
        };
        children.insert(name.to_owned(), resource);
    }
    Ok((!children.is_empty()).then(|| children.into_values().collect()))
}
