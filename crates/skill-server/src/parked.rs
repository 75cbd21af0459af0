//! Calls that were put aside while a person thinks, for clients of the newer revisions: the server answers with its
//! question, and the client comes again with the answer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::Value;

use crate::call::Running;
use crate::desk::Question;
use crate::name::hex;

/// Calls that are kept at a time; beyond it the oldest is cancelled. A person answers a few.
pub(crate) const MAX_PARKED: usize = 64;
/// How long a call is kept.
pub(crate) const PARKED_FOR: Duration = Duration::from_secs(600);

/// Bytes of a key, and of an id: neither can be guessed.
const KEY: usize = 32;
const ID: usize = 16;

/// Calls that were put aside.
pub(crate) struct Parked {
    codec: RequestStateCodec,
    calls: Mutex<VecDeque<Entry>>,
}

struct Entry {
    id: [u8; ID],
    running: Running,
    question: Box<Question>,
    until: Instant,
}

/// The system has no random bytes to give.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct NoRandomness(getrandom::Error);

fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

/// What a state is bound to: it counts only for the same call.
fn call_of(tool: &str, arguments: &Value) -> Vec<u8> {
    format!("{tool}\0{}", hex(arguments.to_string().as_bytes())).into_bytes()
}

impl Parked {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        let codec = RequestStateCodec::try_new(random::<KEY>()?)
            .map_err(|_| NoRandomness(getrandom::Error::UNEXPECTED))?;
        Ok(Self { codec, calls: Mutex::default() })
    }

    /// Puts a call aside; the state that the client has to send back.
    pub(crate) fn park(
        &self,
        tool: &str,
        arguments: &Value,
        running: Running,
        question: Box<Question>,
    ) -> Result<String, NoRandomness> {
        let id = random::<ID>()?;
        let bound = call_of(tool, arguments);
        let options = SealOptions::new().associated_data(&bound).ttl(PARKED_FOR);
        let state = self.codec.seal_with(&id, &options);
        let mut calls = self.calls();
        calls.retain(|entry| entry.until > Instant::now());
        if calls.len() >= MAX_PARKED {
            calls.pop_front();
        }
        calls.push_back(Entry { id, running, question, until: Instant::now() + PARKED_FOR });
        Ok(state)
    }

    /// The call that a state stands for; it is then no longer kept. `None` for a state that was changed, is of another
    /// call, was used already or is too old.
    pub(crate) fn take(
        &self,
        tool: &str,
        arguments: &Value,
        state: &str,
    ) -> Option<(Running, Box<Question>)> {
        let id = self.codec.open_with(state, &call_of(tool, arguments)).ok()?;
        let mut calls = self.calls();
        calls.retain(|entry| entry.until > Instant::now());
        let at = calls.iter().position(|entry| id == entry.id)?;
        let entry = calls.remove(at)?;
        Some((entry.running, entry.question))
    }

    /// Lets go of calls that nobody came back for.
    pub(crate) fn sweep(&self) {
        self.calls().retain(|entry| entry.until > Instant::now());
    }

    /// A panic of another thread leaves the queue whole.
    fn calls(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parked").field("calls", &self.calls().len()).finish_non_exhaustive()
    }
}
