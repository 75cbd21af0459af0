//! Changes to a tree that are proposed first, applied with approval, and reverted when nothing stands on them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::capability::node::CapabilityNode;
use crate::capability::tree::{CapabilityTree, TreeError};

/// The dimensions that a patch may change.
pub(crate) const DIMENSIONS: [&str; 7] =
    ["runtime", "prompt", "routing", "perms", "skills", "display", "policy"];

/// What a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatchAction {
    /// A new node.
    Register,
    /// Any dimension.
    Update,
    /// Routing.
    Routing,
    /// Binding of skills.
    Binding,
}

/// Where a patch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatchStatus {
    /// Not applied yet.
    Proposed,
    /// Applied.
    Applied,
    /// Taken back.
    Reverted,
}

/// What a patch changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PatchChange {
    /// Adds a node.
    Add {
        /// The node.
        node: Box<CapabilityNode>,
    },
    /// Merges fields into dimensions of a node: what is not named stays.
    Merge {
        /// The node's id.
        node: String,
        /// Fields by dimension.
        fields: Map<String, Value>,
        /// What the dimensions were before, once the patch is applied.
        #[serde(default)]
        before: Map<String, Value>,
    },
}

/// A proposed change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Patch {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub action: PatchAction,
    /// What it changes.
    pub change: PatchChange,
    /// Where it stands.
    pub status: PatchStatus,
    /// Its place in the order of application; 0 before.
    pub applied: u64,
}

impl Patch {
    /// Applies it to a tree.
    pub(crate) fn apply(&mut self, tree: &mut CapabilityTree) -> Result<(), PatchError> {
        match &mut self.change {
            PatchChange::Add { node } => tree.add((**node).clone())?,
            PatchChange::Merge { node, fields, before } => {
                let known = tree.get_mut(node).ok_or_else(|| TreeError::Unknown(node.clone()))?;
                let (changed, old) = merged(known, fields)?;
                *before = old;
                *known = changed;
            }
        }
        Ok(())
    }

    /// Takes it back.
    pub(crate) fn revert(&self, tree: &mut CapabilityTree) -> Result<(), PatchError> {
        match &self.change {
            PatchChange::Add { node } => drop(tree.remove(&node.id)?),
            PatchChange::Merge { node, fields, before } => {
                let known = tree.get_mut(node).ok_or_else(|| TreeError::Unknown(node.clone()))?;
                *known = restored(known, fields, before)?;
            }
        }
        Ok(())
    }

    /// The node that it is about.
    pub fn node(&self) -> &str {
        match &self.change {
            PatchChange::Add { node } => &node.id,
            PatchChange::Merge { node, .. } => node,
        }
    }

    /// Whether this patch stands on the other one: it is about a node that the other added or one below it, or it
    /// changes a field that the other changed.
    pub(crate) fn stands_on(&self, other: &Self, tree: &CapabilityTree) -> bool {
        match (&self.change, &other.change) {
            (_, PatchChange::Add { node }) => {
                tree.below(&node.id).is_ok_and(|below| below.iter().any(|known| known.id == self.node()))
            }
            (
                PatchChange::Merge { node, fields, .. },
                PatchChange::Merge { node: same, fields: theirs, .. },
            ) => node == same && overlap(fields, theirs),
            (PatchChange::Add { .. }, PatchChange::Merge { .. }) => false,
        }
    }
}

fn overlap(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.iter().any(|(key, value)| match (value, b.get(key)) {
        (Value::Object(value), Some(Value::Object(other))) => overlap(value, other),
        (_, other) => other.is_some(),
    })
}

fn as_object(node: &CapabilityNode) -> Result<Map<String, Value>, PatchError> {
    match serde_json::to_value(node) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(PatchError::Shape("a node is no object".to_owned())),
        Err(error) => Err(PatchError::Shape(error.to_string())),
    }
}

