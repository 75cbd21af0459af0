//! Skill modes: what a `SKILL.md` is to the program that loads it.
//!
//! A skill can be three things, and its front matter says which:
//!
//! | mode | what it is | what runs it |
//! | --- | --- | --- |
//! | prompt | text that the model reads when it needs it | the `skill` tool of `haversack-tool-adapter`; [`prompt`] is its layout with a query |
//! | tool | a pipeline of tool calls with templates, the same every time | [`pipeline`] |
//! | agent | a sub-agent with a contract and its own budget | [`agent`] |
//!
//! [`metadata`] reads what a front matter says of the modes, [`validate`](mod@validate) tells what keeps a skill from running, and
//! [`format`](mod@format) is the format itself, as a schema and as tables. [`secrets`] resolves secrets by name, [`redact`] keeps
//! them out of everything that leaves, [`guard`] keeps paths in a folder and [`state_file`] keeps what has to outlive
//! the program. [`authoring`] writes skills, [`capability`] is the tree of all tools; their management tools take JSON and
//! give a [`reply`], whatever protocol carries it.
//!
//! ```
//! use haversack_skill_runtime::SkillMode;
//! use haversack_skills::Document;
//! use haversack_skills::document::ParseOptions;
//!
//! let text = b"---\nname: tidy\ndescription: Tidies up.\ntool_schema:\n  steps:\n    - tool: list_files\n---\n";
//! let document = Document::parse(text, &ParseOptions::default());
//! assert_eq!(SkillMode::of(document.fields().unwrap()), SkillMode::Tool);
//! ```
//!
//! The crate stands on `haversack-skills` and `haversack-agent-core` and speaks no protocol itself.

pub mod redact;
pub mod reply;
pub mod guard;
pub mod state_file;
pub mod secrets;
pub mod template;
pub mod metadata;
pub mod source;
pub mod format;
pub mod validate;
pub mod prompt;
pub mod pipeline;
pub mod agent;
pub mod capability;
pub mod sources;
pub mod authoring;

pub use metadata::SkillMode;
