//! The capability tree: what follows from it, how skills get into it, and how patches change it.

use haversack_skill_runtime::capability::{
    CapabilityNode, CapabilityTree, Injected, ManagedTree, NodeKind, PatchAction, PatchError, TreeError,
};
use haversack_skill_runtime::metadata::{Metadata, Tier};
use haversack_skills::Document;
use haversack_skills::document::ParseOptions;
use serde_json::{Map, Value, json};

fn node(value: Value) -> CapabilityNode {
    serde_json::from_value(value).unwrap()
}

fn tree() -> CapabilityTree {
    CapabilityTree::from_nodes([
        node(json!({"id": "fs", "name": "fs", "kind": "group"})),
        node(json!({
            "id": "fs/read", "name": "read_file", "parent": "fs",
            "prompt": {"summary": "Reads", "sortOrder": 2, "intentHints": {"*": "look first"}},
            "routing": {"minTier": "task_light"},
        })),
        node(json!({
            "id": "fs/write", "name": "write_file", "parent": "fs",
            "prompt": {"summary": "Writes", "sortOrder": 1},
            "routing": {"minTier": "task_write", "excludeFrom": ["task_delete"], "intentPriority": 10,
                        "intentKeywords": {"en": ["write", "step by step"], "zh": ["写"], "patterns": ["put {x} into {y}"]}},
            "policy": {"policyGroups": ["group:fs"], "wizardGroup": "files"},
        })),
    ])
    .unwrap()
}

fn fields(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { return Map::new() };
    map
}

#[test]
fn tiers_offer_what_their_nodes_say() {
    let mut tree = tree();
    for (tier, tools) in [
        (Tier::Greeting, vec![]),
        (Tier::TaskLight, vec!["read_file"]),
        (Tier::TaskWrite, vec!["read_file", "write_file"]),
        (Tier::TaskDelete, vec!["read_file"]),
    ] {
        assert_eq!(tree.allow_list(tier), tools, "{tier}");
    }
    assert_eq!(tree.summaries(""), [("write_file", "Writes"), ("read_file", "Reads")]);
    assert_eq!(tree.hints(Tier::TaskLight), ["look first"]);
    tree.add(CapabilityNode::new("x", "x", NodeKind::Tool, "")).unwrap();
    assert!(!tree.allow_list(Tier::TaskDelete).contains(&"x"));
    assert!(tree.allow_list(Tier::TaskMultimodal).contains(&"x"), "without routing only at the highest");
}

#[test]
fn requests_are_classified_by_whole_words_and_by_patterns() {
    let tree = tree();
    for (request, found) in [
        ("Please WRITE a file", true),
        ("rewritten", false),
        ("go step-by-step", true),
        ("请写一个文件", true),
        ("put this text into that file", true),
        ("into put", false),
        ("", false),
    ] {
        assert_eq!(
            tree.classify(request).map(|(tier, _)| tier),
            found.then_some(Tier::TaskWrite),
            "{request}"
        );
    }
}

#[test]
fn adding_fails_whole_and_removing_takes_what_is_below() {
    let mut tree = tree();
    let before = tree.clone();
    for (id, name, parent, error) in [
        ("a", "a", "none", TreeError::NoParent { id: "a".into(), parent: "none".into() }),
        ("a", "a", "fs/read", TreeError::NoParent { id: "a".into(), parent: "fs/read".into() }),
        ("fs", "fs", "", TreeError::Duplicate("fs".into())),
        ("", "a", "", TreeError::Unnamed),
        ("a", "", "", TreeError::Unnamed),
    ] {
        assert_eq!(tree.add(CapabilityNode::new(id, name, NodeKind::Tool, parent)), Err(error));
        assert_eq!(tree, before);
    }
    assert_eq!(tree.remove("fs").unwrap().len(), 3);
    assert!(tree.nodes().is_empty());
    assert_eq!(tree.remove("fs"), Err(TreeError::Unknown("fs".into())));
}

