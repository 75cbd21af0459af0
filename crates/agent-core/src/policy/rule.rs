//! One rule of a policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::pattern::{ApprovalKey, Glob, KeyPattern};
use crate::policy::proposal::Proposal;

/// What is to happen with a call. Ordered: the later, the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person, or the host in their name, is asked.
    Ask,
    /// It does not run; the model is told why.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// What is to happen with calls of some tools, all of them or those with certain keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// What is to happen.
    pub decision: Decision,
    /// Which tools, by public name.
    pub tool: Glob,
    /// Which keys: any of these patterns. Empty means every call of the tools, those without keys included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyPattern>,
}

impl Rule {
    /// A rule for every call of the tools whose name matches.
    pub fn new(decision: Decision, tool: impl Into<Glob>) -> Self {
        Self { decision, tool: tool.into(), keys: Vec::new() }
    }

    /// Allows the tools.
    pub fn allow(tool: impl Into<Glob>) -> Self {
        Self::new(Decision::Allow, tool)
    }

    /// Asks before the tools run, whatever was granted.
    pub fn ask(tool: impl Into<Glob>) -> Self {
        Self::new(Decision::Ask, tool)
    }

    /// Denies the tools.
    pub fn deny(tool: impl Into<Glob>) -> Self {
        Self::new(Decision::Deny, tool)
    }

    /// Narrows the rule to calls with such keys. A rule that allows needs every key of a call to match, alone or
    /// together with other rules that allow; a rule that asks or denies needs one.
    #[must_use]
    pub fn for_keys(mut self, keys: impl IntoIterator<Item = KeyPattern>) -> Self {
        self.keys.extend(keys);
        self
    }

    /// Whether this rule, as one that asks or denies, means the call.
    pub(super) fn touches(&self, proposal: &Proposal<'_>) -> bool {
        let touched = || proposal.keys.iter().any(|key| self.keys.iter().any(|p| p.touches(key)));
        self.tool.matches_in_any_case(&proposal.spec.name) && (self.keys.is_empty() || touched())
    }

    /// Whether this rule allows the tool, and in it the key, or a call without keys.
    pub(super) fn allows(&self, proposal: &Proposal<'_>, key: Option<&ApprovalKey>) -> bool {
        self.decision == Decision::Allow
            && self.tool.matches(&proposal.spec.name)
            && (self.keys.is_empty() || key.is_some_and(|key| self.keys.iter().any(|p| p.covers(key))))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.decision, self.tool)?;
        for (index, key) in self.keys.iter().enumerate() {
            write!(f, "{} {key}", if index == 0 { " for" } else { " or" })?;
        }
        Ok(())
    }
}
