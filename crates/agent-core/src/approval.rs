//! Asking before a call runs: the ask, the verdict, and the book that ties one to the other.
//!
//! Three ways lead to a verdict: an [`Approver`] answers inline, a user interface answers through the run's handle,
//! or the run pauses with its session saved and the host answers next week. All three go through one function,
//! [`Asks::answer`], and what it accepted is spent once, by [`Asks::take`].
//!
//! What holds, whoever answers and in whatever order:
//!
//! - An answer names the ask by its digest: the call, the tool's fingerprint, the arguments and the generation of the
//!   run, all at once. There is nothing to mix up.
//! - The first answer is final. A second one is refused, and so is one for an ask that was closed by a cancel or
//!   replaced because the tool or the arguments changed.
//! - A verdict is spent when its call starts; before that the digest is made again from what is about to run and
//!   has to be the same.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Digest, Fingerprint, ask_digest};
use crate::message::CallId;
use crate::policy::{ApprovalKey, Proposal, Rule, Ruling, suggest};
use crate::tool::Effects;

/// How much of a preview an ask keeps, in characters: some eight screens, and little beside the session it is saved in.
pub const MAX_PREVIEW_CHARS: usize = 20_000;

/// A question about one call: may it run?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ask {
    /// Names the ask: a digest over everything that a person has to see to decide.
    pub digest: Digest,
    /// The call.
    pub call: CallId,
    /// The tool's public name.
    pub tool: Arc<str>,
    /// Where the tool comes from, as in [`ToolSpec::origin`](crate::tool::ToolSpec::origin).
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub origin: Arc<str>,
    /// The tool as it was when the ask was made.
    pub fingerprint: Fingerprint,
    /// The arguments that would run: after every hook, checked against the schema.
    pub arguments: Value,
    /// What the model proposed, where a hook or a repair changed it; show both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Value>,
    /// What the call would touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ApprovalKey>,
    /// What running it may do, and who says so.
    #[serde(default)]
    pub effects: Effects,
    /// What the call would change, in the tool's own words as of when the ask was made: a diff of an edit, for
    /// example. For people only; what is approved is the [`arguments`](Self::arguments).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Why it is asked.
    pub reason: String,
    /// Rules that would make this ask needless from now on, narrowest first; each alone suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<Rule>,
    /// The sub-agents from the top run down to the one that makes the call; empty in the top run.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub path: Arc<[Arc<str>]>,
    /// The generation of the run; see [`Asks::generation`].
    pub generation: u64,
}

impl Ask {
    /// An ask about a call with these arguments, in this generation of its run.
    pub fn new(
        call: impl Into<CallId>,
        proposal: &Proposal<'_>,
        ruling: &Ruling<'_>,
        arguments: Value,
        generation: u64,
    ) -> Self {
        let call = call.into();
        Self {
            digest: ask_digest(&[], &call, proposal.fingerprint, &arguments, generation),
            call,
            tool: Arc::clone(&proposal.spec.name),
            origin: Arc::clone(&proposal.spec.origin),
            fingerprint: proposal.fingerprint,
            arguments,
            proposed: None,
            keys: proposal.keys.to_vec(),
            effects: proposal.effects,
            preview: None,
            reason: ruling.reason.to_string(),
            suggested: suggest(proposal, ruling),
            path: Arc::default(),
            generation,
        }
    }

    /// Sets what the model proposed before a hook or a repair changed it.
    #[must_use]
    pub fn with_proposed(mut self, arguments: Value) -> Self {
        self.proposed = Some(arguments);
        self
    }

    /// Sets what the call would change, cut to [`MAX_PREVIEW_CHARS`].
    #[must_use]
    pub fn with_preview(mut self, preview: &str) -> Self {
        let mut kept: String = preview.chars().take(MAX_PREVIEW_CHARS).collect();
        if kept.len() < preview.len() {
            kept.push_str("\n[the rest is left out]");
        }
        self.preview = Some(kept);
        self
    }

    /// Sets the path to the sub-agent that makes the call, and renews the digest.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<Arc<[Arc<str>]>>) -> Self {
        self.path = path.into();
        self.digest = self.digest_now();
        self
    }

    /// Whether the digest is that of the ask's own parts. An ask that came back from a store or over a wire is
    /// checked before it counts.
    pub fn is_genuine(&self) -> bool {
        self.digest == self.digest_now()
    }

    fn digest_now(&self) -> Digest {
        ask_digest(&self.path, &self.call, self.fingerprint, &self.arguments, self.generation)
    }
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Run it, this once.
    Allow,
    /// Run it with these arguments instead. They are checked like the model's own; the model is told of the change.
    AllowEdited(Value),
    /// Run it, and keep these rules for the tool as it is now. Rules that do not allow, or are about another tool,
    /// are refused and reported; the call runs all the same. No rules is the same as [`Allow`](Self::Allow).
    AllowAlways(Vec<Rule>),
    /// Do not run it; the model is told the reason and goes on.
    Deny {
        /// Words for the model; empty for none.
        reason: String,
    },
    /// Do not run it, and end the run with a valid history.
    Stop {
        /// Words for the model, should the run be taken up again; empty for none.
        reason: String,
    },
    /// No answer yet: the run pauses when there is nothing else to do. The same as not answering.
    Defer,
}

impl Verdict {
    /// A denial with a reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// Whether the call may run.
    pub fn allows(&self) -> bool {
        matches!(self, Self::Allow | Self::AllowEdited(_) | Self::AllowAlways(_))
    }
}

