//! The actions that only look.

use serde_json::{Map, Value, json};

use crate::capability::node::CapabilityNode;
use crate::capability::tree::CapabilityTree;
use crate::metadata::{Tier, Word as _};
use crate::reply::Arguments;

pub(super) fn find<'t>(tree: &'t CapabilityTree, wanted: &str) -> Option<(&'t CapabilityNode, bool)> {
    tree.get(wanted).map(|node| (node, false)).or_else(|| tree.by_name(wanted).map(|node| (node, true)))
}

pub(super) fn tier(arguments: Arguments<'_>) -> Result<Tier, String> {
    let word = arguments.required("tier")?;
    Tier::from_word(word).ok_or_else(|| format!("`{word}` is none of {}", Tier::WORDS.join(", ")))
}

pub(super) fn view(tree: &CapabilityTree, arguments: Arguments<'_>) -> Result<Value, String> {
    let depth = arguments.number("depth")?.filter(|depth| *depth > 0).unwrap_or(u64::MAX);
    match arguments.text("nodeId")? {
        Some(id) => {
            let node = tree.get(id).ok_or_else(|| format!("there is no node `{id}`"))?;
            Ok(view_of(tree, node, depth))
        }
        None => Ok(tree.roots().map(|node| view_of(tree, node, depth)).collect()),
    }
}

/// A tree is at most [`MAX_DEPTH`](crate::capability::MAX_DEPTH) deep, so this is, too.
fn view_of(tree: &CapabilityTree, node: &CapabilityNode, depth: u64) -> Value {
    let mut out = Map::new();
    for (key, value) in [("id", &node.id), ("name", &node.name)] {
        out.insert(key.to_owned(), value.as_str().into());
    }
    out.insert("kind".to_owned(), serde_json::to_value(node.kind).unwrap_or_default());
    if let Some(tier) = node.routing.as_ref().and_then(|routing| routing.min_tier) {
        out.insert("minTier".to_owned(), tier.word().into());
    }
    if !node.summary().is_empty() {
        out.insert("summary".to_owned(), node.summary().into());
    }
    if node.is_dynamic() {
        out.insert("dynamic".to_owned(), true.into());
    }
    if depth > 0 && !node.children.is_empty() {
        let children = tree.children(node).map(|child| view_of(tree, child, depth - 1));
        out.insert("children".to_owned(), children.collect());
    }
    out.into()
}

pub(super) fn inspect(tree: &CapabilityTree, arguments: Arguments<'_>) -> Result<Value, String> {
    let wanted = arguments.required("nodeId")?;
    let (node, by_name) = find(tree, wanted).ok_or_else(|| format!("there is no node `{wanted}`"))?;
    Ok(match by_name {
        true => json!({
            "node": node, "matchedBy": "name", "warning": format!("`{wanted}` is a name; its id is `{}`", node.id),
        }),
        false => serde_json::to_value(node).unwrap_or_default(),
    })
}

pub(super) fn validate(tree: &CapabilityTree, arguments: Arguments<'_>) -> Result<Value, String> {
    Ok(match arguments.number("level")? {
        None | Some(0) => validation(tree, &[1, 2, 3]),
        Some(1) => validation(tree, &[1]),
        Some(2) => validation(tree, &[2]),
        Some(3) => validation(tree, &[3]),
        Some(other) => return Err(format!("`level` is 0 for all, or 1, 2 or 3, and not {other}")),
    })
}

pub(super) fn validation(tree: &CapabilityTree, levels: &[u8]) -> Value {
    let mut issues = tree.issues();
    issues.retain(|issue| levels.contains(&issue.level));
    let passes = |level| !issues.iter().any(|issue| issue.level == level);
    json!({
        "level1Pass": passes(1), "level2Pass": passes(2), "level3Pass": passes(3), "checkedLevels": levels,
        "issues": issues,
    })
}
