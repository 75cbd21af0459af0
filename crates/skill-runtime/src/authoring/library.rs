//! The skills of a folder by their tree ids: one index for every action.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haversack_skills::document::ParseOptions;
use serde_json::{Value, json};

use crate::authoring::text::SkillText;

/// Folders that are looked into at most.
pub const MAX_FOLDERS: usize = 10_000;
/// How deep folders are looked into: a tree id of so many parts is none that a person reads.
pub const MAX_LEVELS: usize = 16;

/// The file that makes a folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// Folders that hold no skills of their own and may be huge.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

/// A skill of the folder.
pub(super) struct Entry {
    pub(super) tree_id: String,
    pub(super) file: PathBuf,
    text: SkillText,
}

/// All skills of a folder that have a tree id, by id, and what was passed over.
pub(super) struct Library {
    pub(super) entries: Vec<Entry>,
    pub(super) problems: Vec<String>,
}

impl Library {
    /// Looks through a folder without links. Links are not followed; a folder that cannot be read is a problem.
    pub(super) fn of(root: &Path) -> Self {
        let mut library = Self { entries: Vec::new(), problems: Vec::new() };
        let mut open = vec![(root.to_owned(), 0)];
        let mut seen = 0;
        while let Some((folder, level)) = open.pop() {
            seen += 1;
            if seen > MAX_FOLDERS {
                library.problems.push(format!("only {MAX_FOLDERS} folders were looked into"));
                break;
            }
            if let Err(why) = library.look_into(root, &folder, level, &mut open) {
                library.problems.push(format!("{}: {why}", shown(root, &folder)));
            }
        }
        library.entries.sort_by(|a, b| a.tree_id.cmp(&b.tree_id).then_with(|| a.file.cmp(&b.file)));
        let twice = library.entries.windows(2).filter_map(|pair| match pair {
            [a, b] if a.tree_id == b.tree_id => Some(format!(
                "`{}` is the tree_id of {} and of {}",
                a.tree_id,
                shown(root, &a.file),
                shown(root, &b.file)
            )),
            _ => None,
        });
        let twice: Vec<String> = twice.collect();
        library.problems.extend(twice);
        library
    }

    fn look_into(
        &mut self,
        root: &Path,
        folder: &Path,
        level: usize,
        open: &mut Vec<(PathBuf, usize)>,
    ) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            if kind.is_dir() && !PASSED_OVER.iter().any(|passed| name == **passed) {
                if level >= MAX_LEVELS {
                    self.problems.push(format!("{}: too deep, not looked into", shown(root, &entry.path())));
                } else {
                    open.push((entry.path(), level + 1));
                }
            } else if kind.is_file() && name == SKILL_FILE {
                self.add(root, entry.path());
            }
        }
        Ok(())
    }

    fn add(&mut self, root: &Path, file: PathBuf) {
        let text = match read(&file) {
            Ok(text) => SkillText::read(&text),
            Err(why) => return self.problems.push(format!("{}: {why}", shown(root, &file))),
        };
        let Some(tree_id) = text.tree_id().map(str::to_owned) else {
            if let Some(first) = text.parse_errors.first() {
                self.problems.push(format!("{}: {first}", shown(root, &file)));
            }
            return;
        };
        if file.parent() != Some(&root.join(&tree_id)) {
            self.problems.push(format!(
                "{}: its tree_id is `{tree_id}`, another path than its folder",
                shown(root, &file)
            ));
        }
        self.entries.push(Entry { tree_id, file, text });
    }

    /// The file of the skill with this id.
    ///
    /// # Errors
    ///
    /// When several have it.
    pub(super) fn file_of(&self, tree_id: &str) -> Result<Option<&Path>, String> {
        let mut found = self.entries.iter().filter(|entry| entry.tree_id == tree_id);
        let first = found.next();
        if found.next().is_some() {
            return Err(format!("several skills have the tree_id `{tree_id}`; give each its own"));
        }
        Ok(first.map(|entry| entry.file.as_path()))
    }
}

impl Entry {
    pub(super) fn group(&self) -> &str {
        self.text.metadata().and_then(|metadata| metadata.tree_group.as_deref()).unwrap_or_default()
    }

    pub(super) fn to_json(&self) -> Value {
        let mut out = json!({"treeId": self.tree_id});
        let Some(fields) = out.as_object_mut() else { return out };
        if let Some(metadata) = self.text.metadata() {
            let summary = metadata.summary.clone().unwrap_or_else(|| self.text.description.clone());
            let said = [("treeGroup", self.group().to_owned()), ("summary", summary)];
            fields.extend(
                said.into_iter().filter(|(_, text)| !text.is_empty()).map(|(k, v)| (k.to_owned(), v.into())),
            );
            fields.insert("skillMode".to_owned(), metadata.mode.to_string().into());
        }
        fields.insert("filePath".to_owned(), self.file.display().to_string().into());
        out
    }
}

/// A skill file, if it is not larger than one may be.
pub(super) fn read(file: &Path) -> Result<String, String> {
    let max = u64::try_from(ParseOptions::new().max_bytes).unwrap_or(u64::MAX);
    let opened = fs::File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    opened.take(max + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max) {
        return Err(format!("it has more than {max} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
