//! What follows from a tree: lists for prompts, policies and tiers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::capability::node::{CapabilityNode, NodeKind};
use crate::capability::tree::CapabilityTree;
use crate::metadata::Tier;

/// One tool of the flat list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the node")]
pub struct FlatEntry {
    pub id: String,
    pub kind: &'static str,
    pub tool_name: String,
    pub runtime_owner: String,
    pub enabled_when: String,
    pub prompt_summary: String,
    pub tool_groups: Vec<String>,
    pub skill_bindable: bool,
}

/// Which tier a node's priority speaks for; other priorities classify nothing.
fn classified(priority: i64) -> Option<Tier> {
    match priority {
        30 => Some(Tier::TaskDelete),
        20 => Some(Tier::TaskMultimodal),
        10 => Some(Tier::TaskWrite),
        _ => None,
    }
}

impl CapabilityTree {
    fn tools(&self) -> impl Iterator<Item = &CapabilityNode> {
        self.nodes().iter().filter(|node| node.kind != NodeKind::Group)
    }

    /// Tools that are open to everybody and known before the run, by name.
    pub fn static_tools(&self) -> Vec<&str> {
        sorted(self.tools().filter(|node| !node.is_dynamic() && node.scope().is_empty()))
    }

    /// All tools, by name.
    pub fn all_tools(&self) -> Vec<&str> {
        sorted(self.tools())
    }

    /// Groups whose tools are found at run time.
    pub fn dynamic_groups(&self) -> impl Iterator<Item = &CapabilityNode> {
        self.nodes().iter().filter(|node| node.kind == NodeKind::Group && node.is_dynamic())
    }

    /// The dynamic group that a tool name belongs to, by its longest prefix.
    pub fn dynamic_group_of(&self, tool: &str) -> Option<&CapabilityNode> {
        let prefix = |node: &CapabilityNode| {
            node.runtime.as_ref().map_or(0, |runtime| {
                if tool.starts_with(&runtime.name_prefix) { runtime.name_prefix.len() } else { 0 }
            })
        };
        self.dynamic_groups().filter(|node| prefix(node) > 0).max_by_key(|node| prefix(node))
    }

    /// Tools that are offered for requests of this tier, in the order in which they were added.
    pub fn tools_for_tier(&self, tier: Tier) -> Vec<&CapabilityNode> {
        self.tools().filter(|node| node.scope().is_empty() && node.is_for(tier)).collect()
    }

    /// Their names, sorted.
    pub fn allow_list(&self, tier: Tier) -> Vec<&str> {
        sorted(self.tools_for_tier(tier).into_iter())
    }

    /// Tools that skills may bind to, by name.
    pub fn bindable_tools(&self) -> Vec<&str> {
        let bindable = |node: &&CapabilityNode| node.skills.as_ref().is_some_and(|skills| skills.bindable);
        sorted(self.tools().filter(|node| node.scope().is_empty()).filter(bindable))
    }

    /// Tools that sub-agents of this kind alone have, by name.
    pub fn tools_of_scope(&self, scope: &str) -> Vec<&str> {
        sorted(self.tools().filter(|node| !scope.is_empty() && node.scope() == scope))
    }

    /// Names and summaries, in their order and then by name, one for each name; those of one kind of sub-agent are
    /// added where it is named.
    pub fn summaries(&self, scope: &str) -> Vec<(&str, &str)> {
        let visible = |node: &&CapabilityNode| node.scope().is_empty() || node.scope() == scope;
        let mut nodes: Vec<_> =
            self.tools().filter(visible).filter(|node| !node.summary().is_empty()).collect();
        nodes.sort_by(|a, b| (a.sort_order(), &a.name).cmp(&(b.sort_order(), &b.name)));
        let mut seen = BTreeSet::new();
        let nodes = nodes.into_iter().filter(|node| seen.insert(node.name.as_str()));
        nodes.map(|node| (node.name.as_str(), node.summary())).collect()
    }

    /// Tool names by policy group.
    pub fn policy_groups(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for node in self.tools().filter(|node| node.scope().is_empty()) {
            for group in node.policy.iter().flat_map(|policy| &policy.policy_groups) {
                groups.entry(group).or_default().insert(&node.name);
            }
        }
        groups
    }

    /// Tool names by group of set-up wizards.
    pub fn wizard_groups(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for node in self.tools().filter(|node| node.scope().is_empty()) {
            let group = node.policy.as_ref().map_or("", |policy| policy.wizard_group.as_str());
            if !group.is_empty() {
                groups.entry(group).or_default().insert(&node.name);
            }
        }
        groups
    }

