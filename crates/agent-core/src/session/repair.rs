//! What can be wrong with a session, and how it is put right: the same way each time, and never twice.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::closing;
use crate::message::{Block, CallId, Message, Role, ToolCall, ToolResult, ToolStatus};
use crate::output::limit_together;
use crate::session::Session;
use crate::session::open::{Batch, SlotState};

/// Something that is wrong with a session. Positions count messages from 0, as they were before the repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A call has no result. Repair: an interrupted result, since nobody knows whether it ran.
    MissingResult {
        /// The message that makes the call.
        message: usize,
        /// The call.
        call: CallId,
    },
    /// A result answers no call of the message before it, or answers it a second time. Repair: it goes.
    StrayResult {
        /// The message that holds the result.
        message: usize,
        /// The call that it names.
        call: CallId,
    },
    /// Results are not in one message directly behind their calls, in the order of the calls. Repair: they are.
    ScatteredResults {
        /// The message that makes the calls.
        message: usize,
    },
    /// A call has the id of an earlier one. Repair: it gets another, its result as well.
    DuplicateCall {
        /// The message that makes the call.
        message: usize,
        /// The id.
        call: CallId,
    },
    /// A call's arguments are no object, which some providers refuse. Repair: an empty object, and what was there
    /// is kept as `malformed`.
    ArgumentsNotObject {
        /// The message that makes the call.
        message: usize,
        /// The call.
        call: CallId,
    },
    /// A message without any block. Repair: it goes.
    EmptyMessage {
        /// The message.
        message: usize,
    },
    /// A call was running when the session was saved. Repair: an interrupted result; it is never run again.
    Interrupted {
        /// The call.
        call: CallId,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult { message, call } => {
                write!(f, "message {message}: call `{call}` has no result")
            }
            Self::StrayResult { message, call } => {
                write!(
                    f,
                    "message {message}: the result for `{call}` answers no call of the message before it"
                )
            }
            Self::ScatteredResults { message } => {
                write!(
                    f,
                    "message {message}: the results are not in one message behind the calls, in their order"
                )
            }
            Self::DuplicateCall { message, call } => {
                write!(f, "message {message}: call id `{call}` is that of an earlier call")
            }
            Self::ArgumentsNotObject { message, call } => {
                write!(f, "message {message}: the arguments of call `{call}` are no object")
            }
            Self::EmptyMessage { message } => write!(f, "message {message}: no block"),
            Self::Interrupted { call } => write!(f, "call `{call}` was running when the session was saved"),
        }
    }
}

impl Session {
    /// What is wrong with the session; nothing, for one that a run has left. Open calls of a paused session are
    /// not wrong.
    pub fn check(&self) -> Vec<Problem> {
        // One truth: a check is a repair of a copy. The copy shares all messages.
        self.clone().repair()
    }

    /// Puts right what is wrong, and says what that was. A second repair finds nothing, and the same session is
    /// always repaired to the same bytes. Open calls of a paused session stay open.
    pub fn repair(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.settle_interrupted(&mut problems);
        let open = self.open_calls_fit();
        if !open {
            self.open.batch = None;
        }
        let mut repair = Repair { problems, ids: HashSet::new(), out: Vec::new(), changed: false };
        repair.all(&self.messages, open);
        let Repair { problems, out, changed, .. } = repair;
        if changed {
            *self.messages.make_mut() = out;
        }
        problems
    }

