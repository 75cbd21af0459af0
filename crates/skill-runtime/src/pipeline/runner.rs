//! Drives a machine over the tools and the approver of the agent loop.

mod judge;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use haversack_agent_core::approval::Approver;
use haversack_agent_core::cancel::Cancelled;
use haversack_agent_core::clock::{Clock, Sleep};
use haversack_agent_core::message::Block;
use haversack_agent_core::policy::Policy;
use haversack_agent_core::tool::{ToolError, ToolErrorKind, ToolOutput};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::Value;

use crate::metadata::OutputFormat;
use crate::pipeline::definition::Definition;
use crate::pipeline::machine::{Action, Call, CallNumber, Machine, Reply};
use crate::pipeline::report::Report;
use crate::redact::Redactor;
use judge::Known;

/// Runs pipelines over a set of tools. Cheap to clone; immutable.
///
/// Without a [clock](Self::with_clock) there is no pause between tries and no time limit.
#[derive(Clone)]
pub struct Runner {
    tools: Arc<BTreeMap<Arc<str>, Known>>,
    approver: Option<Arc<dyn Approver>>,
    policy: Policy,
    clock: Option<Arc<dyn Clock>>,
    redactor: Redactor,
    time_limit: Option<Duration>,
    call_limit: Option<Duration>,
}

impl Runner {
    /// Over these tools; of two with the same name the first counts. Nobody is asked, so that only calls run which need
    /// no approval.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut known = BTreeMap::new();
        for tool in tools {
            let tool = Known::new(tool);
            known.entry(tool.name()).or_insert(tool);
        }
        Self {
            tools: Arc::new(known),
            approver: None,
            policy: Policy::default(),
            clock: None,
            redactor: Redactor::new(),
            time_limit: None,
            call_limit: None,
        }
    }

    /// Sets who is asked about calls.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets which calls are asked about beside those whose step wants an approval: the policy of the agent that the
    /// pipelines belong to. Without it every call is, unless the host vouches that the tool only reads.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the clock, for pauses and time limits.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets what masks secrets in outputs, errors and reports.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets how long a whole pipeline may take, waiting for answers included. No limit by default.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Sets how long one call may take where its step says nothing. No limit by default.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = Some(limit);
        self
    }

    /// What masks secrets.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Runs a pipeline to its end.
    ///
    /// # Cancel safety
    ///
    /// The token of the context ends the pipeline with a report of what was done. Dropping the future drops the calls
    /// that are out, as dropping a run of the agent does, and leaves no report.
    pub async fn run(&self, definition: &Arc<Definition>, input: Value, context: &ToolContext) -> Report {
        let start = self.now();
        let mut machine = Machine::new(Arc::clone(definition), input, self.redactor.clone());
        if let Some(limit) = self.time_limit {
            machine = machine.with_deadline(start.saturating_add(limit));
        }
        if let Some(limit) = self.call_limit {
            machine = machine.with_call_limit(limit);
        }
        let mut driver = Driver {
            runner: self,
            definition,
            context,
            out: FuturesUnordered::new(),
            handles: HashMap::new(),
        };
        let mut cancelled = context.cancellation().cancelled();
        // Without a clock time stands still, but for pauses, which are over at once.
        let mut now = start;
        loop {
            now = now.max(self.now());
            match machine.poll(now) {
                Action::Finished(report) => return report,
                Action::Ask(call) => driver.ask(call),
                Action::Run(call) => driver.begin(call),
                Action::Abandon(number) => driver.abandon(number),
                Action::Wait(until) => match driver.wait(until, &mut cancelled, &mut now).await {
                    Happened::Replied(number, reply) => machine.handle_reply(number, reply),
                    Happened::Ended(number, result) => {
                        now = now.max(self.now());
                        machine.handle_done(number, result, now);
                    }
                    Happened::Cancelled => machine.handle_cancel("cancelled"),
                    Happened::Time => {}
                },
            }
        }
    }

    fn now(&self) -> Duration {
        self.clock.as_ref().map_or(Duration::ZERO, |clock| clock.now())
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .field("asks", &self.approver.is_some())
            .finish_non_exhaustive()
    }
}

enum Happened {
    Replied(CallNumber, Reply),
    Ended(CallNumber, Result<Value, ToolError>),
    Cancelled,
    Time,
}

type Work<'r> = Pin<Box<dyn Future<Output = Happened> + Send + 'r>>;

