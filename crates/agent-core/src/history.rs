//! Messages shared between a session and the requests made from it.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// An append-mostly list of shared messages.
///
/// Cloning copies one pointer, so a request holds the whole history at no cost, and a provider can keep encoded
/// forms by the identity of each `Arc`. Writing while a clone is alive copies the list of pointers first; the
/// loop drops the request before it appends, so a turn costs the same at the start and at the end of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(Arc<Vec<Arc<Message>>>);

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        self.make_mut().push(message.into());
    }

    /// The list, for changes. Copies the pointers when a clone is alive.
    pub fn make_mut(&mut self) -> &mut Vec<Arc<Message>> {
        Arc::make_mut(&mut self.0)
    }
}

impl Deref for History {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for History {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().map(Into::into).collect()))
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for History {
    fn extend<I: IntoIterator<Item = M>>(&mut self, messages: I) {
        self.make_mut().extend(messages.into_iter().map(Into::into));
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_messages_and_does_not_see_later_ones() {
        let mut history: History = [Message::user("a")].into_iter().collect();
        let seen = history.clone();
        history.push(Message::assistant("b"));
        assert_eq!((seen.len(), history.len()), (1, 2));
        assert!(Arc::ptr_eq(&seen[0], &history[0]));
    }
}
