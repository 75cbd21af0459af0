//! The server as its clients see it: JSON lines over a pipe in memory, the program as a child, and bytes on a socket.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod wire;
mod calls;
mod approvals;
mod extension;
mod changes;
#[cfg(feature = "http")]
mod http;
mod program;
