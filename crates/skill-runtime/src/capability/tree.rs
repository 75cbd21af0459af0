//! The tree itself: nodes in the order in which they were added, each at one id.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::capability::node::{CapabilityNode, NodeKind};

/// Nodes of one tree at most: a hundred times what a host with many servers has.
pub const MAX_NODES: usize = 50_000;
/// How deep groups may stand in groups. People stop at four.
pub const MAX_DEPTH: usize = 32;

/// A tree of capabilities. A value without any global: who shares one decides how.
///
/// ```
/// use haversack_skill_runtime::capability::{CapabilityNode, CapabilityTree, NodeKind};
/// use haversack_skill_runtime::metadata::Tier;
///
/// let mut tree = CapabilityTree::new();
/// tree.add(CapabilityNode::new("fs", "fs", NodeKind::Group, ""))?;
/// tree.add(CapabilityNode::new("fs/read", "read_file", NodeKind::Tool, "fs").with_min_tier(Tier::TaskLight))?;
/// assert_eq!(tree.allow_list(Tier::TaskLight), ["read_file"]);
/// assert!(tree.allow_list(Tier::Greeting).is_empty());
/// # Ok::<(), haversack_skill_runtime::capability::TreeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityTree {
    nodes: Vec<CapabilityNode>,
    places: BTreeMap<String, usize>,
}

impl CapabilityTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tree of these nodes, groups before what is in them. What they say of their children is not used.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add), at the first node that does not fit.
    pub fn from_nodes(nodes: impl IntoIterator<Item = CapabilityNode>) -> Result<Self, TreeError> {
        let mut tree = Self::new();
        for node in nodes {
            tree.add(node)?;
        }
        Ok(tree)
    }

    /// Adds a node below its parent.
    ///
    /// # Errors
    ///
    /// [`TreeError`] for an empty id or name, an id that is there already, and a parent that is not, or is no group;
    /// the tree is unchanged then.
    pub fn add(&mut self, mut node: CapabilityNode) -> Result<(), TreeError> {
        if node.id.is_empty() || node.name.is_empty() {
            return Err(TreeError::Unnamed);
        }
        if self.places.contains_key(&node.id) {
            return Err(TreeError::Duplicate(node.id));
        }
        if self.nodes.len() >= MAX_NODES || self.depth(&node.parent) >= MAX_DEPTH {
            return Err(TreeError::TooLarge(node.id));
        }
        node.children.clear();
        if !node.parent.is_empty() {
            let parent = self.get_mut(&node.parent).filter(|parent| parent.kind == NodeKind::Group);
            let Some(parent) = parent else {
                return Err(TreeError::NoParent { id: node.id, parent: node.parent });
            };
            parent.children.push(node.id.clone());
        }
        self.places.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
        Ok(())
    }

    fn depth(&self, id: &str) -> usize {
        std::iter::successors(self.get(id), |node| self.get(&node.parent)).count()
    }

    /// Removes a node and everything below it, and gives them back, groups first.
    ///
    /// # Errors
    ///
    /// [`TreeError::Unknown`] where there is no such node.
    pub fn remove(&mut self, id: &str) -> Result<Vec<CapabilityNode>, TreeError> {
        let gone: Vec<String> = self.below(id)?.into_iter().map(|node| node.id.clone()).collect();
        let parent = self.get(id).map(|node| node.parent.clone()).unwrap_or_default();
        if let Some(parent) = self.get_mut(&parent) {
            parent.children.retain(|child| child != id);
        }
        let (removed, kept) =
            std::mem::take(&mut self.nodes).into_iter().partition(|node| gone.contains(&node.id));
        self.nodes = kept;
        self.places = self.nodes.iter().enumerate().map(|(place, node)| (node.id.clone(), place)).collect();
        Ok(removed)
    }

    /// The node with this id.
    pub fn get(&self, id: &str) -> Option<&CapabilityNode> {
        self.nodes.get(*self.places.get(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut CapabilityNode> {
        self.nodes.get_mut(*self.places.get(id)?)
    }

    /// The first node that was added with this name.
    pub fn by_name(&self, name: &str) -> Option<&CapabilityNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The first tool or sub-agent that was added with this name.
    pub fn by_tool_name(&self, name: &str) -> Option<&CapabilityNode> {
        self.nodes.iter().find(|node| node.kind != NodeKind::Group && node.name == name)
    }

    /// All nodes, in the order in which they were added.
    pub fn nodes(&self) -> &[CapabilityNode] {
        &self.nodes
    }

    /// The nodes at the top.
    pub fn roots(&self) -> impl Iterator<Item = &CapabilityNode> {
        self.nodes.iter().filter(|node| node.parent.is_empty())
    }

    /// What is directly in a node.
    pub fn children<'t>(&'t self, node: &'t CapabilityNode) -> impl Iterator<Item = &'t CapabilityNode> {
        node.children.iter().filter_map(|id| self.get(id))
    }

    /// A node and everything below it, depth first.
    ///
    /// # Errors
    ///
    /// [`TreeError::Unknown`] where there is no such node.
    pub fn below(&self, id: &str) -> Result<Vec<&CapabilityNode>, TreeError> {
        let start = self.get(id).ok_or_else(|| TreeError::Unknown(id.to_owned()))?;
        let (mut found, mut open) = (Vec::new(), vec![start]);
        while let Some(node) = open.pop() {
            found.push(node);
            let children: Vec<_> = self.children(node).collect();
            open.extend(children.into_iter().rev());
        }
        Ok(found)
    }
}

impl Serialize for CapabilityTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.nodes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CapabilityTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_nodes(Vec::<CapabilityNode>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Why a node cannot be added or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// It has no id or no name.
    #[error("a node needs an id and a name")]
    Unnamed,
    /// Its id is taken.
    #[error("node `{0}` is there already")]
    Duplicate(String),
    /// Its parent is missing, or is no group.
    #[error("node `{id}` names the parent `{parent}`, which is no group of the tree")]
    #[expect(missing_docs, reason = "the fields are those of the message")]
    NoParent { id: String, parent: String },
    /// The tree is as large or as deep as it may be.
    #[error("node `{0}` does not fit: {MAX_NODES} nodes and {MAX_DEPTH} levels are allowed")]
    TooLarge(String),
    /// There is no such node.
    #[error("there is no node `{0}`")]
    Unknown(String),
}
