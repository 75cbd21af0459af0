//! An agent: a model, tools and rules, put together once and used for any number of sessions.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::approval::Approver;
use crate::clock::Clock;
use crate::compaction::Compaction;
use crate::hooks::Hooks;
use crate::limits::Limits;
use crate::message::{Author, Message, ToolCall};
use crate::model::{Model, ModelOptions, PromptSection};
use crate::output::{OutputLimits, SpillSink};
use crate::policy::{Ceiling, Policy};
use crate::retry::RetryPolicy;
use crate::run::Run;
use crate::session::Session;
use crate::setup::{MendFn, PriceFn, RandomFn, Setup};
use crate::state::{Ancestry, RunState, Start};
use crate::structured::StructuredOutput;
use crate::tool::ToolSpec;
use crate::tool_context::{Scope, Tool};
use crate::usage::Usage;

mod build;

pub use build::BuildError;

/// Tools above which those of other origin than the host's own are deferred.
const DEFER_ABOVE: usize = 64;

/// A model with tools and rules. Immutable, cheap to clone, and usable from many tasks at once.
#[derive(Clone, Debug)]
pub struct Agent(Arc<Setup>);

const _: () = {
    const fn shareable<T: Clone + Send + Sync + 'static>() {}
    const fn sendable<T: Send>() {}
    shareable::<Agent>();
    shareable::<crate::handle::RunHandle>();
    shareable::<Session>();
    sendable::<Run<'_>>();
    sendable::<RunState>();
};

impl Agent {
    /// Begins to put an agent together.
    pub fn builder(model: impl Model) -> AgentBuilder {
        AgentBuilder::new(Arc::new(model))
    }

    /// Starts a run with a message. Nothing happens until the run is polled.
    ///
    /// Calls that were still open in the session are answered as not started: the message came instead of the
    /// verdicts they waited for. To answer them instead, use [`Session::answer`] and [`resume`](Self::resume).
    pub fn start<'a>(&'a self, session: &'a mut Session, message: impl Into<Message>) -> Run<'a> {
        self.run(session, Start::With(message.into()))
    }

    /// Goes on where the session ended: with calls that were waiting for verdicts, after a limit was raised, or
    /// after an error. Calls that have their result are not run again.
    pub fn resume<'a>(&'a self, session: &'a mut Session) -> Run<'a> {
        self.run(session, Start::Again)
    }

    /// Makes room in the context now: a run that compacts and does nothing else. Its outcome holds the summary, or
    /// an empty text when there was nothing to summarise. Open calls stay open.
    pub fn compact<'a>(&'a self, session: &'a mut Session) -> Run<'a> {
        self.run(session, Start::Compact)
    }

    fn run<'a>(&'a self, session: &'a mut Session, start: Start) -> Run<'a> {
        self.run_below(session, start, Ancestry::top(&self.0), Scope::default())
    }

    pub(crate) fn run_below<'a>(
        &'a self,
        session: &'a mut Session,
        start: Start,
        ancestry: Ancestry,
        scope: Scope,
    ) -> Run<'a> {
        let state = RunState::new(Arc::clone(&self.0), session, start, ancestry);
        Run::new(&self.0, session, state, Arc::new(scope))
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.0
    }

    /// The same as [`start`](Self::start), without a driver, for hosts that make the steps themselves.
    pub fn start_by_hand(&self, session: &mut Session, message: impl Into<Message>) -> RunState {
        RunState::new(Arc::clone(&self.0), session, Start::With(message.into()), Ancestry::top(&self.0))
    }

    /// The same as [`resume`](Self::resume), without a driver.
    pub fn resume_by_hand(&self, session: &mut Session) -> RunState {
        RunState::new(Arc::clone(&self.0), session, Start::Again, Ancestry::top(&self.0))
    }

    /// The tools on offer, in the order in which the model sees them.
    pub fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.0.offered
    }
}

/// Puts an [`Agent`] together. Only [`build`](Self::build) can fail.
#[must_use = "a builder does nothing until `build` is called"]
pub struct AgentBuilder {
    models: Vec<Arc<dyn Model>>,
    tools: Vec<(Arc<dyn Tool>, bool)>,
    sections: Vec<PromptSection>,
    options: ModelOptions,
    policy: Policy,
    ceiling: Option<Ceiling>,
    hooks: Vec<Arc<dyn Hooks>>,
    approver: Option<Arc<dyn Approver>>,
    wait_for_verdicts: bool,
    limits: Limits,
    retry: RetryPolicy,
    clock: Option<Arc<dyn Clock>>,
    random: Option<RandomFn>,
    price: Option<PriceFn>,
    mend: Option<MendFn>,
    compaction: Compaction,
    output: Option<StructuredOutput>,
    defer_above: usize,
    outputs: OutputLimits,
    spill: Option<Arc<dyn SpillSink>>,
    trace_contents: bool,
}

