//! A tree together with its patches: what is changed is proposed, applied and reverted, and never half.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::capability::node::CapabilityNode;
use crate::capability::patch::{Patch, PatchAction, PatchChange, PatchError, PatchStatus, merged};
use crate::capability::tree::{CapabilityTree, TreeError};

/// Patches that are kept at most.
pub const MAX_PATCHES: usize = 10_000;

/// A tree and its patches. Plain data, saved and loaded with serde; ids are counted, so nothing depends on a clock.
///
/// Approval is the caller's: [`apply`](Self::apply) and [`revert`](Self::revert) are for hosts, which ask a person
/// first, and a model only ever proposes.
///
/// ```
/// use haversack_skill_runtime::capability::{CapabilityNode, CapabilityTree, ManagedTree, NodeKind, PatchAction};
/// use serde_json::json;
///
/// let mut tree = CapabilityTree::new();
/// tree.add(CapabilityNode::new("read", "read_file", NodeKind::Tool, "").with_summary("Reads"))?;
/// let mut managed = ManagedTree::new(tree);
/// let fields = json!({"routing": {"minTier": "task_light"}});
/// let id = managed.propose(PatchAction::Routing, "read", fields.as_object().unwrap().clone())?.id.clone();
/// managed.apply(&id)?;
/// assert_eq!(managed.tree().get("read").unwrap().summary(), "Reads");
/// managed.revert(&id)?;
/// assert!(managed.tree().get("read").unwrap().routing.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagedTree {
    tree: CapabilityTree,
    patches: Vec<Patch>,
    sequence: u64,
}

impl ManagedTree {
    /// A tree without patches.
    pub fn new(tree: CapabilityTree) -> Self {
        Self { tree, patches: Vec::new(), sequence: 0 }
    }

    /// A tree with stored patches, by their ids, and what of the store could not be used. Those that were applied are
    /// applied again in their order; one that does not fit any more stands as proposed.
    pub fn replay(tree: CapabilityTree, stored: &Map<String, Value>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut managed = Self::new(tree);
        for (id, value) in stored.iter().take(MAX_PATCHES) {
            match serde_json::from_value::<Patch>(value.clone()) {
                Ok(patch) if patch.id == *id => managed.patches.push(patch),
                Ok(patch) => {
                    problems.push(format!("patch `{id}` says that it is `{}`, and is left out", patch.id));
                }
                Err(error) => problems.push(format!("patch `{id}` cannot be read: {error}")),
            }
        }
        let number = |patch: &Patch| patch.id.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        managed.patches.sort_by_key(number);
        let last = managed.patches.iter().map(|patch| patch.applied.max(number(patch))).max();
        managed.sequence = last.unwrap_or(0);
        let mut order: Vec<usize> = (0..managed.patches.len()).collect();
        order.sort_by_key(|at| managed.patches.get(*at).map_or(0, |patch| patch.applied));
        for at in order {
            let Some(patch) = managed.patches.get_mut(at) else { continue };
            if patch.status != PatchStatus::Applied {
                continue;
            }
            let mut changed = managed.tree.clone();
            match patch.apply(&mut changed) {
                Ok(()) => managed.tree = changed,
                Err(error) => {
                    problems.push(format!("patch `{}` does not fit the tree any more: {error}", patch.id));
                    (patch.status, patch.applied) = (PatchStatus::Proposed, 0);
                }
            }
        }
        (managed, problems)
    }

    /// Writes the patches by their ids; entries that are none stay.
    pub fn store(&self, entries: &mut Map<String, Value>) {
        for patch in &self.patches {
            if let Ok(value) = serde_json::to_value(patch) {
                entries.insert(patch.id.clone(), value);
            }
        }
    }

    /// The tree as it is now.
    pub fn tree(&self) -> &CapabilityTree {
        &self.tree
    }

