//! What binds a run and every run below it.

use std::collections::BTreeSet;

use crate::digest::Fingerprint;
use crate::policy::grant::Grants;
use crate::policy::proposal::Proposal;
use crate::policy::rule::Decision;
use crate::policy::rules::Policy;
use crate::policy::ruling::{Reason, Ruling};

/// What a run and all its descendants may do at most, apart from the tools that the run's own agent has.
///
/// A sub-agent's call is judged by its own policy and by the ceiling of every run above it, at every call; ceilings
/// are passed down as they are and never merged into one, so that there is nothing to get wrong in merging. A child
/// can always be bound tighter: give it a stricter policy, or its own ceiling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ceiling {
    /// The policy that binds.
    pub policy: Policy,
    /// The tools that may be used at all, by fingerprint, so that another tool of the same name is another tool.
    /// `None` leaves the choice to the policy.
    pub tools: Option<BTreeSet<Fingerprint>>,
}

impl Ceiling {
    /// A ceiling of any tools under this policy.
    pub fn new(policy: Policy) -> Self {
        Self { policy, tools: None }
    }

    /// Narrows the ceiling to these tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Fingerprint>) -> Self {
        self.tools = Some(tools.into_iter().collect());
        self
    }

    pub(super) fn ruling(&self, proposal: &Proposal<'_>, grants: &Grants) -> Ruling<'_> {
        if self.tools.as_ref().is_some_and(|tools| !tools.contains(&proposal.fingerprint)) {
            return Ruling { decision: Decision::Deny, reason: Reason::OutsideCeiling };
        }
        self.policy.ruling(proposal, grants)
    }
}
