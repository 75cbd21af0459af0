//! The ready-made client against real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing step of a test is a failing test"
)]

#[cfg(feature = "reqwest")]
mod reqwest_client;
