//! What comes out of a decision, and what a hook may add to one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::mode::Mode;
use crate::policy::rule::{Decision, Rule};

/// What a hook may add to a decision: never an allowance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tightening {
    /// Ask a person, for this reason.
    Ask(String),
    /// Do not run it, for this reason.
    Deny(String),
}

impl Tightening {
    pub(super) fn ruling(&self) -> Ruling<'_> {
        match self {
            Self::Ask(why) => Ruling { decision: Decision::Ask, reason: Reason::Hook(why) },
            Self::Deny(why) => Ruling { decision: Decision::Deny, reason: Reason::Hook(why) },
        }
    }
}

/// A decision and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling<'a> {
    /// What is to happen.
    pub decision: Decision,
    /// Why, for the person and for the model.
    pub reason: Reason<'a>,
}

/// Where a decision comes from. Shown, it is a clause such as "the rule for `shell`".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// A rule that asks or denies.
    Rule(&'a Rule),
    /// Rules that allow, or grants, cover the whole call.
    Granted,
    /// No rule speaks, or the mode goes before all rules.
    Mode(Mode),
    /// A hook said so, in its words.
    Hook(&'a str),
    /// The tool is not among those that the run above this one may use.
    OutsideCeiling,
}

impl Reason<'_> {
    /// Whether a grant for ever can help: not where a rule or a hook insists on being asked.
    pub fn yields_to_grants(&self) -> bool {
        matches!(self, Self::Mode(_))
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::Granted => f.write_str("it was allowed before"),
            Self::Mode(mode) => write!(f, "the mode is {mode}"),
            Self::Hook(why) => f.write_str(why),
            Self::OutsideCeiling => f.write_str("the tool is outside of what this run may use"),
        }
    }
}
