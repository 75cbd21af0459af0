//! The facade, with a scripted model and real folders.

#![expect(clippy::unwrap_used, reason = "tests")]

mod project;

mod skills;
mod servers;
