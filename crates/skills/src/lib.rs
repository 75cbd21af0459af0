//! Skills: folders with a `SKILL.md`, found, ranked, and shown to a model no further than it asks.
//!
//! A skill is a folder with instructions for one kind of work. Its `SKILL.md` begins with a front matter (a name, and a
//! description of when to use it) and goes on with a body in Markdown; further files may lie beside it. A model that was
//! given a hundred of these whole would have room for nothing else, so they are disclosed in three levels:
//!
//! | Level | What | When | Price |
//! | --- | --- | --- | --- |
//! | 1 | name and description, one line | in every prompt, as the [`Catalogue`] | about 70 tokens a skill |
//! | 1½ | names that fit some words | when the model [searches](Reader::search) | as many lines |
//! | 2 | the body | when the model [loads](Reader::load) it | a page: at most 6,000 characters |
//! | 3 | a file beside it | when the body sends the model [there](Reader::resource) | a page: at most 12,000 characters |
//!
//! # The three levels in one program
//!
//! ```
//! use haversack_skills::consent::Consent;
//! use haversack_skills::{CatalogueOptions, Filter, Limits, Reader, Registry, Roots};
//!
//! # let base = tempfile::tempdir()?;
//! # let (project, user) = (base.path().join("shop"), base.path().join("ada"));
//! # std::fs::create_dir_all(user.join("forms/references"))?;
//! # std::fs::write(user.join("forms/SKILL.md"), "---\nname: forms\ndescription: Fills in PDF forms. Use it when a task names a form.\n---\n\n# Forms\n\nThe fields are in references/fields.md.\n")?;
//! # std::fs::write(user.join("forms/references/fields.md"), "The field `iban` has 22 characters.\n")?;
//! // Find: the project's folders and packages, and the user's own folder.
//! let roots = Roots::preset(&project, Some(&user));
//! let mut registry = Registry::scan(&roots, &Limits::default());
//!
//! // Ask: a repository's own skills reach no model before the user has agreed. Here it has none.
//! let consent = match registry.question(&project) {
//!     None => Consent::not_needed(),
//!     Some(_question) => Consent::withheld(), // or show it, see the module `consent`
//! };
//!
//! // Freeze: what this run may use, the same at every step.
//! let snapshot = registry.snapshot(&Filter::new(consent));
//!
//! // Level 1, for the system prompt. Without skills it is empty, and the prompt what it is without this crate.
//! let catalogue = snapshot.catalogue(&CatalogueOptions::default(), &[]);
//! assert!(catalogue.text.ends_with("- forms: Fills in PDF forms. Use it when a task names a form."));
//!
//! // Levels 2 and 3, when the model calls for them.
//! let reader = Reader::new(snapshot);
//! assert!(reader.load("forms", 1)?.text.contains("The fields are in references/fields.md."));
//! assert!(reader.resource("forms", "references/fields.md", 1)?.text.contains("22 characters"));
//!
//! // And afterwards: what happened.
//! assert_eq!(reader.record().loaded(), ["forms"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it holds to
//!
//! - **It reads what people wrote.** The front matter is read by a parser of YAML 1.2 that is part of this crate; the faults
//!   of real files are mended on reading, and each comes with the edit that would mend the file
//!   ([`document::Document`], [`diagnostic::Diagnostic`]). One bad file never costs another.
//! - **It loses nothing silently.** What was [invalid](Registry::invalid), [shadowed](Registry::shadowed),
//!   [skipped](Registry::skipped), [withheld](Snapshot::withheld), [omitted](Catalogue::omitted) or cut short by a
//!   [bound](Registry::bounds_hit) is a value with its reason.
//! - **What runs is what was approved.** A [consent](mod@consent) is bound to the bytes of all files of a repository's skills,
//!   and checked at every load.
//! - **A skill's path leads nowhere else.** Files are opened part by part inside the skill's own folder; no `..`, no link
//!   and no race leads out of it.
//! - **The same input gives the same bytes**, so that prompts can be cached.
//! - **It stays out of the way.** Synchronous, no runtime, no thread that outlives a call (but the one that the feature
//!   `watch` is about), nothing read from the environment or
//!   the home folder, nothing printed. A host without skills sends what it would send without this crate.
//!
//! # Keeping up with the disk
//!
//! [`Registry::rescan`] at the start of a run costs one `stat` a skill when nothing has changed. A host that wants to know
//! sooner turns on the feature `watch`, and a burst of changes becomes one rescan.
//!
//! | Feature | Adds |
//! | --- | --- |
//! | `watch` | the module `watch`, on the notify crate |
//!
//! # Platforms
//!
//! On Unix, folders are descriptors and everything below is opened relative to them (through rustix). Elsewhere they are
//! paths, and somebody who can swap folders during a call can mislead the checks. Folder identities there are hashes of
//! real paths.

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
#[cfg(test)]
mod linear;
pub mod limits;
pub mod text;
pub mod page;
mod attach;
mod scope;
mod folder;
mod jail;
mod problem;
mod skill;
mod roots;
mod packages;
mod discover;
pub mod files;
mod digest;
mod registry;
mod inspection;
pub mod consent;
#[cfg(feature = "watch")]
pub mod watch;
mod snapshot;
mod catalogue;
mod search;
mod record;
mod load;

pub use catalogue::{Catalogue, CatalogueOptions, Shown, Style};
pub use document::Document;
pub use inspection::{Inspection, lint_folder};
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
