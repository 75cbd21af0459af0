//! A model that follows a script.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::Value;

use crate::message::{Block, CallId, Reasoning, ToolCall};
use crate::model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use crate::testing::gate::{Gate, Wait};
use crate::usage::{StopReason, Usage};

/// A model that answers by a script and keeps every request. Cheap to clone; all clones are the same model.
///
/// A request beyond the end of the script fails with a [`ModelError`] that says so.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    shared: Arc<Mutex<Shared>>,
    gate: Option<Gate>,
}

struct Shared {
    answers: Answers,
    requests: Vec<ModelRequest>,
    count: usize,
    keeps_requests: bool,
}

/// Request and number of requests before it to answer.
type AnswerFn = Box<dyn FnMut(&ModelRequest, usize) -> Answer + Send>;

enum Answers {
    List(VecDeque<Answer>),
    Function(AnswerFn),
}

impl ScriptedModel {
    /// A model that gives these answers, one per request.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_answers(Answers::List(answers.into_iter().collect()))
    }

    /// A model that computes each answer from the request and the number of requests before it. The function must
    /// not call the model.
    pub fn from_fn(answer: impl FnMut(&ModelRequest, usize) -> Answer + Send + 'static) -> Self {
        Self::with_answers(Answers::Function(Box::new(answer)))
    }

    fn with_answers(answers: Answers) -> Self {
        let shared = Shared { answers, requests: Vec::new(), count: 0, keeps_requests: true };
        Self { info: ModelInfo::new("scripted", "script"), shared: Arc::new(Mutex::new(shared)), gate: None }
    }

    /// Sets what the model says of itself.
    #[must_use]
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }

    /// Makes every event, errors and the end of the stream included, wait at this gate first: one release, one event.
    #[must_use]
    pub fn with_gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Keeps no requests, for measuring: a kept request shares the history, which then has to be copied to grow.
    #[must_use]
    pub fn without_requests(self) -> Self {
        self.shared().keeps_requests = false;
        self
    }

    /// Adds an answer to the end of the script. A model made by [`from_fn`](Self::from_fn) has no end and ignores it.
    pub fn push(&self, answer: Answer) {
        if let Answers::List(list) = &mut self.shared().answers {
            list.push_back(answer);
        }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared().requests.clone()
    }

    /// How many requests there were, kept or not.
    pub fn request_count(&self) -> usize {
        self.shared().count
    }

    /// How many answers are left; absent for a model made by [`from_fn`](Self::from_fn).
    pub fn remaining(&self) -> Option<usize> {
        match &self.shared().answers {
            Answers::List(list) => Some(list.len()),
            Answers::Function(_) => None,
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_answer(&self, request: ModelRequest) -> Answer {
        let mut shared = self.shared();
        let count = shared.count;
        shared.count += 1;
        let answer = match &mut shared.answers {
            Answers::Function(answer) => answer(&request, count),
            Answers::List(list) => list.pop_front().unwrap_or_else(|| {
                let text = format!("the script of the test has no answer to request {}", count + 1);
                Answer::new().fail(ModelError::new(ModelErrorKind::Other, text))
            }),
        };
        if shared.keeps_requests {
            shared.requests.push(request);
        }
        answer
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("requests", &self.request_count()).finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        Box::pin(Script {
            model: self,
            request: Some(request),
            steps: VecDeque::new(),
            wait: None,
            passed: false,
        })
    }
}

/// One answer of a [`ScriptedModel`], step by step.
///
/// Unless it says otherwise it ends with a stop: [`StopReason::ToolUse`] when it holds a call, else
/// [`StopReason::EndTurn`].
#[derive(Clone, Debug, Default)]
pub struct Answer {
    steps: Vec<Step>,
    calls: u32,
    ended: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Event(ModelEvent),
    Fail(ModelError),
    Gate(Gate),
    Pending,
    Hang,
    Panic(&'static str),
}

impl Answer {
    /// An answer without any content.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().with_text(text)
    }

    /// An answer of one tool call.
    pub fn call(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        Self::new().with_call(id, name, arguments)
    }

    /// An answer that fails before anything comes.
    pub fn failure(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self::new().fail(ModelError::new(kind, message))
    }

    /// Adds a text block, with its preview.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.event(ModelEvent::Text(text.clone())).event(ModelEvent::BlockDone(Block::text(text)))
    }

    /// Adds a reasoning block, with its preview.
    #[must_use]
    pub fn with_reasoning(self, reasoning: Reasoning) -> Self {
        self.event(ModelEvent::Reasoning(reasoning.text.clone()))
            .event(ModelEvent::BlockDone(Block::Reasoning(reasoning)))
    }

    /// Adds a tool call, with its preview.
    #[must_use]
    pub fn with_call(self, id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        let text = arguments.to_string();
        self.preview_and(ToolCall::new(id, name, arguments), text)
    }

    /// Adds a tool call whose arguments are this text, JSON or not.
    #[must_use]
    pub fn with_raw_call(self, id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: &str) -> Self {
        self.preview_and(ToolCall::from_text(id, name, arguments), arguments.to_owned())
    }

    fn preview_and(mut self, call: ToolCall, text: String) -> Self {
        let index = self.calls;
        self.calls += 1;
        self.event(ModelEvent::ToolCallStarted { index, id: call.id.clone(), name: Arc::clone(&call.name) })
            .event(ModelEvent::ToolArguments { index, delta: text })
            .event(ModelEvent::BlockDone(Block::ToolCall(call)))
    }

    /// Adds usage.
    #[must_use]
    pub fn with_usage(self, usage: Usage) -> Self {
        self.event(ModelEvent::Usage(usage))
    }

    /// Adds any event.
    #[must_use]
    pub fn event(self, event: ModelEvent) -> Self {
        self.step(Step::Event(event))
    }

    /// Waits at a gate.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Self {
        self.step(Step::Gate(gate.clone()))
    }

    /// Is pending once, and wakes itself.
    #[must_use]
    pub fn pending(self) -> Self {
        self.step(Step::Pending)
    }

    /// Ends with this stop reason.
    #[must_use]
    pub fn stop(self, reason: StopReason) -> Self {
        self.event(ModelEvent::Stop { reason, raw: None }).ended()
    }

    /// Ends with this error.
    #[must_use]
    pub fn fail(self, error: ModelError) -> Self {
        self.step(Step::Fail(error)).ended()
    }

    /// Ends without a stop, as a broken connection does that nobody noticed.
    #[must_use]
    pub fn cut(self) -> Self {
        self.ended()
    }

    /// Never goes on, and never wakes anybody.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang).ended()
    }

    /// Panics.
    #[must_use]
    pub fn panic(self, message: &'static str) -> Self {
        self.step(Step::Panic(message)).ended()
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn ended(mut self) -> Self {
        self.ended = true;
        self
    }

    fn into_steps(self) -> VecDeque<Step> {
        let has_call = |s: &Step| matches!(s, Step::Event(ModelEvent::BlockDone(Block::ToolCall(_))));
        let mut answer = self;
        if !answer.ended {
            let reason =
                if answer.steps.iter().any(has_call) { StopReason::ToolUse } else { StopReason::EndTurn };
            answer = answer.stop(reason);
        }
        answer.steps.into()
    }
}

