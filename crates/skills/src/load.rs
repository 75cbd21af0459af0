//! Levels 2 and 3: bodies and bundled files, page by page, for one run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::catalogue::{Catalogue, TOOL};
use crate::digest::{self, FileHashes, Hash, SkillDigest};
use crate::document::{Document, ParseOptions};
use crate::jail::{self, Jail, Opened};
use crate::page::{self, Page};
use crate::record::{Event, Record};
use crate::search::{self, Index};
use crate::skill::{FILE_NAME, Skill};
use crate::snapshot::{Snapshot, Usable};
use crate::text;

mod error;
mod read;
mod source;
mod wrap;

pub use error::LoadError;
use error::refused;
use read::read_document;
use wrap::{pages_attribute, provenance, push_note};

/// What the tags around texts are named, or begin with: neither kind of text may hold either tag.
const TAG: &str = "skill";
/// Names that an error lists.
const NAMES: usize = 50;

/// A text for the model: one page of a body or of a bundled file, wrapped, with its notes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The text as the model is to see it.
    pub text: String,
    /// The page, from 1.
    pub page: usize,
    /// How many pages there are.
    pub pages: usize,
    /// Bytes of the page without wrapper and notes; 0 for a pointer.
    pub bytes: usize,
    /// Whether this is only a pointer to a page that is in context already.
    pub is_pointer: bool,
}

/// A skill's bundled files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileList {
    /// The list as the model is to see it: a path and a size a line.
    pub text: String,
    /// Paths relative to the skill with forward slashes, and sizes in bytes; sorted. The `SKILL.md` itself is not in it.
    pub files: Vec<(String, u64)>,
    /// Whether there are more than [`Limits::skill_files`](crate::Limits::skill_files).
    pub is_cut: bool,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The hits as the model is to see them.
    pub text: String,
    /// Names and scores, best first, at most ten.
    pub hits: Vec<(String, f32)>,
}

/// Hands out the texts of a snapshot in one run, and remembers what is in context.
///
/// Share it by reference or in an `Arc`; calls from several threads are fine. Bodies are read when they are asked for, so
/// an edit during the run is seen; a skill under consent is checked against what the user agreed to at every read.
///
/// ```
/// use haversack_skills::{Filter, Limits, Reader, Registry, Root, Roots, consent::Consent};
///
/// # let user = tempfile::tempdir()?;
/// # std::fs::create_dir_all(user.path().join("forms/references"))?;
/// # std::fs::write(user.path().join("forms/SKILL.md"), "---\nname: forms\ndescription: Fills in PDF forms.\n---\nSee references/fields.md.\n")?;
/// # std::fs::write(user.path().join("forms/references/fields.md"), "Fields have names.\n")?;
/// let registry = Registry::scan(&Roots::new().with_root(Root::user(user.path())), &Limits::default());
/// let reader = Reader::new(registry.snapshot(&Filter::new(Consent::not_needed())));
///
/// let body = reader.load("forms", 1)?;
/// assert_eq!(body.text, "<skill name=\"forms\">\nSee references/fields.md.\n</skill>");
/// assert!(reader.load("forms", 1)?.is_pointer);
///
/// let file = reader.resource("forms", "references/fields.md", 1)?;
/// assert!(file.text.contains("Fields have names."));
/// assert!(reader.resource("forms", "../secret", 1).is_err());
///
/// assert_eq!(reader.search("fill a form").hits[0].0, "forms");
/// assert_eq!(reader.record().loaded(), ["forms"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    snapshot: Snapshot,
    tool: String,
    state: Mutex<State>,
    index: OnceLock<Index>,
}

#[derive(Debug, Default)]
struct State {
    /// The pages in context: what their text was.
    loaded: HashMap<String, HashMap<usize, Hash>>,
    /// The files of skills under consent, once they were found to be what the user agreed to.
    files: HashMap<String, FileHashes>,
    record: Record,
}

/// Who asks for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Model,
    User,
}

