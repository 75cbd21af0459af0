//! Starts servers when they are first needed, keeps them, and ends them.

pub mod plan;
pub mod clock;
pub mod event;
mod supervisor;
