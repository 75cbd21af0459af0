//! The tools that take a payload: thirteen actions on the tree, five on secret profiles.
#![expect(clippy::needless_pass_by_value, reason = "arguments read best where they are made")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use haversack_skill_runtime::capability::{
    ACTIONS, CapabilityManager, CapabilityNode, CapabilityTree, Patch, PatchApprover, PatchStep,
};
use haversack_skill_runtime::metadata::Tier;
use haversack_skill_runtime::secrets::{EnvSource, FileSource, ProfileManager, SecretProvider};
use serde_json::{Value, json};

fn tree() -> CapabilityTree {
    let nodes = [
        json!({"id": "fs", "name": "fs", "kind": "group", "routing": {"minTier": "question"}}),
        json!({"id": "fs/read_file", "name": "read_file", "parent": "fs",
            "runtime": {"owner": "host", "enabledWhen": "always"},
            "prompt": {"summary": "Reads", "sortOrder": 2}, "routing": {"minTier": "task_light"}}),
        json!({"id": "fs/write_file", "name": "write_file", "parent": "fs",
            "runtime": {"owner": "host", "enabledWhen": "always"},
            "prompt": {"summary": "Writes", "sortOrder": 1},
            "routing": {"minTier": "task_write", "excludeFrom": ["task_delete"]}}),
    ];
    CapabilityTree::from_nodes(nodes.map(|node| serde_json::from_value::<CapabilityNode>(node).unwrap()))
        .unwrap()
}

/// Says yes or no, and remembers what it was asked.
struct Person(bool, Mutex<Vec<(PatchStep, String)>>);

#[async_trait]
impl PatchApprover for Person {
    async fn approve(&self, step: PatchStep, patch: &Patch) -> Result<(), String> {
        self.1.lock().unwrap().push((step, patch.id.clone()));
        if self.0 { Ok(()) } else { Err("not today".to_owned()) }
    }
}

struct House {
    manager: CapabilityManager,
    person: Person,
}

impl House {
    fn new(tree: CapabilityTree) -> Self {
        Self { manager: CapabilityManager::new(tree), person: Person(true, Mutex::default()) }
    }

    fn call(&self, payload: Value) -> Value {
        let reply = self.manager.call(&payload, Some(&self.person)).now_or_never().unwrap();
        assert_eq!(reply.value["success"], reply.ok);
        assert_eq!(reply.value.get("error").is_some(), !reply.ok, "{}", reply.text());
        reply.value
    }

    fn data(&self, payload: Value) -> Value {
        let reply = self.call(payload.clone());
        assert_eq!(reply["success"], true, "{payload}: {reply}");
        reply["data"].clone()
    }

