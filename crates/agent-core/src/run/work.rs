//! Foreign futures in motion, with their panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

use crate::approval::{Approver, Ask, Verdict};
use crate::hooks::{Ending, Flow, Gate, Judgement, OnStop, PlannedCall};
use crate::message::CallId;
use crate::output::spill_of;
use crate::setup::Setup;
use crate::state::{ModelCall, ReadyCall};
use crate::tool::{ToolError, ToolErrorKind, ToolOutput};
use crate::tool_context::{Scope, Tool, ToolContext};
use crate::trace::Trace;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed future whose panic is `None`.
pub(super) struct Work<'a, T>(Boxed<'a, T>);

impl<'a, T> Work<'a, T> {
    fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self(Box::pin(future))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Err(_panic) => Poll::Ready(None),
        }
    }
}

/// What the hooks made of a request.
pub(super) enum RequestReady {
    Send(Box<ModelCall>),
    Stop(String),
}

pub(super) fn before_request(setup: &Setup, mut call: ModelCall) -> Work<'_, RequestReady> {
    Work::new(async move {
        for hooks in &setup.hooks {
            if let Flow::Stop(reason) = hooks.before_request(&mut call.request).await {
                return RequestReady::Stop(reason);
            }
        }
        RequestReady::Send(Box::new(call))
    })
}

/// Asks every hook about every call, in the order of the calls. A rewrite is what the next hook sees.
pub(super) fn gate(setup: &Setup, calls: Vec<PlannedCall>) -> Work<'_, Vec<Judgement>> {
    Work::new(async move {
        let mut judgements = Vec::with_capacity(calls.len());
        for call in calls {
            judgements.push(judge(setup, call).await);
        }
        judgements
    })
}

async fn judge(setup: &Setup, mut call: PlannedCall) -> Judgement {
    let mut judgement = Judgement::default();
    for hooks in &setup.hooks {
        // Caught here, so that a panic over one call does not deny the others.
        let gate = AssertUnwindSafe(hooks.before_tool(&call)).catch_unwind().await;
        let gate = gate.unwrap_or_else(|_panic| Gate::Deny("a hook panicked".to_owned()));
        if let Gate::Rewrite(arguments) = &gate {
            call.arguments.clone_from(arguments);
        }
        judgement = judgement.and(gate);
    }
    judgement
}

pub(super) fn decide<'a>(approver: Arc<dyn Approver>, asks: Vec<Ask>) -> Work<'a, Vec<Verdict>> {
    Work::new(async move { approver.decide(asks).await })
}

pub(super) fn on_stop(setup: &Setup, ending: Ending) -> Work<'_, OnStop> {
    Work::new(async move {
        for hooks in &setup.hooks {
            if let OnStop::Continue(message) = hooks.on_stop(&ending).await {
                return OnStop::Continue(message);
            }
        }
        OnStop::End
    })
}

/// How a call ended, and where its whole output is kept, if that is longer than the model may see.
pub(super) type Ended = (Result<ToolOutput, ToolError>, Option<String>);

/// A call in motion.
pub(super) struct RunningTool<'a> {
    pub(super) call: CallId,
    future: ToolFuture<'a>,
    trace: Trace,
}

enum ToolFuture<'a> {
    /// The tool's own future.
    Bare(Boxed<'a, Result<ToolOutput, ToolError>>),
    /// With hooks or a sink behind it.
    Wrapped(Boxed<'a, Ended>),
    /// The tool panicked before there was a future.
    Failed,
}

impl RunningTool<'_> {
    /// Marks a call that is dropped because it took too long.
    pub(super) fn note_time_out(&self) {
        self.trace.tool_ended(&Err(ToolError::new(ToolErrorKind::Timeout, "timed out")));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let Self { future, trace, .. } = self;
        let work = AssertUnwindSafe(|| match future {
            ToolFuture::Bare(future) => future.as_mut().poll(cx).map(|result| (result, None)),
            ToolFuture::Wrapped(future) => future.as_mut().poll(cx),
            ToolFuture::Failed => Poll::Ready((Err(panicked()), None)),
        });
        let polled = trace.within(|| catch_unwind(work));
        let polled = polled.unwrap_or_else(|_panic| Poll::Ready((Err(panicked()), None)));
        if let Poll::Ready((result, _)) = &polled {
            self.trace.tool_ended(result);
        }
        polled
    }
}

pub(super) fn run_tool(setup: &Setup, ready: ReadyCall, scope: Arc<Scope>) -> Option<RunningTool<'_>> {
    let entry = setup.tools.get(&ready.spec.name)?;
    let call = ready.id.clone();
    let trace = Trace::tool(&ready.spec, &ready.id, &ready.arguments, setup.trace_contents);
    let context = ToolContext::new(ready.id.clone(), scope, ready.lease.map(Arc::new));
    let future = if setup.hooks.is_empty() && setup.spill.is_none() {
        trace
            .within(|| catch_unwind(AssertUnwindSafe(|| entry.tool.call(ready.arguments, context))))
            .map_or(ToolFuture::Failed, ToolFuture::Bare)
    } else {
        let planned = PlannedCall {
            id: ready.id,
            tool: Arc::clone(&ready.spec.name),
            effects: entry.effects(&ready.arguments),
            arguments: ready.arguments,
            path: context.path().into(),
        };
        ToolFuture::Wrapped(Box::pin(wrapped(setup, &*entry.tool, planned, context)))
    };
    Some(RunningTool { call, future, trace })
}

/// Runs the tool, shows what came of it to the hooks, and keeps the whole of it in the sink.
async fn wrapped(setup: &Setup, tool: &dyn Tool, planned: PlannedCall, context: ToolContext) -> Ended {
    let arguments = planned.arguments.clone();
    // Caught here, so that hooks see a crash as what it is: an output like any other.
    let result = AssertUnwindSafe(async { tool.call(arguments, context).await }).catch_unwind().await;
    // What must not be seen may be in an error, too.
    let mut output = match result.unwrap_or_else(|_panic| Err(panicked())) {
        Ok(output) => output,
        Err(error) if error.kind == ToolErrorKind::Interrupted => return (Err(error), None),
        Err(error) => ToolOutput::error(error.message),
    };
    for hook in &setup.hooks {
        if AssertUnwindSafe(hook.after_tool(&planned, &mut output)).catch_unwind().await.is_err() {
            let text = "The tool ran, but its output was withheld: a hook that checks it failed.";
            return (Err(ToolError::failed(text)), None);
        }
    }
    let spill = spill_of(&output, &setup.outputs, &planned.id, &planned.tool);
    let kept = match (&setup.spill, spill) {
        (Some(sink), Some(spill)) => {
            let kept = AssertUnwindSafe(async { sink.spill(spill).await }).catch_unwind().await;
            Some(match kept {
                Ok(Ok(pointer)) => pointer,
                Ok(Err(error)) => format!("the whole could not be kept: {error}"),
                Err(_panic) => "the whole could not be kept".to_owned(),
            })
        }
        _ => None,
    };
    (Ok(output), kept)
}

fn panicked() -> ToolError {
    ToolError::failed("The tool crashed while it was running. Its effects are unknown.")
}

/// Drops something foreign; a panic in its drop is none of ours.
pub(super) fn drop_quietly<T>(thing: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(thing)));
}
