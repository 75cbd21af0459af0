//! What can be told of a tree: its faults in three levels, its health, and prompts made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::capability::node::{CapabilityNode, NodeKind};
use crate::capability::tree::CapabilityTree;
use crate::metadata::{Tier, Word as _};

/// The group whose groups are kinds of sub-agents.
const SUBAGENT_ROOT: &str = "subagent_trees";

/// Something about a tree that should be mended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TreeIssue {
    /// 1: a node by itself; 2: nodes beside each other; 3: what follows from the whole.
    pub level: u8,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl TreeIssue {
    fn new(level: u8, node: &CapabilityNode, message: impl Into<String>) -> Self {
        Self { level, node_id: Some(node.id.clone()), message: message.into() }
    }
}

impl CapabilityTree {
    fn leaves(&self) -> impl Iterator<Item = &CapabilityNode> {
        self.nodes().iter().filter(|node| node.kind != NodeKind::Group)
    }

    /// Everything that should be mended, by level.
    pub fn issues(&self) -> Vec<TreeIssue> {
        let mut issues = Vec::new();
        for node in self.leaves() {
            self.issues_of(node, &mut issues);
        }
        self.issues_between(&mut issues);
        self.issues_of_tiers(&mut issues);
        issues.sort_by_key(|issue| issue.level);
        issues
    }

    #[expect(clippy::unused_self, reason = "one of three levels")]
    fn issues_of(&self, node: &CapabilityNode, issues: &mut Vec<TreeIssue>) {
        if node.summary().is_empty() {
            issues.push(TreeIssue::new(1, node, "it has no summary"));
        }
        if node.routing.as_ref().and_then(|routing| routing.min_tier).is_none() {
            issues.push(TreeIssue::new(
                1,
                node,
                "it has no minTier, so it is offered for the highest tier only",
            ));
        }
        let owner = node.runtime.as_ref().map_or("", |runtime| runtime.owner.as_str());
        if owner.is_empty() && !node.is_dynamic() {
            issues.push(TreeIssue::new(1, node, "it has no owner that would run it"));
        }
    }

    fn issues_between(&self, issues: &mut Vec<TreeIssue>) {
        let tier = |node: &CapabilityNode| node.routing.as_ref().and_then(|routing| routing.min_tier);
        for node in self.leaves() {
            let above = self.get(&node.parent).and_then(|parent| Some((parent, tier(parent)?)));
            if let (Some(own), Some((parent, above))) = (tier(node), above)
                && own < above
            {
                let message = format!("its tier {own} is below {above}, that of its group `{}`", parent.id);
                issues.push(TreeIssue::new(2, node, message));
            }
        }
        let mut prefixes: BTreeMap<&str, &str> = BTreeMap::new();
        for group in self.dynamic_groups() {
            let prefix = group.runtime.as_ref().map_or("", |runtime| runtime.name_prefix.as_str());
            if let Some(other) = prefixes.get(prefix).filter(|_| !prefix.is_empty()) {
                issues.push(TreeIssue::new(
                    2,
                    group,
                    format!("its prefix `{prefix}` is that of `{other}`, too"),
                ));
            }
            prefixes.insert(prefix, &group.id);
        }
    }

    fn issues_of_tiers(&self, issues: &mut Vec<TreeIssue>) {
        for pair in Tier::ALL.windows(2) {
            let &[low, high] = pair else { continue };
            let above: BTreeSet<&str> =
                self.tools_for_tier(high).into_iter().map(|node| node.id.as_str()).collect();
            for node in self.tools_for_tier(low).into_iter().filter(|node| !above.contains(node.id.as_str()))
            {
                let excluded =
                    node.routing.as_ref().is_some_and(|routing| routing.exclude_from.contains(&high));
                if !excluded {
                    issues.push(TreeIssue::new(
                        3,
                        node,
                        format!("it is offered for {low} and not for {high}"),
                    ));
                }
            }
        }
        for node in self.leaves() {
            if node.summary().is_empty() {
                issues.push(TreeIssue::new(3, node, "prompts cannot say what it is for: it has no summary"));
            }
            for group in node.policy.iter().flat_map(|policy| &policy.policy_groups) {
                if !group.starts_with("group:") {
                    issues.push(TreeIssue::new(
                        3,
                        node,
                        format!("its policy group `{group}` does not begin with `group:`"),
                    ));
                }
            }
        }
    }

