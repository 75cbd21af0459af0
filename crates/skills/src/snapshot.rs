//! What one run may use: frozen, so that its prompt is the same bytes at every step.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::consent::{Consent, Grant};
use crate::digest::SkillDigest;
use crate::limits::Limits;
use crate::registry::Registry;
use crate::scope::Scope;
use crate::skill::{Needs, Origin, Skill};

/// What a run has, for skills that [require](crate::Requires) something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Available {
    tools: HashSet<String>,
    servers: HashSet<String>,
}

impl Available {
    /// Neither tools nor servers.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds names of tools.
    #[must_use]
    pub fn with_tools<I: IntoIterator<Item = S>, S: Into<String>>(mut self, names: I) -> Self {
        self.tools.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds names of connected servers.
    #[must_use]
    pub fn with_servers<I: IntoIterator<Item = S>, S: Into<String>>(mut self, names: I) -> Self {
        self.servers.extend(names.into_iter().map(Into::into));
        self
    }
}

/// What of a registry goes into a snapshot.
///
/// ```
/// use haversack_skills::{Available, Filter, Scope, consent::Consent};
///
/// let filter = Filter::new(Consent::withheld())
///     .with_scope(Scope::everything().with_denied(["deploy-*"]))
///     .with_available(Available::nothing().with_tools(["read_file", "skill"]));
/// # let _ = filter;
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    consent: Consent,
    scope: Scope,
    available: Option<Available>,
}

impl Filter {
    /// All skills that a consent lets through.
    #[must_use]
    pub fn new(consent: Consent) -> Self {
        Self { consent, scope: Scope::everything(), available: None }
    }

    /// Only skills that one agent may see and load.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Only skills whose required tools and servers are there. Without this, what a skill requires of tools and servers
    /// is not looked at.
    #[must_use]
    pub fn with_available(mut self, available: Available) -> Self {
        self.available = Some(available);
        self
    }
}

/// A valid skill that a snapshot does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Withheld {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: WithheldReason,
}

/// Why a valid skill is not in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// The user has not agreed; says how that came about.
    Consent(&'static str),
    /// The agent's [`Scope`] does not name it.
    Scope,
    /// It requires tools that are not there.
    MissingTools(Vec<String>),
    /// It requires servers that are not connected.
    MissingServers(Vec<String>),
    /// It requires skills that are not usable.
    MissingSkills(Vec<String>),
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consent(why) => f.write_str(why),
            Self::Scope => f.write_str("this agent may not use it"),
            Self::MissingTools(names) => write!(f, "it requires the tools {}", names.join(", ")),
            Self::MissingServers(names) => write!(f, "it requires the MCP servers {}", names.join(", ")),
            Self::MissingSkills(names) => write!(f, "it requires the skills {}", names.join(", ")),
        }
    }
}

/// A skill of a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Usable {
    pub(crate) skill: Arc<Skill>,
    pub(crate) origin: Arc<Origin>,
    /// What its files must be, when a consent is bound to them.
    pub(crate) digest: Option<SkillDigest>,
}

/// The skills of one run: frozen, cheap to clone, shared between threads.
///
/// Its catalogue is the same at every step of the run, whatever happens on disk meanwhile; the next run takes a new one.
#[derive(Debug, Clone)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Sorted by name.
    usable: Vec<Usable>,
    withheld: Vec<Withheld>,
    limits: Limits,
}

impl Registry {
    /// Freezes the skills that a filter lets through.
    ///
    /// A skill without consent stands before no other: where the repository's skill is withheld, the user's own skill of
    /// the same name is used.
    #[must_use]
    pub fn snapshot(&self, filter: &Filter) -> Snapshot {
        let mut usable = Vec::with_capacity(self.skills().len());
        let mut withheld = Vec::new();
        for same in self.all().chunk_by(|a, b| a.name() == b.name()) {
            let mut refusal = None;
            let mut granted = None;
            for skill in same.iter().filter(|skill| skill.is_valid()) {
                let origin = self.origin(skill);
                let digest = match filter.consent.grant(skill, &origin) {
                    Grant::Free => None,
                    Grant::Bound(digest) => Some(digest),
                    Grant::No(why) => {
                        refusal.get_or_insert((skill, why));
                        continue;
                    }
                };
                granted = Some(Usable { skill: Arc::clone(skill), origin, digest });
                break;
            }
            match (granted, refusal) {
                (Some(granted), _) => usable.push(granted),
                (None, Some((skill, why))) => {
                    let reason = WithheldReason::Consent(why);
                    withheld.push(Withheld { name: skill.name().to_owned(), reason });
                }
                (None, None) => {}
            }
        }
        let mut inner = Inner { usable, withheld, limits: self.limits().clone() };
        inner.narrow(&filter.scope);
        inner.require(filter.available.as_ref());
        Snapshot { inner: Arc::new(inner) }
    }
}

