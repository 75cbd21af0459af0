//! The states of a contract, and which may follow.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a contract stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContractState {
    /// Written, and nothing runs yet.
    Pending,
    /// The agent works.
    Active,
    /// It waits: for a person, for more rights, for an answer.
    Suspended,
    /// Done. Final.
    Completed,
    /// Failed. Final.
    Failed,
    /// Called off. Final.
    Cancelled,
}

impl ContractState {
    /// The states that may follow.
    ///
    /// ```
    /// use haversack_skill_runtime::agent::ContractState::{Active, Completed, Pending};
    ///
    /// assert_eq!(Pending.next(), [Active]);
    /// assert!(Completed.next().is_empty());
    /// ```
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Active],
            // From active to cancelled directly: a run that is cancelled is not first suspended.
            Self::Active => &[Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled],
            Self::Suspended => &[Self::Active, Self::Cancelled],
            Self::Completed | Self::Failed | Self::Cancelled => &[],
        }
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        self.next().is_empty()
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ContractState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