    /// Counts, and seven checks that say where something is missing.
    pub fn diagnosis(&self) -> Value {
        let prefixes: Vec<&str> = self
            .dynamic_groups()
            .filter_map(|node| node.runtime.as_ref())
            .map(|runtime| runtime.name_prefix.as_str())
            .collect();
        let groups = self.nodes().iter().filter(|node| node.kind == NodeKind::Group).count();
        let leaves: Vec<&CapabilityNode> = self.leaves().collect();
        let lacking =
            |lacks: &dyn Fn(&CapabilityNode) -> bool| leaves.iter().filter(|node| lacks(node)).count();
        let policy = |node: &CapabilityNode| node.policy.clone().unwrap_or_default();
        let misnamed = |node: &CapabilityNode| {
            policy(node).policy_groups.iter().any(|group| !group.starts_with("group:"))
        };
        let checks: [(&str, &str, usize); 7] = [
            ("D1", "tools without a summary", lacking(&|node| node.summary().is_empty())),
            ("D2", "tools without a profile", lacking(&|node| policy(node).profiles.is_empty())),
            (
                "D3",
                "tools without a tier",
                lacking(&|node| node.routing.as_ref().and_then(|routing| routing.min_tier).is_none()),
            ),
            ("D5", "tools without a policy group", lacking(&|node| policy(node).policy_groups.is_empty())),
            ("D7", "tools that people see without a title or icon", lacking(&|node| !is_shown(node))),
            ("D8", "tools with a policy group not named `group:…`", lacking(&misnamed)),
            (
                "D9",
                "tools that do not say whether skills bind to them",
                lacking(&|node| node.skills.is_none()),
            ),
        ];
        let checks: Vec<Value> = checks
            .into_iter()
            .map(|(id, about, count)| {
                json!({"check": id, "status": if count == 0 { "ok" } else { "warning" }, "count": count, "about": about})
            })
            .collect();
        json!({
            "inventory": {
                "staticTools": self.static_tools().len(),
                "dynamicGroups": prefixes.len(),
                "dynamicPrefixes": prefixes,
                "groups": groups,
            },
            "checks": checks,
        })
    }

    /// The tools of a tier as a part of a prompt.
    pub fn prompt_for_tier(&self, tier: Tier) -> String {
        let mut nodes = self.tools_for_tier(tier);
        let order = |node: &CapabilityNode| if node.sort_order() == 0 { 999 } else { node.sort_order() };
        nodes.sort_by(|a, b| (order(a), &a.name).cmp(&(order(b), &b.name)));
        let mut out = format!("## Tools for {}\n\n", tier.word());
        for node in &nodes {
            // Writing to a string does not fail.
            let _ = match node.summary() {
                "" => writeln!(out, "- **{}**", node.name),
                summary => writeln!(out, "- **{}**: {summary}", node.name),
            };
        }
        if nodes.is_empty() {
            out.push_str("(no tools for this tier)\n");
        }
        out
    }

    /// The kinds of sub-agents that the tree names, with their tools.
    pub fn subagent_trees(&self) -> Vec<(&CapabilityNode, Vec<&str>)> {
        let Some(root) = self.by_name(SUBAGENT_ROOT).or_else(|| self.get(SUBAGENT_ROOT)) else {
            return Vec::new();
        };
        let groups = self.children(root).filter(|node| node.kind == NodeKind::Group);
        groups
            .map(|group| {
                let below = self.below(&group.id).unwrap_or_default();
                let tools = below.into_iter().filter(|node| node.kind != NodeKind::Group);
                (group, tools.map(|node| node.name.as_str()).collect())
            })
            .collect()
    }

    /// What user interfaces need of the tree, as one JSON object: display, policy groups, wizard groups, the order of
    /// tools, and summaries.
    pub fn constants(&self) -> Value {
        let display: BTreeMap<&str, Value> = self
            .leaves()
            .filter_map(|node| Some((node.name.as_str(), serde_json::to_value(node.display.as_ref()?).ok()?)))
            .collect();
        let summaries = self.summaries("");
        json!({
            "display": display,
            "policyGroups": self.policy_groups(),
            "wizardGroups": self.wizard_groups(),
            "toolOrder": summaries.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            "summaries": summaries.into_iter().collect::<BTreeMap<_, _>>(),
        })
    }

    /// The same as the text of a TypeScript module.
    pub fn constants_in_typescript(&self) -> String {
        let mut out = String::from("// Made from the capability tree; not to be changed by hand.\n");
        let Value::Object(constants) = self.constants() else { return out };
        for (name, value) in constants {
            let _ = write!(out, "\nexport const {name} = {value:#} as const;\n");
        }
        out
    }
}

fn is_shown(node: &CapabilityNode) -> bool {
    node.display.as_ref().is_some_and(|display| !display.title.is_empty() || !display.icon.is_empty())
}
