//! The record of a run: what was offered, what was left out and why, what was loaded.

use crate::catalogue::Catalogue;
use crate::snapshot::WithheldReason;

/// One entry of a [`Record`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A skill stood in the catalogue.
    Offered {
        /// Its name.
        name: String,
        /// Estimated tokens of its entry.
        tokens: usize,
    },
    /// A usable skill was not in the catalogue for want of room.
    Omitted {
        /// Its name.
        name: String,
    },
    /// A valid skill was not usable in this run.
    Withheld {
        /// Its name.
        name: String,
        /// Why.
        reason: WithheldReason,
    },
    /// A page of a body was handed out.
    Loaded {
        /// The skill.
        name: String,
        /// The page, from 1.
        page: usize,
        /// Bytes of that page's text.
        bytes: usize,
        /// Whether the user called for it, and not the model.
        by_user: bool,
    },
    /// The page was in context already; the model was pointed to it.
    Repeated {
        /// The skill.
        name: String,
        /// The page, from 1.
        page: usize,
    },
    /// A page of a bundled file was handed out.
    Resource {
        /// The skill.
        name: String,
        /// The file, relative to the skill.
        path: String,
        /// The page, from 1.
        page: usize,
        /// Bytes of that page's text.
        bytes: usize,
    },
    /// A skill's files were listed.
    Listed {
        /// The skill.
        name: String,
        /// How many files.
        files: usize,
    },
    /// A search was made.
    Searched {
        /// What for.
        query: String,
        /// How many skills were found.
        found: usize,
    },
    /// Something was asked for and not given.
    Refused {
        /// The name as it was asked for.
        name: String,
        /// Why, as the model was told.
        reason: String,
    },
    /// The texts of a skill left the context.
    Forgotten {
        /// The skill.
        name: String,
    },
}

/// What a run did with its skills, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// What happened.
    pub events: Vec<Event>,
    /// Events beyond [`Limits::notes`](crate::Limits::notes), which were counted and not kept.
    pub dropped: usize,
}

impl Record {
    pub(crate) fn push(&mut self, event: Event, limit: usize) {
        if self.events.len() < limit {
            self.events.push(event);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    pub(crate) fn offer(&mut self, catalogue: &Catalogue, limit: usize) {
        for shown in &catalogue.shown {
            self.push(Event::Offered { name: shown.name.clone(), tokens: shown.tokens }, limit);
        }
        for name in &catalogue.omitted {
            self.push(Event::Omitted { name: name.clone() }, limit);
        }
    }

    /// The names of the skills whose bodies were handed out, each once, in the order of their first load.
    #[must_use]
    pub fn loaded(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for event in &self.events {
            if let Event::Loaded { name, .. } = event
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }
}