    fn error(&self, payload: Value) -> String {
        let reply = self.call(payload);
        reply["error"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    fn patch(&self, payload: Value) -> String {
        let data = self.data(payload);
        data.get("id").or(data.pointer("/patch/id")).unwrap().as_str().unwrap().to_owned()
    }

    fn settle(&self, action: &str, id: &str) -> Value {
        self.call(json!({"action": action, "patchId": id, "approved": true}))
    }
}

#[test]
fn a_payload_is_an_object_or_the_same_as_text_and_anything_else_is_an_error() {
    let house = House::new(tree());
    let plain = house.data(json!({"action": "generate_allowlist", "tier": "task_light"}));
    let text = json!({"payload": "{\"action\": \"generate_allowlist\", \"tier\": \"task_light\"}"});
    assert_eq!(house.data(text), plain);
    assert_eq!(house.data(json!("{\"action\": \"generate_allowlist\", \"tier\": \"task_light\"}")), plain);
    for wrong in [
        json!(null),
        json!({"payload": "null"}),
        json!({"payload": "{"}),
        json!([]),
        json!({}),
        json!({"action": "burn"}),
    ] {
        let error = house.error(wrong.clone());
        let lists = ACTIONS.iter().all(|action| error.contains(action));
        assert!(lists || error.contains("payload"), "{wrong}: {error}");
    }
    assert_eq!(ACTIONS.len(), 13);
}

#[test]
fn the_tree_is_looked_at_by_id_and_by_name() {
    let house = House::new(tree());
    assert_eq!(
        house.data(json!({"action": "tree", "depth": 1})),
        json!([{"id": "fs", "name": "fs", "kind": "group", "minTier": "question", "children": [
            {"id": "fs/read_file", "name": "read_file", "kind": "tool", "minTier": "task_light", "summary": "Reads"},
            {"id": "fs/write_file", "name": "write_file", "kind": "tool", "minTier": "task_write", "summary": "Writes"},
        ]}])
    );
    assert_eq!(house.data(json!({"action": "tree", "nodeId": "fs/read_file"}))["name"], "read_file");
    assert!(
        house.error(json!({"action": "tree", "nodeId": "read_file"})).contains("read_file"),
        "the tree goes by ids"
    );
    assert_eq!(
        house.data(json!({"action": "inspect", "nodeId": "fs/read_file"}))["prompt"]["summary"],
        "Reads"
    );
    let by_name = house.data(json!({"action": "inspect", "node_id": "read_file"}));
    assert_eq!((&by_name["matchedBy"], &by_name["node"]["id"]), (&json!("name"), &json!("fs/read_file")));
    assert!(by_name["warning"].as_str().unwrap().contains("fs/read_file"));
    for wrong in [
        json!({"action": "inspect"}),
        json!({"action": "inspect", "nodeId": "x"}),
        json!({"action": "inspect", "nodeId": 5}),
    ] {
        house.error(wrong);
    }
}

#[test]
fn tiers_give_lists_and_prompts() {
    let house = House::new(tree());
    for (tier, tools) in [
        ("greeting", json!([])),
        ("task_light", json!(["read_file"])),
        ("task_write", json!(["read_file", "write_file"])),
        ("task_delete", json!(["read_file"])),
    ] {
        let data = house.data(json!({"action": "generate_allowlist", "tier": tier}));
        assert_eq!(data, json!({"tier": tier, "count": tools.as_array().unwrap().len(), "tools": tools}));
    }
    let prompt = house.data(json!({"action": "generate_prompt", "tier": "task_write"}));
    assert_eq!(prompt, "## Tools for task_write\n\n- **write_file**: Writes\n- **read_file**: Reads\n");
    assert!(
        house
            .data(json!({"action": "generate_prompt", "tier": "greeting"}))
            .as_str()
            .unwrap()
            .contains("(no tools")
    );
    for action in ["generate_prompt", "generate_allowlist"] {
        assert!(house.error(json!({"action": action})).contains("`tier` is required"));
        assert!(house.error(json!({"action": action, "tier": "x"})).contains("task_multimodal"));
    }
}

#[test]
fn a_tree_is_validated_by_level_and_diagnosed() {
    let mut nodes = tree().nodes().to_vec();
    let extra = [
        json!({"id": "fs/bare", "name": "bare", "parent": "fs", "policy": {"policyGroups": ["fs"]}}),
        json!({"id": "fs/low", "name": "low", "parent": "fs", "prompt": {"summary": "s"},
            "runtime": {"owner": "o"}, "routing": {"minTier": "greeting"}}),
        json!({"id": "d1", "name": "d1", "kind": "group", "runtime": {"dynamic": true, "namePrefix": "mcp_"}}),
        json!({"id": "d2", "name": "d2", "kind": "group", "runtime": {"dynamic": true, "namePrefix": "mcp_"}}),
    ];
    nodes.extend(extra.map(|node| serde_json::from_value::<CapabilityNode>(node).unwrap()));
    let house = House::new(CapabilityTree::from_nodes(nodes).unwrap());
    let all = house.data(json!({"action": "validate"}));
    let messages = |level: u64| -> Vec<String> {
        let issues = all["issues"].as_array().unwrap();
        let of_level = issues.iter().filter(|issue| issue["level"] == level);
        of_level
            .map(|issue| {
                format!("{} {}", issue["nodeId"].as_str().unwrap(), issue["message"].as_str().unwrap())
            })
            .collect()
    };
    assert_eq!(messages(1).len(), 3, "{all}");
    assert!(messages(2)[0].starts_with("fs/low its tier greeting is below question"), "{all}");
    assert!(messages(2)[1].contains("prefix `mcp_`"), "{all}");
    assert!(messages(3).iter().any(|m| m.contains("policy group `fs`")), "{all}");
    for (level, checked) in [(0, json!([1, 2, 3])), (1, json!([1])), (2, json!([2])), (3, json!([3]))] {
        let data = house.data(json!({"action": "validate", "level": level}));
        assert_eq!(data["checkedLevels"], checked);
        assert_eq!(data["level1Pass"], !checked.as_array().unwrap().contains(&json!(1)));
    }
    assert!(house.error(json!({"action": "validate", "level": 4})).contains("level"));
    let healthy = House::new(tree()).data(json!({"action": "validate"}));
    assert_eq!(healthy["issues"], json!([]), "an exclusion that is said is no fault");

    let diagnosis = house.data(json!({"action": "diagnose"}));
    assert_eq!(diagnosis["inventory"]["groups"], 3);
    assert_eq!(diagnosis["inventory"]["dynamicPrefixes"], json!(["mcp_", "mcp_"]));
    let checks = diagnosis["checks"].as_array().unwrap();
    let ids: Vec<&Value> = checks.iter().map(|check| &check["check"]).collect();
    assert_eq!(ids, ["D1", "D2", "D3", "D5", "D7", "D8", "D9"]);
    assert_eq!((&checks[0]["status"], &checks[0]["count"]), (&json!("warning"), &json!(1)));
}

#[test]
fn kinds_of_sub_agents_are_listed_with_their_tools() {
    assert!(House::new(tree()).data(json!({"action": "subtrees"}))["note"].is_string());
    let mut nodes = tree().nodes().to_vec();
    for node in [
        json!({"id": "subagent_trees", "name": "subagent_trees", "kind": "group"}),
        json!({"id": "subagent_trees/coder", "name": "coder", "kind": "group", "parent": "subagent_trees"}),
        json!({"id": "subagent_trees/coder/bash", "name": "bash", "parent": "subagent_trees/coder"}),
    ] {
        nodes.push(serde_json::from_value(node).unwrap());
    }
    let tree = CapabilityTree::from_nodes(nodes).unwrap();
    let manager = CapabilityManager::new(tree).with_subagents(["coder"]);
    let reply = manager.call(&json!({"action": "subtrees"}), None).now_or_never().unwrap();
    let wanted = json!({"agentType": "coder", "groupId": "subagent_trees/coder", "toolCount": 1, "registered": true, "toolNames": ["bash"]});
    assert_eq!(reply.value["data"]["subtrees"], json!([wanted]));
}

fn spec() -> Value {
    json!({"name": "move_file", "parent": "fs", "runtime": {"owner": "host", "enabledWhen": "deny"},
        "prompt": {"summary": "Moves"}, "routing": {"minTier": "task_write"}, "perms": {"minSecurityLevel": "allowlist"}})
}

#[test]
fn a_new_node_has_to_say_who_runs_it_when_for_what_and_from_which_tier() {
    let house = House::new(tree());
    let with = |pointer: &str, value: Value| {
        let mut spec = spec();
        *spec.pointer_mut(pointer).unwrap() = value;
        json!({"action": "propose_register", "nodeSpec": spec})
    };
    assert!(house.error(json!({"action": "propose_register"})).contains("`nodeSpec` is required"));
    for (pointer, value, why) in [
        ("/name", json!(null), "`nodeSpec.name`"),
        ("/name", json!(""), "`nodeSpec.name`"),
        ("/parent", json!(null), "`nodeSpec.parent`"),
        ("/runtime", json!(null), "`nodeSpec.runtime`"),
        ("/runtime/owner", json!(""), "`nodeSpec.runtime.owner`"),
        ("/runtime/enabledWhen", json!(null), "use `deny`"),
        ("/prompt/summary", json!(null), "`nodeSpec.prompt.summary`"),
        ("/routing/minTier", json!(null), "`nodeSpec.routing.minTier` is required"),
        ("/routing/minTier", json!("x"), "task_multimodal"),
        ("/perms/minSecurityLevel", json!(null), "`nodeSpec.perms.minSecurityLevel`"),
        ("/perms/minSecurityLevel", json!("x"), "does not fit"),
        ("/name", json!("read_file"), "is there already"),
        ("/parent", json!("nowhere"), "no group"),
        ("/runtime", json!({"owner": "h", "enabledWhen": "deny", "typo": 1}), "does not fit"),
    ] {
        let error = house.error(with(pointer, value));
        assert!(error.contains(why), "{pointer}: {error}");
    }
    let id = house.patch(json!({"action": "propose_register", "nodeSpec": spec()}));
    assert!(house.manager.tree().unwrap().get("fs/move_file").is_none(), "proposed is not applied");
    assert_eq!(house.settle("apply_patch", &id)["success"], true);
    let tree = house.manager.tree().unwrap();
    assert!(!tree.get("fs/move_file").unwrap().skills.as_ref().unwrap().bindable);
}

#[test]
fn a_patch_is_applied_once_with_the_agreement_of_caller_and_host() {
    let house = House::new(tree());
    let id = house.patch(
        json!({"action": "propose_routing", "nodeId": "read_file", "updates": {"minTier": "question"}}),
    );
    let apply = |approved: Value| json!({"action": "apply_patch", "patchId": id, "approved": approved});
    assert!(house.error(json!({"action": "apply_patch"})).contains("patchId"));
    assert!(
        house
            .error(json!({"action": "apply_patch", "patchId": "patch-99", "approved": true}))
            .contains("no patch")
    );
    for not_true in [json!(false), json!("true"), json!(1), json!(null)] {
        assert!(house.error(apply(not_true)).contains("not approved"));
    }
    let alone = house.manager.call(&apply(json!(true)), None).now_or_never().unwrap();
    assert!(alone.text().contains("nobody who decides"));
    let refusing = Person(false, Mutex::default());
    let refused = house.manager.call(&apply(json!(true)), Some(&refusing)).now_or_never().unwrap();
    assert!(refused.text().contains("not today"));
    assert!(house.person.1.lock().unwrap().is_empty(), "nobody was asked in vain");

    let applied = house.data(apply(json!(true)));
    assert_eq!(applied["patch"]["status"], "applied");
    assert_eq!(applied["validation"]["level1Pass"], true);
    assert_eq!(house.person.1.lock().unwrap()[..], [(PatchStep::Apply, id.clone())]);
    // Only a field was named, so the others are as they were, and every question about tiers is still answered.
    let tree = house.manager.tree().unwrap();
    assert_eq!(tree.get("fs/read_file").unwrap().summary(), "Reads");
    assert_eq!(tree.allow_list(Tier::Question), ["read_file"]);
    assert!(house.error(apply(json!(true))).contains("is applied"));

    let revert = |approved: Value| json!({"action": "revert_patch", "patchId": id, "approved": approved});
    assert!(house.error(revert(json!(false))).contains("not approved"));
    assert_eq!(house.data(revert(json!(true)))["original"]["status"], "reverted");
    assert!(house.manager.tree().unwrap().allow_list(Tier::Question).is_empty());
    assert!(house.error(revert(json!(true))).contains("is reverted"));
    assert!(house.error(apply(json!(true))).contains("is reverted"), "what was taken back is proposed anew");
}

#[test]
fn what_others_stand_on_is_not_taken_away() {
    let house = House::new(tree());
    let update = |tier: &str| {
        house.patch(json!({"action": "propose_update", "nodeId": "fs/read_file", "updates": {"routing": {"minTier": tier}}}))
    };
    let (a, b) = (update("question"), update("greeting"));
    assert_eq!(house.settle("apply_patch", &b)["success"], true);
    assert_eq!(house.settle("apply_patch", &a)["success"], true);
    let blocked = house.settle("revert_patch", &b);
    assert!(blocked["error"].as_str().unwrap().contains(&a), "{blocked}");
    assert_eq!(house.settle("revert_patch", &a)["success"], true);
    assert_eq!(house.settle("revert_patch", &b)["success"], true);

    let mut group = spec();
    group["kind"] = json!("group");
    group["name"] = json!("sub");
    let group = house.patch(json!({"action": "propose_register", "nodeSpec": group}));
    assert_eq!(house.settle("apply_patch", &group)["success"], true);
    let mut child = spec();
    child["parent"] = json!("fs/sub");
    let child = house.patch(json!({"action": "propose_register", "nodeSpec": child}));
    assert_eq!(house.settle("apply_patch", &child)["success"], true);
    assert!(house.settle("revert_patch", &group)["error"].as_str().unwrap().contains(&child));
    assert!(house.manager.tree().unwrap().get("fs/sub/move_file").is_some());
}

#[test]
fn updates_name_known_fields_of_known_nodes() {
    let house = House::new(tree());
    let update = |action: &str, updates: Value| json!({"action": action, "nodeId": "fs/read_file", "updates": updates});
    for (payload, why) in [
        (json!({"action": "propose_update", "updates": {}}), "nodeId"),
        (json!({"action": "propose_update", "nodeId": "x", "updates": {"prompt": {}}}), "no node `x`"),
        (json!({"action": "propose_update", "nodeId": "fs/read_file"}), "`updates` is required"),
        (update("propose_update", json!({})), "no field"),
        (update("propose_update", json!({"colour": {}})), "no dimension"),
        (update("propose_update", json!({"prompt": {"sumary": "x"}})), "does not fit"),
        (update("propose_update", json!({"prompt": null, "routing": "x"})), "does not fit"),
        (update("propose_routing", json!({"minTier": "x"})), "does not fit"),
        (update("propose_binding", json!({"bindable": "yes"})), "does not fit"),
        (update("propose_binding", json!([])), "has to be an object"),
    ] {
        let error = house.error(payload.clone());
        assert!(error.contains(why), "{payload}: {error}");
    }
    let id = house.patch(update("propose_binding", json!({"bindable": true})));
    house.settle("apply_patch", &id);
    assert_eq!(house.manager.tree().unwrap().bindable_tools(), ["read_file"]);
    let by_name = house
        .data(json!({"action": "propose_binding", "nodeId": "write_file", "updates": {"guidance": true}}));
    assert_eq!(by_name["matchedBy"], "name");
}

#[test]
fn patches_outlive_the_process_and_a_corrupt_file_is_kept_and_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let open = || House {
        manager: CapabilityManager::with_folder(tree(), folder.path(), || "now".to_owned()),
        person: Person(true, Mutex::default()),
    };
    let id = open().patch(
        json!({"action": "propose_routing", "nodeId": "fs/read_file", "updates": {"minTier": "question"}}),
    );
    assert_eq!(open().settle("apply_patch", &id)["success"], true);
    assert_eq!(open().manager.tree().unwrap().allow_list(Tier::Question), ["read_file"]);
    assert_eq!(open().settle("revert_patch", &id)["success"], true);

    let file = folder.path().join("capability_patches.json");
    std::fs::write(&file, "{ not json").unwrap();
    let looked = open().data(json!({"action": "diagnose"}));
    assert!(looked["storeWarnings"][0].is_string(), "{looked}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ not json", "looking changes nothing");
    let proposed = open().data(
        json!({"action": "propose_routing", "nodeId": "fs/read_file", "updates": {"minTier": "question"}}),
    );
    assert!(proposed["storeWarnings"][0].as_str().unwrap().contains("corrupt-1"), "{proposed}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("capability_patches.json.corrupt-1")).unwrap(),
        "{ not json"
    );
}

#[test]
fn a_dump_of_the_tree_is_loaded_as_the_same_tree_and_constants_are_made_of_it() {
    let tree = tree();
    let dump = serde_json::to_string(&tree).unwrap();
    assert_eq!(serde_json::from_str::<CapabilityTree>(&dump).unwrap(), tree);
    let constants = tree.constants();
    assert_eq!(constants["toolOrder"], json!(["write_file", "read_file"]));
    assert_eq!(constants["summaries"]["read_file"], "Reads");
    let script = tree.constants_in_typescript();
    for name in ["display", "policyGroups", "wizardGroups", "toolOrder", "summaries"] {
        assert!(script.contains(&format!("export const {name} = ")), "{script}");
    }
}

fn profiles(folder: &std::path::Path) -> SecretProvider {
    let env = EnvSource::new(|name: &str| match name {
        "SET" => Some("t0p-secret-value".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    });
    SecretProvider::new()
        .with_source("env", Arc::new(env))
        .with_source("file", Arc::new(FileSource::new(folder)))
}

fn ask(manager: &ProfileManager, payload: Value) -> Value {
    let reply = manager.call(&payload).now_or_never().unwrap();
    assert_eq!(reply.value["success"], reply.ok);
    assert!(!reply.text().contains("t0p-secret"), "no reply holds a value");
    reply.value
}

#[test]
fn profiles_are_checked_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (manager, problems) =
        ProfileManager::open(profiles(folder.path()), folder.path(), || "now".to_owned()).unwrap();
    assert!(problems.is_empty());
    let register = |name: &str, kind: &str, source: &str| json!({"action": "register", "name": name, "type": kind, "source": source});
    let token = format!("sk-{}", "a".repeat(22));
    for payload in [
        register("", "bearer", "env:SET"),
        register("bad name", "bearer", "env:SET"),
        register("a", "digest", "env:SET"),
        register("a", "bearer", ""),
        register("a", "bearer", &token),
        register("a", "bearer", "literal:x"),
        register("a", "bearer", "nocolon"),
        register("a", "bearer", "vault:x"),
        json!({"action": "register", "name": "a", "type": "raw", "source": "env:SET", "username": "u"}),
        json!({"action": "register", "name": 5}),
        json!({"action": "burn"}),
        json!({"payload": "null"}),
    ] {
        let reply = ask(&manager, payload.clone());
        assert_eq!(reply["success"], false, "{payload}");
        assert!(!reply["error"].as_str().unwrap().contains(&token));
    }
    let made = ask(
        &manager,
        json!({"action": "register", "name": "api", "type": "basic", "source": "env:SET", "username": "u"}),
    );
    let profile =
        json!({"name": "api", "type": "basic", "source": "env:SET", "username": "u", "createdAt": "now"});
    assert_eq!(made["data"]["profile"], profile);
    assert_eq!(ask(&manager, json!({"action": "list"}))["data"]["profiles"], json!([profile]));
    assert_eq!(ask(&manager, json!({"action": "get", "name": "api"}))["data"]["profile"], profile);
    let (later, _) = ProfileManager::open(profiles(folder.path()), folder.path(), String::new).unwrap();
    assert_eq!(
        ask(&later, json!({"action": "get", "name": "api"}))["data"]["profile"],
        profile,
        "it was stored"
    );
    assert_eq!(ask(&manager, json!({"action": "remove", "name": "api"}))["data"], json!({"removed": "api"}));
    for action in ["get", "remove"] {
        assert_eq!(ask(&manager, json!({"action": action, "name": "api"}))["success"], false);
    }
}

#[cfg(unix)]
#[test]
fn a_profile_is_tested_without_its_value_being_told() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = tempfile::tempdir().unwrap();
    let manager = ProfileManager::new(profiles(folder.path()));
    for (name, mode) in [("open", 0o644), ("private", 0o600)] {
        let file = folder.path().join(name);
        std::fs::write(&file, "t0p-secret-in-file\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("private", folder.path().join("link")).unwrap();
    for (source, code) in [
        ("env:SET", None),
        ("env:UNSET", Some("source_read_failed")),
        ("env:EMPTY", Some("source_read_failed")),
        ("file:open", Some("file_mode_insecure")),
        ("file:private", None),
        ("file:link", None),
        ("file:missing", Some("source_read_failed")),
    ] {
        ask(&manager, json!({"action": "register", "name": "a", "type": "raw", "source": source}));
        let data = ask(&manager, json!({"action": "test", "name": "a"}))["data"].clone();
        match code {
            None => assert_eq!(data, json!({"kind": "raw", "ok": true}), "{source}"),
            Some(code) => assert_eq!(data, json!({"ok": false, "code": code}), "{source}"),
        }
    }
    assert_eq!(ask(&manager, json!({"action": "test", "name": "none"}))["data"]["code"], "profile_not_found");
    let resolved = manager.provider().resolve("a").now_or_never().unwrap();
    assert!(resolved.is_err());
}
