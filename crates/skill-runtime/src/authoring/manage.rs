//! Listing, reading, changing and removing the skills of the folder, by their tree ids.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::authoring::author::{Overwrite, SkillAuthor, write};
use crate::authoring::library::{Library, read};
use crate::authoring::text::SkillText;
use crate::reply::{Arguments, Reply};

const ACTIONS: &str = "list, get, update, delete, export";

impl SkillAuthor {
    /// `skill_manage`: `{action: list|get|update|delete|export, treeId?, skillMdContent?, treeGroupFilter?}` to
    /// `{action, ok, …}`.
    ///
    /// A skill is found by its `tree_id`, wherever its folder is. One whose front matter cannot be read is found by its
    /// folder, so that it can be mended.
    pub fn manage(&self, arguments: &Value) -> Reply {
        let mut out = Map::new();
        let action = arguments.get("action").and_then(Value::as_str).unwrap_or_default().to_owned();
        let done = Arguments::of(arguments)
            .ok_or_else(|| "the arguments have to be an object".to_owned())
            .and_then(|arguments| self.act(&action, arguments, &mut out));
        let mut value = Map::new();
        value.insert("action".to_owned(), action.into());
        value.insert("ok".to_owned(), done.is_ok().into());
        if let Err(error) = &done {
            value.insert("error".to_owned(), error.as_str().into());
        }
        value.extend(out);
        Reply { ok: done.is_ok(), value: value.into() }
    }

    fn act(
        &self,
        action: &str,
        arguments: Arguments<'_>,
        out: &mut Map<String, Value>,
    ) -> Result<(), String> {
        match action {
            "list" => self.list(arguments.text("treeGroupFilter")?.unwrap_or_default(), out),
            "get" | "export" => self.get(arguments.required("treeId")?, out),
            "update" => {
                self.update(arguments.required("treeId")?, arguments.required("skillMdContent")?, out)
            }
            "delete" => self.delete(arguments.required("treeId")?, out),
            _ => Err(format!("`action` is none of {ACTIONS}")),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "one of several actions")]
    fn list(&self, group: &str, out: &mut Map<String, Value>) -> Result<(), String> {
        let library = Library::of(self.skills.root());
        let entries = library.entries.iter().filter(|entry| entry.group().starts_with(group));
        out.insert("entries".to_owned(), entries.map(|entry| entry.to_json()).collect());
        if !library.problems.is_empty() {
            out.insert("problems".to_owned(), json!(library.problems));
        }
        Ok(())
    }

    /// The file of a skill that is there.
    fn find(&self, tree_id: &str) -> Result<Option<PathBuf>, String> {
        let library = Library::of(self.skills.root());
        if let Some(file) = library.file_of(tree_id)? {
            let folder = file.parent().unwrap_or(file);
            return self.kept_file(folder).map(Some);
        }
        let file = self.kept_file(Path::new(tree_id))?;
        if !file.is_file() {
            return Ok(None);
        }
        match SkillText::read(&read(&file)?).tree_id() {
            None => Ok(Some(file)),
            Some(other) => {
                Err(format!("the folder `{tree_id}` holds the skill `{other}`; ask for it by that id"))
            }
        }
    }

    fn found(&self, tree_id: &str) -> Result<PathBuf, String> {
        self.find(tree_id)?.ok_or_else(|| format!("there is no skill `{tree_id}`"))
    }

    fn get(&self, tree_id: &str, out: &mut Map<String, Value>) -> Result<(), String> {
        let file = self.found(tree_id)?;
        let content = read(&file)?;
        let text = SkillText::read(&content);
        out.insert("filePath".to_owned(), file.display().to_string().into());
        text.describe(out);
        if !text.parse_errors.is_empty() {
            out.insert("parseErrors".to_owned(), json!(text.parse_errors));
        }
        out.insert("skillMdContent".to_owned(), content.into());
        Ok(())
    }

    fn update(&self, tree_id: &str, content: &str, out: &mut Map<String, Value>) -> Result<(), String> {
        let there = self.find(tree_id)?;
        let file = match there {
            Some(file) => file,
            None => self.kept_file(Path::new(tree_id))?,
        };
        let text = SkillText::read(content);
        text.describe(out);
        if !text.parse_errors.is_empty() {
            out.insert("parseErrors".to_owned(), json!(text.parse_errors));
            return Err("the front matter cannot be read".to_owned());
        }
        match text.tree_id() {
            Some(id) if id == tree_id => {}
            Some(id) => {
                return Err(format!(
                    "the text is that of `{id}`; `treeId` and `tree_id` have to be the same"
                ));
            }
            None => return Err(format!("the text has no `tree_id`; it has to be `{tree_id}`")),
        }
        let faults = self.faults(&text, content);
        if !faults.is_empty() {
            text.tell_faults(&faults, out);
            return Err("the skill could not run".to_owned());
        }
        write(&file, content, Overwrite::Yes)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        out.insert("filePath".to_owned(), file.display().to_string().into());
        Ok(())
    }

    fn delete(&self, tree_id: &str, out: &mut Map<String, Value>) -> Result<(), String> {
        let file = self.found(tree_id)?;
        fs::remove_file(&file).map_err(|error| format!("{} cannot be removed: {error}", file.display()))?;
        // The folder goes with its last file, and stays with anything else in it.
        if let Some(folder) = file.parent().filter(|folder| *folder != self.skills.root()) {
            let _ = fs::remove_dir(folder);
        }
        out.insert("filePath".to_owned(), file.display().to_string().into());
        Ok(())
    }
}
