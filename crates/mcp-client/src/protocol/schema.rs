//! What servers say of themselves and give back, as data.
//!
//! Wire types have public fields and keep every member they do not know in `extra`, so that nothing a newer server
//! says is lost. Reading is lenient: a member of the wrong kind is kept in `extra` or reported as a [`Problem`],
//! and never costs the rest of the answer.

mod content;
mod lifecycle;
mod listing;
mod prompt;
mod resource;
mod skill;
mod tool;

pub use content::{Content, EmbeddedResource, Media, ResourceLink, TextContent};
pub use lifecycle::{ClientInfo, LogLevel, ServerCapabilities, ServerInfo};
pub use listing::{Listing, Problem, ProblemCode};
pub use prompt::{Completion, PromptArgument, PromptInfo, PromptMessage, PromptResult};
pub use resource::{ResourceContents, ResourceInfo, ResourceResult, ResourceTemplate};
pub use skill::{ServedFile, ServedFiles, ServedSkill};
pub use tool::{ToolAnnotations, ToolInfo, ToolResult};

pub(crate) use listing::{Item, Page, read_page};
pub(crate) use tool::ToolResultSeed;
