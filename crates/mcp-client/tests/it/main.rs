//! One executable for all integration tests of the crate, since linking is slow.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing"
)]

mod cmd_model;
mod configuration;
mod consent;
mod expansion;
mod quoting;
