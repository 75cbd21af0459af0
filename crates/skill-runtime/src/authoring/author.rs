//! Who writes into one folder of skills, and nowhere else.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use crate::authoring::library::SKILL_FILE;
use crate::authoring::suggest::{TemplateKind, suggest};
use crate::authoring::text::SkillText;
use crate::guard::{GuardError, PathGuard};
use crate::reply::{Arguments, Reply};
use crate::validate::{Context, Fault};

type KnowsProfile = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Writes skills into one folder. Cheap to clone.
#[derive(Clone)]
pub struct SkillAuthor {
    pub(super) skills: PathGuard,
    workspace: Option<PathGuard>,
    templates: Option<PathBuf>,
    profiles: Option<KnowsProfile>,
    checks_profiles: bool,
    scans_secrets: bool,
}

impl fmt::Debug for SkillAuthor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillAuthor").field("skills", &self.skills).finish_non_exhaustive()
    }
}

impl SkillAuthor {
    /// For this folder of skills, which has to exist.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn new(skills: impl Into<PathBuf>) -> Result<Self, GuardError> {
        Ok(Self {
            skills: PathGuard::new(skills)?,
            workspace: None,
            templates: None,
            profiles: None,
            checks_profiles: true,
            scans_secrets: true,
        })
    }

    /// Sets a folder that new skills may be written into beside the folder of skills, and that everything else has to
    /// lie in, too.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn with_workspace(mut self, root: impl Into<PathBuf>) -> Result<Self, GuardError> {
        self.workspace = Some(PathGuard::new(root)?);
        Ok(self)
    }

    /// Sets a folder of templates in the place of those that come with this crate: `<template>.md`.
    #[must_use]
    pub fn with_templates(mut self, folder: impl Into<PathBuf>) -> Self {
        self.templates = Some(folder.into());
        self
    }

    /// Sets which secret profiles there are. Without it there are none, and a skill that refers to one is not saved.
    #[must_use]
    pub fn with_profiles(mut self, is_known: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.profiles = Some(Arc::new(is_known));
        self
    }

    /// Lets skills refer to profiles that are not there yet.
    #[must_use]
    pub fn without_profile_check(mut self) -> Self {
        self.checks_profiles = false;
        self
    }

    /// Lets skills be saved that hold what looks like a secret.
    #[must_use]
    pub fn without_secret_scan(mut self) -> Self {
        self.scans_secrets = false;
        self
    }

    /// `skill_suggest`: `{userRequest, preferredCapabilities?}` to a [`Suggestion`](crate::authoring::Suggestion).
    pub fn suggest(&self, arguments: &Value) -> Reply {
        self.try_suggest(arguments).map_or_else(|error| Reply::failed(json!({"error": error})), Reply::done)
    }

    fn try_suggest(&self, arguments: &Value) -> Result<Value, String> {
        let arguments = Arguments::of(arguments).ok_or("the arguments have to be an object")?;
        let capabilities = arguments.texts("preferredCapabilities")?;
        let request = arguments.required("userRequest")?;
        let mut found = suggest(request, &capabilities).ok_or("`userRequest` is required")?;
        found.template_body = self.template(found.recommended_template)?;
        serde_json::to_value(found).map_err(|error| error.to_string())
    }

    fn template(&self, kind: TemplateKind) -> Result<String, String> {
        let Some(folder) = &self.templates else { return Ok(kind.body().to_owned()) };
        let file = folder.join(format!("{}.md", kind.name()));
        crate::authoring::library::read(&file)
            .map_err(|why| format!("the template {}: {why}", file.display()))
    }

    /// `skill_parse`: `{skillMdContent, validate?}` to what the text says, or where it cannot be read.
    pub fn parse(&self, arguments: &Value) -> Reply {
        let content = Arguments::of(arguments)
            .ok_or_else(|| "the arguments have to be an object".to_owned())
            .and_then(|arguments| Ok((arguments.required("skillMdContent")?, arguments.flag("validate")?)));
        let (content, validates) = match content {
            Ok(content) => content,
            Err(error) => return Reply::failed(json!({"ok": false, "error": error})),
        };
        let text = SkillText::read(content);
        let mut out = Map::new();
        let ok = text.reading.is_some() && text.parse_errors.is_empty();
        out.insert("ok".to_owned(), ok.into());
        if !text.parse_errors.is_empty() {
            out.insert("parseErrors".to_owned(), json!(text.parse_errors));
        }
        text.describe(&mut out);
        if text.reading.is_some() {
            out.insert("frontmatter".to_owned(), text.front_matter.clone());
        }
        if ok && validates {
            text.tell_faults(&self.faults(&text, content), &mut out);
        }
        Reply { ok, value: out.into() }
    }

    /// Everything that keeps a text from being saved.
    pub(super) fn faults(&self, text: &SkillText, content: &str) -> Vec<Fault> {
        let known = |name: &str| self.profiles.as_ref().is_some_and(|known| known(name));
        let mut context = Context::default();
        if self.scans_secrets {
            context = context.with_source(content);
        }
        if self.checks_profiles {
            context = context.with_profiles(&known);
        }
        text.faults(&context)
    }

    /// Where a skill file below the folder of skills really is; it has to lie in the workspace, too, if there is one.
    pub(super) fn kept_file(&self, folder: &Path) -> Result<PathBuf, String> {
        let file = self.skills.inside(folder.join(SKILL_FILE)).map_err(|error| error.to_string())?;
        if let Some(workspace) = &self.workspace {
            workspace.inside(&file).map_err(|error| error.to_string())?;
        }
        Ok(file)
    }

    /// Where a new skill goes: below the workspace, if there is one, else below the folder of skills. A relative path
    /// starts in the folder of skills.
    pub(super) fn new_file(&self, folder: &str) -> Result<PathBuf, String> {
        let asked = Path::new(folder).join(SKILL_FILE);
        match &self.workspace {
            Some(workspace) => workspace.inside(self.skills.root().join(asked)),
            None => self.skills.inside(asked),
        }
        .map_err(|error| error.to_string())
    }
}

/// How a file is put in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    /// Whatever is there goes.
    Yes,
    /// What is there stays, and nothing is written.
    No,
}

/// Tells the names of files apart that are written at the same time.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Writes a file whole: a reader sees the old text or the new one, also after a crash.
pub(super) fn write(file: &Path, text: &str, overwrite: Overwrite) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let new = folder.join(format!(".skill-{}-{number}.tmp", std::process::id()));
    let mut opened = OpenOptions::new().write(true).create_new(true).open(&new)?;
    let written = opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all());
    drop(opened);
    let placed = written.and_then(|()| match overwrite {
        Overwrite::Yes => fs::rename(&new, file),
        Overwrite::No => match fs::hard_link(&new, file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !file.exists() => {
                fs::rename(&new, file)
            }
            linked => linked,
        },
    });
    if new.symlink_metadata().is_ok() {
        // Left over by a link or by an error, of which the first is the one to tell.
        let _ = fs::remove_file(&new);
    }
    placed?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = File::open(folder);
    Ok(())
}
