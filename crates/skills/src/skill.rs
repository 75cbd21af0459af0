//! A skill as the registry knows it: level 1, where it comes from, and why it may be unusable.

use std::path::{Path, PathBuf};

use crate::attach::{self, Attach, PATTERN_BYTES, PATTERNS};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::folder::{Identity, Stamp};
use crate::name;
use crate::node::{Fields, Node};

/// Characters of a description that are kept; the format allows 1,024, the longest seen in the wild has 1,929.
const DESCRIPTION_CHARS: usize = 2_048;
/// Names in one list of `requires`.
const REQUIREMENTS: usize = 64;

/// Where a skill comes from, which decides whether it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// A folder of the project: whoever can push to the repository can write it. Needs consent.
    Project,
    /// A dependency of the project. Needs consent.
    Package,
    /// The user's own folder.
    User,
    /// Shipped with the host.
    Host,
}

impl Source {
    /// `project`, `package`, `user` or `host`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Package => "package",
            Self::User => "user",
            Self::Host => "host",
        }
    }

    /// Whether skills from here are withheld until the user has agreed, and carry a note when they are loaded.
    #[must_use]
    pub fn needs_consent(self) -> bool {
        matches!(self, Self::Project | Self::Package)
    }
}

/// The root a skill was found in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// What kind of place.
    pub source: Source,
    /// Its short name for people: `.agents/skills`, the name of the package, `user skills`.
    pub label: String,
    /// The root itself.
    pub root: PathBuf,
}

impl Origin {
    pub(crate) fn new(source: Source, label: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        Self { source, label: label.into(), root: root.into() }
    }

    /// Of a skill that belongs to another registry: not to be trusted.
    pub(crate) fn unknown() -> Self {
        Self::new(Source::Project, "unknown", PathBuf::new())
    }
}

/// What a skill needs of its surroundings before it is offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requires {
    /// Tools the model must have.
    pub tools: Needs,
    /// MCP servers that must be connected.
    pub servers: Needs,
    /// Other skills that must be usable.
    pub skills: Needs,
}

impl Requires {
    /// Whether nothing is required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.servers.is_empty() && self.skills.is_empty()
    }
}

/// Names of which all, and names of which at least one, must be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// All of these.
    pub all: Vec<String>,
    /// At least one of these, when there are any.
    pub any: Vec<String>,
}

impl Needs {
    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty()
    }
}

/// One skill: its level 1. The body stays on disk until somebody asks for it.
#[derive(Debug, Clone)]
pub struct Skill {
    name: Box<str>,
    description: Box<str>,
    folder: Box<Path>,
    file: Found,
    valid: bool,
    hidden_from_model: bool,
    hidden_from_user: bool,
    attach: Option<Box<Attach>>,
    requires: Option<Box<Requires>>,
    problems: Box<[Diagnostic]>,
}

/// Where a scan found a `SKILL.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Which root, in order of precedence.
    pub(crate) root: u32,
    /// Whether a link was followed on the way, inside the root.
    pub(crate) through_link: bool,
    /// The folder, however it was reached.
    pub(crate) folder: Identity,
    /// The file as it was before it was read.
    pub(crate) stamp: Stamp,
}

impl Skill {
    /// The name a model calls it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for. The whole text, however long (a catalogue shortens it), up to 2,048 characters.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its folder, by the way it was found.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its `SKILL.md`.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// Whether it can be offered and loaded at all. An invalid skill is listed with its [`problems`](Self::problems).
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Whether the model may see and load it: valid, and not marked `disable-model-invocation`.
    #[must_use]
    pub fn is_for_model(&self) -> bool {
        self.valid && !self.hidden_from_model
    }

    /// Whether a user may call it by name: valid, and not marked `user-invocable: false`.
    #[must_use]
    pub fn is_for_user(&self) -> bool {
        self.valid && !self.hidden_from_user
    }

