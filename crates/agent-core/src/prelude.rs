//! What nearly every host and every tool needs, in one import.

pub use crate::agent::Agent;
pub use crate::approval::{Approver, Ask, Verdict};
pub use crate::event::Event;
pub use crate::message::{Block, Message};
pub use crate::model::Model;
pub use crate::outcome::{Outcome, RunError};
pub use crate::session::Session;
pub use crate::tool::{Effects, ToolError, ToolErrorKind, ToolOutput, ToolSpec};
pub use crate::tool_context::{Tool, ToolContext};
