//! One attempt at an answer, put together from the model's events.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::{Event, MessageNumber};
use crate::message::{Block, CallId, ToolCall};
use crate::model::{ModelError, ModelErrorKind, ModelEvent};
use crate::usage::{StopReason, Usage};

/// Bytes of text, reasoning and arguments in one answer at most: far above what any model writes, and an end for a
/// stream that never stops.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// What a block costs on top of its text against [`MAX_ANSWER_BYTES`], so that empty blocks are bounded as well.
const BLOCK_BYTES: usize = 64;

/// The answer is longer than [`MAX_ANSWER_BYTES`].
#[derive(Debug)]
pub(crate) struct TooLong;

impl From<TooLong> for ModelError {
    fn from(_: TooLong) -> Self {
        let text = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        Self::new(ModelErrorKind::Protocol, text)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    /// The text block that is being written; kept, should the answer be cut.
    text: String,
    /// Calls that were begun and not finished.
    unfinished: Vec<Unfinished>,
    pub(crate) usage: Usage,
    /// Whether the host was shown anything of this attempt.
    pub(crate) shown: bool,
    bytes: usize,
}

#[derive(Debug)]
struct Unfinished {
    index: u32,
    id: CallId,
    name: Arc<str>,
    arguments: String,
}

impl Answer {
    /// Forgets everything and keeps the buffers.
    pub(crate) fn reset(&mut self) {
        self.blocks.clear();
        self.text.clear();
        self.unfinished.clear();
        self.usage = Usage::default();
        self.shown = false;
        self.bytes = 0;
    }

    /// Takes one event. Gives the stop reason when it is the last.
    pub(crate) fn feed(
        &mut self,
        event: ModelEvent,
        message: MessageNumber,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<StopReason>, TooLong> {
        match event {
            ModelEvent::Text(delta) => {
                self.count(delta.len())?;
                self.text.push_str(&delta);
                self.show(events, Event::Text { message, delta });
            }
            ModelEvent::Reasoning(delta) => {
                self.count(delta.len())?;
                self.show(events, Event::Reasoning { message, delta });
            }
            ModelEvent::ToolCallStarted { index, id, name } => {
                self.count(BLOCK_BYTES)?;
                self.show(events, Event::ToolCallStarted { message, index, name: Arc::clone(&name) });
                self.unfinished.push(Unfinished { index, id, name, arguments: String::new() });
            }
            ModelEvent::ToolArguments { index, delta } => {
                self.count(delta.len())?;
                if let Some(call) = self.unfinished.iter_mut().rfind(|c| c.index == index) {
                    call.arguments.push_str(&delta);
                }
                self.show(events, Event::ToolArguments { message, index, delta });
            }
            ModelEvent::BlockDone(block) => {
                self.count(BLOCK_BYTES)?;
                self.finish_block(block);
            }
            ModelEvent::Usage(usage) => self.usage.merge(usage),
            ModelEvent::Stop { reason, .. } => return Ok(Some(reason)),
            // The names of a started answer are the provider's business.
            ModelEvent::Started { .. } => {}
        }
        Ok(None)
    }

    fn show(&mut self, events: &mut VecDeque<Event>, event: Event) {
        self.shown = true;
        events.push_back(event);
    }

    fn count(&mut self, bytes: usize) -> Result<(), TooLong> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(TooLong);
        }
        Ok(())
    }

    fn finish_block(&mut self, block: Block) {
        match &block {
            Block::Text { text } => {
                self.text.clear();
                if text.is_empty() {
                    return;
                }
            }
            Block::ToolCall(call) => {
                if let Some(place) = self.unfinished.iter().position(|c| c.id == call.id) {
                    self.unfinished.remove(place);
                }
            }
            _ => {}
        }
        self.blocks.push(block);
    }

    /// Whether all that was begun is finished, so that the answer may be executed.
    pub(crate) fn is_closed(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// The blocks of an answer that has ended or was cut. Text that was begun is kept; calls that were begun are
    /// kept as what they are, calls that nobody can execute; reasoning that was begun has no seal and goes.
    pub(crate) fn take_blocks(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.blocks);
        if !self.text.is_empty() {
            blocks.push(Block::text(std::mem::take(&mut self.text)));
        }
        for call in self.unfinished.drain(..) {
            let Unfinished { id, name, arguments, .. } = call;
            let mut cut = ToolCall::from_text(id, name, &arguments);
            cut.malformed.get_or_insert(arguments);
            blocks.push(Block::ToolCall(cut));
        }
        blocks
    }

    /// Whether there is anything to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.text.is_empty() && self.unfinished.is_empty()
    }
}
