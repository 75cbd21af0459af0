//! Cases of the format that no other file of tests holds: delimiters, fields, names, hashes, nodes.

use haversack_skill_runtime::SkillMode;
use haversack_skill_runtime::authoring::SkillAuthor;
use haversack_skill_runtime::capability::{CapabilityNode, CapabilityTree, Injected, NodeKind, TreeError};
use haversack_skill_runtime::metadata::{Approval, Metadata, OnError, Reading, Step, ToolSchema, Word as _};
use haversack_skill_runtime::pipeline::{Compiled, Origin, Store, ToolNode, compile, sanitise, tool_name};
use haversack_skill_runtime::source::SkillSource;
use serde_json::json;

fn read(front_matter: &str) -> Reading {
    SkillSource::read(&format!("---\n{front_matter}\n---\nbody\n")).unwrap().reading
}

#[test]
fn a_front_matter_that_is_no_front_matter_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let author = SkillAuthor::new(folder.path()).unwrap();
    for (text, line) in [
        ("no fences\n", 1),
        ("---\nname: a\n", 1),
        ("---\nkey: : v:\n---\n", 2),
        ("---\ntree_id: a\ntree_id: b\n---\n", 3),
        ("---\n- a\n- b\n---\n", 2),
        ("---\n\tname: a\n---\n", 2),
        ("---\na: 'b' c\n---\n", 2),
    ] {
        let parsed = author.parse(&json!({"skillMdContent": text}));
        assert!(!parsed.ok, "{text}");
        let first = parsed.value["parseErrors"][0].as_str().unwrap();
        assert!(first.starts_with(&format!("line {line}, ")), "{text}: {first}");
    }
}

#[test]
fn lists_keep_what_counts_in_order() {
    let reading = read("related_tools: [a, b, c, d, e, f]\nintent_keywords: {zh: ['你', '', 5], en: []}");
    assert_eq!(reading.metadata.related_tools, ["a", "b", "c", "d", "e"]);
    assert_eq!(reading.metadata.intent_keywords.zh[0], "你");
    assert!(reading.metadata.intent_keywords.zh.iter().all(|word| !word.trim().is_empty()));
    assert!(reading.metadata.intent_keywords.en.is_empty());
    assert!(!reading.findings.is_empty(), "what is left out is told");
    assert_eq!(read("tools: 'x, y'").metadata.tools, ["x", "y"]);
    assert_eq!(read("tree_id: group/tool").metadata.tool_names(), ["tool"]);
}

#[test]
fn a_fence_inside_a_text_does_not_close_the_front_matter() {
    let source = SkillSource::read("---\nsummary: |\n  one\n  ---\n  two\ntree_id: a\n---\nbody\n").unwrap();
    assert_eq!(source.reading.metadata.summary.as_deref(), Some("one\n---\ntwo\n"));
    assert_eq!((source.reading.metadata.tree_id.as_deref(), source.body.as_str()), (Some("a"), "body\n"));
}

#[test]
fn the_top_and_a_section_each_say_their_own() {
    let reading = read("crabclaw: {summary: nested, emoji: e, tree_id: ignored}\ntree_id: a/b\nsummary: top");
    let Metadata { tree_id, summary, emoji, .. } = &reading.metadata;
    let read = (tree_id.as_deref(), summary.as_deref(), emoji.as_deref());
    assert_eq!(read, (Some("a/b"), Some("nested"), Some("e")));
    assert_eq!(reading.findings.len(), 2, "both that do not count are told: {:?}", reading.findings);
}

#[test]
fn line_ends_and_a_mark_at_the_start_change_nothing() {
    let text = "---\nname: a\ntree_id: a/b\ntools: [x, y]\nskill_mode: agent\nagent_config:\n  role_title: R\n---\nbody\n";
    let plain = SkillSource::read(text).unwrap();
    assert_eq!(plain.reading.metadata.mode, SkillMode::Agent);
    for other in [text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
        let read = SkillSource::read(&other).unwrap();
        assert_eq!(read.reading.metadata, plain.reading.metadata, "{other:?}");
        assert!(read.reading.findings.is_empty());
    }
    let nested = text.replace("tree_id: a/b\ntools: [x, y]\nskill_mode: agent\nagent_config:\n  role_title: R\n", "metadata:\n  tree_id: a/b\n  tools: [x, y]\n  skill_mode: agent\n  agent_config:\n    role_title: R\n");
    assert_ne!(nested, text);
    assert_eq!(SkillSource::read(&nested).unwrap().reading.metadata, plain.reading.metadata);
}

