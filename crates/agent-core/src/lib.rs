//! The agent loop as a value, and one polled driver around it.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

pub mod usage;
pub mod message;
pub mod history;
pub mod tool;
pub mod model;
pub mod digest;
pub mod policy;
pub mod approval;
pub mod cancel;
pub mod inbox;
pub mod tool_context;

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