    /// All patches, oldest first.
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// Proposes a new node.
    ///
    /// # Errors
    ///
    /// [`PatchError`] where the tree would not take it now.
    pub fn propose_node(&mut self, node: CapabilityNode) -> Result<&Patch, PatchError> {
        self.tree.clone().add(node.clone())?;
        self.push(PatchAction::Register, PatchChange::Add { node: Box::new(node) })
    }

    /// Proposes fields of a node, by dimension; what is not named stays as it is.
    ///
    /// # Errors
    ///
    /// [`PatchError`] for unknown nodes and dimensions, and for values that do not fit their fields.
    pub fn propose(
        &mut self,
        action: PatchAction,
        node: &str,
        fields: Map<String, Value>,
    ) -> Result<&Patch, PatchError> {
        let known = self.tree.get(node).ok_or_else(|| TreeError::Unknown(node.to_owned()))?;
        merged(known, &fields)?;
        self.push(action, PatchChange::Merge { node: node.to_owned(), fields, before: Map::new() })
    }

    fn push(&mut self, action: PatchAction, change: PatchChange) -> Result<&Patch, PatchError> {
        if self.patches.len() >= MAX_PATCHES {
            return Err(PatchError::TooMany(MAX_PATCHES));
        }
        self.sequence += 1;
        let id = format!("patch-{}", self.sequence);
        let place = self.patches.len();
        self.patches.push(Patch {
            id: id.clone(),
            action,
            change,
            status: PatchStatus::Proposed,
            applied: 0,
        });
        self.patches.get(place).ok_or(PatchError::Unknown(id))
    }

    fn find(&self, id: &str, status: PatchStatus, word: &'static str) -> Result<Patch, PatchError> {
        let patch = self.patches.iter().find(|patch| patch.id == id);
        let patch = patch.ok_or_else(|| PatchError::Unknown(id.to_owned()))?;
        if patch.status != status {
            return Err(PatchError::Status(id.to_owned(), word));
        }
        Ok(patch.clone())
    }

    /// Applies a proposed patch, wholly or not at all. The host has asked whoever decides.
    ///
    /// # Errors
    ///
    /// [`PatchError`] where it is not proposed, or the tree does not take it.
    pub fn apply(&mut self, id: &str) -> Result<&Patch, PatchError> {
        let mut patch = self.find(id, PatchStatus::Proposed, "proposed")?;
        let mut tree = self.tree.clone();
        patch.apply(&mut tree)?;
        self.sequence += 1;
        (patch.status, patch.applied) = (PatchStatus::Applied, self.sequence);
        self.tree = tree;
        self.put(patch)
    }

    /// Takes an applied patch back, unless others stand on it.
    ///
    /// # Errors
    ///
    /// [`PatchError::Blocked`] names those that stand on it.
    pub fn revert(&mut self, id: &str) -> Result<&Patch, PatchError> {
        let mut patch = self.find(id, PatchStatus::Applied, "applied")?;
        let dependents = self.dependents(&patch);
        if !dependents.is_empty() {
            return Err(PatchError::Blocked { id: id.to_owned(), dependents });
        }
        let mut tree = self.tree.clone();
        patch.revert(&mut tree)?;
        patch.status = PatchStatus::Reverted;
        self.tree = tree;
        self.put(patch)
    }

    /// Applied patches that stand on this one, by the order in which they were applied.
    fn dependents(&self, patch: &Patch) -> Vec<String> {
        let later = self.patches.iter().filter(|other| {
            other.status == PatchStatus::Applied
                && other.applied > patch.applied
                && other.stands_on(patch, &self.tree)
        });
        later.map(|other| other.id.clone()).collect()
    }

    fn put(&mut self, patch: Patch) -> Result<&Patch, PatchError> {
        let id = patch.id.clone();
        let place = self.patches.iter_mut().find(|other| other.id == id);
        let place = place.ok_or(PatchError::Unknown(id))?;
        *place = patch;
        Ok(place)
    }
}
