//! The polled driver: a run is the stream of its own events.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;

use crate::approval::Verdict;
use crate::clock::Sleep;
use crate::digest::Digest;
use crate::event::Event;
use crate::handle::RunHandle;
use crate::hooks::{Judgement, OnStop};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelStream};
use crate::outcome::{Outcome, RunError};
use crate::session::Session;
use crate::setup::Setup;
use crate::state::{Input, ModelCall, RunState, Step};
use crate::tool_context::Scope;
use crate::trace::Trace;

mod mail;
mod work;

use work::{RequestReady, RunningTool, Work};

/// Events in a row after which the run lets other tasks of its thread go first, when it never has to wait itself.
const EVENTS_BEFORE_YIELD: u32 = 64;

/// A run: poll it and it proceeds, leave it alone and nothing happens.
///
/// It is a [`Stream`] of [`Event`]s that ends when the run does; [`outcome`](Self::outcome) then says how. There is
/// no task and no queue behind it, so a slow reader slows the run instead of filling memory.
///
/// # Cancel safety
///
/// Dropping a run at any point ends it at once: open calls are answered (interrupted, or not started), and the
/// borrowed session is valid as soon as the drop returns. For an end with manners use
/// [`RunHandle::cancel`] and go on polling.
#[must_use = "a run does nothing unless it is polled"]
pub struct Run<'a> {
    setup: &'a Setup,
    session: &'a mut Session,
    state: RunState,
    scope: Arc<Scope>,
    /// Hooks that still work on a request.
    request: Option<Work<'a, RequestReady>>,
    model: Option<ModelStream<'a>>,
    gate: Option<Work<'a, Vec<Judgement>>>,
    approver: Option<(Vec<Digest>, Work<'a, Vec<Verdict>>)>,
    end: Option<Work<'a, OnStop>>,
    tools: Vec<RunningTool<'a>>,
    timer: Option<(Duration, Sleep)>,
    outcome: Option<Result<Outcome, RunError>>,
    events_in_a_row: u32,
    closed: bool,
    trace: Trace,
    /// The open model call.
    chat: Trace,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        session: &'a mut Session,
        mut state: RunState,
        scope: Arc<Scope>,
    ) -> Self {
        if let Some(now) = setup.now() {
            // Time does not refuse anything.
            let _ = state.feed(session, Input::Time(now));
        }
        let contents = setup.trace_contents;
        let path = &state.ancestry().path;
        let trace = setup.model(0).map(|m| Trace::run(&m.author, path, contents)).unwrap_or_default();
        Self {
            setup,
            session,
            state,
            scope,
            request: None,
            model: None,
            gate: None,
            approver: None,
            end: None,
            tools: Vec::new(),
            timer: None,
            outcome: None,
            events_in_a_row: 0,
            closed: false,
            trace,
            chat: Trace::default(),
        }
    }

    /// A handle to cancel, steer and decide from elsewhere.
    pub fn handle(&self) -> RunHandle {
        RunHandle::new(Arc::clone(&self.scope.inbox))
    }

    /// The session as it is now. A host that stores it at each
    /// [`ToolStarted`](Event::ToolStarted) and [`ToolEnded`](Event::ToolEnded) loses nothing in a crash: a call
    /// that was running is then known to have been.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Polls the run to its end, past any events that were not read, and says how it ended.
    ///
    /// # Errors
    ///
    /// [`RunError`] for what only the host can deal with. The session is valid in any case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the run.
    pub async fn outcome(mut self) -> Result<Outcome, RunError> {
        while self.next().await.is_some() {}
        self.outcome.take().unwrap_or(Ok(Outcome::Cancelled { reason: "dropped".into() }))
    }

    fn feed(&mut self, input: Input) {
        // Refusals are for verdicts of a handle, which were checked when they were given; of a verdict that lost a
        // race the host hears by `ApprovalClosed`.
        let _ = self.state.feed(self.session, input);
    }

    fn begin(&mut self, step: Step) {
        match step {
            Step::CallModel(call) => self.call_model(call),
            Step::Gate(calls) => self.gate = Some(work::gate(self.setup, calls)),
            Step::Decide(asks) => {
                let digests = asks.iter().map(|a| a.digest).collect();
                let approver = self.state.ancestry().approver.clone();
                self.approver = approver.map(|approver| (digests, work::decide(approver, asks)));
            }
            Step::RunTool(ready) => {
                let scope = Arc::clone(&self.scope);
                self.tools.extend(work::run_tool(self.setup, ready, scope));
            }
            Step::DropTool(call) => {
                if let Some(at) = self.tools.iter().position(|t| t.call == call) {
                    let tool = self.tools.swap_remove(at);
                    tool.note_time_out();
                    work::drop_quietly(tool);
                }
            }
            Step::OnStop(ending) => self.end = Some(work::on_stop(self.setup, ending)),
            Step::WindDown => {
                self.drop_all_but_tools();
                self.scope.cancellation.cancel();
            }
            Step::DropAll => self.drop_all(),
            Step::Finished(outcome) => {
                self.drop_all();
                self.trace.run_ended(&outcome);
                self.outcome = Some(outcome);
            }
        }
    }

    fn call_model(&mut self, call: ModelCall) {
        if self.setup.hooks.is_empty() {
            self.open_stream(call);
        } else {
            self.request = Some(work::before_request(self.setup, call));
        }
    }

    fn open_stream(&mut self, call: ModelCall) {
        let Some(entry) = self.setup.model(call.model) else { return };
        self.chat = Trace::chat(&entry.author, &call.request, self.setup.trace_contents);
        let opened = self.chat.within(|| catch_unwind(AssertUnwindSafe(|| entry.model.stream(call.request))));
        match opened {
            Ok(stream) => self.model = Some(stream),
            Err(_panic) => {
                let failed = Err(model_panicked());
                std::mem::take(&mut self.chat).model_event(Some(&failed));
                self.feed(Input::Model(failed));
            }
        }
    }

    fn drop_all_but_tools(&mut self) {
        work::drop_quietly(self.model.take());
        self.chat = Trace::default();
        work::drop_quietly(self.request.take());
        work::drop_quietly(self.gate.take());
        work::drop_quietly(self.approver.take());
        work::drop_quietly(self.end.take());
    }

    fn drop_all(&mut self) {
        self.drop_all_but_tools();
        for tool in self.tools.drain(..) {
            work::drop_quietly(tool);
        }
        self.timer = None;
    }

    /// Polls whatever is in motion. Whether something came of it.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_request(cx)
            | self.poll_model(cx)
            | self.poll_gate(cx)
            | self.poll_approver(cx)
            | self.poll_end(cx)
            | self.poll_tools(cx)
    }

    fn poll_request(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(work) = &mut self.request else { return false };
        let Poll::Ready(ready) = work.poll(cx) else { return false };
        self.request = None;
        match ready {
            Some(RequestReady::Send(call)) => self.open_stream(*call),
            Some(RequestReady::Stop(reason)) => self.feed(Input::RequestStopped(reason)),
            None => self.feed(Input::RequestPanicked),
        }
        true
    }

    fn poll_model(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stream) = &mut self.model else { return false };
        let polled = self.chat.within(|| catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll_next(cx))));
        let event = match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(event)) => event,
            Err(_panic) => Some(Err(model_panicked())),
        };
        self.chat.model_event(event.as_ref());
        let goes_on = matches!(&event, Some(Ok(event)) if !matches!(event, ModelEvent::Stop { .. }));
        if goes_on {
            self.feed(event.map_or(Input::ModelEnded, Input::Model));
            return true;
        }
        let answered = matches!(&event, Some(Ok(_)));
        // The request in the stream shares the history: it goes before the answer is appended.
        work::drop_quietly(self.model.take());
        let chat = std::mem::take(&mut self.chat);
        self.feed(event.map_or(Input::ModelEnded, Input::Model));
        if answered {
            chat.answered(self.session.messages.last());
        }
        true
    }

    fn poll_gate(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(work) = &mut self.gate else { return false };
        let Poll::Ready(gates) = work.poll(cx) else { return false };
        self.gate = None;
        if gates.is_none() {
            self.feed(Input::HookPanicked("before_tool"));
        }
        // No answer denies.
        self.feed(Input::Gates(gates.unwrap_or_default()));
        true
    }

    fn poll_approver(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((_, work)) = &mut self.approver else { return false };
        let Poll::Ready(verdicts) = work.poll(cx) else { return false };
        let Some((asks, _)) = self.approver.take() else { return false };
        match verdicts {
            Some(verdicts) => {
                for (ask, verdict) in asks.into_iter().zip(verdicts) {
                    self.feed(Input::Verdict { ask, verdict });
                }
            }
            None => {
                for ask in asks {
                    let verdict = Verdict::deny("the approver failed");
                    self.feed(Input::Verdict { ask, verdict });
                }
            }
        }
        self.feed(Input::Decided);
        true
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(work) = &mut self.end else { return false };
        let Poll::Ready(how) = work.poll(cx) else { return false };
        self.end = None;
        if how.is_none() {
            self.feed(Input::HookPanicked("on_stop"));
        }
        self.feed(Input::Ended(how.unwrap_or_default()));
        true
    }

    fn poll_tools(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        let mut at = 0;
        while let Some(tool) = self.tools.get_mut(at) {
            let Poll::Ready((result, kept)) = tool.poll(cx) else {
                at += 1;
                continue;
            };
            let tool = self.tools.swap_remove(at);
            let call = tool.call.clone();
            work::drop_quietly(tool);
            any = true;
            // What a sub-agent has told and spent comes before its end.
            self.read_mail();
            match self.take_suspended(&call) {
                Some(session) => self.feed(Input::Suspended { call, session }),
                None => self.feed(Input::ToolDone { call, result, kept }),
            }
        }
        any
    }

    /// Arms the timer for the next deadline. Whether it is due already.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(clock) = &self.setup.clock else { return false };
        let Some(deadline) = self.state.poll_deadline(self.session) else {
            self.timer = None;
            return false;
        };
        let timer = &mut self.timer;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            if timer.as_ref().is_none_or(|(armed, _)| *armed != deadline) {
                *timer = Some((deadline, clock.sleep_until(deadline)));
            }
            timer.as_mut().map_or(Poll::Pending, |(_, sleep)| sleep.as_mut().poll(cx))
        }));
        match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(())) => {}
            // Without a timer nothing would ever come due: the run ends, and what waits for this moment does not.
            Err(_panic) => {
                self.feed(Input::Cancel { reason: "the timer of the host's clock panicked".into() });
            }
        }
        work::drop_quietly(self.timer.take());
        self.feed(Input::Time(self.setup.now().unwrap_or(deadline).max(deadline)));
        true
    }
}

