//! Tool calls in plain text, for models that have none of their own.
//!
//! [`TextTools`] wraps a model. When the model's provider answers that it takes no tools, the wrapper sends the same
//! request again with the tools described at the end of the system prompt, and reads calls from the text of the
//! answer. Calls read this way are ordinary calls: they are checked, judged and asked about like any other, and their
//! ids begin with `text_`.
//!
//! A call is a block `<tool_call>{"name": …, "arguments": …}</tool_call>`. Only a run of such blocks at the very end
//! of an answer is ever executed, all of it or nothing. What is quoted in the middle, stands in a code fence, in
//! inline code, in a quotation or in an indented block, is followed or interrupted by other text, names a tool that is
//! not on offer, or is no proper JSON, is text and is shown as text. Nothing is repaired, and nothing is read from an
//! answer that was cut off. While an answer streams, markup is held back from the preview until it is clear what it
//! is.
//!
//! ```
//! # use futures_util::{FutureExt, StreamExt};
//! use std::sync::Arc;
//! use haversack_agent_core::message::Block;
//! use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
//! use haversack_agent_core::text_tools::TextTools;
//! # use haversack_agent_core::model::{ModelInfo, ModelStream};
//! # use haversack_agent_core::tool::ToolSpec;
//! # use haversack_agent_core::usage::StopReason;
//! # struct Small;
//! # impl Model for Small {
//! #     fn info(&self) -> ModelInfo { ModelInfo::new("x", "small") }
//! #     fn stream(&self, _: ModelRequest) -> ModelStream<'_> {
//! #         let text = "Looking.\n<tool_call>{\"name\": \"grep\", \"arguments\": {\"text\": \"a\"}}</tool_call>";
//! #         let stop = ModelEvent::Stop { reason: StopReason::EndTurn, raw: None };
//! #         Box::pin(futures_util::stream::iter([Ok(ModelEvent::BlockDone(Block::text(text))), Ok(stop)]))
//! #     }
//! # }
//! # async fn run() {
//!
//! let model = TextTools::new(Small).always();
//! let mut request = ModelRequest::default();
//! request.tools = Arc::new([Arc::new(ToolSpec::new("grep", "Searches"))]);
//! let events: Vec<_> = model.stream(request).collect().await;
//! let calls = events.iter().filter(|e| matches!(e, Ok(ModelEvent::BlockDone(Block::ToolCall(_)))));
//! assert_eq!(calls.count(), 1);
//! # }
//! # run().now_or_never().unwrap();
//! ```

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::message::{Block, CallId, ToolCall};
use crate::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, ToolChoice,
};
use crate::usage::StopReason;

mod parse;
mod filter;
mod rewrite;

use filter::Filter;
use parse::Reading;

/// A model whose tool calls may come as text.
///
/// It passes everything on to the model inside, and adds two things: it falls back to text when the provider refuses
/// tools (once refused, all later requests go out as text at once), and it recovers calls that a model with tools of
/// its own nevertheless wrote as text.
///
/// The second request after a refusal happens inside one stream: nothing had come of the first, and the request that
/// could be retried visibly would be refused again. [`is_active`](Self::is_active) tells that it happened.
#[derive(Debug)]
pub struct TextTools<M> {
    model: M,
    active: AtomicBool,
    recovers: bool,
}

impl<M: Model> TextTools<M> {
    /// Wraps a model. Text is used from the first answer that says [`ModelErrorKind::ToolsUnsupported`].
    pub fn new(model: M) -> Self {
        Self { model, active: AtomicBool::new(false), recovers: true }
    }

    /// Uses text from the first request on, for a model that is known to take no tools.
    #[must_use]
    pub fn always(self) -> Self {
        self.active.store(true, Ordering::Relaxed);
        self
    }

    /// Leaves text alone as long as the model takes tools of its own.
    #[must_use]
    pub fn without_recovery(mut self) -> Self {
        self.recovers = false;
        self
    }

    /// Whether requests go out as text.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// The model inside.
    pub fn inner(&self) -> &M {
        &self.model
    }
}

impl<M: Model> Model for TextTools<M> {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        // Without tools there is nothing to describe and nothing to read.
        if request.tools.is_empty() && !rewrite::has_tool_blocks(&request) {
            return self.model.stream(request);
        }
        let active = self.is_active();
        let sent = if active { rewrite::as_text(&request) } else { request.clone() };
        Box::pin(TextStream {
            wrapper: self,
            inner: self.model.stream(sent),
            active,
            quiet: true,
            native_calls: false,
            answer: Answer::default(),
            request,
            out: VecDeque::new(),
        })
    }
}

