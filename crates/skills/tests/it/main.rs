//! Everything that `haversack-skills` promises, as one test program.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says so when it cannot run"
)]

mod adversaries;
mod corpus;
mod front_matter;
mod front_matter_bounds;
mod front_matter_corpus;
mod front_matter_faults;
mod front_matter_mutation;
mod front_matter_peer;
mod lint;
mod catalogue;
mod consent;
mod load;
mod tree;
mod trees;
#[cfg(feature = "watch")]
mod watching;
