//! The skill runtime from outside: pipelines and agents over the real agent loop, the format, and the tree.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may")]

mod agents;
mod authoring;
mod capabilities;
mod format;
mod guard;
mod manage;
mod pipelines;
mod processes;
