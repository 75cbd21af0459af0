//! Where answers are kept: the trait, the ledger that the stores share, and a store in memory.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::consent::decision::Decision;
use crate::fingerprint::Fingerprint;

/// How many answers are kept for one workspace; the oldest goes first. More than one, so that two branches with
/// different servers do not ask at each change of branch.
pub const MAX_DECISIONS: usize = 16;

/// How many workspaces a ledger keeps; the one whose answer is oldest goes first. Losing one only asks again.
pub(crate) const MAX_WORKSPACES: usize = 1_000;

/// Keeps answers, for a workspace and for the fingerprint of exactly the set of servers that was asked about.
///
/// # Contract
///
/// An answer that is given back must be one that was recorded for the same workspace and fingerprint. The store must lie
/// out of the repository's reach. An error counts as no answer; it is passed on to the host. Both calls may be slow.
#[async_trait]
pub trait ConsentStore: Send + Sync {
    /// The answer for a set of servers, if there is one.
    async fn decision(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
    ) -> Result<Option<Decision>, ConsentStoreError>;

    /// Keeps an answer.
    async fn record(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), ConsentStoreError>;

    /// Forgets all answers for a workspace, so that the next run asks again. For a host's "reload".
    async fn forget(&self, workspace: &str) -> Result<(), ConsentStoreError>;
}

/// Why a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsentStoreError {
    /// The file could not be read or written.
    #[error("failed to {action} the consent file {}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not one that this store has written. It is left as it is.
    #[error("the consent file {} is damaged ({reason}); move it away to be asked again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A store of the host's failed.
    #[error("the consent store failed")]
    Host(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// All answers: the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    workspaces: Vec<Workspace>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Workspace {
    workspace: String,
    decisions: Vec<Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    fingerprint: Fingerprint,
    decision: Decision,
}

impl Ledger {
    pub(crate) fn decision(&self, workspace: &str, fingerprint: Fingerprint) -> Option<Decision> {
        let known = self.workspaces.iter().find(|known| known.workspace == workspace)?;
        known.decisions.iter().find(|kept| kept.fingerprint == fingerprint).map(|kept| kept.decision)
    }

    pub(crate) fn record(&mut self, workspace: &str, fingerprint: Fingerprint, decision: Decision) {
        let at = self.workspaces.iter().position(|known| known.workspace == workspace);
        let mut known = match at {
            Some(at) => self.workspaces.remove(at),
            None => Workspace { workspace: workspace.into(), decisions: Vec::new() },
        };
        known.decisions.retain(|kept| kept.fingerprint != fingerprint);
        known.decisions.push(Kept { fingerprint, decision });
        drop_oldest(&mut known.decisions, MAX_DECISIONS);
        self.workspaces.push(known);
        drop_oldest(&mut self.workspaces, MAX_WORKSPACES);
    }

    /// Whether there was something to forget.
    pub(crate) fn forget(&mut self, workspace: &str) -> bool {
        let before = self.workspaces.len();
        self.workspaces.retain(|known| known.workspace != workspace);
        self.workspaces.len() != before
    }
}

fn drop_oldest<T>(items: &mut Vec<T>, limit: usize) {
    let excess = items.len().saturating_sub(limit);
    items.drain(..excess);
}

/// Keeps answers as long as it lives: for tests, and for hosts that ask once a start.
#[derive(Debug, Default)]
pub struct MemoryConsentStore {
    ledger: Mutex<Ledger>,
}

impl MemoryConsentStore {
    fn with_ledger<T>(&self, action: impl FnOnce(&mut Ledger) -> T) -> T {
        // A ledger is whole after each step, so one that a panic left behind is as good as any.
        action(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ConsentStore for MemoryConsentStore {
    async fn decision(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
    ) -> Result<Option<Decision>, ConsentStoreError> {
        Ok(self.with_ledger(|ledger| ledger.decision(workspace, fingerprint)))
    }

    async fn record(
        &self,
        workspace: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), ConsentStoreError> {
        self.with_ledger(|ledger| ledger.record(workspace, fingerprint, decision));
        Ok(())
    }

    async fn forget(&self, workspace: &str) -> Result<(), ConsentStoreError> {
        self.with_ledger(|ledger| ledger.forget(workspace));
        Ok(())
    }
}
