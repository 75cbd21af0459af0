//! Where the subcommands look: the arguments they share, and the scan they begin with.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use haversack_skills::consent::Consent;
use haversack_skills::{
    FILE_NAME, Filter, Limits, PROJECT_FOLDERS, Reader, Registry, Root, Roots, Snapshot, Source,
};
use serde_json::Value;

/// A folder to look in.
#[derive(Debug, Args)]
pub struct Place {
    /// A project with skill folders; or a folder of skills; or one skill.
    dir: PathBuf,
    /// The user's own folder of skills.
    #[arg(long, value_name = "DIR")]
    user: Option<PathBuf>,
    /// Limits as a JSON object, by the names of the library: {"depth": 3, "folders": 100, "entries": 1000}.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    limits: String,
    /// Also looks for skill folders below the project, as in a monorepo.
    #[arg(long)]
    nested: bool,
    /// Plain text instead of JSON.
    #[arg(long)]
    text: bool,
}

impl Place {
    /// Scans. A folder that has no skill folders of a project is taken as a folder of skills, and searched below as well.
    ///
    /// # Errors
    ///
    /// When the folder is not there, or the limits are no limits.
    pub fn scan(&self) -> Result<Registry, Box<dyn Error>> {
        if !self.dir.is_dir() {
            return Err(format!("{} is no folder", self.dir.display()).into());
        }
        let limits = limits(&self.limits)?;
        let mut roots = Roots::new().with_project(&self.dir).with_packages(&self.dir);
        if self.nested {
            roots = roots.with_nested_projects();
        }
        if self.dir.join(FILE_NAME).is_file() {
            roots = roots.with_root(Root::one_skill(&self.dir, Source::Project, "."));
        } else if !self.is_project() {
            roots = roots.with_nested_projects().with_root(Root::new(&self.dir, Source::Project, "."));
        }
        if let Some(user) = &self.user {
            roots = roots.with_root(Root::user(user));
        }
        Ok(Registry::scan(&roots, &limits))
    }

    /// Whether the folder, one above it in its repository, or one of its packages holds skills the way a project does.
    fn is_project(&self) -> bool {
        let roots = Roots::new().with_project(&self.dir).with_packages(&self.dir);
        let registry = Registry::scan(&roots, &Limits::default());
        PROJECT_FOLDERS.iter().any(|folder| self.dir.join(folder).is_dir()) || !registry.skills().is_empty()
    }

    /// The usable skills. To inspect is not to use, so nobody is asked for consent.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn snapshot(&self) -> Result<Snapshot, Box<dyn Error>> {
        Ok(self.scan()?.snapshot(&Filter::new(Consent::everything())))
    }

    /// A reader of the usable skills.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn reader(&self) -> Result<Reader, Box<dyn Error>> {
        Ok(Reader::new(self.snapshot()?))
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// Writes an answer: as JSON, or as the text made of it.
    ///
    /// # Errors
    ///
    /// When standard output cannot be written.
    pub fn answer(&self, value: &Value, text: &str) -> Result<(), Box<dyn Error>> {
        let mut out = std::io::stdout().lock();
        if self.text {
            out.write_all(text.as_bytes())?;
            if !text.is_empty() && !text.ends_with('\n') {
                out.write_all(b"\n")?;
            }
        } else {
            writeln!(out, "{value:#}")?;
        }
        Ok(())
    }
}

/// Reads limits; a name that is none is a fault rather than a limit that does not bind.
fn limits(json: &str) -> Result<Limits, Box<dyn Error>> {
    let value: Value =
        serde_json::from_str(json).map_err(|error| format!("the limits are no JSON: {error}"))?;
    let fields = value.as_object().ok_or("the limits are no JSON object")?;
    let mut limits = Limits::default();
    for (name, value) in fields {
        let number = value.as_u64().ok_or_else(|| format!("the limit {name:?} is no whole number"))?;
        let count = usize::try_from(number)?;
        match name.strip_prefix("max_").unwrap_or(name) {
            "depth" => limits.depth = count,
            "folders" => limits.folders = count,
            "entries" => limits.entries = count,
            "file_bytes" => limits.file_bytes = number,
            "resource_bytes" => limits.resource_bytes = number,
            "body_page_chars" => limits.body_page_chars = count,
            "resource_page_chars" => limits.resource_page_chars = count,
            "skill_files" => limits.skill_files = count,
            "skill_bytes" => limits.skill_bytes = number,
            "dependencies" => limits.dependencies = count,
            "package_skills" => limits.package_skills = count,
            "notes" => limits.notes = count,
            "threads" => limits.threads = count,
            _ => return Err(format!("there is no limit {name:?}").into()),
        }
    }
    Ok(limits)
}
