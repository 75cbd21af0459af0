//! Writing down what models and tools said, and saying it again.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::message::CallId;
use crate::model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream};
use crate::policy::ApprovalKey;
use crate::tool::{Effects, ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Tool, ToolContext};

/// The form of [`Recording`] that this version writes.
pub const RECORDING_SCHEMA: u32 = 1;

/// What a model and tools said in one run, or in several one after the other. Plain data: keep it as a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recording {
    /// The number of the form.
    pub schema: u32,
    /// What the model said of itself.
    pub info: Option<ModelInfo>,
    /// The answers, in the order in which they were asked for.
    pub answers: Vec<RecordedAnswer>,
    /// The tools' outputs, in the order in which the calls began.
    pub outputs: Vec<RecordedOutput>,
}

/// One answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedAnswer {
    /// What was asked.
    pub request: RequestPrint,
    /// What came, in order.
    pub events: Vec<ModelEvent>,
    /// The error that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ModelError>,
    /// Whether the stream came to its end; if not, the caller dropped it after these events.
    pub ended: bool,
}

/// One output of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedOutput {
    /// The call.
    pub call: CallId,
    /// The tool's public name.
    pub tool: Arc<str>,
    /// The arguments, by digest.
    pub arguments: Digest,
    /// How it ended; absent when the caller dropped it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Result<ToolOutput, ToolError>>,
}

/// A request, by the digests of its parts: enough to say whether another is the same, and where it differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestPrint {
    /// The system prompt.
    pub system: Digest,
    /// The tools.
    pub tools: Digest,
    /// Each message.
    pub messages: Vec<Digest>,
    /// Tool choice, format of the answer, options and cache markers.
    pub rest: Digest,
}

impl RequestPrint {
    /// The print of a request.
    pub fn of(request: &ModelRequest) -> Self {
        let of = |value: serde_json::Result<Value>| Digest::of_json(&value.unwrap_or_default());
        let ModelRequest { tool_choice, response_format, options, cache, .. } = request;
        // The debug form names every field, those of later versions included.
        let rest = format!("{tool_choice:?} {response_format:?} {options:?} {cache:?}");
        Self {
            system: of(serde_json::to_value(&*request.system)),
            tools: of(serde_json::to_value(&*request.tools)),
            messages: request.messages.iter().map(|m| of(serde_json::to_value(&**m))).collect(),
            rest: Digest::of_bytes(rest.as_bytes()),
        }
    }

    /// The first part in which another request differs.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.system != other.system {
            return Some("the system prompt".to_owned());
        }
        if self.tools != other.tools {
            return Some("the tools".to_owned());
        }
        if let Some(at) = self.messages.iter().zip(&other.messages).position(|(a, b)| a != b) {
            return Some(format!("message {at}"));
        }
        if self.messages.len() != other.messages.len() {
            return Some(format!("{} messages instead of {}", other.messages.len(), self.messages.len()));
        }
        (self.rest != other.rest).then(|| "the options".to_owned())
    }
}

/// Writes down what passes through the models and tools that it wraps. Cheap to clone; all clones write one recording.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Recording>>);

impl Recorder {
    /// A recorder with an empty recording.
    pub fn new() -> Self {
        let empty =
            Recording { schema: RECORDING_SCHEMA, info: None, answers: Vec::new(), outputs: Vec::new() };
        Self(Arc::new(Mutex::new(empty)))
    }

    /// The model, with everything that it says written down.
    pub fn model<M: Model>(&self, model: M) -> impl Model + use<M> {
        self.recording_mut().info = Some(model.info());
        RecordedModel { model, recorder: self.clone() }
    }

    /// The tool, with every output written down.
    pub fn tool<T: Tool>(&self, tool: T) -> impl Tool + use<T> {
        RecordedTool { tool, recorder: self.clone() }
    }

    /// What was recorded so far.
    pub fn recording(&self) -> Recording {
        self.recording_mut().clone()
    }

    fn recording_mut(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, place: usize, write: impl FnOnce(&mut RecordedAnswer)) {
        if let Some(answer) = self.recording_mut().answers.get_mut(place) {
            write(answer);
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recording = self.recording_mut();
        f.debug_struct("Recorder")
            .field("answers", &recording.answers.len())
            .field("outputs", &recording.outputs.len())
            .finish_non_exhaustive()
    }
}

struct RecordedModel<M> {
    model: M,
    recorder: Recorder,
}

impl<M: Model> Model for RecordedModel<M> {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let print = RequestPrint::of(&request);
        let stream = self.model.stream(request);
        Box::pin(RecordedStream { stream, print: Some(print), place: 0, recorder: &self.recorder })
    }
}

struct RecordedStream<'a> {
    stream: ModelStream<'a>,
    /// Until the first poll, when the call begins.
    print: Option<RequestPrint>,
    place: usize,
    recorder: &'a Recorder,
}

impl Stream for RecordedStream<'_> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(request) = self.print.take() {
            let mut recording = self.recorder.recording_mut();
            let place = recording.answers.len();
            recording.answers.push(RecordedAnswer { request, events: Vec::new(), error: None, ended: false });
            drop(recording);
            self.place = place;
        }
        let item = ready!(self.stream.as_mut().poll_next(cx));
        self.recorder.answer(self.place, |answer| match &item {
            Some(Ok(event)) => answer.events.push(event.clone()),
            Some(Err(error)) => answer.error = Some(error.clone()),
            None => answer.ended = true,
        });
        Poll::Ready(item)
    }
}