    /// What it requires, when its front matter says so.
    #[must_use]
    pub fn requires(&self) -> Option<&Requires> {
        self.requires.as_deref()
    }

    /// Why it is invalid, and which of its fields this crate could not use. Every other finding about the file is in
    /// what [`Document`](crate::Document) says when the file is read again.
    #[must_use]
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// Whether one of its patterns matches a file, named relative to the workspace.
    #[must_use]
    pub fn attaches_to(&self, file: &str) -> bool {
        self.attach.as_deref().is_some_and(|attach| attach.matches(file))
    }

    pub(crate) fn found(&self) -> &Found {
        &self.file
    }

    /// The same skill, found again.
    pub(crate) fn found_again(mut self, file: Found) -> Self {
        self.file = file;
        self
    }

    /// A skill whose file could not be read, or held no front matter.
    pub(crate) fn unusable(folder: PathBuf, file: Found, problems: Vec<Diagnostic>) -> Self {
        let name = folder_name(&folder);
        let problems = problems.into_boxed_slice();
        Self { problems, ..Self::new(name, String::new(), folder, file) }
    }

    /// Judges what a front matter says.
    pub(crate) fn judge(
        folder: PathBuf,
        file: Found,
        fields: &Fields<'_>,
        mut problems: Vec<Diagnostic>,
    ) -> Self {
        let given = fields.text("name").map(str::trim).filter(|name| !name.is_empty());
        let (name, named) = match given {
            Some(name) if is_usable(name) => (name.to_owned(), true),
            Some(name) => {
                problems.push(finding(fields, "name", Code::NameCharacters, unusable_name(name)));
                (folder_name(&folder), false)
            }
            // The folder names the skill, as most hosts do.
            None => {
                let folder_name = folder_name(&folder);
                let usable = is_usable(&folder_name);
                if !usable {
                    let message = format!(
                        "the skill has no name, and its folder {folder_name:?} cannot be one; add a name"
                    );
                    problems.push(finding(fields, "name", Code::NameMissing, message));
                }
                (folder_name, usable)
            }
        };
        let description = fields.text("description").map_or("", str::trim);
        if description.is_empty() {
            let message = "the skill has no description, so nobody can tell when to use it; add one";
            problems.push(finding(fields, "description", Code::DescriptionMissing, message.to_owned()));
        }
        let is_short = description.len() <= DESCRIPTION_CHARS;
        let cut = if is_short { None } else { description.char_indices().nth(DESCRIPTION_CHARS) };
        let kept = cut.and_then(|(at, _)| description.get(..at)).unwrap_or(description).to_owned();
        let valid = named && !kept.is_empty();
        let attach = read_attach(fields, &mut problems);
        let requires = fields.get("requires").map(read_requires).filter(|requires| !requires.is_empty());
        let flag = |names: &[&str]| names.iter().find_map(|name| fields.get(name)).and_then(Node::as_bool);
        let no_model = ["disable-model-invocation", "disable_model_invocation", "disableModelInvocation"];
        Self {
            valid,
            hidden_from_model: flag(&no_model) == Some(true),
            hidden_from_user: flag(&["user-invocable", "user_invocable", "userInvocable"]) == Some(false),
            attach: (!attach.is_empty()).then(|| Box::new(attach)),
            requires: requires.map(Box::new),
            problems: problems.into_boxed_slice(),
            ..Self::new(name, kept, folder, file)
        }
    }

    fn new(name: String, description: String, folder: PathBuf, file: Found) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            folder: folder.into(),
            file,
            valid: false,
            hidden_from_model: false,
            hidden_from_user: false,
            attach: None,
            requires: None,
            problems: Box::default(),
        }
    }
}

/// The name of the file that makes a folder a skill, in exactly these letters.
pub const FILE_NAME: &str = "SKILL.md";

