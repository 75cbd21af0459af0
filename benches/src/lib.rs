//! Shared parts of the benches.

pub mod contest;
