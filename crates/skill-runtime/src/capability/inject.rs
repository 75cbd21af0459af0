//! Parsed skills, put into the tree.

use crate::capability::node::{CapabilityNode, IntentKeywords, NodeEscalation, NodeKind};
use crate::capability::tree::CapabilityTree;
use crate::metadata::Metadata;

/// What runs a tool of which nothing else is said.
const OWNER: &str = "attempt_runner";

/// What became of a skill in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Injected {
    /// A node that was there took over what the skill says.
    Updated(String),
    /// A node was added.
    Added(String),
    /// The skill is not in the tree, for this reason.
    Skipped(String),
}

impl CapabilityTree {
    /// Puts a skill into the tree. What it says overwrites what the node says; what it leaves out stays; `bindable` is
    /// only ever switched on, and its keywords come before those that are there.
    ///
    /// What a skill says of rights can only make them stricter: of two levels, approvals or tiers the higher counts.
    pub fn inject(&mut self, metadata: &Metadata, description: &str) -> Injected {
        let Some(id) = metadata.tree_id.as_deref().filter(|id| !id.is_empty()) else {
            return Injected::Skipped("it has no `tree_id`".to_owned());
        };
        if let Some(node) = self.get_mut(id) {
            fill(node, metadata, description);
            return Injected::Updated(id.to_owned());
        }
        let Some(group) = metadata.tree_group.as_deref() else {
            return Injected::Skipped(format!(
                "`{id}` is not in the tree, and no `tree_group` says where it belongs"
            ));
        };
        let name = metadata.tool_names().into_iter().next().unwrap_or_default();
        let mut node = CapabilityNode::new(id, name, NodeKind::Tool, group);
        node.runtime.get_or_insert_default().owner = OWNER.to_owned();
        fill(&mut node, metadata, description);
        match self.add(node) {
            Ok(()) => Injected::Added(id.to_owned()),
            Err(error) => Injected::Skipped(error.to_string()),
        }
    }
}

fn set(place: &mut String, value: Option<&String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        place.clone_from(value);
    }
}

fn set_list(place: &mut Vec<String>, value: &[String]) {
    if !value.is_empty() {
        *place = value.to_vec();
    }
}

fn fill(node: &mut CapabilityNode, metadata: &Metadata, description: &str) {
    if metadata.enabled_when.is_some() {
        set(&mut node.runtime.get_or_insert_default().enabled_when, metadata.enabled_when.as_ref());
    }
    let prompt = node.prompt.get_or_insert_default();
    let described = Some(description.to_owned());
    set(&mut prompt.summary, metadata.summary.as_ref().or(described.as_ref()));
    set(&mut prompt.usage_guide, metadata.usage_guide.as_ref());
    prompt.sort_order = metadata.sort_order.filter(|order| *order > 0).unwrap_or(prompt.sort_order);
    prompt.intent_hints.extend(metadata.intent_hints.clone());
    fill_routing(node, metadata);
    fill_perms(node, metadata);
    if !metadata.tools.is_empty() {
        node.skills.get_or_insert_default().bindable = true;
    }
    let display = node.display.get_or_insert_default();
    set(&mut display.icon, metadata.emoji.as_ref());
    set(&mut display.title, metadata.title.as_ref());
    set(&mut display.label, metadata.label.as_ref());
    set(&mut display.verb, metadata.verb.as_ref());
    let keys = metadata.detail_keys.join(", ");
    set(&mut display.detail_keys, Some(&keys));
    let policy = node.policy.get_or_insert_default();
    set_list(&mut policy.policy_groups, &metadata.policy_groups);
    set_list(&mut policy.profiles, &metadata.profiles);
    set(&mut policy.wizard_group, metadata.wizard_group.as_ref());
}

fn fill_routing(node: &mut CapabilityNode, metadata: &Metadata) {
    let routing = node.routing.get_or_insert_default();
    routing.min_tier = routing.min_tier.max(metadata.min_tier);
    if !metadata.exclude_from.is_empty() {
        routing.exclude_from.clone_from(&metadata.exclude_from);
    }
    routing.intent_priority =
        metadata.intent_priority.filter(|priority| *priority > 0).unwrap_or(routing.intent_priority);
    let IntentKeywords { zh, en, patterns } = &mut routing.intent_keywords;
    first(zh, &metadata.intent_keywords.zh);
    first(en, &metadata.intent_keywords.en);
    first(patterns, &metadata.intent_patterns);
}

fn first(there: &mut Vec<String>, new: &[String]) {
    let mut all: Vec<String> = Vec::new();
    for word in new.iter().chain(there.iter()).filter(|word| !word.is_empty()) {
        if !all.contains(word) {
            all.push(word.clone());
        }
    }
    *there = all;
}

fn fill_perms(node: &mut CapabilityNode, metadata: &Metadata) {
    let perms = node.perms.get_or_insert_default();
    perms.min_security_level = perms.min_security_level.max(metadata.security_level);
    perms.approval_type = perms.approval_type.max(metadata.approval_type);
    perms.scope_check = perms.scope_check.max(metadata.scope_check);
    perms.file_access = metadata.file_access.or(perms.file_access);
    if let Some(hints) = &metadata.escalation_hints {
        perms.escalation_hints = Some(NodeEscalation {
            default_requested_level: hints.default_requested_level.clone(),
            default_ttl_minutes: hints.default_ttl_minutes,
            default_mount_mode: hints.default_mount_mode.clone(),
            needs_originator: hints.needs_originator,
            needs_run_session: hints.needs_run_session,
        });
    }
}
