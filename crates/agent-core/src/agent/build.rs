//! From a builder to an agent: everything is checked once, and frozen.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Agent, AgentBuilder};
use crate::deferred;
use crate::policy::Ceiling;
use crate::prompt;
use crate::setup::{ModelEntry, Setup};
use crate::structured::Wanted;
use crate::tool::ToolSpec;
use crate::toolset::{self, Toolset, ToolsetError};

impl AgentBuilder {
    /// Checks everything and freezes it.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when tools cannot be used together, or a limit needs a clock or prices that are not there.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        if self.clock.is_none() {
            let needs = [
                (self.limits.wall_time.is_some(), "wall_time"),
                (self.limits.tool_timeout.is_some(), "tool_timeout"),
            ];
            if let Some((_, limit)) = needs.iter().find(|(set, _)| *set) {
                return Err(BuildError::NeedsClock(limit));
            }
        }
        if self.limits.cost_micros.is_some() && self.price.is_none() {
            return Err(BuildError::NeedsPrices);
        }
        let Catalogue { tools, offered, deferred, wanted } = self.catalogue()?;
        let mut sections = self.sections;
        sections.extend(deferred::section(&deferred));
        let system = prompt::ordered(sections);
        let models: Option<Vec<_>> = self.models.into_iter().map(ModelEntry::new).collect();
        let models = models.ok_or(BuildError::ModelPanicked)?;
        let ceiling = self.ceiling.unwrap_or_else(|| {
            Ceiling::new(self.policy.clone()).with_tools(tools.iter().map(|e| e.fingerprint()))
        });
        Ok(Agent(Arc::new(Setup {
            models,
            tools_digest: toolset::digest(&offered),
            prompt_digest: prompt::digest(&system),
            tools,
            offered,
            system,
            options: self.options,
            policy: self.policy,
            ceiling: Arc::new(ceiling),
            hooks: self.hooks,
            approver: self.approver,
            wait_for_verdicts: self.wait_for_verdicts,
            limits: self.limits,
            retry: self.retry,
            clock: self.clock,
            random: self.random,
            price: self.price,
            mend: self.mend,
            compaction: self.compaction,
            wanted,
            deferred,
            outputs: self.outputs,
            spill: self.spill,
            trace_contents: self.trace_contents,
        })))
    }

    /// Sorts out which tools are offered and which are deferred, and adds the loop's own.
    fn catalogue(&mut self) -> Result<Catalogue, BuildError> {
        let mut given = std::mem::take(&mut self.tools);
        if given.len() > self.defer_above {
            for (tool, deferred) in &mut given {
                let origin = catch_unwind(AssertUnwindSafe(|| !tool.spec().origin.is_empty()));
                *deferred |= origin.unwrap_or(false);
            }
        }
        let tools = Toolset::new(given)?;
        let of = |wanted: bool| {
            let entries = tools.iter().filter(move |e| e.deferred == wanted);
            entries.map(|e| Arc::clone(&e.spec)).collect::<Vec<_>>()
        };
        let (mut offered, deferred) = (of(false), of(true));
        let wanted = self.output.take().map(Wanted::new);
        let search = (!deferred.is_empty()).then(deferred::search_spec);
        for spec in search.into_iter().chain(wanted.as_ref().and_then(Wanted::tool)) {
            toolset::check(&spec)?;
            if tools.get(&spec.name).is_some() || offered.iter().any(|o| o.name == spec.name) {
                return Err(ToolsetError::Duplicate(spec.name.to_string()).into());
            }
            offered.push(Arc::new(spec));
        }
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Catalogue { tools, offered: offered.into(), deferred: deferred.into(), wanted })
    }
}

/// The tools of an agent, sorted out.
struct Catalogue {
    tools: Toolset,
    offered: Arc<[Arc<ToolSpec>]>,
    deferred: Arc<[Arc<ToolSpec>]>,
    wanted: Option<Wanted>,
}

/// Why an agent cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The tools cannot be used together.
    Tools(ToolsetError),
    /// This limit is set, and there is no clock.
    NeedsClock(&'static str),
    /// A cost limit is set, and there are no prices.
    NeedsPrices,
    /// A model panicked when it was asked who it is.
    ModelPanicked,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools(error) => error.fmt(f),
            Self::NeedsClock(limit) => {
                write!(f, "the limit `{limit}` needs a clock; give the builder one with `clock`")
            }
            Self::ModelPanicked => f.write_str("a model panicked when it was asked who it is"),
            Self::NeedsPrices => {
                f.write_str("a cost limit needs prices; give the builder some with `prices`")
            }
        }
    }
}

impl std::error::Error for BuildError {}

impl From<ToolsetError> for BuildError {
    fn from(error: ToolsetError) -> Self {
        Self::Tools(error)
    }
}
