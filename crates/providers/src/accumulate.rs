//! What turns the events of a wire into [`ModelEvent`]s: one implementation for each API, all without I/O.

use std::sync::Arc;

use haversack_agent_core::message::{Block, CallId, Reasoning, Seal, ToolCall};
use haversack_agent_core::model::ModelEvent;

use crate::fault::{Events, Fault};

/// Reads one answer of one API.
///
/// The driver calls [`event`](Self::event) for each event of a stream, or [`body`](Self::body) once for an answer
/// that came whole; then [`end`](Self::end) when the connection has ended, unless the answer
/// [is stopped](Self::is_stopped) before. The answer is whole when a [`ModelEvent::Stop`] was put out and not
/// otherwise: what ends without one is reported as interrupted.
pub(crate) trait Accumulator: Send + 'static {
    /// Takes one event: the name (empty where the wire has none) and the data, which is JSON or an end mark.
    fn event(&mut self, name: &[u8], data: &[u8], out: &mut Events) -> Result<(), Fault>;

    /// Takes a whole answer that was not streamed.
    fn body(&mut self, body: &[u8], out: &mut Events) -> Result<(), Fault>;

    /// Nothing more will come. Puts out the end if all the same the answer is whole.
    fn end(&mut self, out: &mut Events) -> Result<(), Fault>;

    /// The answer is lost. Puts out the blocks that can stand by themselves, such as half a text; never a call.
    fn abandon(&mut self, out: &mut Events);

    /// Whether the answer is over, so that nothing after it has to be read.
    fn is_stopped(&self) -> bool;
}

/// Blocks that one answer may have. Real ones have a few; the bound stops a server that opens one per byte.
const MAX_BLOCKS: usize = 4096;