struct Script<'a> {
    model: &'a ScriptedModel,
    /// Taken at the first poll: that is when a call starts.
    request: Option<ModelRequest>,
    steps: VecDeque<Step>,
    wait: Option<Wait>,
    /// Whether the next event has been through the model's own gate.
    passed: bool,
}

impl Stream for Script<'_> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(request) = this.request.take() {
            this.steps = this.model.next_answer(request).into_steps();
        }
        loop {
            if let Some(wait) = &mut this.wait {
                std::task::ready!(Pin::new(wait).poll(cx));
                this.wait = None;
            }
            let visible = matches!(this.steps.front(), None | Some(Step::Event(_) | Step::Fail(_)));
            if visible
                && !std::mem::replace(&mut this.passed, true)
                && let Some(gate) = &this.model.gate
            {
                this.wait = Some(gate.wait());
                continue;
            }
            match this.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Event(event)) => {
                    this.passed = false;
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Step::Fail(error)) => {
                    this.steps.clear();
                    this.passed = false;
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Step::Gate(gate)) => this.wait = Some(gate.wait()),
                Some(Step::Pending) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Hang) => {
                    this.steps.push_front(Step::Hang);
                    return Poll::Pending;
                }
                Some(Step::Panic(message)) => panic(message),
            }
        }
    }
}

/// The panic that a script asks for.
#[expect(clippy::panic, reason = "what the script of the test asks for")]
pub(super) fn panic(message: &str) -> ! {
    panic!("{message}")
}
