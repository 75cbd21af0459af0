//! The only place where neighbours meet: skills and MCP tools become ordinary tools of the agent loop.
//!
//! - [`naming`]: public names for the tools of servers, `mcp__<server>__<tool>`, and the table back.
//! - `mcp` (feature): tools, resources and prompts of servers; results as blocks, marked as data.
//! - `skill_tool` (feature `skills`): levels 2 and 3 of skills, for the model to call.
//! - `served_skills` (features `skills` and `mcp`): skills that servers offer, for the same tool.
//! - `invocation` (feature `skills`): `/name arguments` of a user as the message that starts a run.
//! - `skill_pipeline` (feature `skill-modes`): a skill in tool mode as a tool of its own.
//! - `skill_modes` (feature `skill-modes`): the skills of a host, each made what its mode says.
//!
//! Most hosts use it through the facade `haversack`.
//!
//! ```
//! use haversack_tool_adapter::naming::{NameTable, Original};
//!
//! let mut names = NameTable::new();
//! names.assign([Original::new("field notes", "add_note")]);
//! let name = names.public(&Original::new("field notes", "add_note"));
//! assert_eq!(name, Some("mcp__field_notes__add_note"));
//! ```

pub mod naming;
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub mod mcp;
#[cfg(all(feature = "skills", feature = "mcp"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "skills", feature = "mcp"))))]
pub mod served_skills;
#[cfg(feature = "skills")]
#[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
pub mod skill_tool;
#[cfg(feature = "skills")]
#[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
pub mod invocation;
#[cfg(feature = "skill-modes")]
#[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
pub mod skill_pipeline;
#[cfg(feature = "skill-modes")]
#[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
pub mod skill_modes;
