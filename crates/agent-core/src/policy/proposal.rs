//! A call as a policy sees it.

use crate::digest::Fingerprint;
use crate::policy::pattern::ApprovalKey;
use crate::tool::{Effects, ToolSpec};

/// A call as a policy sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Proposal<'a> {
    /// The tool.
    pub spec: &'a ToolSpec,
    /// The tool's fingerprint, computed once for a run.
    pub fingerprint: Fingerprint,
    /// What running this call may do, where a tool knows better than its spec does for all calls.
    pub effects: Effects,
    /// What the call would touch, as the tool names it; empty when the tool names nothing.
    pub keys: &'a [ApprovalKey],
}

impl<'a> Proposal<'a> {
    /// A proposal from its parts, with the effects of the spec.
    pub fn new(spec: &'a ToolSpec, fingerprint: Fingerprint, keys: &'a [ApprovalKey]) -> Self {
        Self { spec, fingerprint, effects: spec.effects, keys }
    }

    /// Sets what running this call may do.
    #[must_use]
    pub fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }
}
