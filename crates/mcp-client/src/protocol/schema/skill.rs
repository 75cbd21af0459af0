//! Skills that a server offers (SEP-2640), and what every file of them has to be.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::json::{Object, take_object, take_text};
use super::listing::Item;

/// The most files of a skill, which is what the extension says a host must take.
const MAX_FILES: usize = 512;
/// The most bytes of a skill's files together, likewise.
const MAX_BYTES: u64 = 16 << 20;
/// The file that makes a folder a skill.
const SKILL_FILE: &str = "/SKILL.md";

/// A skill as its server lists it. Nothing of its files has been read.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServedSkill {
    /// Where its `SKILL.md` is. With the host's name for the server it is the skill's identity; nothing in it is
    /// resolved or looked up.
    pub uri: String,
    /// The front matter of `SKILL.md`, as JSON, every field of it.
    pub frontmatter: Object,
    /// Its files.
    pub files: ServedFiles,
    /// All other members.
    pub extra: Object,
}

/// The files of a [`ServedSkill`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServedFiles {
    /// All of them, `SKILL.md` included.
    Listed(Vec<ServedFile>),
    /// The server makes them when asked, so that nothing can be checked. A host may refuse such skills.
    Dynamic,
}

impl Default for ServedFiles {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// One file of a [`ServedSkill`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedFile {
    /// Where it is.
    pub uri: String,
    /// The SHA-256 of its bytes: `sha256:` and 64 lower-case hex digits.
    pub digest: String,
    /// Its length in bytes.
    pub size: u64,
}