#[test]
fn a_dump_loads_as_the_same_tree() {
    let tree = tree();
    let dump = serde_json::to_string(&tree).unwrap();
    assert!(dump.contains("\"children\":[\"fs/read\",\"fs/write\"]"));
    assert_eq!(serde_json::from_str::<CapabilityTree>(&dump).unwrap(), tree);
    assert!(serde_json::from_str::<CapabilityTree>("[5]").is_err());
    assert!(
        serde_json::from_str::<CapabilityTree>(r#"[{"id":"a","name":"a","routing":{"minTier":"bogus"}}]"#)
            .is_err()
    );
}

fn metadata(front_matter: &str) -> Metadata {
    let text = format!("---\n{front_matter}\n---\n");
    let document = Document::parse(text.as_bytes(), &ParseOptions::default());
    Metadata::read(document.fields().unwrap()).metadata
}

#[test]
fn skills_fill_nodes_and_never_widen_them() {
    let mut tree = tree();
    let skill = metadata(
        "tree_id: fs/read\nmin_tier: question\nsummary: Reads well\ntools: [read_file]\nintent_keywords: {en: [read]}\nintent_patterns: ['open {x}']",
    );
    assert_eq!(tree.inject(&skill, "d"), Injected::Updated("fs/read".into()));
    let read = tree.get("fs/read").unwrap();
    assert_eq!((read.summary(), read.sort_order()), ("Reads well", 2));
    let routing = read.routing.as_ref().unwrap();
    assert_eq!(routing.min_tier, Some(Tier::TaskLight), "a lower tier would widen it");
    assert_eq!(routing.intent_keywords.patterns, ["open {x}"]);
    assert_eq!(tree.bindable_tools(), ["read_file"]);

    let new = metadata("tree_id: fs/new\ntree_group: fs");
    assert_eq!(tree.inject(&new, "described"), Injected::Added("fs/new".into()));
    let node = tree.get("fs/new").unwrap();
    assert_eq!((node.name.as_str(), node.summary()), ("new", "described"));
    assert_eq!(node.runtime.as_ref().unwrap().owner, "attempt_runner");
    for front_matter in ["tree_id: a/b\ntree_group: none", "tree_id: a/b", "summary: x"] {
        assert!(matches!(tree.inject(&metadata(front_matter), ""), Injected::Skipped(_)), "{front_matter}");
    }
}

#[test]
fn a_patch_merges_fields_and_leaves_the_rest() {
    let mut managed = ManagedTree::new(tree());
    let routing = json!({"routing": {"minTier": "question"}});
    let id = managed.propose(PatchAction::Routing, "fs/write", fields(routing)).unwrap().id.clone();
    assert_eq!(managed.tree(), &tree(), "proposed is not applied");
    managed.apply(&id).unwrap();
    let write = managed.tree().get("fs/write").unwrap().routing.clone().unwrap();
    assert_eq!((write.min_tier, write.intent_priority), (Some(Tier::Question), 10));
    assert_eq!(managed.tree().allow_list(Tier::Question), ["write_file"], "queries still work");
    assert!(matches!(managed.apply(&id), Err(PatchError::Status(..))));
    managed.revert(&id).unwrap();
    assert_eq!(managed.tree(), &tree());
    for bad in [
        json!({"routing": {"minTier": "bogus"}}),
        json!({"routing": 5}),
        json!({"routing": {"bogus": 1}}),
        json!({"bogus": {}}),
        json!({"id": {}}),
    ] {
        let refused = managed.propose(PatchAction::Update, "fs/write", fields(bad.clone()));
        assert!(refused.is_err(), "{bad}");
    }
}

#[test]
fn a_patch_on_which_others_stand_is_not_reverted() {
    let mut managed = ManagedTree::new(tree());
    let propose = |managed: &mut ManagedTree, value: Value| {
        managed.propose(PatchAction::Update, "fs/read", fields(value)).unwrap().id.clone()
    };
    let a = propose(&mut managed, json!({"prompt": {"summary": "A"}}));
    let b = propose(&mut managed, json!({"prompt": {"summary": "B"}}));
    let other = propose(&mut managed, json!({"prompt": {"sortOrder": 9}}));
    for id in [&b, &a, &other] {
        managed.apply(id).unwrap();
    }
    // Judged by the order of application, not of proposal.
    let blocked = managed.revert(&b).unwrap_err();
    assert_eq!(blocked, PatchError::Blocked { id: b.clone(), dependents: vec![a.clone()] });
    managed.revert(&a).unwrap();
    managed.revert(&b).unwrap();
    let read = managed.tree().get("fs/read").unwrap();
    assert_eq!((read.summary(), read.sort_order()), ("Reads", 9), "the other patch stays");

    let group = managed.propose_node(CapabilityNode::new("g", "g", NodeKind::Group, "")).unwrap().id.clone();
    managed.apply(&group).unwrap();
    let child =
        managed.propose_node(CapabilityNode::new("g/a", "a", NodeKind::Tool, "g")).unwrap().id.clone();
    managed.apply(&child).unwrap();
    assert!(matches!(managed.revert(&group), Err(PatchError::Blocked { .. })));
    let saved = serde_json::to_string(&managed).unwrap();
    assert_eq!(serde_json::from_str::<ManagedTree>(&saved).unwrap(), managed);
    managed.revert(&child).unwrap();
    managed.revert(&group).unwrap();
    assert!(managed.tree().get("g").is_none());
}