/// Which block of an [`Assembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// The blocks of one answer while they are written.
///
/// Blocks are put out in the order in which they began, each as soon as it and all before it are done. So a text
/// that ends before the first tool call is out at once, and calls that are only known to be whole when the answer
/// ends hold back what stands behind them.
#[derive(Debug)]
pub(crate) struct Assembly {
    drafts: Vec<Draft>,
    /// How many of them are out.
    put_out: usize,
    /// The block that texts are appended to.
    open: Option<Slot>,
    /// Whether reasoning waits for the end of the answer, because its seal may come that late.
    holds_reasoning: bool,
    /// The seal of reasoning that gets no other.
    seal: Option<Seal>,
    calls: u32,
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
enum Draft {
    Text {
        text: String,
        done: bool,
    },
    Reasoning {
        reasoning: Reasoning,
        done: bool,
    },
    Call(CallDraft),
    Done(Box<Block>),
    /// It is out, or dropped.
    Gone,
}

/// A tool call while it is written.
#[derive(Debug)]
pub(crate) struct CallDraft {
    /// The number that its events carry.
    pub(crate) index: u32,
    /// The first id that was not empty.
    pub(crate) id: Option<String>,
    /// The first name that was not empty.
    pub(crate) name: Option<Arc<str>>,
    /// The argument text so far.
    pub(crate) arguments: String,
    /// What the provider wants back with the call.
    pub(crate) seal: Option<Seal>,
    started: bool,
}

impl Assembly {
    /// Nothing yet, of an answer of at most `max_bytes` bytes of text and arguments.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            drafts: Vec::new(),
            put_out: 0,
            open: None,
            holds_reasoning: false,
            seal: None,
            calls: 0,
            bytes: 0,
            max_bytes,
        }
    }

    /// Holds reasoning back until the answer ends: its seal may come that late.
    pub(crate) fn holding_reasoning(mut self) -> Self {
        self.holds_reasoning = true;
        self
    }

    /// Gives every reasoning block this seal, so that it is known for whose it is.
    pub(crate) fn sealing(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Whether the answer has tool calls.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.max_bytes {
            return Err(Fault::Protocol(format!("the answer is longer than {} bytes", self.max_bytes)));
        }
        Ok(())
    }

    fn add(&mut self, draft: Draft) -> Result<Slot, Fault> {
        if self.drafts.len() >= MAX_BLOCKS {
            return Err(Fault::Protocol(format!("the answer has more than {MAX_BLOCKS} blocks")));
        }
        self.drafts.push(draft);
        Ok(Slot(self.drafts.len() - 1))
    }

    /// Appends to the open text block, or opens one.
    pub(crate) fn text(&mut self, delta: &str, out: &mut Events) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        let open = self.open.and_then(|slot| self.drafts.get_mut(slot.0));
        if let Some(Draft::Text { text, .. }) = open {
            text.push_str(delta);
        } else {
            self.close(out);
            self.open = Some(self.add(Draft::Text { text: delta.to_owned(), done: false })?);
        }
        out.push_back(ModelEvent::Text(delta.to_owned()));
        Ok(())
    }

    /// Appends to the open reasoning block, or opens one.
    pub(crate) fn reasoning(&mut self, delta: &str, out: &mut Events) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        let open = self.open.and_then(|slot| self.drafts.get_mut(slot.0));
        if let Some(Draft::Reasoning { reasoning, .. }) = open {
            reasoning.text.push_str(delta);
        } else {
            self.close(out);
            let mut reasoning = Reasoning::new(delta);
            reasoning.seal.clone_from(&self.seal);
            self.open = Some(self.add(Draft::Reasoning { reasoning, done: false })?);
        }
        out.push_back(ModelEvent::Reasoning(delta.to_owned()));
        Ok(())
    }

    /// Closes the open text or reasoning block.
    pub(crate) fn close(&mut self, out: &mut Events) {
        match self.open.take().and_then(|slot| self.drafts.get_mut(slot.0)) {
            Some(Draft::Text { done, .. }) => *done = true,
            Some(Draft::Reasoning { done, .. }) => *done = !self.holds_reasoning,
            _ => {}
        }
        self.put_out(out);
    }

    fn close_all(&mut self, out: &mut Events) {
        self.holds_reasoning = false;
        for draft in &mut self.drafts {
            if let Draft::Reasoning { done, .. } = draft {
                *done = true;
            }
        }
        self.close(out);
    }

    /// The open text block turns out to be reasoning.
    pub(crate) fn text_was_reasoning(&mut self) {
        if let Some(draft) = self.open.take().and_then(|slot| self.drafts.get_mut(slot.0))
            && let Draft::Text { text, .. } = draft
        {
            *draft = Draft::Reasoning { reasoning: Reasoning::new(std::mem::take(text)), done: false };
        }
    }

    /// The text block that is being written.
    pub(crate) fn open_text(&self) -> Option<&str> {
        match self.open.and_then(|slot| self.drafts.get(slot.0)) {
            Some(Draft::Text { text, .. }) => Some(text),
            _ => None,
        }
    }

    /// Shortens the text block that is being written, in which something else was found; one of which nothing is
    /// left is dropped.
    pub(crate) fn cut_open_text(&mut self, length: usize) {
        if let Some(draft) = self.open.and_then(|slot| self.drafts.get_mut(slot.0))
            && let Draft::Text { text, .. } = draft
        {
            text.truncate(length);
            if text.is_empty() {
                *draft = Draft::Gone;
                self.open = None;
            }
        }
    }

    /// Adds an empty reasoning block for a seal that came without text.
    pub(crate) fn add_sealed_reasoning(&mut self, seal: Seal) -> Result<(), Fault> {
        let reasoning = Reasoning::new("").with_seal(seal);
        self.add(Draft::Reasoning { reasoning, done: true }).map(|_| ())
    }

    /// Every reasoning block that is not out yet, to be sealed.
    pub(crate) fn reasoning_blocks(&mut self) -> impl Iterator<Item = &mut Reasoning> {
        self.drafts.iter_mut().filter_map(|draft| match draft {
            Draft::Reasoning { reasoning, .. } => Some(reasoning),
            _ => None,
        })
    }

    /// Adds a block that is whole.
    pub(crate) fn block(&mut self, block: Block, out: &mut Events) -> Result<(), Fault> {
        self.close(out);
        self.add(Draft::Done(Box::new(block)))?;
        self.put_out(out);
        Ok(())
    }

    /// Begins a tool call.
    pub(crate) fn begin_call(&mut self, out: &mut Events) -> Result<Slot, Fault> {
        self.close(out);
        let index = self.calls;
        let (id, name, arguments, seal) = (None, None, String::new(), None);
        let slot = self.add(Draft::Call(CallDraft { index, id, name, arguments, seal, started: false }))?;
        self.calls += 1;
        Ok(slot)
    }

    /// A call that was begun and is not out yet.
    pub(crate) fn call(&mut self, slot: Slot) -> Option<&mut CallDraft> {
        match self.drafts.get_mut(slot.0) {
            Some(Draft::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Tells that a call began, once its id and name are known, and the arguments that came before them.
    pub(crate) fn announce(&mut self, slot: Slot, out: &mut Events) {
        let Some(call) = self.call(slot) else { return };
        if let (false, Some(id), Some(name)) = (call.started, &call.id, &call.name) {
            let (index, id, name) = (call.index, CallId::new(id.as_str()), Arc::clone(name));
            out.push_back(ModelEvent::ToolCallStarted { index, id, name });
            if !call.arguments.is_empty() {
                out.push_back(ModelEvent::ToolArguments { index, delta: call.arguments.clone() });
            }
            call.started = true;
        }
    }

    /// Whether a call has a name already, and it is another one.
    pub(crate) fn has_other_name(&self, slot: Slot, name: &str) -> bool {
        match self.drafts.get(slot.0) {
            Some(Draft::Call(CallDraft { name: Some(known), .. })) => **known != *name,
            _ => false,
        }
    }

    /// Appends to a call's argument text.
    pub(crate) fn arguments(&mut self, slot: Slot, delta: &str, out: &mut Events) -> Result<(), Fault> {
        if delta.is_empty() {
            return Ok(());
        }
        self.grow(delta.len())?;
        if let Some(call) = self.call(slot) {
            call.arguments.push_str(delta);
            if call.started {
                out.push_back(ModelEvent::ToolArguments { index: call.index, delta: delta.to_owned() });
            }
        }
        Ok(())
    }

    /// Puts a call out as a block. One without an id gets one; one that never got a name is dropped, since nobody
    /// could run it: the number of calls that were is the return value of [`finish`](Self::finish).
    pub(crate) fn finish_call(&mut self, slot: Slot, out: &mut Events) {
        if let Some(call) = self.call(slot) {
            let made = call.index;
            call.id.get_or_insert_with(|| format!("call_{made}"));
        }
        self.announce(slot, out);
        if let Some(draft) = self.drafts.get_mut(slot.0)
            && let Draft::Call(CallDraft { id: Some(id), name: Some(name), arguments, seal, .. }) = draft
        {
            let mut call = ToolCall::from_text(id.as_str(), Arc::clone(name), arguments);
            call.seal = seal.take();
            *draft = Draft::Done(Box::new(call.into()));
        }
        self.put_out(out);
    }

    /// Puts everything out: the answer is over. Calls that never got a name are dropped; says how many.
    pub(crate) fn finish(&mut self, out: &mut Events) -> usize {
        self.close_all(out);
        for at in self.put_out..self.drafts.len() {
            self.finish_call(Slot(at), out);
        }
        let nameless = self.drop_calls(out);
        self.put_out(out);
        nameless
    }

    /// Puts out what can stand by itself and drops calls that were not finished: the answer is lost.
    pub(crate) fn abandon(&mut self, out: &mut Events) {
        self.close_all(out);
        self.drop_calls(out);
    }

    fn drop_calls(&mut self, out: &mut Events) -> usize {
        let mut dropped = 0;
        for draft in self.drafts.iter_mut().filter(|draft| matches!(draft, Draft::Call(_))) {
            *draft = Draft::Gone;
            dropped += 1;
        }
        self.put_out(out);
        dropped
    }

    /// Puts out what is done, up to the first block that is not.
    fn put_out(&mut self, out: &mut Events) {
        while let Some(draft) = self.drafts.get_mut(self.put_out) {
            let block = match draft {
                Draft::Text { text, done: true } => Block::Text { text: std::mem::take(text) },
                Draft::Reasoning { reasoning, done: true } => Block::Reasoning(std::mem::take(reasoning)),
                Draft::Done(block) => std::mem::replace(&mut **block, Block::text("")),
                Draft::Gone => {
                    self.put_out += 1;
                    continue;
                }
                Draft::Text { .. } | Draft::Reasoning { .. } | Draft::Call(_) => break,
            };
            *draft = Draft::Gone;
            self.put_out += 1;
            out.push_back(ModelEvent::BlockDone(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn blocks_come_out_in_the_order_in_which_they_began() {
        let mut out: Events = VecDeque::new();
        let mut answer = Assembly::new(1000);
        answer.reasoning("r", &mut out).unwrap();
        answer.text("a", &mut out).unwrap();
        let call = answer.begin_call(&mut out).unwrap();
        answer.text("b", &mut out).unwrap();
        let done = |out: &Events| {
            let blocks = out
                .iter()
                .filter_map(|e| if let ModelEvent::BlockDone(b) = e { Some(b.clone()) } else { None });
            blocks.collect::<Vec<_>>()
        };
        let first = [Block::Reasoning(Reasoning::new("r")), Block::text("a")];
        assert_eq!(done(&out), first, "the call holds back what stands behind it");
        answer.call(call).unwrap().name = Some("t".into());
        assert_eq!(answer.finish(&mut out), 0);
        let rest = [ToolCall::from_text("call_0", "t", "").into(), Block::text("b")];
        assert_eq!(done(&out), [&first[..], &rest].concat());
    }

    #[test]
    fn an_answer_that_is_lost_keeps_its_texts_and_loses_its_calls() {
        let mut out: Events = VecDeque::new();
        let mut answer = Assembly::new(1000);
        let call = answer.begin_call(&mut out).unwrap();
        answer.call(call).unwrap().name = Some("t".into());
        answer.text("b", &mut out).unwrap();
        answer.abandon(&mut out);
        assert_eq!(out, [ModelEvent::Text("b".into()), ModelEvent::BlockDone(Block::text("b"))]);
    }

    #[test]
    fn arguments_before_the_name_are_kept_and_told_once() {
        let mut out: Events = VecDeque::new();
        let mut answer = Assembly::new(1000);
        let call = answer.begin_call(&mut out).unwrap();
        answer.arguments(call, "{\"a\"", &mut out).unwrap();
        answer.call(call).unwrap().id = Some("1".into());
        answer.announce(call, &mut out);
        assert!(out.is_empty());
        answer.call(call).unwrap().name = Some("t".into());
        answer.announce(call, &mut out);
        answer.arguments(call, ":1}", &mut out).unwrap();
        answer.finish(&mut out);
        let whole = ToolCall::from_text("1", "t", "{\"a\":1}");
        assert_eq!(
            out,
            [
                ModelEvent::ToolCallStarted { index: 0, id: "1".into(), name: "t".into() },
                ModelEvent::ToolArguments { index: 0, delta: "{\"a\"".into() },
                ModelEvent::ToolArguments { index: 0, delta: ":1}".into() },
                ModelEvent::BlockDone(whole.into()),
            ]
        );
    }

    #[test]
    fn held_reasoning_can_be_sealed_until_the_end() {
        let mut out: Events = VecDeque::new();
        let mut answer = Assembly::new(1000).holding_reasoning();
        answer.reasoning("r", &mut out).unwrap();
        answer.text("a", &mut out).unwrap();
        assert!(!out.iter().any(|e| matches!(e, ModelEvent::BlockDone(_))));
        answer.reasoning_blocks().for_each(|r| r.seal = Some(Seal::new("me", "s")));
        answer.finish(&mut out);
        let sealed = Reasoning::new("r").with_seal(Seal::new("me", "s"));
        assert_eq!(out.get(2), Some(&ModelEvent::BlockDone(Block::Reasoning(sealed))));
        assert_eq!(out.get(3), Some(&ModelEvent::BlockDone(Block::text("a"))));
    }

    #[test]
    fn an_answer_over_its_bound_is_a_fault() {
        let mut out: Events = VecDeque::new();
        let mut answer = Assembly::new(3);
        answer.text("abc", &mut out).unwrap();
        assert!(matches!(answer.text("d", &mut out), Err(Fault::Protocol(_))));
    }
}