impl Reader {
    /// A reader for one run, or for one agent of it.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        let mut record = Record::default();
        for withheld in snapshot.withheld() {
            let (name, reason) = (withheld.name.clone(), withheld.reason.clone());
            record.push(Event::Withheld { name, reason }, snapshot.limits().notes);
        }
        let state = Mutex::new(State { record, ..State::default() });
        Self { snapshot, tool: TOOL.to_owned(), state, index: OnceLock::new() }
    }

    /// Sets what notes call the tool; `skill` by default.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = tool.into();
        self
    }

    /// The skills it reads.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Notes in the record what a catalogue offers and omits.
    pub fn note_offered(&self, catalogue: &Catalogue) {
        let limit = self.limit();
        self.state().record.offer(catalogue, limit);
    }

    /// A page of a skill's body, for the model. Pages count from 1. A page that is in context and unchanged is answered
    /// by a pointer.
    ///
    /// # Errors
    ///
    /// When there is no such skill for the model or no such page, when the file cannot be read, or when the skill is under
    /// consent and has changed.
    pub fn load(&self, name: &str, page: usize) -> Result<Reply, LoadError> {
        self.noted(name, self.body(name, page, Caller::Model))
    }

    /// The same for a user who calls the skill by name: also a skill that is kept from the model by
    /// `disable-model-invocation`, but none that is marked `user-invocable: false`.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_for_user(&self, name: &str, page: usize) -> Result<Reply, LoadError> {
        self.noted(name, self.body(name, page, Caller::User))
    }

    /// A page of a file that a skill brings along. The path is relative to the skill's folder and may not lead out of
    /// it, by `..` or by a link. A file is given again as often as it is asked for.
    ///
    /// # Errors
    ///
    /// When there is no such skill, file or page, when the file is no text or larger than
    /// [`Limits::resource_bytes`](crate::Limits::resource_bytes), or when the skill is under consent and the file has
    /// changed or is not covered.
    pub fn resource(&self, name: &str, path: &str, page: usize) -> Result<Reply, LoadError> {
        self.noted(name, self.bundled(name, path, page))
    }

    /// The files that a skill brings along.
    ///
    /// # Errors
    ///
    /// When there is no such skill or its folder cannot be listed.
    pub fn files(&self, name: &str) -> Result<FileList, LoadError> {
        self.noted(name, self.list(name))
    }

    /// The skills whose names, descriptions and headings fit some words. The first search of a reader reads all bodies.
    #[must_use]
    pub fn search(&self, query: &str) -> Found {
        let skills: Vec<_> = self.snapshot.skills().filter(|skill| skill.is_for_model()).collect();
        let index = self.index.get_or_init(|| Index::new(skills.iter().map(|skill| self.entry(skill))));
        let found = index.search(query).into_iter().filter_map(|(at, score)| Some((*skills.get(at)?, score)));
        let found: Vec<(&Skill, f32)> = found.collect();
        let mut lines: Vec<String> = Vec::new();
        for (skill, _) in &found {
            let (description, _) =
                page::shorten(&text::line(skill.description()), crate::catalogue::DESCRIPTION_CHARS);
            lines.push(format!("- {}: {description}", text::line(skill.name())));
        }
        if lines.is_empty() {
            lines.push(format!("No skill fits {:?}. Try other words, or do without.", text::line(query)));
        }
        let (query, count) = (page::shorten(query, 200).0, found.len());
        self.note(Event::Searched { query, found: count });
        Found {
            text: lines.join("\n"),
            hits: found.iter().map(|(skill, score)| (skill.name().to_owned(), *score)).collect(),
        }
    }

    /// Says that a skill's texts are no longer in context, as after a compaction: the next load gives them again.
    pub fn forget(&self, name: &str) {
        if self.state().loaded.remove(name).is_some() {
            self.note(Event::Forgotten { name: name.to_owned() });
        }
    }

    /// Says that no skill's text is in context any more.
    pub fn forget_all(&self) {
        let mut names: Vec<_> = self.state().loaded.drain().map(|(name, _)| name).collect();
        names.sort_unstable();
        for name in names {
            self.note(Event::Forgotten { name });
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn record(&self) -> Record {
        self.state().record.clone()
    }

    fn body(&self, name: &str, number: usize, caller: Caller) -> Result<Reply, LoadError> {
        let usable = self.find(name, caller)?;
        let (skill, limits) = (&usable.skill, self.snapshot.limits());
        let name = skill.name();
        let bytes = read_document(skill.folder(), limits.file_bytes)
            .map_err(|error| error.of(&format!("the skill {name}")))?;
        if usable.digest.is_some_and(|digest| digest.document != digest::hash(&bytes)) {
            return Err(LoadError::Changed { what: format!("the skill {name}") });
        }
        let file = String::from_utf8_lossy(&bytes);
        let document = Document::parse(file.as_bytes(), &ParseOptions::new().with_max_bytes(usize::MAX));
        let body = document.body().trim();
        let Page { text, number: page, of } =
            page::page(body, number, limits.body_page_chars).map_err(|pages| LoadError::NoSuchPage {
                page: number,
                pages,
                of_what: format!("the skill {name}"),
            })?;
        let hash = digest::hash(text.as_bytes());
        if self.state().loaded.get(name).and_then(|pages| pages.get(&page)) == Some(&hash) {
            self.note(Event::Repeated { name: name.to_owned(), page });
            let which = if of > 1 { format!("Page {page} of the skill") } else { "The skill".to_owned() };
            let text = format!("{which} {name} is in this conversation already, unchanged. Read it there.");
            return Ok(Reply { text, page, pages: of, bytes: 0, is_pointer: true });
        }
        let attributes = pages_attribute(page, of);
        let inner = text::keep_open(text.trim_end_matches('\n'), TAG);
        let mut reply = format!("<skill name=\"{}\"{attributes}>\n{inner}\n</skill>", text::escape(name));
        if page < of {
            let next = page + 1;
            push_note(
                &mut reply,
                &format!(
                    "Page {page} of {of}. For the next one call `{}` with name {name:?} and page {next}.",
                    self.tool
                ),
            );
        }
        push_note(&mut reply, &provenance(&usable.origin));
        let by_user = caller == Caller::User;
        self.state().loaded.entry(name.to_owned()).or_default().insert(page, hash);
        self.note(Event::Loaded { name: name.to_owned(), page, bytes: text.len(), by_user });
        Ok(Reply { text: reply, page, pages: of, bytes: text.len(), is_pointer: false })
    }

    fn bundled(&self, name: &str, path: &str, number: usize) -> Result<Reply, LoadError> {
        let usable = self
            .find(name, Caller::Model)
            .or_else(|error| self.find(name, Caller::User).map_err(|_| error))?;
        let limits = self.snapshot.limits();
        let name = usable.skill.name();
        let what = || format!("{path} of the skill {name}");
        let jail =
            Jail::open(usable.skill.folder()).map_err(|source| LoadError::Io { what: what(), source })?;
        let Opened { mut file, facts, path: real } =
            jail.file(path).map_err(|error| refused(path, name, error))?;
        let size = facts.stamp.bytes;
        let not_text = |why| LoadError::NotText { path: what(), bytes: size, why };
        if size > limits.resource_bytes {
            return Err(not_text("is too large"));
        }
        let bytes = jail::read(&mut file, limits.resource_bytes, size)
            .map_err(|source| LoadError::Io { what: what(), source })?;
        if bytes.len() as u64 > limits.resource_bytes {
            return Err(not_text("is too large"));
        }
        if let Some(digest) = usable.digest {
            self.check(usable, digest, &real, &bytes)?;
        }
        if bytes.contains(&0) {
            return Err(not_text("is not a text"));
        }
        let decoded = String::from_utf8_lossy(&bytes);
        let Page { text, number: page, of } = page::page(&decoded, number, limits.resource_page_chars)
            .map_err(|pages| LoadError::NoSuchPage { page: number, pages, of_what: what() })?;
        let (attributes, tag) = (pages_attribute(page, of), "skill_resource");
        let inner = text::keep_open(text.trim_end_matches('\n'), TAG);
        let path = path.replace('\\', "/");
        let (shown_name, shown) = (text::escape(name), text::escape(&text::line(&path)));
        let mut reply =
            format!("<{tag} name=\"{shown_name}\" path=\"{shown}\"{attributes}>\n{inner}\n</{tag}>");
        if page < of {
            let next = page + 1;
            let tool = &self.tool;
            push_note(
                &mut reply,
                &format!(
                    "Page {page} of {of}. For the next one call `{tool}` with name {name:?}, resource {path:?} and page {next}."
                ),
            );
        }
        if matches!(decoded, std::borrow::Cow::Owned(_)) {
            push_note(&mut reply, "Bytes that are not UTF-8 are shown as \u{FFFD}.");
        }
        push_note(&mut reply, &provenance(&usable.origin));
        self.note(Event::Resource { name: name.to_owned(), path, page, bytes: text.len() });
        Ok(Reply { text: reply, page, pages: of, bytes: text.len(), is_pointer: false })
    }

    /// Whether a file is what the user agreed to, given its skill's digest.
    fn check(&self, usable: &Usable, digest: SkillDigest, path: &str, bytes: &[u8]) -> Result<(), LoadError> {
        let name = usable.skill.name();
        let changed = |what: String| Err(LoadError::Changed { what });
        let known = self.state().files.get(name).map(|files| files.get(path).copied());
        let known = match known {
            Some(known) => known,
            None => {
                let (now, files) = digest::digest(&usable.skill, self.snapshot.limits())
                    .map_err(|source| LoadError::Io { what: format!("the skill {name}"), source })?;
                if now != digest {
                    return changed(format!("the skill {name}"));
                }
                let hash = files.get(path).copied();
                self.state().files.insert(name.to_owned(), files);
                hash
            }
        };
        match known {
            Some(hash) if hash == digest::hash(bytes) => Ok(()),
            _ => changed(format!("{path} of the skill {name}")),
        }
    }

    fn list(&self, name: &str) -> Result<FileList, LoadError> {
        let usable = self
            .find(name, Caller::Model)
            .or_else(|error| self.find(name, Caller::User).map_err(|_| error))?;
        let name = usable.skill.name();
        let listed =
            Jail::open(usable.skill.folder()).and_then(|jail| jail.files(self.snapshot.limits().skill_files));
        let listed = listed
            .map_err(|source| LoadError::Io { what: format!("the folder of the skill {name}"), source })?;
        let files = listed.files.into_iter().filter(|file| file.path != FILE_NAME);
        let files: Vec<_> = files.map(|file| (file.path, file.stamp.bytes)).collect();
        let mut lines: Vec<_> =
            files.iter().map(|(path, bytes)| format!("{} ({bytes} bytes)", text::line(path))).collect();
        if lines.is_empty() {
            lines.push(format!("The skill {name} has no other files."));
        }
        if listed.cut {
            lines.push(format!("(There are more; these are the first {}.)", files.len()));
        }
        self.note(Event::Listed { name: name.to_owned(), files: files.len() });
        Ok(FileList { text: lines.join("\n"), files, is_cut: listed.cut })
    }

    /// What the index is to know of a skill. A file that cannot be read, or is not what the user agreed to, has no headings.
    fn entry<'a>(&self, skill: &'a Skill) -> search::Entry<'a> {
        let bytes = read_document(skill.folder(), self.snapshot.limits().file_bytes).ok().unwrap_or_default();
        let digest = self.snapshot.usable(skill.name()).and_then(|usable| usable.digest);
        let headings = if digest.is_none_or(|digest| digest.document == digest::hash(&bytes)) {
            search::headings(&String::from_utf8_lossy(&bytes))
        } else {
            String::new()
        };
        search::Entry { name: skill.name(), description: skill.description(), headings }
    }

    fn find(&self, name: &str, caller: Caller) -> Result<&Usable, LoadError> {
        let may = |skill: &Skill| match caller {
            Caller::Model => skill.is_for_model(),
            Caller::User => skill.is_for_user(),
        };
        let usable = self.snapshot.usable(name.trim()).filter(|usable| may(&usable.skill));
        usable.ok_or_else(|| {
            let names: Vec<_> = self.snapshot.skills().filter(|skill| may(skill)).map(Skill::name).collect();
            let known = match names.len() {
                0 => "there are no skills".to_owned(),
                count if count <= NAMES => format!("there are {}", names.join(", ")),
                count => {
                    let first = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
                    format!("there are {first} and {} more; look for it with `search`", count - NAMES)
                }
            };
            LoadError::Unknown { name: page::shorten(name, 100).0, known }
        })
    }

    fn noted<T>(&self, name: &str, result: Result<T, LoadError>) -> Result<T, LoadError> {
        if let Err(error) = &result {
            self.note(Event::Refused { name: page::shorten(name, 100).0, reason: error.to_string() });
        }
        result
    }

    fn note(&self, event: Event) {
        let limit = self.limit();
        self.state().record.push(event, limit);
    }

    fn limit(&self) -> usize {
        self.snapshot.limits().notes
    }

    /// A panic of another thread leaves maps and lists whole, so the lock is taken all the same.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const _: () = {
    const fn shared<T: Send + Sync + 'static>() {}
    shared::<Reader>();
};
