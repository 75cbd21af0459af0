//! What the modules share: a model that plays a script, tools that count, a driver without a runtime.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::stream;
use haversack_agent_core::event::Event;
use haversack_agent_core::message::{Block, Message, Role, ToolCall, ToolStatus};
use haversack_agent_core::model::{Model, ModelError, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use haversack_agent_core::run::Run;
use haversack_agent_core::session::Session;
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Value, json};

/// One answer: what the stream yields, with a `Pending` before each item.
pub(crate) type Answer = Vec<Result<ModelEvent, ModelError>>;

pub(crate) fn stop(reason: StopReason) -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Stop { reason, raw: None })
}

pub(crate) fn says(text: &str) -> Answer {
    vec![
        Ok(ModelEvent::Text(text.into())),
        Ok(ModelEvent::BlockDone(Block::text(text))),
        Ok(ModelEvent::Usage(Usage::new(10, 1))),
        stop(StopReason::EndTurn),
    ]
}

pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Answer {
    calls_with(calls, StopReason::ToolUse)
}

pub(crate) fn calls_with(calls: &[(&str, &str, Value)], reason: StopReason) -> Answer {
    let mut answer: Answer = Vec::new();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let index = u32::try_from(index).unwrap();
        answer.push(Ok(ModelEvent::ToolCallStarted { index, id: (*id).into(), name: (*name).into() }));
        answer.push(Ok(ModelEvent::ToolArguments { index, delta: arguments.to_string() }));
        answer.push(Ok(ModelEvent::BlockDone(ToolCall::new(*id, *name, arguments.clone()).into())));
    }
    answer.push(Ok(ModelEvent::Usage(Usage::new(10, 5))));
    answer.push(stop(reason));
    answer
}

/// Plays answers one after the other and keeps the requests.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
    ready: bool,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    /// Every event is there at once.
    pub(crate) fn without_pauses(mut self) -> Self {
        self.ready = true;
        self
    }
}

impl Model for Script {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("script", "script-1")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        // A deep copy of the pointers, so that the history is not shared with what is kept here.
        let mut kept = request.clone();
        kept.messages = request.messages.iter().cloned().collect();
        self.requests.lock().unwrap().push(kept);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| says("(script is over)"));
        let mut answer = answer.into_iter();
        let mut pauses = false;
        let ready = self.ready;
        Box::pin(stream::poll_fn(move |cx| {
            pauses = !pauses && !ready;
            if pauses {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let _held = &request;
            Poll::Ready(answer.next())
        }))
    }
}

/// A tool that takes `polls` polls, and notes when it runs beside others.
#[derive(Clone)]
pub(crate) struct Probe {
    spec: ToolSpec,
    polls: usize,
    panics: bool,
    says: Option<&'static str>,
    pub(crate) log: Arc<Log>,
}

#[derive(Default)]
pub(crate) struct Log {
    pub(crate) started: Mutex<Vec<Value>>,
    pub(crate) now: AtomicUsize,
    pub(crate) most: AtomicUsize,
    pub(crate) writing: AtomicUsize,
    pub(crate) overlaps: AtomicUsize,
    /// Guards that are alive: zero when every future has been dropped.
    pub(crate) alive: AtomicUsize,
}

impl Probe {
    pub(crate) fn reads(name: &str, log: &Arc<Log>) -> Self {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let spec = ToolSpec::new(name, "reads").with_schema(schema).read_only();
        Self { spec, polls: 2, panics: false, says: None, log: Arc::clone(log) }
    }

    pub(crate) fn writes(name: &str, log: &Arc<Log>) -> Self {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let spec = ToolSpec::new(name, "writes").with_schema(schema);
        Self { spec, polls: 2, panics: false, says: None, log: Arc::clone(log) }
    }

    pub(crate) fn described(mut self, text: &str) -> Self {
        self.spec.description = text.into();
        self
    }

    pub(crate) fn taking(mut self, polls: usize) -> Self {
        self.polls = polls;
        self
    }

    /// Gives this back instead of the call's id and arguments.
    pub(crate) fn saying(mut self, text: &'static str) -> Self {
        self.says = Some(text);
        self
    }

    pub(crate) fn panicking(mut self) -> Self {
        self.panics = true;
        self
    }
}

struct Guard<'a> {
    log: &'a Log,
    writing: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.log.now.fetch_sub(1, Ordering::SeqCst);
        self.log.alive.fetch_sub(1, Ordering::SeqCst);
        if self.writing {
            self.log.writing.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let log = &*self.log;
        let writing = self.spec.effects.read_only != Some(true);
        let running = log.now.fetch_add(1, Ordering::SeqCst) + 1;
        log.alive.fetch_add(1, Ordering::SeqCst);
        log.most.fetch_max(running, Ordering::SeqCst);
        if writing {
            log.writing.fetch_add(1, Ordering::SeqCst);
        }
        let _guard = Guard { log, writing };
        if log.writing.load(Ordering::SeqCst) > 0 && running > 1 {
            log.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        log.started.lock().unwrap().push(arguments.clone());
        for _ in 0..self.polls {
            yield_once().await;
        }
        assert!(!self.panics, "this tool always panics");
        Ok(match self.says {
            Some(text) => text.into(),
            None => ToolOutput::text(format!("{} {arguments}", context.call_id())),
        })
    }
}

pub(crate) async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls a future to its end; every test here makes progress at each poll.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("no end in sight: nothing wakes this future");
}

/// Polls a run at most so many times. Gives the events, and whether it ended.
pub(crate) fn poll_times(run: &mut Run<'_>, polls: usize) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        match std::pin::Pin::new(&mut *run).poll_next(&mut cx) {
            Poll::Ready(Some(event)) => events.push(event),
            Poll::Ready(None) => return (events, true),
            Poll::Pending => {}
        }
    }
    (events, false)
}

/// What is stored, in short: `user`, `assistant(a b)`, `tool(a:ok b:error)`.
pub(crate) fn shape(session: &Session) -> Vec<String> {
    session.messages().iter().map(|m| shape_of(m)).collect()
}

fn shape_of(message: &Message) -> String {
    match message.role {
        Role::User => "user".to_owned(),
        Role::Assistant => {
            let calls: Vec<_> = message.tool_calls().map(|c| c.id.to_string()).collect();
            if calls.is_empty() { "assistant".to_owned() } else { format!("assistant({})", calls.join(" ")) }
        }
        Role::Tool => {
            let results: Vec<_> =
                message.tool_results().map(|r| format!("{}:{}", r.id, status(r.status))).collect();
            format!("tool({})", results.join(" "))
        }
        _ => "?".to_owned(),
    }
}

fn status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::NotStarted => "not_started",
        ToolStatus::Interrupted => "interrupted",
        _ => "?",
    }
}

/// Keeps the panics that tests make on purpose out of the output.
pub(crate) fn silence_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
            if !text.contains("always panics") {
                usual(info);
            }
        }));
    });
}
