//! What a scan passed over, and why: things that are no skill and folders that were not walked.

use std::fmt;
use std::path::PathBuf;

/// Something a scan met and did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// What was passed over.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: SkipReason,
}

impl Skipped {
    pub(crate) fn new(path: PathBuf, reason: SkipReason) -> Self {
        Self { path, reason }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// Why something was passed over. `Display` says it in a sentence with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// A folder such as `.git` or `node_modules`, where nobody keeps skills on purpose.
    Foreign,
    /// A folder whose name begins with a dot.
    Hidden,
    /// A `.gitignore` names it.
    Ignored,
    /// The same folder was reached before; this is a link to it, or a link that goes round in a circle.
    SeenBefore,
    /// A link, and [`LinkPolicy`](crate::LinkPolicy) forbids it.
    LinkForbidden,
    /// A link that leads nowhere.
    LinkBroken,
    /// A `skill.md` whose letters are not those of `SKILL.md`.
    WrongCase,
    /// A Markdown file directly in a root, where a folder with a `SKILL.md` is meant.
    FlatFile,
    /// A folder or file that the system does not let us read; its own words.
    Unreadable(String),
    /// A `package.json` that is no JSON, or too large.
    BadManifest(String),
    /// An entry of `gbsSkills` that is no usable path.
    BadPackageSkill(String),
}

impl SkipReason {
    /// One word for reports: `foreign`, `hidden`, `ignored`, `seen-before`, `link-forbidden`, `link-broken`, `wrong-case`,
    /// `flat-file`, `unreadable`, `bad-manifest` or `bad-package-skill`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Hidden => "hidden",
            Self::Ignored => "ignored",
            Self::SeenBefore => "seen-before",
            Self::LinkForbidden => "link-forbidden",
            Self::LinkBroken => "link-broken",
            Self::WrongCase => "wrong-case",
            Self::FlatFile => "flat-file",
            Self::Unreadable(_) => "unreadable",
            Self::BadManifest(_) => "bad-manifest",
            Self::BadPackageSkill(_) => "bad-package-skill",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => {
                f.write_str("not walked: version control, packages and build output hold no skills")
            }
            Self::Hidden => f.write_str("not walked: its name begins with a dot"),
            Self::Ignored => f.write_str("not walked: a .gitignore names it"),
            Self::SeenBefore => f.write_str("the same folder was found before by another way"),
            Self::LinkForbidden => f.write_str("a link that the host's policy does not follow"),
            Self::LinkBroken => f.write_str("a link that leads nowhere"),
            Self::WrongCase => f.write_str("not read: rename it to SKILL.md, in capitals"),
            Self::FlatFile => {
                f.write_str("not read: a skill is a folder, so move it to a SKILL.md in a folder of its own")
            }
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::BadManifest(why) => write!(f, "its skills are not known: {why}"),
            Self::BadPackageSkill(why) => write!(f, "an entry of gbsSkills was passed over: {why}"),
        }
    }
}

/// Which bound of [`Limits`](crate::Limits) ended a walk early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bound {
    /// [`Limits::depth`](crate::Limits::depth)
    Depth,
    /// [`Limits::folders`](crate::Limits::folders)
    Folders,
    /// [`Limits::entries`](crate::Limits::entries)
    Entries,
    /// [`Limits::dependencies`](crate::Limits::dependencies)
    Dependencies,
    /// [`Limits::package_skills`](crate::Limits::package_skills)
    PackageSkills,
    /// [`Limits::notes`](crate::Limits::notes): later skipped things were only counted.
    Notes,
}

impl Bound {
    /// The name of the field of [`Limits`](crate::Limits).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Folders => "folders",
            Self::Entries => "entries",
            Self::Dependencies => "dependencies",
            Self::PackageSkills => "package_skills",
            Self::Notes => "notes",
        }
    }
}

/// A bound that ended a walk early, so that skills may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundHit {
    /// Which one.
    pub bound: Bound,
    /// Its value.
    pub limit: usize,
    /// The root that was walked.
    pub root: PathBuf,
    /// The first place that was not looked at.
    pub at: PathBuf,
}

impl BoundHit {
    pub(crate) fn new(bound: Bound, limit: usize, root: PathBuf, at: PathBuf) -> Self {
        Self { bound, limit, root, at }
    }
}

impl fmt::Display for BoundHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (root, at) = (self.root.display(), self.at.display());
        write!(
            f,
            "{root}: not everything was looked at: the limit of {} {} was reached at {at}",
            self.limit,
            self.bound.as_str()
        )
    }
}