    /// Answers every open call by what became of it, and closes the batch and its asks. The way in which a session
    /// is made valid when a run ends in the middle of a batch: synchronous, infallible. Results that together hold
    /// more than `max_bytes` of text are cut; the bytes that were left out come back.
    pub(crate) fn close_batch(
        &mut self,
        text: impl Fn(usize, ToolStatus) -> String,
        max_bytes: usize,
    ) -> Option<(Arc<Message>, usize)> {
        self.asks.close();
        let batch = self.open.batch.take()?;
        let mut results = Vec::with_capacity(batch.slots.len());
        for (place, (call, slot)) in self.messages.last()?.tool_calls().zip(batch.slots).enumerate() {
            let cut = slot.status_if_cut();
            results.push(match (slot.state, cut) {
                (SlotState::Done(result), _) => Arc::unwrap_or_clone(result),
                (_, status) => {
                    let status = status.unwrap_or(ToolStatus::NotStarted);
                    closing::result(&call.id, &call.name, status, text(place, status))
                }
            });
        }
        let dropped = limit_together(&mut results, max_bytes);
        let blocks = results.into_iter().map(Block::ToolResult).collect();
        let message = Arc::new(Message::new(Role::Tool, blocks));
        self.messages.push(Arc::clone(&message));
        Some((message, dropped))
    }

    fn settle_interrupted(&mut self, problems: &mut Vec<Problem>) {
        let Some(batch) = &mut self.open.batch else { return };
        let Some(last) = self.messages.last() else { return };
        for (call, slot) in last.tool_calls().zip(&mut batch.slots) {
            if let SlotState::Running { .. } = slot.state {
                problems.push(Problem::Interrupted { call: call.id.clone() });
                let result = closing::result(
                    &call.id,
                    &call.name,
                    ToolStatus::Interrupted,
                    closing::interrupted(None),
                );
                slot.state = SlotState::Done(Arc::new(result));
            } else if let Some(child) = &mut slot.child {
                // Problems of a child name its own messages; they are put right without being listed here.
                child.repair();
            }
        }
    }

    /// Whether the open batch belongs to the last message, slot by slot.
    fn open_calls_fit(&self) -> bool {
        let Some(Batch { slots }) = &self.open.batch else { return false };
        let Some(last) = self.messages.last() else { return false };
        let named = |result: &ToolResult, call: &ToolCall| result.id == call.id;
        last.role == Role::Assistant
            && last.tool_calls().count() == slots.len()
            && !slots.is_empty()
            && last.tool_calls().zip(slots).all(|(call, slot)| match &slot.state {
                SlotState::Done(result) => named(result, call),
                _ => true,
            })
    }
}

/// One pass over a history.
struct Repair {
    problems: Vec<Problem>,
    ids: HashSet<CallId>,
    out: Vec<Arc<Message>>,
    changed: bool,
}

impl Repair {
    /// `open` says that the calls of the last message are still being worked on.
    fn all(&mut self, messages: &[Arc<Message>], open: bool) {
        let mut rest = messages.iter().enumerate().peekable();
        while let Some((place, message)) = rest.next() {
            if message.blocks.is_empty() {
                self.problems.push(Problem::EmptyMessage { message: place });
                self.changed = true;
                continue;
            }
            if message.role == Role::Tool {
                self.strays(place, message);
                continue;
            }
            if message.role != Role::Assistant || message.tool_calls().next().is_none() {
                self.out.push(Arc::clone(message));
                continue;
            }
            let renamed = self.calls(place, message);
            let mut behind = Vec::new();
            while let Some((at, results)) = rest.next_if(|(_, m)| m.role == Role::Tool) {
                behind.push((at, results));
            }
            if open && behind.is_empty() && rest.peek().is_none() {
                continue;
            }
            self.results(place, message, &behind, &renamed);
        }
    }

    fn strays(&mut self, place: usize, message: &Message) {
        self.changed = true;
        let strays =
            message.tool_results().map(|r| Problem::StrayResult { message: place, call: r.id.clone() });
        self.problems.extend(strays);
    }

