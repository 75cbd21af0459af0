//! Processes of servers.

pub mod resolve;
pub mod quote;