    /// The tier that a request belongs to by its words, and the node that says so: the tiers of priority 30, 20 and
    /// 10 in this order, in each keywords as whole words, or patterns in which `{name}` stands for anything.
    pub fn classify(&self, request: &str) -> Option<(Tier, &CapabilityNode)> {
        let request = Words::of(request);
        [30, 20, 10].into_iter().find_map(|priority| {
            let tier = classified(priority)?;
            let node = self.nodes().iter().find(|node| {
                node.routing.as_ref().is_some_and(|routing| {
                    let words = &routing.intent_keywords;
                    routing.intent_priority == priority
                        && (words.zh.iter().chain(&words.en).any(|word| request.has(word))
                            || words.patterns.iter().any(|pattern| request.fits(pattern)))
                })
            })?;
            Some((tier, node))
        })
    }

    /// Keywords of the tools of a tier, Chinese and then English, each once.
    pub fn keywords(&self, tier: Tier) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let routings = self.tools_for_tier(tier).into_iter().filter_map(|node| node.routing.as_ref());
        let words =
            routings.flat_map(|routing| routing.intent_keywords.zh.iter().chain(&routing.intent_keywords.en));
        words.map(String::as_str).filter(|word| seen.insert(*word)).collect()
    }

    /// The hints for requests of a tier: those for exactly this one, else those for any.
    pub fn hints(&self, tier: Tier) -> Vec<&str> {
        let mut nodes: Vec<_> = self.tools_for_tier(tier);
        nodes.sort_by(|a, b| (a.sort_order(), &a.name).cmp(&(b.sort_order(), &b.name)));
        nodes
            .into_iter()
            .filter_map(|node| {
                let hints = &node.prompt.as_ref()?.intent_hints;
                hints.get(&tier.to_string()).or_else(|| hints.get("*")).map(String::as_str)
            })
            .collect()
    }

    /// Every tool as one flat entry, by id.
    pub fn flat(&self) -> Vec<FlatEntry> {
        let mut entries: Vec<FlatEntry> = self.tools().map(FlatEntry::of).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        entries
    }
}

impl FlatEntry {
    fn of(node: &CapabilityNode) -> Self {
        let runtime = node.runtime.clone().unwrap_or_default();
        Self {
            id: node.id.clone(),
            kind: if node.kind == NodeKind::Subagent { "subagent_entry" } else { "tool" },
            tool_name: node.name.clone(),
            runtime_owner: runtime.owner,
            enabled_when: runtime.enabled_when,
            prompt_summary: node.summary().to_owned(),
            tool_groups: node.policy.as_ref().map(|policy| policy.policy_groups.clone()).unwrap_or_default(),
            skill_bindable: node.skills.as_ref().is_some_and(|skills| skills.bindable),
        }
    }
}

fn sorted<'n>(nodes: impl Iterator<Item = &'n CapabilityNode>) -> Vec<&'n str> {
    let names: BTreeSet<&str> = nodes.map(|node| node.name.as_str()).collect();
    names.into_iter().collect()
}

/// A request in lower case, its words apart.
struct Words {
    text: String,
    spaced: String,
}

impl Words {
    fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let spaced = spaced(&text);
        Self { text, spaced }
    }

    /// Whether a keyword is in it: as whole words, or, in scripts that write none apart, as it stands.
    fn has(&self, keyword: &str) -> bool {
        let keyword = keyword.trim().to_lowercase();
        if keyword.is_empty() {
            return false;
        }
        if keyword.is_ascii() {
            self.spaced.contains(&spaced(&keyword))
        } else {
            self.text.contains(&keyword)
        }
    }

    /// Whether all fixed parts of a pattern stand in it, in their order.
    fn fits(&self, pattern: &str) -> bool {
        let pattern = pattern.to_lowercase();
        let parts: Vec<&str> =
            fixed_parts(&pattern).into_iter().map(str::trim).filter(|p| !p.is_empty()).collect();
        let mut rest = self.text.as_str();
        !parts.is_empty()
            && parts.into_iter().all(|part| match rest.split_once(part) {
                Some((_, after)) => {
                    rest = after;
                    true
                }
                None => false,
            })
    }
}

/// The parts of a pattern outside its `{…}`.
fn fixed_parts(pattern: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for (number, part) in pattern.split('{').enumerate() {
        parts.push(if number == 0 { part } else { part.split_once('}').map_or("", |(_, after)| after) });
    }
    parts
}

fn spaced(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}
