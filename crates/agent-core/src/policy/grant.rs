//! What a person allowed for good.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Fingerprint;
use crate::policy::pattern::ApprovalKey;
use crate::policy::proposal::Proposal;
use crate::policy::rule::{Decision, Rule};
use crate::tool::ToolSpec;

/// How many grants one session keeps: a person gives them one by one, so that more would be a fault.
pub const MAX_GRANTS: usize = 1_000;

/// A rule that allows, bound to one tool as it was when the person said yes. When what the tool says of itself
/// changes, the grant no longer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// What was granted.
    pub rule: Rule,
    /// The tool it was granted to.
    pub tool: Fingerprint,
}

/// The grants of a session, or those that a host keeps over sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Binds a rule to a tool and keeps it. Keeping the same twice is keeping it once.
    ///
    /// # Errors
    ///
    /// [`GrantRefused`] when the rule does not allow, does not name this tool, or there are [`MAX_GRANTS`] already.
    pub fn add(&mut self, rule: Rule, tool: &ToolSpec) -> Result<(), GrantRefused> {
        if rule.decision != Decision::Allow {
            return Err(GrantRefused::NotAnAllowance);
        }
        if !rule.tool.matches(&tool.name) {
            return Err(GrantRefused::OtherTool);
        }
        let grant = Grant { rule, tool: Fingerprint::of(tool) };
        if self.0.contains(&grant) {
            return Ok(());
        }
        if self.0.len() >= MAX_GRANTS {
            return Err(GrantRefused::TooMany);
        }
        self.0.push(grant);
        Ok(())
    }

    /// Takes over the grants of another list, each once, up to [`MAX_GRANTS`].
    pub fn merge(&mut self, other: &Self) {
        for grant in &other.0 {
            if self.0.len() < MAX_GRANTS && !self.0.contains(grant) {
                self.0.push(grant.clone());
            }
        }
    }

    /// The grants, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes back every grant for which `keep` says no.
    pub fn retain(&mut self, keep: impl FnMut(&Grant) -> bool) {
        self.0.retain(keep);
    }

    /// Whether some grant allows the tool, as it is now, and in it the key, or a call without keys.
    pub(super) fn allow(&self, proposal: &Proposal<'_>, key: Option<&ApprovalKey>) -> bool {
        self.0.iter().any(|g| g.tool == proposal.fingerprint && g.rule.allows(proposal, key))
    }
}

/// Why a rule did not become a grant. The call that was asked about is not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrantRefused {
    /// The rule asks or denies; such rules belong into a policy.
    NotAnAllowance,
    /// The rule is not about the tool that was asked about.
    OtherTool,
    /// There are [`MAX_GRANTS`] already.
    TooMany,
}

impl fmt::Display for GrantRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAllowance => f.write_str("only a rule that allows can be granted"),
            Self::OtherTool => f.write_str("the rule is not about the tool that was asked about"),
            Self::TooMany => write!(f, "a session keeps at most {MAX_GRANTS} grants; take some back"),
        }
    }
}

impl std::error::Error for GrantRefused {}