impl Stream for Run<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let run = &mut *self;
        let trace = run.trace.clone();
        trace.within(|| run.poll_event(cx))
    }
}

impl Run<'_> {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let run = self;
        run.scope.inbox.register(cx.waker());
        loop {
            if let Some(event) = run.state.poll_event() {
                run.note_asks(&event);
                run.events_in_a_row += 1;
                return Poll::Ready(Some(event));
            }
            if run.outcome.is_some() {
                run.close_mail();
                return Poll::Ready(None);
            }
            if run.events_in_a_row >= EVENTS_BEFORE_YIELD {
                run.events_in_a_row = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // The time first: a cancel gives its grace from now on, not from when the run was polled last.
            if let Some(now) = run.setup.now() {
                let calls = run.tools.iter().map(|tool| &tool.call);
                let waits = run.scope.inbox.only_people_are_missing(calls);
                run.feed(Input::SubAgentsWait(waits));
                run.feed(Input::Time(now));
            }
            run.read_mail();
            let mut moved = false;
            if let Some(step) = run.state.poll_step(run.session) {
                run.begin(step);
                moved = true;
            } else if run.poll_work(cx) {
                moved = true;
            }
            if !moved && !run.state.has_output() && !run.poll_timer(cx) {
                run.events_in_a_row = 0;
                run.scope.inbox.note_waiting(!run.state.is_working());
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.scope.cancellation.cancel();
        self.drop_all();
        // Dropped sub-agents have left their books.
        self.read_children();
        self.state.close(self.session);
        self.close_mail();
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("state", &self.state).finish_non_exhaustive()
    }
}

fn model_panicked() -> ModelError {
    ModelError::new(ModelErrorKind::Other, "the model implementation panicked")
}
