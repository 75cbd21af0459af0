//! The skill runtime from outside: pipelines and agents over the real agent loop, the format, and the tree.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may")]

mod agents;
mod authoring;
mod capabilities;
mod cases;
mod format;
mod format_cases;
mod guard;
mod leaks;
mod manage;
mod pipelines;
mod processes;
