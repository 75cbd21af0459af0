//! Writing skills: which template to start from, saving what was written, and keeping a folder of skills.
//!
//! [`SkillAuthor`] is bound to one folder of skills. It writes nowhere else, also not through a link, and nothing that
//! could not run or that holds what looks like a secret. The text itself is written by a person or a model; what is wrong
//! with it comes back as a list with lines, so that the next try can be better.
//!
//! ```
//! use haversack_skill_runtime::authoring::SkillAuthor;
//! use serde_json::json;
//!
//! # let folder = std::env::temp_dir().join(format!("haversack-author-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! let author = SkillAuthor::new(&folder)?;
//! let text = "---\nname: greet\ndescription: Greets.\ntree_id: tools/greet\n---\nSay hello.\n";
//! let saved = author.generate(&json!({"skillMdContent": text, "skillDir": "tools/greet", "noOverwrite": true}));
//! assert!(saved.ok && folder.join("tools/greet/SKILL.md").is_file());
//!
//! let listed = author.manage(&json!({"action": "list"}));
//! assert_eq!(listed.value["entries"][0]["treeId"], "tools/greet");
//!
//! let outside = author.generate(&json!({"skillMdContent": text, "skillDir": "../elsewhere"}));
//! assert!(!outside.ok);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), haversack_skill_runtime::guard::GuardError>(())
//! ```
//!
//! Each call takes the arguments of a tool as JSON, with names in `camelCase` or `snake_case`, and gives a
//! [`Reply`](crate::reply::Reply). The calls block on the file system.

mod suggest;
mod text;
mod library;
mod author;
mod generate;
mod manage;

pub use author::SkillAuthor;
pub use library::{MAX_FOLDERS, MAX_LEVELS};
pub use suggest::{Suggestion, TemplateKind, suggest};