/// One answer on its way out.
struct TextStream<'a, M> {
    wrapper: &'a TextTools<M>,
    inner: ModelStream<'a>,
    request: ModelRequest,
    /// Whether this request went out as text.
    active: bool,
    /// Whether nothing has come yet, so that a refusal can still be answered with a second request.
    quiet: bool,
    native_calls: bool,
    answer: Answer,
    out: VecDeque<ModelEvent>,
}

/// The text block that may turn out to hold calls.
#[derive(Default)]
struct Answer {
    filter: Filter,
    /// The last text block, held back until something follows it.
    last: Option<String>,
}

impl<M: Model> TextStream<'_, M> {
    fn reads_calls(&self) -> bool {
        (self.active || self.wrapper.recovers) && self.request.tool_choice != ToolChoice::None
    }

    fn feed(&mut self, event: ModelEvent) {
        if !self.reads_calls() {
            self.native_calls |= matches!(event, ModelEvent::BlockDone(Block::ToolCall(_)));
            self.out.push_back(event);
            return;
        }
        match event {
            ModelEvent::Text(delta) => {
                self.release();
                let visible = self.answer.filter.push(&delta, self.active);
                self.preview(visible);
            }
            ModelEvent::BlockDone(Block::Text { text }) => {
                self.release();
                self.answer.last = Some(text);
            }
            // Usage may come at any time and says nothing about the text.
            ModelEvent::Usage(_) | ModelEvent::Started { .. } => self.out.push_back(event),
            ModelEvent::Stop { reason, raw } => self.stop(reason, raw),
            other => {
                self.native_calls |= matches!(other, ModelEvent::BlockDone(Block::ToolCall(_)));
                self.release();
                self.out.push_back(other);
            }
        }
    }

    fn preview(&mut self, text: String) {
        if !text.is_empty() {
            self.out.push_back(ModelEvent::Text(text));
        }
    }

    /// What was held back is text after all, since something follows it.
    fn release(&mut self) {
        if let Some(text) = self.answer.last.take() {
            let held = self.answer.filter.finish();
            self.preview(held);
            self.out.push_back(ModelEvent::BlockDone(Block::Text { text }));
        }
    }

    fn stop(&mut self, reason: StopReason, raw: Option<String>) {
        // A model that stops at a stop sequence may have stopped at the closing tag.
        let whole = reason.is_complete() || reason == StopReason::StopSequence;
        let reading = match &self.answer.last {
            Some(text) if whole && !self.native_calls => parse::read(text, &self.request.tools, self.active),
            _ => None,
        };
        let Some(Reading { before, calls }) = reading else {
            self.release();
            self.out.push_back(ModelEvent::Stop { reason, raw });
            return;
        };
        self.answer.last = None;
        if !before.is_empty() {
            self.out.push_back(ModelEvent::BlockDone(Block::text(before)));
        }
        for (index, (name, arguments)) in (0..).zip(calls) {
            // Unique as long as the history only grows; the loop re-keys what is not.
            let id: CallId = format!("text_{}_{index}", self.request.messages.len()).into();
            self.out.push_back(ModelEvent::ToolCallStarted { index, id: id.clone(), name: name.clone() });
            self.out.push_back(ModelEvent::ToolArguments { index, delta: arguments.to_string() });
            self.out.push_back(ModelEvent::BlockDone(ToolCall::new(id, name, arguments).into()));
        }
        self.out.push_back(ModelEvent::Stop { reason: StopReason::ToolUse, raw });
    }

    /// Sends the request again as text, when that is what the error asks for.
    fn falls_back(&mut self, error: &ModelError) -> bool {
        if self.active || !self.quiet || error.kind != ModelErrorKind::ToolsUnsupported {
            return false;
        }
        self.wrapper.active.store(true, Ordering::Relaxed);
        self.active = true;
        self.inner = self.wrapper.model.stream(rewrite::as_text(&self.request));
        true
    }
}

impl<M: Model> Stream for TextStream<'_, M> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.out.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(this.inner.as_mut().poll_next(cx)) {
                Some(Ok(event)) => {
                    this.quiet = false;
                    this.feed(event);
                }
                Some(Err(error)) if this.falls_back(&error) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    // Cut off: the text is kept as text, and nothing is read from it.
                    this.release();
                    if this.out.is_empty() {
                        return Poll::Ready(None);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
