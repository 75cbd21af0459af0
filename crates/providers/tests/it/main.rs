//! What the crate promises, held against recorded answers and servers on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "tests say what broke by panicking"
)]

mod memory;
mod observe;
mod server;
mod shared;
mod corpus;
mod history;
mod quirks;
mod calls;
mod any_bytes;
mod incremental;
mod matrix;
mod requests;
mod times;
