//! Where to look, in order of precedence. Plain data: nothing is read here.

use std::path::{Path, PathBuf};

use crate::skill::Source;

/// Folders of a project that hold skills, highest precedence first: this library's own, the one most hosts share, and
/// the one of the host that began it.
pub const PROJECT_FOLDERS: [&str; 3] = [".gbs/skills", ".agents/skills", ".claude/skills"];

/// What to do with a link met in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LinkPolicy {
    /// Follow it wherever it leads. People keep one copy of a skill and link it into every project; a consent question
    /// says when a skill lies outside the workspace.
    #[default]
    Follow,
    /// Follow it while it stays in the project, or, for a root without a project, in the root.
    Inside,
    /// Pass it over.
    Never,
}

/// One folder whose sub-folders are searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
    pub(crate) label: String,
    pub(crate) links: LinkPolicy,
    pub(crate) is_skill: bool,
}

impl Root {
    /// A folder of skills.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, source: Source, label: impl Into<String>) -> Self {
        Self { path: path.into(), source, label: label.into(), links: LinkPolicy::default(), is_skill: false }
    }

    /// The user's own folder of skills, trusted.
    #[must_use]
    pub fn user(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Source::User, "user skills")
    }

    /// A folder that is itself one skill.
    #[must_use]
    pub fn one_skill(path: impl Into<PathBuf>, source: Source, label: impl Into<String>) -> Self {
        Self { is_skill: true, ..Self::new(path, source, label) }
    }

    /// Sets what is done with links; followed by default.
    #[must_use]
    pub fn with_links(mut self, links: LinkPolicy) -> Self {
        self.links = links;
        self
    }
}

/// An ordered list of places to look; the first one that has a valid skill of a name wins.
///
/// ```
/// use haversack_skills::{Root, Roots, Source};
///
/// // What most hosts want: the project's folders (up to the repository's root), its packages, the user's folder.
/// let preset = Roots::preset("/projects/shop", Some("/home/ada/.config/host/skills"));
/// // Or any list.
/// let own = Roots::new()
///     .with_root(Root::user("/home/ada/skills"))
///     .with_root(Root::new("/usr/share/host/skills", Source::Host, "built in"));
/// assert_ne!(preset, own);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    pub(crate) steps: Vec<Step>,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Root(Root),
    Project(Project),
    Packages { project: PathBuf, links: LinkPolicy },
}

/// The skill folders of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    pub(crate) path: PathBuf,
    pub(crate) up: bool,
    pub(crate) down: bool,
    pub(crate) links: LinkPolicy,
}

impl Roots {
    /// No place at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The project's [folders](PROJECT_FOLDERS) and those of the folders above it up to the root of its repository,
    /// then its packages, then the user's folder. The nearest folder wins.
    ///
    /// A project that is in no repository (no `.git` above it) is searched alone.
    pub fn preset<U: Into<PathBuf>>(project: impl AsRef<Path>, user: Option<U>) -> Self {
        let roots = Self::new().with_project(project.as_ref()).with_packages(project.as_ref());
        match user {
            Some(user) => roots.with_root(Root::user(user)),
            None => roots,
        }
    }

    /// Adds a folder below all others so far.
    #[must_use]
    pub fn with_root(mut self, root: Root) -> Self {
        self.steps.push(Step::Root(root));
        self
    }

    /// Adds the skill folders of a project and of the folders above it in the same repository.
    #[must_use]
    pub fn with_project(mut self, project: impl Into<PathBuf>) -> Self {
        let links = LinkPolicy::default();
        self.steps.push(Step::Project(Project { path: project.into(), up: true, down: false, links }));
        self
    }

    /// Adds the skills of a project's direct dependencies (`gbsSkills` in their `package.json`).
    #[must_use]
    pub fn with_packages(mut self, project: impl Into<PathBuf>) -> Self {
        self.steps.push(Step::Packages { project: project.into(), links: LinkPolicy::default() });
        self
    }

    /// Also searches the folders *below* each project for skill folders, as a monorepo has them, within the limits of
    /// one root. Off by default: it walks the project's source tree.
    #[must_use]
    pub fn with_nested_projects(mut self) -> Self {
        self.each_project(|project| project.down = true);
        self
    }

    /// Does not look above each project.
    #[must_use]
    pub fn without_parents(mut self) -> Self {
        self.each_project(|project| project.up = false);
        self
    }

    /// Sets what is done with links in all places so far.
    #[must_use]
    pub fn with_links(mut self, policy: LinkPolicy) -> Self {
        for step in &mut self.steps {
            match step {
                Step::Root(root) => root.links = policy,
                Step::Project(project) => project.links = policy,
                Step::Packages { links, .. } => *links = policy,
            }
        }
        self
    }

    fn each_project(&mut self, change: impl Fn(&mut Project)) {
        for step in &mut self.steps {
            if let Step::Project(project) = step {
                change(project);
            }
        }
    }
}