/// The node with fields merged in, typed and checked, and what its dimensions were.
pub(crate) fn merged(
    node: &CapabilityNode,
    fields: &Map<String, Value>,
) -> Result<(CapabilityNode, Map<String, Value>), PatchError> {
    let mut object = as_object(node)?;
    let mut before = Map::new();
    for (dimension, value) in fields {
        if !DIMENSIONS.contains(&dimension.as_str()) {
            return Err(PatchError::Dimension(dimension.clone()));
        }
        let old = object.remove(dimension).unwrap_or(Value::Null);
        before.insert(dimension.clone(), old.clone());
        object.insert(dimension.clone(), merge(old, value));
    }
    let node = serde_json::from_value(Value::Object(object))
        .map_err(|error| PatchError::Shape(error.to_string()))?;
    Ok((node, before))
}

fn merge(old: Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Object(mut old), Value::Object(new)) => {
            for (key, value) in new {
                let inner = old.remove(key).unwrap_or(Value::Null);
                old.insert(key.clone(), merge(inner, value));
            }
            Value::Object(old)
        }
        (_, new) => new.clone(),
    }
}

/// The node with the fields that a patch changed as they were before; later changes of other fields stay.
fn restored(
    node: &CapabilityNode,
    fields: &Map<String, Value>,
    before: &Map<String, Value>,
) -> Result<CapabilityNode, PatchError> {
    let mut object = as_object(node)?;
    for (dimension, value) in fields {
        let now = object.remove(dimension).unwrap_or(Value::Null);
        let old = before.get(dimension).cloned().unwrap_or(Value::Null);
        let absent = old.is_null();
        let restored = restore(now, value, old);
        // A dimension that was not there goes again, unless a later patch has put something else into it.
        let empty =
            merged(&CapabilityNode::default(), &Map::from_iter([(dimension.clone(), Map::new().into())]))?;
        let is_empty = as_object(&with_dimension(dimension, &restored)?)? == as_object(&empty.0)?;
        if !(absent && is_empty) {
            object.insert(dimension.clone(), restored);
        }
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| PatchError::Shape(error.to_string()))
}

fn with_dimension(dimension: &str, value: &Value) -> Result<CapabilityNode, PatchError> {
    let fields = Map::from_iter([(dimension.to_owned(), value.clone())]);
    Ok(merged(&CapabilityNode::default(), &fields)?.0)
}

fn restore(now: Value, changed: &Value, old: Value) -> Value {
    match (now, changed) {
        (Value::Object(mut now), Value::Object(changed)) => {
            let mut old = match old {
                Value::Object(old) => old,
                _ => Map::new(),
            };
            for (key, value) in changed {
                let current = now.remove(key);
                if let Some(before) = old.remove(key) {
                    now.insert(key.clone(), restore(current.unwrap_or(Value::Null), value, before));
                }
            }
            Value::Object(now)
        }
        (_, _) => old,
    }
}

/// Why a patch cannot be proposed, applied or reverted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The tree does not take it.
    #[error("{0}")]
    Tree(TreeError),
    /// There is no such dimension.
    #[error(
        "`{0}` is no dimension of a node; there are runtime, prompt, routing, perms, skills, display and policy"
    )]
    Dimension(String),
    /// A value does not fit its field.
    #[error("the node does not fit: {0}")]
    Shape(String),
    /// There is no such patch.
    #[error("there is no patch `{0}`")]
    Unknown(String),
    /// The patch stands elsewhere than it has to.
    #[error("patch `{0}` is not {1}")]
    Status(String, &'static str),
    /// Others stand on it.
    #[error("patch `{id}` cannot be reverted: {} stand on it", dependents.join(", "))]
    #[expect(missing_docs, reason = "the fields are those of the message")]
    Blocked { id: String, dependents: Vec<String> },
    /// There are as many patches as there may be.
    #[error("{0} patches are kept, which is all that may be")]
    TooMany(usize),
}

impl From<TreeError> for PatchError {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}
