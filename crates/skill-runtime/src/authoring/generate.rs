//! Saving a new skill, once nothing is wrong with it.

use std::io;

use serde_json::{Map, Value, json};

use crate::authoring::author::{Overwrite, SkillAuthor, write};
use crate::authoring::suggest::TemplateKind;
use crate::authoring::text::SkillText;
use crate::reply::{Arguments, Reply};

impl SkillAuthor {
    /// `skill_generate`: `{skillMdContent, skillDir, baseTemplate?, noOverwrite?}` to `{saved, filePath, …}`.
    ///
    /// What keeps the skill from being saved is in `parseErrors` or `validateErrors`, for the next try.
    pub fn generate(&self, arguments: &Value) -> Reply {
        let mut out = Map::new();
        let saved = self.save(arguments, &mut out);
        let path = match &saved {
            Ok(path) | Err(Refusal::Exists(path)) => path.clone(),
            Err(_) => String::new(),
        };
        match &saved {
            Err(Refusal::Wrong(errors)) => drop(out.insert("parseErrors".to_owned(), json!(errors))),
            Err(Refusal::Exists(path)) => {
                let error = format!("{path} exists already, and `noOverwrite` is set");
                out.insert("parseErrors".to_owned(), json!([error]));
            }
            Err(Refusal::Faults) | Ok(_) => {}
        }
        let mut value = Map::new();
        value.insert("saved".to_owned(), saved.is_ok().into());
        value.insert("filePath".to_owned(), path.into());
        value.extend(out);
        Reply { ok: saved.is_ok(), value: value.into() }
    }

    fn save(&self, arguments: &Value, out: &mut Map<String, Value>) -> Result<String, Refusal> {
        let arguments = Arguments::of(arguments).ok_or("the arguments have to be an object")?;
        let content = arguments.required("skillMdContent")?;
        let folder = arguments.required("skillDir")?;
        if let Some(template) = arguments.text("baseTemplate")? {
            TemplateKind::from_name(template).ok_or_else(|| {
                let names: Vec<&str> = TemplateKind::ALL.into_iter().map(TemplateKind::name).collect();
                format!("`baseTemplate` is none of {}", names.join(", "))
            })?;
        }
        let overwrite = if arguments.flag("noOverwrite")? { Overwrite::No } else { Overwrite::Yes };
        let file = self.new_file(folder)?;
        let text = SkillText::read(content);
        text.describe(out);
        if !text.parse_errors.is_empty() {
            return Err(Refusal::Wrong(text.parse_errors));
        }
        let faults = self.faults(&text, content);
        if !faults.is_empty() {
            text.tell_faults(&faults, out);
            return Err(Refusal::Faults);
        }
        let shown = file.display().to_string();
        match write(&file, content, overwrite) {
            Ok(()) => Ok(shown),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Refusal::Exists(shown)),
            Err(error) => Err(Refusal::Wrong(vec![format!("{shown} cannot be written: {error}")])),
        }
    }
}

/// Why nothing was saved.
enum Refusal {
    /// It cannot be read, or the call is wrong.
    Wrong(Vec<String>),
    /// It could not run; the faults are told already.
    Faults,
    /// A file is there.
    Exists(String),
}

impl From<String> for Refusal {
    fn from(error: String) -> Self {
        Self::Wrong(vec![error])
    }
}

impl From<&str> for Refusal {
    fn from(error: &str) -> Self {
        error.to_owned().into()
    }
}