    /// Takes over a message with calls, with what is wrong with the calls put right. Gives the new ids by place.
    fn calls(&mut self, place: usize, message: &Arc<Message>) -> Vec<CallId> {
        let mut ids = Vec::new();
        let mut fixed = None;
        for (at, block) in message.blocks.iter().enumerate() {
            let Block::ToolCall(call) = block else { continue };
            let mut new = None;
            if !call.arguments.is_object() {
                self.problems.push(Problem::ArgumentsNotObject { message: place, call: call.id.clone() });
                let call = new.get_or_insert_with(|| call.clone());
                call.malformed = Some(call.arguments.to_string());
                call.arguments = Value::Object(Map::new());
            }
            let id = unused(&self.ids, &call.id, place, at);
            if id != call.id {
                self.problems.push(Problem::DuplicateCall { message: place, call: call.id.clone() });
                let new = new.get_or_insert_with(|| call.clone());
                new.wire_id.get_or_insert_with(|| call.id.as_str().into());
                new.id = id.clone();
            }
            self.ids.insert(id.clone());
            ids.push(id);
            if let Some(new) = new {
                let fixed = fixed.get_or_insert_with(|| (**message).clone());
                if let Some(block) = fixed.blocks.get_mut(at) {
                    *block = Block::ToolCall(new);
                }
            }
        }
        self.changed |= fixed.is_some();
        self.out.push(fixed.map_or_else(|| Arc::clone(message), Arc::new));
        ids
    }

    /// Puts the results of one message into one message behind it. `behind` are the tool messages that follow.
    fn results(
        &mut self,
        place: usize,
        message: &Message,
        behind: &[(usize, &Arc<Message>)],
        ids: &[CallId],
    ) {
        // Results by the id that they name, first come first served: calls of one message may share an id.
        let results: Vec<(usize, &ToolResult)> =
            behind.iter().flat_map(|(at, m)| m.tool_results().map(move |r| (*at, r))).collect();
        let mut places: HashMap<&CallId, VecDeque<usize>> = HashMap::new();
        for (place, (_, result)) in results.iter().enumerate() {
            places.entry(&result.id).or_default().push_back(place);
        }
        let mut used = HashSet::new();
        let mut blocks = Vec::with_capacity(ids.len());
        let mut explained = false;
        for (call, id) in message.tool_calls().zip(ids) {
            let place_of = places.get_mut(&call.id).and_then(VecDeque::pop_front);
            let found = place_of.and_then(|p| results.get(p)).map(|(_, r)| (*r).clone());
            used.extend(place_of);
            explained |= found.is_none() || call.id != *id;
            let result = found.map(|r| ToolResult { id: id.clone(), ..r }).unwrap_or_else(|| {
                self.problems.push(Problem::MissingResult { message: place, call: call.id.clone() });
                closing::result(id, &call.name, ToolStatus::Interrupted, closing::LOST)
            });
            blocks.push(Block::ToolResult(result));
        }
        for (place, (at, result)) in results.iter().enumerate() {
            if !used.contains(&place) {
                explained = true;
                self.problems.push(Problem::StrayResult { message: *at, call: result.id.clone() });
            }
        }
        let same = matches!(behind, [(_, only)] if only.blocks == blocks);
        self.changed |= !same;
        // Told only when nothing else explains why the message is another.
        if !same && !explained {
            self.problems.push(Problem::ScatteredResults { message: place });
        }
        match behind {
            [(_, only)] if same => self.out.push(Arc::clone(only)),
            _ => self.out.push(Arc::new(Message::new(Role::Tool, blocks))),
        }
    }
}

/// The id itself if it is not taken and not empty, else one made from it and from where the call stands: the same
/// for the same history, and of letters that every provider accepts.
pub(crate) fn unused(taken: &HashSet<CallId>, id: &CallId, message: usize, block: usize) -> CallId {
    if !id.as_str().is_empty() && !taken.contains(id) {
        return id.clone();
    }
    let stem = if id.as_str().is_empty() { "call" } else { id.as_str() };
    let mut candidate = format!("{stem}_{message}_{block}");
    while taken.contains(candidate.as_str()) {
        candidate.push('_');
    }
    candidate.into()
}
