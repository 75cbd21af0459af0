//! Consent: a repository's and its packages' skills reach a model only after the user has agreed to exactly these.
//!
//! Whoever can push to a repository, or publish a package, can write what the model is told. So those skills are
//! withheld as a whole until the user has said yes once for the workspace, and the yes is bound to a [`Fingerprint`]
//! over all files of all of them: a pull that changes approved text, adds a skill or a script asks again. A no is
//! remembered for the workspace, whatever changes, until the host [forgets](ConsentStore::forget) it (its "reload").
//!
//! This crate asks nobody. A [`Question`] is a value; the host shows it in its own way, at its own time, and says what
//! the answer was:
//!
//! ```
//! use haversack_skills::consent::{Consent, ConsentStore, Decision, MemoryStore, Question};
//! # use haversack_skills::{Limits, Registry, Roots};
//! # let project = tempfile::tempdir()?;
//! # let folder = project.path().join(".agents/skills/forms");
//! # std::fs::create_dir_all(&folder)?;
//! # std::fs::write(folder.join("SKILL.md"), "---\nname: forms\ndescription: Fills in PDF forms.\n---\nUse `pdftk`.\n")?;
//! # let mut registry = Registry::scan(&Roots::preset(project.path(), None::<&str>), &Limits::default());
//! # fn ask_the_user(question: &Question) -> Decision { assert!(question.text().contains("forms")); Decision::Allowed }
//!
//! let store = MemoryStore::new();
//! let consent = match registry.question(project.path()) {
//!     None => Consent::not_needed(),
//!     Some(question) => match question.look_up(&store)? {
//!         Some(consent) => consent,                                   // decided before
//!         None => question.record(&store, ask_the_user(&question))?,  // or `Consent::withheld()` where nobody can be asked
//!     },
//! };
//! assert!(consent.is_allowed());
//! assert!(store.read(registry.question(project.path()).unwrap().workspace())?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::digest::{self, Hash, SkillDigest};
use crate::registry::Registry;
use crate::skill::{Origin, Skill};
use crate::text;

mod store;

pub use store::{ConsentError, ConsentStore, JsonStore, MemoryStore};

/// Skills named in the text of a question; the rest is counted.
pub const SHOWN: usize = 8;

/// A hash over the paths and bytes of a set of skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(Hash);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digest::hex(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut hash = Hash::default();
        if text.len() != 2 * hash.len() {
            return Err(ParseFingerprintError);
        }
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let [high, low] = *digits else { return Err(ParseFingerprintError) };
            *byte = digit(high)
                .zip(digit(low))
                .map(|(high, low)| high * 16 + low)
                .ok_or(ParseFingerprintError)?;
        }
        Ok(Self(hash))
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits")]
#[non_exhaustive]
pub struct ParseFingerprintError;

/// What the user said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// These skills may be used.
    Allowed,
    /// No skill of this repository or its packages may be used. Closing the question without an answer means this too.
    Refused,
}

/// What a store keeps for a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remembered {
    /// What the user said.
    pub decision: Decision,
    /// Of which skills.
    pub fingerprint: Fingerprint,
}

impl Remembered {
    /// A decision about the skills of a fingerprint.
    #[must_use]
    pub fn new(decision: Decision, fingerprint: Fingerprint) -> Self {
        Self { decision, fingerprint }
    }
}

/// One skill of a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asked {
    /// The skill.
    pub skill: Arc<Skill>,
    /// Where it comes from.
    pub origin: Arc<Origin>,
    /// Where its folder really is, when a link leads out of the workspace.
    pub outside: Option<PathBuf>,
}

/// The question whether a workspace's own skills may be used.
#[derive(Debug, Clone)]
pub struct Question {
    workspace: String,
    fingerprint: Fingerprint,
    skills: Vec<Asked>,
    approved: Arc<Approved>,
}

/// The skills that a consent covers, and what they were.
#[derive(Debug, Default)]
pub(crate) struct Approved {
    digests: HashMap<Box<Path>, SkillDigest>,
}

impl Question {
    /// The workspace, as stores key it: its real path.
    #[must_use]
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// What a yes is bound to.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The skills asked about, by name and then precedence.
    #[must_use]
    pub fn skills(&self) -> &[Asked] {
        &self.skills
    }

    /// The question in plain lines: how many skills, up to [eight](SHOWN) of them by name and origin, how many more.
    /// Whatever in a name could deceive the eye is written out.
    #[must_use]
    pub fn text(&self) -> String {
        let count = self.skills.len();
        let (noun, them) = if count == 1 { ("skill", "it") } else { ("skills", "them") };
        let mut lines = vec![format!(
            "{} brings {count} {noun}: texts that tell the model how to work. Use {them}?",
            text::visible(&self.workspace)
        )];
        for asked in self.skills.iter().take(SHOWN) {
            let (name, label) = (text::visible(asked.skill.name()), text::visible(&asked.origin.label));
            lines.push(match &asked.outside {
                None => format!("  {name} ({label})"),
                Some(path) => {
                    format!("  {name} ({label}, kept in {})", text::visible(&path.to_string_lossy()))
                }
            });
        }
        if count > SHOWN {
            lines.push(format!("  and {} more", count - SHOWN));
        }
        lines.join("\n")
    }

