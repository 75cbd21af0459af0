//! Skills: folders with a SKILL.md, read, found and disclosed in levels.
//!
//! Every value of a front matter is read with its place in the file; see [`document::Document`].

pub mod diagnostic;
pub mod name;
pub mod node;
mod lines;
mod yaml;
mod fence;
mod mend;
pub mod document;
