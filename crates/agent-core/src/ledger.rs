//! The books: one entry for every model call, also for those that failed or were cut.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Author;
use crate::usage::Usage;

/// What every model call of a session cost, oldest first. Sums are exact: nothing is counted twice or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(Vec<LedgerEntry>);

/// One model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The run of the session, counted from 1.
    pub run: u64,
    /// The turn within the run, counted from 1; 0 for calls that belong to no turn.
    pub turn: u32,
    /// What the call was for.
    pub purpose: Purpose,
    /// How it ended.
    pub end: AttemptEnd,
    /// The model that was called.
    pub author: Author,
    /// What the provider told, up to the end of the call. Absent counts are unknown, not zero.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// The price by the host's price function, in millionths of its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The sub-agents that lead to the call, outermost first; empty for the session's own calls.
    #[serde(default, skip_serializing_if = "no_path")]
    pub path: Arc<[Arc<str>]>,
}

fn no_path(path: &Arc<[Arc<str>]>) -> bool {
    path.is_empty()
}

/// What a model call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A turn's first attempt.
    Turn,
    /// A further attempt at the same turn: a retry, or another model of the fallback list.
    Retry,
    /// A summary that makes room in the context.
    Compaction,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttemptEnd {
    /// With an answer.
    Answered,
    /// With an error, or with an answer that could not be used.
    Failed,
    /// Cut by us: cancelled, dropped, or stopped by a hook.
    Aborted,
}

impl Ledger {
    /// The entries, oldest first.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.0
    }

    /// The sum over all entries.
    pub fn total(&self) -> Usage {
        self.0.iter().fold(Usage::default(), |sum, e| sum.plus(e.usage))
    }

    /// The sum of all known prices, in millionths of the host's currency.
    pub fn total_cost_micros(&self) -> u64 {
        self.0.iter().filter_map(|e| e.cost_micros).fold(0, u64::saturating_add)
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: LedgerEntry) {
        self.0.push(entry);
    }

    pub(crate) fn into_entries(self) -> Vec<LedgerEntry> {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