/// The futures of one run.
struct Driver<'r> {
    runner: &'r Runner,
    definition: &'r Arc<Definition>,
    context: &'r ToolContext,
    out: FuturesUnordered<Abortable<Work<'r>>>,
    handles: HashMap<CallNumber, AbortHandle>,
}

impl<'r> Driver<'r> {
    fn push(&mut self, number: CallNumber, work: Work<'r>) {
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(number, handle);
        self.out.push(Abortable::new(work, registration));
    }

    fn ask(&mut self, call: Call) {
        let (runner, context, number) = (self.runner, self.context, call.number);
        let judged = async move {
            let reply =
                judge::reply(&runner.tools, &runner.policy, runner.approver.as_deref(), &call, context);
            // A person may be asked for minutes, and a panic of the host's code there is no answer.
            let reply = AssertUnwindSafe(reply).catch_unwind().await;
            let reply = reply.unwrap_or_else(|_panic| Reply::Stop("the approver panicked".to_owned()));
            Happened::Replied(number, reply)
        };
        self.push(number, Box::pin(judged));
    }

    fn begin(&mut self, call: Call) {
        let number = call.number;
        let format =
            call.step.checked_sub(1).and_then(|at| self.definition.steps.get(at)).map(|s| s.output_format);
        let (runner, context) = (self.runner, self.context);
        context.progress(progress(&call, self.definition, &runner.redactor));
        let work = async move {
            let result = AssertUnwindSafe(runner.call(call, context.clone())).catch_unwind().await;
            let result = result.unwrap_or_else(|_panic| Err(ToolError::failed("the tool panicked")));
            let result = result.and_then(|output| value_of(output, format.unwrap_or(OutputFormat::Text)));
            Happened::Ended(number, result)
        };
        self.push(number, Box::pin(work));
    }

    fn abandon(&mut self, number: CallNumber) {
        if let Some(handle) = self.handles.remove(&number) {
            handle.abort();
        }
    }

    async fn wait(
        &mut self,
        until: Option<Duration>,
        cancelled: &mut Cancelled,
        now: &mut Duration,
    ) -> Happened {
        let mut sleep: Option<Sleep> = match (&self.runner.clock, until) {
            (Some(clock), Some(until)) => Some(clock.sleep_until(until)),
            (None, Some(until)) if self.out.is_empty() => {
                *now = until;
                return Happened::Time;
            }
            _ => None,
        };
        poll_fn(|cx| {
            if cancelled.poll_unpin(cx).is_ready() {
                return Poll::Ready(Happened::Cancelled);
            }
            // An abandoned call comes out as aborted; the next one is looked at.
            while let Poll::Ready(Some(ended)) = self.out.poll_next_unpin(cx) {
                if let Ok(happened) = ended {
                    return Poll::Ready(happened);
                }
            }
            let woken = sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
            match sleep {
                _ if woken => Poll::Ready(Happened::Time),
                // Nothing is out and nothing will wake us: only a machine that lost count would ask for that.
                None if self.out.is_empty() => Poll::Ready(Happened::Cancelled),
                _ => Poll::Pending,
            }
        })
        .await
    }
}

impl Runner {
    async fn call(&self, call: Call, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(known) = self.tools.get(&*call.tool) else {
            let text = format!("there is no tool `{}`", call.tool);
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, text));
        };
        known.check(&call.arguments).map_err(ToolError::invalid_arguments)?;
        known.tool().call(call.arguments, context).await
    }
}

fn progress(call: &Call, definition: &Definition, redactor: &Redactor) -> String {
    let element = call.element.map(|n| format!(", element {n}")).unwrap_or_default();
    let text = format!("step {}/{}: {}{element}", call.step, definition.steps.len(), call.action);
    redactor.text(&text).into_owned()
}

/// What a step makes of an output: structured output as it is, else the text, parsed where the step says so.
fn value_of(output: ToolOutput, format: OutputFormat) -> Result<Value, ToolError> {
    let text: String = output.blocks.iter().filter_map(Block::as_text).collect();
    if output.is_error {
        return Err(ToolError::failed(text));
    }
    if let Some(value) = output.structured {
        return Ok(value);
    }
    if format == OutputFormat::Json {
        let parsed = serde_json::from_str(&text);
        return parsed.map_err(|error| ToolError::failed(format!("the output is not JSON: {error}")));
    }
    let others = output.blocks.iter().filter(|block| block.as_text().is_none()).count();
    if others == 0 {
        return Ok(Value::String(text));
    }
    Ok(Value::String(format!("{text}\n[{others} parts of the output are no text and were left out]")))
}