#[test]
fn names_are_sanitised_and_words_have_defaults() {
    assert_eq!(sanitise("media-cross publish.v2"), "media_cross_publish_v2");
    for skill in ["tools/demo/hello_tool", "a-b", "a.b", "a_b", "ÄÖ", &"x".repeat(200), ""] {
        let name = tool_name(skill);
        let fits =
            name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        assert!(fits, "{skill}: {name}");
    }
    let names: std::collections::BTreeSet<String> =
        ["a-b", "a.b", "a_b", "A_b"].into_iter().map(tool_name).collect();
    assert_eq!(names.len(), 4, "different skills never share a name");

    let steps =
        read("tool_schema:\n  steps:\n  - {tool: t}\n  - {tool: t, approval: bogus, on_error: bogus}");
    assert!(steps.has_errors(), "an unknown approval does not count as none");
    let schema = steps.metadata.tool_schema.unwrap();
    assert_eq!(schema.steps[1].approval, Some(Approval::strictest()));
    let known = |_: &str| Some(ToolNode::new("n"));
    let definition = compile(&Origin::new("s", ""), &schema, &known).unwrap();
    assert_eq!(
        (definition.steps[0].approval, definition.steps[0].on_error),
        (Approval::None, OnError::Abort)
    );
    assert_eq!(definition.steps[1].on_error, OnError::Abort);
}

#[test]
fn a_skill_is_known_by_its_hash_and_compiled_once() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Origin::new("s", "abc").hash(), abc);
    let (schema, known) = (ToolSchema::new(vec![Step::new("a", "t")]), |_: &str| Some(ToolNode::new("n")));
    let mut store = Store::new();
    let mut compiled = |source: &str| store.compile(&Origin::new("s", source), &schema, &known).unwrap();
    assert!(matches!(compiled("abc"), Compiled::New(_)));
    assert!(matches!(compiled("abc"), Compiled::Unchanged(_)));
    assert!(matches!(compiled("abcd"), Compiled::New(_)));
}

#[test]
fn a_node_that_does_not_fit_leaves_nothing_behind() {
    let node = |id: &str, parent: &str| CapabilityNode::new(id, id, NodeKind::Tool, parent);
    let mut tree = CapabilityTree::new();
    tree.add(CapabilityNode::new("g", "g", NodeKind::Group, "")).unwrap();
    tree.add(node("a", "g")).unwrap();
    let before = tree.clone();
    for (wrong, error) in [
        (node("b", "nowhere"), "no group"),
        (node("b", "a"), "no group"),
        (node("a", "g"), "is there already"),
        (node("", "g"), "needs an id"),
        (CapabilityNode::new("b", "", NodeKind::Tool, "g"), "needs an id"),
    ] {
        let said = tree.add(wrong).unwrap_err().to_string();
        assert!(said.contains(error), "{said}");
        assert_eq!(tree, before);
    }
    // What a node says of its children is not used: they are counted once.
    let mut nodes = tree.nodes().to_vec();
    nodes[0].children = vec!["a".to_owned(), "a".to_owned()];
    assert_eq!(CapabilityTree::from_nodes(nodes).unwrap(), tree);
    assert_eq!(tree.remove("g").unwrap().len(), 2, "a group goes with what is in it");
    assert!(tree.nodes().is_empty());
    assert_eq!(tree.remove("g"), Err(TreeError::Unknown("g".to_owned())));
}

#[test]
fn a_skill_overwrites_only_with_what_it_says() {
    let node = json!({"id": "g/t", "name": "t", "parent": "g", "prompt": {"summary": "old", "sortOrder": 5},
        "skills": {"bindable": true}, "routing": {"minTier": "task_write", "intentKeywords": {"en": ["old", "both"]}}});
    let group = CapabilityNode::new("g", "g", NodeKind::Group, "");
    let mut tree = CapabilityTree::from_nodes([group, serde_json::from_value(node).unwrap()]).unwrap();
    let said = read(
        "tree_id: g/t\nsort_order: 0\nsummary: ''\nintent_keywords: {en: [new, both]}\nmin_tier: question",
    )
    .metadata;
    assert_eq!(tree.inject(&said, ""), Injected::Updated("g/t".to_owned()));
    let node = tree.get("g/t").unwrap().clone();
    assert_eq!((node.summary(), node.sort_order()), ("old", 5));
    assert!(node.skills.unwrap().bindable, "only ever switched on");
    let routing = node.routing.unwrap();
    assert_eq!(routing.intent_keywords.en, ["new", "both", "old"]);
    assert_eq!(routing.min_tier.unwrap().word(), "task_write", "a skill does not lower a tier");

    assert!(matches!(tree.inject(&read("tree_id: x/y\ntree_group: x").metadata, ""), Injected::Skipped(_)));
    assert_eq!(
        tree.inject(&read("tree_id: g/new\ntree_group: g").metadata, "d"),
        Injected::Added("g/new".to_owned())
    );
    let new = tree.get("g/new").unwrap();
    assert_eq!((new.runtime.as_ref().unwrap().owner.as_str(), new.summary()), ("attempt_runner", "d"));
}
