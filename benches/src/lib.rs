//! Shared parts of the benches.

pub mod contest;
pub mod scripted_agent;
pub mod skill_floors;
pub mod skill_trees;
pub mod streams;