    /// What was decided before, if it still holds: a no for this workspace, or a yes to exactly these skills. `None`
    /// means that the user has to be asked.
    ///
    /// # Errors
    ///
    /// When the store cannot be read. Then nothing is known, and nothing should be used.
    pub fn look_up(&self, store: &dyn ConsentStore) -> Result<Option<Consent>, ConsentError> {
        Ok(match store.read(&self.workspace)? {
            Some(Remembered { decision: Decision::Refused, .. }) => Some(Consent(State::Refused)),
            Some(remembered) if remembered.fingerprint == self.fingerprint => Some(self.allowed()),
            Some(_) | None => None,
        })
    }

    /// Keeps an answer, and turns it into a consent.
    ///
    /// # Errors
    ///
    /// When the store cannot be written. The answer then holds for nobody; a host may still use
    /// [`decide`](Self::decide) for this run.
    pub fn record(&self, store: &dyn ConsentStore, decision: Decision) -> Result<Consent, ConsentError> {
        store.write(&self.workspace, Remembered { decision, fingerprint: self.fingerprint })?;
        Ok(self.decide(decision))
    }

    /// Turns an answer into a consent without keeping it.
    #[must_use]
    pub fn decide(&self, decision: Decision) -> Consent {
        match decision {
            Decision::Allowed => self.allowed(),
            Decision::Refused => Consent(State::Refused),
        }
    }

    fn allowed(&self) -> Consent {
        Consent(State::Allowed(Arc::clone(&self.approved)))
    }
}

/// What the user's answer comes to: which repository and package skills a snapshot may hold.
#[derive(Debug, Clone)]
pub struct Consent(State);

#[derive(Debug, Clone)]
enum State {
    NotNeeded,
    Allowed(Arc<Approved>),
    Refused,
    Withheld,
    Everything,
}

/// How a consent stands to one skill.
pub(crate) enum Grant {
    /// Usable while its files are these.
    Bound(SkillDigest),
    /// Usable.
    Free,
    No(&'static str),
}

impl Consent {
    /// There was no question: only the user's and the host's own skills are used.
    #[must_use]
    pub fn not_needed() -> Self {
        Self(State::NotNeeded)
    }

    /// Nobody could be asked: repository and package skills stay out, and nothing is remembered.
    #[must_use]
    pub fn withheld() -> Self {
        Self(State::Withheld)
    }

    /// Everything may be used, unchecked. For a host that has its own way of trusting a workspace.
    #[must_use]
    pub fn everything() -> Self {
        Self(State::Everything)
    }

    /// Whether repository and package skills may be used.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self.0, State::Allowed(_) | State::Everything)
    }

    pub(crate) fn grant(&self, skill: &Skill, origin: &Origin) -> Grant {
        if !origin.source.needs_consent() {
            return Grant::Free;
        }
        match &self.0 {
            State::Everything => Grant::Free,
            State::Allowed(approved) => approved
                .digests
                .get(skill.folder())
                .map_or(Grant::No("it was not there when the user was asked"), |digest| {
                    Grant::Bound(*digest)
                }),
            State::Refused => Grant::No("the user does not want the skills of this workspace"),
            State::NotNeeded | State::Withheld => {
                Grant::No("the user has not been asked about the skills of this workspace")
            }
        }
    }
}

/// The version of the way a fingerprint is made, hashed into it.
const VERSION: &[u8] = b"haversack skills consent 1";

impl Registry {
    /// The question to ask before the skills of a workspace's repository and packages may be used; `None` when there are
    /// none that could be.
    ///
    /// Reads and hashes all files of these skills (within [`Limits::skill_files`](crate::Limits::skill_files) and
    /// [`Limits::skill_bytes`](crate::Limits::skill_bytes) each); what has not changed since the last question is not
    /// read again. A skill that cannot be read is left out, and so not usable under the consent.
    pub fn question(&mut self, workspace: &Path) -> Option<Question> {
        let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
        let mut digests = self.take_digests();
        let mut approved = Approved::default();
        let mut skills = Vec::new();
        let mut hashes: Vec<(String, SkillDigest)> = Vec::new();
        for skill in self.all().iter().filter(|skill| skill.is_valid()) {
            let origin = self.origin(skill);
            if !origin.source.needs_consent() {
                continue;
            }
            let Ok(digest) = digests.of(skill, self.limits()) else { continue };
            let outside = skill.folder().canonicalize().ok().filter(|folder| !folder.starts_with(&real));
            // The place within its root, so that a workspace can be moved.
            let place = skill.folder().strip_prefix(&origin.root).unwrap_or(skill.folder()).to_string_lossy();
            hashes.push((format!("{}\0{}\0{place}", origin.source.as_str(), origin.label), digest));
            approved.digests.insert(skill.folder().into(), digest);
            skills.push(Asked { skill: Arc::clone(skill), origin, outside });
        }
        self.put_digests(digests);
        if skills.is_empty() {
            return None;
        }
        hashes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let fingerprint = fingerprint(&hashes);
        let workspace = real.to_string_lossy().into_owned();
        Some(Question { workspace, fingerprint, skills, approved: Arc::new(approved) })
    }
}

fn fingerprint(hashes: &[(String, SkillDigest)]) -> Fingerprint {
    let mut hasher = Sha256::new();
    for part in std::iter::once(VERSION)
        .chain(hashes.iter().flat_map(|(place, digest)| [place.as_bytes(), &digest.files]))
    {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Fingerprint(hasher.finalize().into())
}