/// Whether a name can be used: nothing a host would trip over. What is merely not to the letter of the specification
/// (capitals, `_`, `.`, a `plugin:` prefix) is a warning of the reader's, not a reason to lose the skill.
fn is_usable(name: &str) -> bool {
    name::faults(name).iter().all(|code| match code {
        Code::NameNotLowercase => true,
        Code::NameCharacters => {
            name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
        }
        _ => false,
    }) && name.chars().any(char::is_alphanumeric)
}

fn unusable_name(name: &str) -> String {
    let shown: String = name.chars().take(80).collect();
    format!(
        "the name {shown:?} cannot be used; write 1 to 64 lower-case letters and digits, joined by single hyphens"
    )
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// An error at the key of a field, or at the first line where the field is missing.
fn finding(fields: &Fields<'_>, field: &str, code: Code, message: String) -> Diagnostic {
    let (line, column) =
        fields.get(field).map_or((1, 1), |node| (node.position().line, node.position().column));
    Diagnostic::new(code, Severity::Error, line, column, message)
}

fn read_attach(fields: &Fields<'_>, problems: &mut Vec<Diagnostic>) -> Attach {
    let mut attach = Attach::default();
    let spelling =
        ["autoAttach", "auto_attach", "auto-attach"].into_iter().find(|name| fields.get(name).is_some());
    // A single text is taken as a list of one, which is what its author meant.
    for (pattern, node) in spelling.and_then(|name| fields.get(name)).map_or_else(Vec::new, texts) {
        if pattern.len() > PATTERN_BYTES || attach.auto.len() >= PATTERNS {
            problems.push(passed_over(
                node,
                &format!("{PATTERNS} patterns of {PATTERN_BYTES} bytes are the most"),
            ));
        } else {
            attach.auto.push(pattern.into());
        }
    }
    let paths = fields.get("paths").map_or_else(Vec::new, |node| match node.as_text() {
        Some(text) => outside_braces(text).into_iter().map(|pattern| (pattern.to_owned(), node)).collect(),
        None => texts(node),
    });
    for (pattern, node) in paths {
        match attach::compile(&pattern) {
            Err(reason) => problems.push(passed_over(node, &reason)),
            Ok(_) if attach.paths.len() >= PATTERNS => {
                problems.push(passed_over(node, &format!("{PATTERNS} patterns are the most")));
            }
            Ok(_) => attach.paths.push(pattern.into()),
        }
    }
    attach
}

fn passed_over(node: &Node<'_>, why: &str) -> Diagnostic {
    let position = node.position();
    let message = format!("this pattern was passed over, the others count: {why}");
    Diagnostic::new(Code::BadPattern, Severity::Warning, position.line, position.column, message)
}

/// The texts of a scalar or of a list of scalars.
fn texts<'n, 'a>(node: &'n Node<'a>) -> Vec<(String, &'n Node<'a>)> {
    let nodes = node.as_list().unwrap_or(std::slice::from_ref(node));
    let text = |node: &'n Node<'a>| node.as_text().map(|text| (text.trim().to_owned(), node));
    nodes.iter().filter_map(text).filter(|(text, _)| !text.is_empty()).collect()
}

/// The parts of a text between commas that do not stand in braces.
fn outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// `requires` is a map of `tools`, `servers` and `skills`; each is a name, a list of names of which all are needed, or a
/// map of `all` and `any`. What else hosts write there (programs, variables) is none of ours.
fn read_requires(node: &Node<'_>) -> Requires {
    let needs =
        |field: &str| node.as_map().and_then(|map| map.get(field)).map_or_else(Needs::default, read_needs);
    Requires { tools: needs("tools"), servers: needs("servers"), skills: needs("skills") }
}

fn read_needs(node: &Node<'_>) -> Needs {
    let names = |node: &Node<'_>| texts(node).into_iter().take(REQUIREMENTS).map(|(name, _)| name).collect();
    match node.as_map() {
        None => Needs { all: names(node), any: Vec::new() },
        Some(map) => {
            let list = |field: &str| map.get(field).map_or_else(Vec::new, names);
            Needs { all: list("all"), any: list("any") }
        }
    }
}
