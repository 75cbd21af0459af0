//! Foreign futures in motion, with their panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;

use crate::approval::{Ask, Verdict};
use crate::hooks::{Ending, Flow, Gate, Hooks, Judgement, OnStop, PlannedCall};
use crate::message::CallId;
use crate::setup::Setup;
use crate::state::{ModelCall, ReadyCall};
use crate::tool::{ToolError, ToolErrorKind, ToolOutput};
use crate::tool_context::{Scope, Tool, ToolContext};

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

pub(super) fn decide(setup: &Setup, asks: Vec<Ask>) -> Option<Work<'_, Vec<Verdict>>> {
    let approver = setup.approver.as_ref()?;
    Some(Work::new(async move { approver.decide(asks).await }))
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

/// A call in motion.
pub(super) struct RunningTool<'a> {
    pub(super) call: CallId,
    future: Result<Boxed<'a, Result<ToolOutput, ToolError>>, ToolError>,
}

impl RunningTool<'_> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ToolOutput, ToolError>> {
        match &mut self.future {
            Ok(future) => match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(polled) => polled,
                Err(_panic) => Poll::Ready(Err(panicked())),
            },
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

pub(super) fn run_tool(setup: &Setup, ready: ReadyCall, scope: Arc<Scope>) -> Option<RunningTool<'_>> {
    let entry = setup.tools.get(&ready.spec.name)?;
    let call = ready.id.clone();
    let context = ToolContext::new(ready.id.clone(), scope);
    let future = if setup.hooks.is_empty() {
        catch_unwind(AssertUnwindSafe(|| entry.tool.call(ready.arguments, context)))
    } else {
        Ok(with_hooks(&setup.hooks, &*entry.tool, ready, context))
    };
    Some(RunningTool { call, future: future.map_err(|_panic| panicked()) })
}

fn with_hooks<'a>(
    hooks: &'a [Arc<dyn Hooks>],
    tool: &'a dyn Tool,
    ready: ReadyCall,
    context: ToolContext,
) -> Boxed<'a, Result<ToolOutput, ToolError>> {
    Box::pin(async move {
        let planned = PlannedCall {
            id: ready.id,
            tool: Arc::clone(&ready.spec.name),
            arguments: ready.arguments.clone(),
            effects: ready.spec.effects,
            path: context.path().into(),
        };
        // A failure is an output to the hooks as well: what must not be seen may be in an error, too.
        let mut output = match tool.call(ready.arguments, context).await {
            Ok(output) => output,
            Err(error) if error.kind == ToolErrorKind::Interrupted => return Err(error),
            Err(error) => ToolOutput::error(error.message),
        };
        for hook in hooks {
            let seen = AssertUnwindSafe(hook.after_tool(&planned, &mut output)).catch_unwind().await;
            if seen.is_err() {
                return Err(ToolError::failed(
                    "The tool ran, but its output was withheld: a hook that checks it failed.",
                ));
            }
        }
        Ok(output)
    })
}

fn panicked() -> ToolError {
    ToolError::failed("The tool crashed while it was running. Its effects are unknown.")
}

/// Drops something foreign; a panic in its drop is none of ours.
pub(super) fn drop_quietly<T>(thing: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(thing)));
}
