//! A whole folder of skills, linted: every finding about every file, and what was passed over on the way.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, ParseOptions};
use crate::folder::{Folder, Kind};
use crate::jail;
use crate::limits::Limits;
use crate::lint::{self, Linted};
use crate::problem::{BoundHit, Skipped};
use crate::registry::{Registry, Shadowed};
use crate::roots::{Root, Roots};
use crate::skill::{FILE_NAME, Skill, Source};

/// What linting a folder, or a whole registry, found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Every `SKILL.md`, of valid, invalid and shadowed skills, in the order of their paths' bytes.
    pub files: Vec<Linted>,
    /// Skills that others of the same name, or of the same folder, stand before.
    pub shadowed: Vec<Shadowed>,
    /// What was met and is no skill, with the reason.
    pub skipped: Vec<Skipped>,
    /// The bounds that ended the walk early: there may be more files.
    pub bounds: Vec<BoundHit>,
}

impl Inspection {
    /// All findings, each with its file.
    pub fn findings(&self) -> impl Iterator<Item = (&Path, &Diagnostic)> {
        let of = |linted: &Linted| linted.outcome.as_deref().unwrap_or_default().len();
        self.files
            .iter()
            .filter(move |linted| of(linted) > 0)
            .flat_map(|linted| linted.outcome.iter().flatten().map(|found| (linted.file.as_path(), found)))
    }
}

/// Lints every skill in a folder, which may also be one skill itself. Nothing in it makes the call fail: a file that
/// cannot be read is in the answer, and a folder that is not there has no files.
///
/// ```
/// use haversack_skills::document::ParseOptions;
/// use haversack_skills::{Limits, lint_folder};
///
/// # let folder = tempfile::tempdir()?;
/// std::fs::create_dir(folder.path().join("forms"))?;
/// std::fs::write(folder.path().join("forms/SKILL.md"), "---\nname: Forms\ndescription: Fills forms: all of them\n---\n")?;
///
/// let inspection = lint_folder(folder.path(), &Limits::default(), &ParseOptions::new());
/// let words: Vec<_> = inspection.findings().map(|(_, found)| found.code.as_str()).collect();
/// assert_eq!(words, ["unquoted-colon", "mended-quote", "name-not-lowercase", "name-not-folder"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn lint_folder(folder: &Path, limits: &Limits, options: &ParseOptions) -> Inspection {
    let is_skill = Folder::open(folder).and_then(|open| open.stat(Path::new(FILE_NAME), true)).is_ok();
    let root = if is_skill {
        Root::one_skill(folder, Source::User, "linted")
    } else {
        Root::new(folder, Source::User, "linted")
    };
    Registry::scan(&Roots::new().with_root(root), limits).lint(options)
}

impl Registry {
    /// Lints the file of every skill of this registry: what reading it finds, what the open specification asks for, and
    /// what this crate could not use of it. Files are read anew; those of a skill under consent are read without it, for
    /// the answer is for people and not for the model.
    #[must_use]
    pub fn lint(&self, options: &ParseOptions) -> Inspection {
        let same_folder = self.shadowed().iter().map(|shadowed| &shadowed.skill);
        let mut skills: Vec<&Arc<Skill>> = self.all().iter().chain(same_folder).collect();
        skills.sort_by(|a, b| bytes(a.folder()).cmp(bytes(b.folder())));
        skills.dedup_by(|a, b| a.folder() == b.folder());
        let files = skills.into_iter().map(|skill| Linted {
            file: skill.file(),
            outcome: read(skill.folder(), options).map(|bytes| findings(skill, &bytes, options)),
        });
        Inspection {
            files: files.collect(),
            shadowed: self.shadowed().to_vec(),
            skipped: self.skipped().cloned().collect(),
            bounds: self.bounds_hit().cloned().collect(),
        }
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Reads a `SKILL.md`, and at most one byte more than the limit, so that a huge one is refused for its size.
fn read(folder: &Path, options: &ParseOptions) -> io::Result<Vec<u8>> {
    let (mut file, facts) = Folder::open(folder)?.file(Path::new(FILE_NAME), true)?;
    if facts.kind != Kind::File {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no ordinary file"));
    }
    let limit = u64::try_from(options.max_bytes).unwrap_or(u64::MAX);
    jail::read(&mut file, limit, facts.stamp.bytes)
}

fn findings(skill: &Skill, bytes: &[u8], options: &ParseOptions) -> Vec<Diagnostic> {
    let folder = skill.folder().file_name().and_then(|name| name.to_str());
    let mut found = lint::check(&Document::parse(bytes, options), folder);
    // The registry's own findings come of the same file; what both say is said once.
    for problem in skill.problems() {
        let said = |found: &Diagnostic| found.code == problem.code && found.line == problem.line;
        if !found.iter().any(said) {
            found.push(problem.clone());
        }
    }
    found
}