/// Answers asks inline.
///
/// An async function or closure from `Vec<Ask>` to `Vec<Verdict>` is an approver as well:
///
/// ```
/// use haversack_agent_core::approval::{Approver, Ask, Verdict};
///
/// fn takes(_: impl Approver) {}
/// takes(async |asks: Vec<Ask>| vec![Verdict::Allow; asks.len()]);
/// ```
///
/// The future may not borrow from the closure. One that needs something clones it for each call:
/// `move |asks| { let ui = ui.clone(); async move { … } }`. A type implements the trait with `#[async_trait]`.
///
/// # Contract
///
/// - Verdicts stand in the order of the asks. A missing one defers its ask; surplus ones are ignored.
/// - A panic denies every ask of the batch.
/// - The future is dropped when the run is cancelled or dropped: close what you have on screen in `Drop`.
/// - Time spent here is human waiting and does not count against the run's wall time.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Decides about all calls that wait for an answer now.
    async fn decide(&self, asks: Vec<Ask>) -> Vec<Verdict>;
}

#[async_trait]
impl<F, Answer> Approver for F
where
    F: Fn(Vec<Ask>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Vec<Verdict>> + Send + 'static,
{
    async fn decide(&self, asks: Vec<Ask>) -> Vec<Verdict> {
        self(asks).await
    }
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for Arc<A> {
    async fn decide(&self, asks: Vec<Ask>) -> Vec<Verdict> {
        (**self).decide(asks).await
    }
}

/// The open asks of a run and the answers given so far: a plain value, saved with the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    #[serde(default)]
    generation: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    ask: Ask,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

impl Asks {
    /// No asks, generation zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts up each time that all asks are closed. An answer given to an earlier generation cannot reach a later
    /// one, even if the model makes the very same call again.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Opens an ask. An ask of the same call that was open before is replaced, and its verdict with it: the tool
    /// or the arguments have changed since, and what was said about the old ones does not count. Opening the very
    /// same ask again changes nothing.
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`] when the ask is of another generation or not genuine.
    pub fn open(&mut self, ask: Ask) -> Result<(), Refused> {
        if ask.generation != self.generation || !ask.is_genuine() {
            return Err(Refused::Stale);
        }
        match self.entries.iter_mut().find(|e| e.ask.call == ask.call && e.ask.path == ask.path) {
            Some(entry) if entry.ask.digest == ask.digest => {}
            Some(entry) => *entry = Entry { ask, verdict: None },
            None => self.entries.push(Entry { ask, verdict: None }),
        }
        Ok(())
    }

    /// The asks without a verdict, in the order in which they were opened.
    pub fn pending(&self) -> impl Iterator<Item = &Ask> {
        self.entries.iter().filter(|e| e.verdict.is_none()).map(|e| &e.ask)
    }

    /// Whether there is an answer to spend.
    pub(crate) fn has_answers(&self) -> bool {
        self.entries.iter().any(|e| e.verdict.is_some())
    }

    /// Whether there is nothing to answer and nothing to spend.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The ask of this digest, answered or not.
    pub fn find(&self, digest: &Digest) -> Option<&Ask> {
        self.entries.iter().find(|e| e.ask.digest == *digest).map(|e| &e.ask)
    }

    /// Records an answer. [`Verdict::Defer`] leaves the ask open, so that it can be answered later.
    ///
    /// # Errors
    ///
    /// [`Refused::Stale`] when no ask of this digest is open: it never was, it was closed, spent, or replaced.
    /// [`Refused::Answered`] when the ask has its answer.
    pub fn answer(&mut self, digest: &Digest, verdict: Verdict) -> Result<(), Refused> {
        let entry = self.entries.iter_mut().find(|e| e.ask.digest == *digest).ok_or(Refused::Stale)?;
        if entry.verdict.is_some() {
            return Err(Refused::Answered);
        }
        if verdict != Verdict::Defer {
            entry.verdict = Some(verdict);
        }
        Ok(())
    }

    /// Spends the verdict of a call that is about to run, if what is about to run is what was asked about. The ask
    /// is gone afterwards: an answer is used once.
    ///
    /// `arguments` are those of the ask; those of an [`AllowEdited`](Verdict::AllowEdited) come with the verdict.
    pub fn take(
        &mut self,
        path: &[Arc<str>],
        call: &CallId,
        tool: Fingerprint,
        arguments: &Value,
    ) -> Option<(Ask, Verdict)> {
        let digest = ask_digest(path, call, tool, arguments, self.generation);
        let index = self.entries.iter().position(|e| e.ask.digest == digest && e.verdict.is_some())?;
        let Entry { ask, verdict } = self.entries.remove(index);
        Some((ask, verdict?))
    }

    /// Closes every ask, answered or not, and begins a new generation. Gives back those without a verdict, so that
    /// the host can take them off the screen.
    pub fn close(&mut self) -> Vec<Ask> {
        self.generation = self.generation.saturating_add(1);
        let entries = std::mem::take(&mut self.entries);
        entries.into_iter().filter(|e| e.verdict.is_none()).map(|e| e.ask).collect()
    }
}

/// Why an answer did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such ask any more, or there never was: the call was settled, the run moved on, or the tool or
    /// the arguments changed. Look at the asks that are pending now.
    Stale,
    /// The ask was answered before; the first answer is final.
    Answered,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "no such ask is open; look at those that are pending now",
            Self::Answered => "the ask was answered before, and the first answer is final",
        })
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests;
