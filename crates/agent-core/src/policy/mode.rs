//! What happens where nothing else is said.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::rule::Decision;
use crate::tool::Effects;

/// What happens to calls that no rule and no grant speaks of. Four presets; rules do the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is changed: a tool that nobody calls read-only is denied, and no rule or grant can allow it. A tool
    /// that only its server calls read-only is asked about.
    ReadOnly,
    /// Every call is asked about, except of tools which the host itself vouches to be read-only.
    #[default]
    Ask,
    /// Also runs, unasked, what the host itself vouches to be harmless: tools it declared not destructive.
    AcceptKnown,
    /// Nothing is asked about but what a rule names.
    Autonomous,
}

impl Mode {
    /// What the mode says of a tool with these effects.
    pub fn decision(self, effects: &Effects) -> Decision {
        let unvouched = if effects.is_trusted_read_only() { Decision::Allow } else { Decision::Ask };
        match self {
            Self::ReadOnly if self.forbids(effects) => Decision::Deny,
            Self::ReadOnly | Self::Ask => unvouched,
            Self::AcceptKnown if effects.is_trusted_harmless() => Decision::Allow,
            Self::AcceptKnown => unvouched,
            Self::Autonomous => Decision::Allow,
        }
    }

    /// Whether the mode forbids the tool whatever the rules say.
    pub(super) fn forbids(self, effects: &Effects) -> bool {
        self == Self::ReadOnly && effects.read_only != Some(true)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::AcceptKnown => "accept-known",
            Self::Autonomous => "autonomous",
        })
    }
}
