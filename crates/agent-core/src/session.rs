//! A session: everything that a conversation is, as data that the host owns and stores.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::approval::{Ask, Asks, Refused, Verdict};
use crate::digest::Digest;
use crate::history::History;
use crate::ledger::Ledger;
use crate::limits::Spent;
use crate::message::Message;
use crate::policy::Grants;

pub(crate) mod open;
mod repair;

use open::OpenRun;
pub use repair::Problem;
pub(crate) use repair::unused;

/// The schema number that this version writes. All earlier numbers can be read; a later one is refused, so that
/// nothing of it is lost.
pub const SCHEMA: u32 = 1;

/// A conversation with everything that is needed to go on with it: messages, open asks, grants, books.
///
/// It is plain data. The host decides where it is stored, with serde and any format that keeps the order of object
/// keys; a run borrows it and leaves it valid, however the run ends. Reading a session of an earlier version
/// upgrades it, and blocks of a later one are kept untouched.
///
/// ```
/// use haversack_agent_core::session::Session;
///
/// let session = Session::default();
/// let saved = serde_json::to_string(&session)?;
/// let loaded: Session = serde_json::from_str(&saved)?;
/// assert_eq!(loaded, session);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    #[serde(deserialize_with = "known_schema")]
    schema: u32,
    #[serde(default)]
    pub(crate) messages: History,
    /// Runs that were started.
    #[serde(default)]
    pub(crate) runs: u64,
    /// Messages that began, discarded ones included: the source of message numbers.
    #[serde(default)]
    pub(crate) numbered: u64,
    #[serde(default)]
    pub(crate) asks: Asks,
    #[serde(default, skip_serializing_if = "Grants::is_empty")]
    pub(crate) grants: Grants,
    /// Deferred tools that were loaded, in the order of loading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) loaded_tools: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Ledger::is_empty")]
    pub(crate) ledger: Ledger,
    #[serde(default)]
    pub(crate) open: OpenRun,
    /// What the tool that started this sub-agent keeps with it while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<serde_json::Value>,
}

fn known_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        // One arm per number, each with what it takes to upgrade from it.
        SCHEMA => Ok(SCHEMA),
        0 => Err(D::Error::custom("session schema 0 never existed; is this a session?")),
        later => Err(D::Error::custom(format!(
            "session schema {later} was written by a later version; this one reads up to {SCHEMA}"
        ))),
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            messages: History::new(),
            runs: 0,
            numbered: 0,
            asks: Asks::new(),
            grants: Grants::default(),
            loaded_tools: Vec::new(),
            ledger: Ledger::default(),
            open: OpenRun::default(),
            note: None,
        }
    }
}

impl Session {
    /// An empty session.
    pub fn new() -> Self {
        Self::default()
    }

    /// A session with messages from elsewhere. They are taken as they are: the next run repairs what is wrong with
    /// them and says so, or call [`repair`](Self::repair) yourself.
    pub fn from_messages<M: Into<Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Self {
        let messages: History = messages.into_iter().collect();
        Self { numbered: messages.len() as u64, messages, ..Self::default() }
    }

    /// The conversation so far. While calls are open, its last message is the answer that made them.
    pub fn messages(&self) -> &History {
        &self.messages
    }

    /// What every model call cost.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the last run has spent.
    pub fn spent(&self) -> Spent {
        self.open.spent
    }

    /// What was granted for good.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The grants, to take some back or to bring some along from elsewhere.
    pub fn grants_mut(&mut self) -> &mut Grants {
        &mut self.grants
    }

    /// The deferred tools that were loaded, in the order of loading.
    pub fn loaded_tools(&self) -> &[Arc<str>] {
        &self.loaded_tools
    }

    /// Whether there are calls that are not answered yet: the session is paused, or was cut before it was repaired.
    pub fn has_open_calls(&self) -> bool {
        self.open.batch.is_some()
    }

    /// The questions that wait for a verdict, those of paused sub-agents included.
    pub fn pending_asks(&self) -> Vec<Ask> {
        let mut pending: Vec<Ask> = self.asks.pending().cloned().collect();
        for child in self.open.batch.iter().flat_map(|b| b.suspended()) {
            pending.extend(child.pending_asks());
        }
        pending
    }

    /// Answers one question, by the digest that names it. Any subset may be answered, in any order, and
    /// [`resume`](crate::agent::Agent::resume) acts on it. What is answered is bound to what was shown: should the
    /// tool have changed until then, the question is asked again.
    ///
    /// # Errors
    ///
    /// [`Refused`] when there is no such open question, or it was answered before.
    pub fn answer(&mut self, digest: &Digest, verdict: Verdict) -> Result<(), Refused> {
        if self.asks.find(digest).is_some() {
            return self.asks.answer(digest, verdict);
        }
        for child in self.open.batch.iter_mut().flat_map(|b| b.suspended_mut()) {
            match child.answer(digest, verdict.clone()) {
                Err(Refused::Stale) => {}
                settled => return settled,
            }
        }
        Err(Refused::Stale)
    }

    /// Whether somebody has answered a question, here or in a paused sub-agent, and no run has acted on it yet.
    pub(crate) fn has_answers(&self) -> bool {
        self.asks.has_answers() || self.open.batch.iter().flat_map(|b| b.suspended()).any(Self::has_answers)
    }

    /// The next message number.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }
}
