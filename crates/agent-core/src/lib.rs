//! The agent loop as a value, and one polled driver around it.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

pub mod usage;
pub mod message;
pub mod history;
pub mod tool;
pub mod model;
pub mod text_tools;
pub mod digest;
pub mod policy;
pub mod approval;
pub mod arguments;
pub mod output;
pub mod cancel;
pub mod clock;
pub mod retry;
pub mod limits;
pub mod ledger;
pub mod outcome;
mod closing;
pub mod session;
pub mod event;
pub mod hooks;
pub mod inbox;
pub mod tool_context;
pub mod tool_fn;
mod prompt;
pub mod toolset;
mod wave;
pub mod structured;
pub mod deferred;
pub mod compaction;
mod setup;
pub mod state;
pub mod handle;
pub mod run;
pub mod agent;
pub mod subagent;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod spawn;
pub mod prelude;

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
