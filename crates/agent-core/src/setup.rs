//! Everything that an agent is made of, frozen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approval::Approver;
use crate::arguments::unknown_tool;
use crate::clock::Clock;
use crate::compaction::Compaction;
use crate::deferred::TOOL_SEARCH;
use crate::digest::Digest;
use crate::hooks::Hooks;
use crate::ledger::Purpose;
use crate::limits::Limits;
use crate::message::{Author, ToolCall};
use crate::model::{Model, ModelInfo, ModelOptions, PromptSection};
use crate::output::{OutputLimits, SpillSink};
use crate::policy::{Ceiling, Policy};
use crate::retry::RetryPolicy;
use crate::structured::Wanted;
use crate::tool::ToolSpec;
use crate::toolset::Toolset;
use crate::usage::Usage;

/// The host's prices: millionths of its currency for what a call used, or `None` when it does not know.
pub(crate) type PriceFn = Arc<dyn Fn(&Author, &Usage) -> Option<u64> + Send + Sync>;
/// The host's randomness, from 0 to 1.
pub(crate) type RandomFn = Arc<dyn Fn() -> f64 + Send + Sync>;
/// The host's way to mend arguments that are no object or do not fit the schema.
pub(crate) type MendFn = Arc<dyn Fn(&ToolCall, &ToolSpec) -> Option<Value> + Send + Sync>;

/// A model with what is read of it once.
pub(crate) struct ModelEntry {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) info: ModelInfo,
    pub(crate) author: Author,
}

impl ModelEntry {
    /// `None` when the model panicked when it was asked who it is.
    pub(crate) fn new(model: Arc<dyn Model>) -> Option<Self> {
        let info = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.info())).ok()?;
        let author = Author::new(Arc::clone(&info.provider), Arc::clone(&info.model));
        Some(Self { model, info, author })
    }
}

pub(crate) struct Setup {
    /// The first one is used until it fails for good. Never empty.
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) tools: Toolset,
    /// What is offered from the start, in order.
    pub(crate) offered: Arc<[Arc<ToolSpec>]>,
    pub(crate) tools_digest: Digest,
    pub(crate) system: Arc<[PromptSection]>,
    pub(crate) prompt_digest: Digest,
    pub(crate) options: ModelOptions,
    pub(crate) policy: Policy,
    /// What binds every run below, when that is not simply this agent's own tools and policy.
    pub(crate) ceiling: Arc<Ceiling>,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Without an approver: wait for the handle instead of pausing.
    pub(crate) wait_for_verdicts: bool,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) random: Option<RandomFn>,
    pub(crate) price: Option<PriceFn>,
    pub(crate) mend: Option<MendFn>,
    pub(crate) compaction: Compaction,
    pub(crate) wanted: Option<Wanted>,
    /// Tools that have to be loaded before they can be called, in the order of their names.
    pub(crate) deferred: Arc<[Arc<ToolSpec>]>,
    pub(crate) outputs: OutputLimits,
    pub(crate) spill: Option<Arc<dyn SpillSink>>,
    /// Whether spans hold what was said and done.
    pub(crate) trace_contents: bool,
}

impl Setup {
    /// The model at this place of the fallback list; the last one for a place beyond it.
    pub(crate) fn model(&self, place: usize) -> Option<&ModelEntry> {
        self.models.get(place).or(self.models.last())
    }

    pub(crate) fn price(&self, author: &Author, usage: &Usage) -> Option<u64> {
        let price = self.price.as_ref()?;
        // A price function that panics does not know the price.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| price(author, usage))).ok()?
    }

    pub(crate) fn mend(&self, call: &ToolCall, spec: &ToolSpec) -> Option<Value> {
        let mend = self.mend.as_ref()?;
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mend(call, spec))).ok()?
    }

    /// The result of a call to a tool that does not exist.
    pub(crate) fn unknown_tool(&self, name: &str) -> String {
        let search = (!self.deferred.is_empty()).then_some(TOOL_SEARCH);
        let answer = self.wanted.as_ref().filter(|w| w.is_answer(&w.output.name)).map(|w| &*w.output.name);
        let known = self.tools.iter().map(|e| &*e.spec.name).chain(search).chain(answer);
        unknown_tool(name, known)
    }

    /// The deferred tool of this name.
    pub(crate) fn deferred(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.deferred.iter().find(|spec| *spec.name == *name)
    }

    /// The time, where there is a clock. A clock that panics tells no time.
    pub(crate) fn now(&self) -> Option<Duration> {
        let clock = self.clock.as_ref()?;
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| clock.now())).ok()
    }

    pub(crate) fn random(&self) -> Option<f64> {
        let random = self.random.as_ref()?;
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| random())).ok()
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("models", &self.models.iter().map(|m| &m.author).collect::<Vec<_>>())
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// Which purpose an attempt has in the books.
pub(crate) fn purpose_of(attempt: u32) -> Purpose {
    if attempt > 1 { Purpose::Retry } else { Purpose::Turn }
}