impl AgentBuilder {
    fn new(model: Arc<dyn Model>) -> Self {
        Self {
            models: vec![model],
            tools: Vec::new(),
            sections: Vec::new(),
            options: ModelOptions::default(),
            policy: Policy::default(),
            ceiling: None,
            hooks: Vec::new(),
            approver: None,
            wait_for_verdicts: false,
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            clock: None,
            random: None,
            price: None,
            mend: None,
            compaction: Compaction::default(),
            output: None,
            defer_above: DEFER_ABOVE,
            outputs: OutputLimits::default(),
            spill: None,
            trace_contents: false,
        }
    }

    /// Adds a model that takes over when those before it have failed for good.
    pub fn fallback(mut self, model: impl Model) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push((Arc::new(tool), false));
        self
    }

    /// Adds tools. Their order does not matter: the model sees them sorted by name.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools.into_iter().map(|t| (t, false)));
        self
    }

    /// Adds tools that the model sees by name only, until it loads them with `tool_search`.
    pub fn deferred_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools.into_iter().map(|t| (t, true)));
        self
    }

    /// Sets above how many tools those of other origin than the host's own are deferred. 64 by default: choosing
    /// among more costs models accuracy, and each costs tokens in every request.
    pub fn defer_tools_above(mut self, tools: usize) -> Self {
        self.defer_above = tools;
        self
    }

    /// Asks for a final answer that is data.
    pub fn output(mut self, output: StructuredOutput) -> Self {
        self.output = Some(output);
        self
    }

    /// Sets when and how room is made in the context.
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// Sets how much of a tool's output reaches the model.
    pub fn output_limits(mut self, limits: OutputLimits) -> Self {
        self.outputs = limits;
        self
    }

    /// Sets where outputs are kept whole that are too long for the model.
    pub fn spill_sink(mut self, sink: impl SpillSink) -> Self {
        self.spill = Some(Arc::new(sink));
        self
    }

    /// Adds a section to the system prompt. The order of sections is that of their first mention; a name that is
    /// already there gets the new text.
    pub fn section(mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        self.sections.push(PromptSection::new(name, text));
        self
    }

    /// Sets sampling and limits of each model call.
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets who may run what. By default everything is asked about but tools that the host itself calls read-only.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets what sub-agents may do at most. By default: what this agent itself may.
    pub fn ceiling(mut self, ceiling: Ceiling) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Sets who answers asks. Without one, the run pauses at the first ask.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Without an approver: waits at an ask until [`RunHandle::decide`](crate::handle::RunHandle::decide) answers,
    /// instead of pausing. For hosts whose user interface answers from another task.
    pub fn wait_for_verdicts(mut self) -> Self {
        self.wait_for_verdicts = true;
        self
    }

    /// Adds hooks.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how failed model calls are tried again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the clock. Without one there are no waits between retries, no time-outs and no grace after a cancel.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the randomness for the waits between retries: a number from 0 to 1.
    pub fn randomness(mut self, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.random = Some(Arc::new(random));
        self
    }

    /// Sets the prices: millionths of the host's currency for what a call used, or `None` when it does not know.
    pub fn prices(mut self, price: impl Fn(&Author, &Usage) -> Option<u64> + Send + Sync + 'static) -> Self {
        self.price = Some(Arc::new(price));
        self
    }

    /// Sets how arguments that do not fit are mended. What it gives is validated and judged like anything else,
    /// and shown beside the proposal. Without it, nothing is mended: the model is told what is wrong.
    pub fn mend_arguments(
        mut self,
        mend: impl Fn(&ToolCall, &ToolSpec) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.mend = Some(Arc::new(mend));
        self
    }

    /// Puts what was said and done into the spans: messages, arguments and results, never the bytes of files. Off by
    /// default, since spans go to other people's machines. Costs a copy of the whole conversation for every model call.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn trace_contents(mut self) -> Self {
        self.trace_contents = true;
        self
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}