impl Inner {
    fn retain(&mut self, mut reason: impl FnMut(&Skill) -> Option<WithheldReason>) {
        let withheld = &mut self.withheld;
        self.usable.retain(|usable| match reason(&usable.skill) {
            None => true,
            Some(reason) => {
                withheld.push(Withheld { name: usable.skill.name().to_owned(), reason });
                false
            }
        });
    }

    fn narrow(&mut self, scope: &Scope) {
        self.retain(|skill| (!scope.allows(skill.name())).then_some(WithheldReason::Scope));
    }

    fn require(&mut self, available: Option<&Available>) {
        if let Some(available) = available {
            self.retain(|skill| {
                let requires = skill.requires()?;
                let tools = missing(&requires.tools, |name| available.tools.contains(name));
                let servers = missing(&requires.servers, |name| available.servers.contains(name));
                let tools = (!tools.is_empty()).then_some(WithheldReason::MissingTools(tools));
                tools.or_else(|| (!servers.is_empty()).then_some(WithheldReason::MissingServers(servers)))
            });
        }
        // A skill that goes may take others along; each round removes one at least.
        while self
            .usable
            .iter()
            .any(|usable| usable.skill.requires().is_some_and(|requires| !requires.skills.is_empty()))
        {
            let names: HashSet<_> = self.usable.iter().map(|usable| usable.skill.name().to_owned()).collect();
            let before = self.usable.len();
            self.retain(|skill| {
                let missing = missing(&skill.requires()?.skills, |name| names.contains(name));
                (!missing.is_empty()).then_some(WithheldReason::MissingSkills(missing))
            });
            if self.usable.len() == before {
                break;
            }
        }
        self.withheld.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// The names that are needed and not there.
fn missing(needs: &Needs, has: impl Fn(&str) -> bool) -> Vec<String> {
    let mut missing: Vec<_> = needs.all.iter().filter(|name| !has(name)).cloned().collect();
    if !needs.any.is_empty() && !needs.any.iter().any(|name| has(name)) {
        missing.push(format!("one of {}", needs.any.join(" or ")));
    }
    missing
}

impl Snapshot {
    /// The skills, sorted by the bytes of their names.
    pub fn skills(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.inner.usable.iter().map(|usable| usable.skill.as_ref())
    }

    /// The skill of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.usable(name).map(|usable| usable.skill.as_ref())
    }

    /// Where the skill of a name comes from.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.usable(name).map(|usable| usable.origin.as_ref())
    }

    /// The valid skills that are not in it, and why; sorted by name.
    #[must_use]
    pub fn withheld(&self) -> &[Withheld] {
        &self.inner.withheld
    }

    /// Whether there is nothing for a model: then there is no catalogue, no hint, and should be no tool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.skills().any(Skill::is_for_model)
    }

    /// The same skills for an agent that may use fewer.
    #[must_use]
    pub fn narrowed(&self, scope: &Scope) -> Self {
        let Inner { usable, withheld, limits } = &*self.inner;
        let mut inner = Inner { usable: usable.clone(), withheld: withheld.clone(), limits: limits.clone() };
        inner.narrow(scope);
        inner.require(None);
        Self { inner: Arc::new(inner) }
    }

    /// The limits of the scan behind it.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn usable(&self, name: &str) -> Option<&Usable> {
        let at = self.inner.usable.binary_search_by(|usable| usable.skill.name().cmp(name)).ok()?;
        self.inner.usable.get(at)
    }
}

const _: () = {
    const fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Snapshot>();
};
