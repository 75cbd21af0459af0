//! One executable for all integration tests of the crate, since linking is slow.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests say what they expect by failing, and loudly what they skip"
)]

mod cmd_model;
mod configuration;
mod consent;
mod ending;
mod expansion;
mod managing;
#[cfg(feature = "http")]
mod web;
#[cfg(feature = "http")]
mod managing_http;
#[cfg(feature = "http")]
mod http_cuts;
mod faulty;
#[cfg(feature = "http")]
mod faulty_http;
mod quoting;
mod served;
