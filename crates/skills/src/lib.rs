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
pub mod lint;
pub mod write;
pub mod limits;
mod text;
mod page;
mod attach;
mod scope;
mod folder;
mod jail;
mod problem;
mod skill;
mod roots;
mod packages;
mod discover;
mod digest;
mod registry;
pub mod consent;
mod snapshot;
mod catalogue;
mod search;
mod record;
mod load;

pub use catalogue::{Catalogue, CatalogueOptions, Shown, Style};
pub use document::Document;
pub use limits::Limits;
pub use load::{FileList, Found, LoadError, Reader, Reply};
pub use packages::FIELD as PACKAGE_FIELD;
pub use problem::{Bound, BoundHit, SkipReason, Skipped};
pub use record::{Event, Record};
pub use registry::{Changes, Registry, Rescan, ShadowReason, Shadowed};
pub use roots::{LinkPolicy, PROJECT_FOLDERS, Root, Roots};
pub use scope::Scope;
pub use skill::{FILE_NAME, Needs, Origin, Requires, Skill, Source};
pub use snapshot::{Available, Filter, Snapshot, Withheld, WithheldReason};
