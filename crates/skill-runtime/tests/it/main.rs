//! The pipelines of the crate, run over real tools of the agent loop.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may")]

mod format;
mod guard;
mod pipelines;
