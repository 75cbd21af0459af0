//! Encoding that only encodes what is new.
//!
//! A step of an agent sends the whole history again, and all of it but the end is as it was the step before.
//! Messages are shared by `Arc`, so an encoded form can be kept by identity: the next body takes over the bytes
//! of every message that is still the same `Arc` at the same place, and encodes the rest. The bytes go out as
//! chunks that are never joined.
//!
//! Three rules make kept bytes equal to fresh ones (and a property test holds them to it): an API's encoder writes
//! for message *i* what depends on messages 0 to *i* and on settings that never change, nothing else; bytes are
//! taken over only for an unbroken run of same messages from the start; and identity is that of a live allocation
//! (a `Weak` is kept, so that an address cannot be given to another message).

mod segments;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use haversack_agent_core::message::Message;

use crate::encode::segments::Segments;

/// Histories of which the encoded form is kept: as many as a host has sessions going on at once with one model,
/// by default. What is over it is encoded afresh.
const MAX_HISTORIES: usize = 16;

/// Bytes of encoded history that are kept in all. Over it the histories that were not used for longest go.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Writes messages as items of a JSON list.
pub(crate) trait EncodeMessage {
    /// Appends what message `index` adds to the list: each item that begins with it is preceded by a comma, the first
    /// of all too (the comma is taken off). May read messages 0 to `index` and nothing after it. With `marked` the end of
    /// the message is marked as a border of the cached prefix; an API without such marks ignores it.
    fn encode(&self, messages: &[Arc<Message>], index: usize, marked: bool, out: &mut Vec<u8>);
}

/// Encoded histories of the last calls.
#[derive(Debug, Default)]
pub(crate) struct HistoryCache(Mutex<Vec<Encoded>>);

/// One history as far as it is encoded.
#[derive(Clone, Debug, Default)]
struct Encoded {
    messages: Vec<Weak<Message>>,
    /// Where each of them lives, side by side: a long history is compared at every step.
    addresses: Vec<usize>,
    /// Where each message's bytes end.
    ends: Vec<usize>,
    bytes: Segments,
}

impl Encoded {
    /// How many messages from the start are the same.
    fn shared(&self, messages: &[Arc<Message>]) -> usize {
        let same = |(kept, message): &(&usize, &Arc<Message>)| **kept == address(message);
        self.addresses.iter().zip(messages).take_while(same).count()
    }

    fn end(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0)
    }

    fn truncate(&mut self, count: usize) {
        self.bytes.truncate(self.end(count));
        self.messages.truncate(count);
        self.addresses.truncate(count);
        self.ends.truncate(count);
    }

    /// Whether the session that the history belongs to is gone.
    fn is_dead(&self) -> bool {
        self.messages.last().is_none_or(|message| message.strong_count() == 0)
    }
}

/// Tells messages apart for as long as a [`Weak`] keeps the address from being given away again.
fn address(message: &Arc<Message>) -> usize {
    Arc::as_ptr(message).addr()
}

impl HistoryCache {
    /// The items of a list of messages, in chunks. `marked` holds indices, ascending.
    pub(crate) fn encode(
        &self,
        encoder: &impl EncodeMessage,
        messages: &[Arc<Message>],
        marked: &[usize],
    ) -> Vec<Bytes> {
        let mut history = self.take(messages);
        let known = history.messages.len();
        if let Some(new) = messages.get(known..)
            && !new.is_empty()
        {
            let before = history.end(known);
            let mut out = Vec::new();
            for (index, message) in messages.iter().enumerate().skip(known) {
                encoder.encode(messages, index, false, &mut out);
                history.messages.push(Arc::downgrade(message));
                history.addresses.push(address(message));
                history.ends.push(before + out.len());
            }
            history.bytes.push(&out);
        }
        let chunks = chunks(&history, encoder, messages, marked);
        self.keep(history);
        chunks
    }

    /// The kept history that shares most with these messages, cut to what it shares.
    fn take(&self, messages: &[Arc<Message>]) -> Encoded {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let best = kept.iter().enumerate().map(|(at, history)| (history.shared(messages), at)).max();
        let Some((shared @ 1.., at)) = best else { return Encoded::default() };
        // Another session may go on from here in its own way: a history that is longer stays, a copy is cut.
        if kept.get(at).is_some_and(|history| history.messages.len() == shared) {
            return kept.remove(at);
        }
        let mut history = kept.get(at).cloned().unwrap_or_default();
        history.truncate(shared);
        history
    }

    /// Keeps a history; the one used last stands last.
    fn keep(&self, history: Encoded) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|history| !history.is_dead());
        kept.push(history);
        let mut bytes = 0usize;
        let fits = |history: &Encoded| {
            bytes = bytes.saturating_add(history.bytes.len());
            bytes <= MAX_KEPT_BYTES
        };
        let count = kept.iter().rev().take(MAX_HISTORIES).map(fits).take_while(|fits| *fits).count();
        let over = kept.len() - count;
        kept.drain(..over);
    }
}

/// The list's bytes, with the marked messages encoded anew in between.
fn chunks(
    history: &Encoded,
    encoder: &impl EncodeMessage,
    messages: &[Arc<Message>],
    marked: &[usize],
) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    let mut at = 0;
    for index in marked.iter().copied().filter(|index| *index < messages.len()) {
        let (start, end) = (history.end(index), history.end(index + 1));
        if start < at {
            continue;
        }
        history.bytes.copy_range(at..start, &mut chunks);
        let mut fresh = Vec::new();
        encoder.encode(messages, index, true, &mut fresh);
        chunks.push(fresh.into());
        at = end;
    }
    history.bytes.copy_range(at..history.bytes.len(), &mut chunks);
    chunks
}

/// Something encoded that is kept for as long as its source is the same allocation, such as a list of tools.
#[derive(Debug)]
pub(crate) struct Pinned<T: ?Sized>(Mutex<Vec<(Arc<T>, Bytes)>>);

/// Sources whose encoded form is kept: hosts have a few tool sets and prompts, not many.
const MAX_PINNED: usize = 8;

impl<T: ?Sized> Default for Pinned<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized> Pinned<T> {
    /// The encoded form of a source.
    pub(crate) fn get(&self, source: &Arc<T>, encode: impl FnOnce() -> Vec<u8>) -> Bytes {
        let same = |(kept, _): &(Arc<T>, Bytes)| Arc::ptr_eq(kept, source);
        let find = || {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().find(|pin| same(pin)).map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = find() {
            return bytes;
        }
        let bytes = Bytes::from(encode());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_PINNED {
            kept.remove(0);
        }
        kept.push((Arc::clone(source), bytes.clone()));
        bytes
    }
}

#[cfg(test)]
mod tests;
