//! The capability tree: every tool of a host at one place, with what prompts, routing and policies need to know of it.
//!
//! [`CapabilityTree`] is the tree and what follows from it, [`CapabilityTree::inject`] puts parsed skills into it, and
//! [`ManagedTree`] changes it by patches that are proposed, applied and reverted. [`CapabilityManager`] offers all of it as
//! the tool `capability_manage`, JSON in and JSON out.

mod node;
mod tree;
mod derive;
mod inject;
mod patch;
mod managed;
mod report;
mod front;

pub use derive::FlatEntry;
pub use front::{ACTIONS, CapabilityManager, PATCH_FILE, PatchApprover, PatchStep};
pub use inject::Injected;
pub use managed::{MAX_PATCHES, ManagedTree};
pub use node::{
    CapabilityNode, Display, GroupPolicy, IntentKeywords, NodeEscalation, NodeKind, Perms, Prompt, Routing,
    Runtime, Skills,
};
pub use patch::{Patch, PatchAction, PatchChange, PatchError, PatchStatus};
pub use report::TreeIssue;
pub use tree::{CapabilityTree, MAX_DEPTH, MAX_NODES, TreeError};