impl ServedSkill {
    /// The name in the front matter, which is also the last part of the skill's folder.
    pub fn name(&self) -> &str {
        self.frontmatter.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The description in the front matter; empty if there is none.
    pub fn description(&self) -> &str {
        self.frontmatter.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// The skill's folder: its address without `/SKILL.md`.
    pub fn folder(&self) -> &str {
        self.uri.strip_suffix(SKILL_FILE).unwrap_or(&self.uri)
    }

    /// The file at an address, if the skill lists it.
    pub fn file(&self, uri: &str) -> Option<&ServedFile> {
        match &self.files {
            ServedFiles::Listed(files) => files.iter().find(|file| file.uri == uri),
            ServedFiles::Dynamic => None,
        }
    }
}

impl ServedFile {
    /// Whether these bytes are the file; if not, what differs.
    ///
    /// # Errors
    ///
    /// The difference, in words.
    pub fn verify(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.size {
            return Err(format!("it has {} bytes and is listed with {}", bytes.len(), self.size));
        }
        let digest = Sha256::digest(bytes);
        let fits = self.digest.strip_prefix("sha256:").is_some_and(|listed| {
            listed.len() == 64
                && digest
                    .iter()
                    .zip(listed.as_bytes().chunks_exact(2))
                    .all(|(byte, hex)| std::str::from_utf8(hex).is_ok_and(|hex| format!("{byte:02x}") == hex))
        });
        if fits { Ok(()) } else { Err("its SHA-256 is not the one it is listed with".to_owned()) }
    }
}

impl Item for ServedSkill {
    const KIND: &'static str = "skill";

    fn from_object(mut object: Object) -> Result<Self, String> {
        let uri = take_text(&mut object, "uri").ok_or("it has no URI")?;
        let folder = uri.strip_suffix(SKILL_FILE).ok_or("its URI does not end in /SKILL.md")?;
        let frontmatter = take_object(&mut object, "frontmatter").ok_or("it has no front matter")?;
        let name = frontmatter.get("name").and_then(Value::as_str).ok_or("its front matter has no name")?;
        if folder.rsplit('/').next() != Some(name) {
            return Err("its name is not the last part of its folder".to_owned());
        }
        let files = match object.shift_remove("resources") {
            Some(Value::Array(entries)) => ServedFiles::Listed(files(entries)?),
            Some(Value::String(word)) if word == "dynamic" => ServedFiles::Dynamic,
            _ => return Err("it does not list its files".to_owned()),
        };
        let skill = Self { uri, frontmatter, files, extra: object };
        if matches!(skill.files, ServedFiles::Listed(_)) && skill.file(&skill.uri).is_none() {
            return Err("its list of files lacks SKILL.md".to_owned());
        }
        Ok(skill)
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

fn files(entries: Vec<Value>) -> Result<Vec<ServedFile>, String> {
    if entries.len() > MAX_FILES {
        return Err(format!("it has {} files, more than {MAX_FILES}", entries.len()));
    }
    let mut files: Vec<ServedFile> = Vec::with_capacity(entries.len());
    let mut bytes: u64 = 0;
    for entry in entries {
        let file =
            file(&entry).ok_or("an entry of its list of files lacks a URI, a SHA-256 digest or a size")?;
        bytes = bytes.saturating_add(file.size);
        if files.iter().any(|other| other.uri == file.uri) {
            return Err("a file is listed twice".to_owned());
        }
        files.push(file);
    }
    if bytes > MAX_BYTES {
        return Err(format!("its files have {bytes} bytes together, more than {MAX_BYTES}"));
    }
    Ok(files)
}

fn file(entry: &Value) -> Option<ServedFile> {
    let text = |key| entry.get(key).and_then(Value::as_str);
    let digest = text("digest")?;
    let is_hex =
        |hex: &str| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    digest.strip_prefix("sha256:").filter(|hex| is_hex(hex))?;
    Some(ServedFile {
        uri: text("uri")?.to_owned(),
        digest: digest.to_owned(),
        size: entry.get("size").and_then(Value::as_u64)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn entry(change: impl FnOnce(&mut Value)) -> Result<ServedSkill, String> {
        let mut entry = json!({
            "uri": "skill://docs/pdf/SKILL.md",
            "frontmatter": {"name": "pdf", "description": "Reads.", "x-other": [1]},
            "resources": [{"uri": "skill://docs/pdf/SKILL.md", "digest": DIGEST, "size": 3}],
            "_meta": {"a": 1},
        });
        change(&mut entry);
        ServedSkill::from_object(entry.as_object().unwrap().clone())
    }

    #[test]
    fn an_entry_is_read_with_all_its_fields() {
        let skill = entry(|_| {}).unwrap();
        assert_eq!(
            (skill.name(), skill.description(), skill.folder()),
            ("pdf", "Reads.", "skill://docs/pdf")
        );
        assert_eq!(skill.frontmatter["x-other"], json!([1]));
        assert!(skill.extra.contains_key("_meta"));
        let dynamic = entry(|entry| entry["resources"] = json!("dynamic")).unwrap();
        assert_eq!(dynamic.files, ServedFiles::Dynamic);
    }

    #[test]
    fn an_entry_that_cannot_be_checked_later_is_refused_with_its_reason() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 10] = [
            (|e| e["uri"] = json!("skill://docs/pdf"), "SKILL.md"),
            (|e| e["frontmatter"] = json!({}), "no name"),
            (|e| e["frontmatter"]["name"] = json!("other"), "last part"),
            (|e| e["resources"] = json!("later"), "list its files"),
            (|e| e["resources"] = json!([]), "lacks SKILL.md"),
            (|e| e["resources"][0]["digest"] = json!("sha256:AB"), "digest"),
            (|e| e["resources"][0]["digest"] = json!("md5:ab"), "digest"),
            (|e| e["resources"][0]["size"] = json!(-1), "size"),
            (|e| e["resources"][0]["size"] = json!(17 << 20), "more than"),
            (
                |e| {
                    let first = e["resources"][0].clone();
                    e["resources"].as_array_mut().unwrap().push(first);
                },
                "twice",
            ),
        ];
        for (change, word) in cases {
            let reason = entry(change).unwrap_err();
            assert!(reason.contains(word), "{reason}, expected {word}");
        }
    }

    #[test]
    fn bytes_are_the_file_only_if_length_and_digest_fit() {
        let file = ServedFile { uri: String::new(), digest: DIGEST.to_owned(), size: 3 };
        assert_eq!(file.verify(b"abc"), Ok(()));
        assert!(file.verify(b"abcd").unwrap_err().contains("bytes"));
        assert!(file.verify(b"abd").unwrap_err().contains("SHA-256"));
        let odd = ServedFile { digest: "sha256:ba78".to_owned(), ..file };
        assert!(odd.verify(b"abc").is_err());
    }
}