struct RecordedTool<T> {
    tool: T,
    recorder: Recorder,
}

#[async_trait]
impl<T: Tool> Tool for RecordedTool<T> {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        self.tool.approval_keys(arguments)
    }

    fn effects(&self, arguments: &Value) -> Effects {
        self.tool.effects(arguments)
    }

    fn time_limit(&self) -> Option<Duration> {
        self.tool.time_limit()
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        self.tool.preview(arguments)
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let place = {
            let mut recording = self.recorder.recording_mut();
            recording.outputs.push(RecordedOutput {
                call: context.call_id().clone(),
                tool: Arc::clone(&self.tool.spec().name),
                arguments: Digest::of_json(&arguments),
                result: None,
            });
            recording.outputs.len() - 1
        };
        let result = self.tool.call(arguments, context).await;
        if let Some(output) = self.recorder.recording_mut().outputs.get_mut(place) {
            output.result = Some(result.clone());
        }
        result
    }
}

/// A recording that plays the part of the model and the tools. Cheap to clone; all clones play one recording.
///
/// A run that asks anything else than the recorded one did gets an error that says where it differs: the model fails
/// with [`ModelErrorKind::Other`], the tool with an error result.
#[derive(Clone)]
pub struct Replay(Arc<Mutex<Playing>>);

struct Playing {
    info: ModelInfo,
    answers: VecDeque<RecordedAnswer>,
    played: usize,
    outputs: Vec<RecordedOutput>,
}

impl Replay {
    /// Plays a recording from its beginning.
    pub fn new(recording: Recording) -> Self {
        Self(Arc::new(Mutex::new(Playing {
            info: recording.info.unwrap_or_else(|| ModelInfo::new("replay", "recording")),
            answers: recording.answers.into(),
            played: 0,
            outputs: recording.outputs,
        })))
    }

    /// The part of the model.
    pub fn model(&self) -> impl Model + Clone + use<> {
        ReplayedModel(self.clone())
    }

    /// The part of a tool with this spec.
    pub fn tool(&self, spec: ToolSpec) -> impl Tool + use<> {
        ReplayedTool { spec, replay: self.clone() }
    }

    /// How many answers and outputs were not played. A replay that is over leaves none.
    pub fn remaining(&self) -> (usize, usize) {
        let playing = self.playing();
        (playing.answers.len(), playing.outputs.len())
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes of a request: events, then perhaps an error, then perhaps the end.
    fn play(&self, request: &ModelRequest) -> Vec<Option<Result<ModelEvent, ModelError>>> {
        let mut playing = self.playing();
        playing.played += 1;
        let number = playing.played;
        let fail = |text: String| vec![Some(Err(ModelError::new(ModelErrorKind::Other, text))), None];
        let Some(answer) = playing.answers.pop_front() else {
            return fail(format!("the recording ends before request {number}"));
        };
        if let Some(what) = answer.request.difference(&RequestPrint::of(request)) {
            return fail(format!("request {number} is not the recorded one: {what} differs"));
        }
        let mut items: Vec<_> = answer.events.into_iter().map(|event| Some(Ok(event))).collect();
        let over = answer.ended || answer.error.is_some();
        items.extend(answer.error.map(|error| Some(Err(error))));
        // Without an end the caller dropped the stream; should this one go on, it waits.
        items.extend(over.then_some(None));
        items
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answers, outputs) = self.remaining();
        f.debug_struct("Replay").field("answers", &answers).field("outputs", &outputs).finish()
    }
}

#[derive(Clone)]
struct ReplayedModel(Replay);

impl Model for ReplayedModel {
    fn info(&self) -> ModelInfo {
        self.0.playing().info.clone()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        Box::pin(ReplayedStream { replay: &self.0, request: Some(request), items: VecDeque::new() })
    }
}

struct ReplayedStream<'a> {
    replay: &'a Replay,
    request: Option<ModelRequest>,
    items: VecDeque<Option<Result<ModelEvent, ModelError>>>,
}

impl Stream for ReplayedStream<'_> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(request) = self.request.take() {
            self.items = self.replay.play(&request).into();
        }
        self.items.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

struct ReplayedTool {
    spec: ToolSpec,
    replay: Replay,
}

#[async_trait]
impl Tool for ReplayedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let recorded = {
            let outputs = &mut self.replay.playing().outputs;
            let is_this = |o: &RecordedOutput| {
                o.call == *context.call_id()
                    && o.tool == self.spec.name
                    && o.arguments == Digest::of_json(&arguments)
            };
            outputs.iter().position(is_this).map(|place| outputs.remove(place))
        };
        match recorded.map(|output| output.result) {
            Some(Some(result)) => result,
            // The recorded call never ended, so this one does not either.
            Some(None) => std::future::pending().await,
            None => Err(ToolError::failed(format!(
                "the recording has no call `{}` of `{}` with these arguments",
                context.call_id(),
                self.spec.name
            ))),
        }
    }
}
