//! Child processes: how a server's program is found, started, watched and ended. The only place that creates a process.

pub mod resolve;
pub mod quote;
mod command;
mod launch;
mod exit;
mod tail;
mod group;
mod child;

pub use command::ServerCommand;
pub use exit::{Exit, ExitHow, ExitStatus};

pub(crate) use child::{EndTimes, Keeper, Process, spawn};
