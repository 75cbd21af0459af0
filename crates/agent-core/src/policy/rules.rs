//! A mode with rules.

use serde::{Deserialize, Serialize};

use crate::policy::grant::Grants;
use crate::policy::mode::Mode;
use crate::policy::pattern::ApprovalKey;
use crate::policy::proposal::Proposal;
use crate::policy::rule::{Decision, Rule};
use crate::policy::ruling::{Reason, Ruling};

/// A mode and the rules that go before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Policy {
    /// What happens where no rule speaks.
    #[serde(default)]
    pub mode: Mode,
    /// The rules. Their order does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

impl Policy {
    /// A policy without rules. The default is [`Mode::Ask`].
    pub fn new(mode: Mode) -> Self {
        Self { mode, rules: Vec::new() }
    }

    /// Adds a rule.
    #[must_use]
    pub fn with_rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    pub(super) fn ruling<'a>(&'a self, proposal: &Proposal<'_>, grants: &Grants) -> Ruling<'a> {
        let effects = &proposal.effects;
        if self.mode.forbids(effects) {
            return Ruling { decision: Decision::Deny, reason: Reason::Mode(self.mode) };
        }
        let tightens = |rule: &&Rule| rule.decision > Decision::Allow && rule.touches(proposal);
        if let Some(rule) = self.rules.iter().filter(tightens).max_by_key(|rule| rule.decision) {
            return Ruling { decision: rule.decision, reason: Reason::Rule(rule) };
        }
        let allowed = |key: Option<&ApprovalKey>| {
            self.rules.iter().any(|rule| rule.allows(proposal, key)) || grants.allow(proposal, key)
        };
        let covered = match proposal.keys {
            [] => allowed(None),
            keys => keys.iter().all(|key| allowed(Some(key))),
        };
        if covered {
            return Ruling { decision: Decision::Allow, reason: Reason::Granted };
        }
        Ruling { decision: self.mode.decision(effects), reason: Reason::Mode(self.mode) }
    }
}
