//! Stores that two processes change at once: this test binary, started again.

use std::process::{Command, Stdio};

use futures_util::FutureExt as _;
use haversack_skill_runtime::capability::{
    CapabilityManager, CapabilityNode, CapabilityTree, ManagedTree, NodeKind, Patch,
};
use haversack_skill_runtime::metadata::{Step, ToolSchema};
use haversack_skill_runtime::pipeline::{Origin, Store, ToolNode};
use haversack_skill_runtime::secrets::{EnvSource, ProfileManager, SecretProvider};
use haversack_skill_runtime::state_file::StateFile;
use serde_json::{Value, json};

/// Where the folder is told to a process that only changes stores.
const FOLDER: &str = "HAVERSACK_TEST_STORES";
const NAME: &str = "HAVERSACK_TEST_NAME";
/// Changes that each process makes.
const CHANGES: usize = 25;
const PROCESSES: usize = 4;

fn tree() -> CapabilityTree {
    CapabilityTree::from_nodes([CapabilityNode::new("n", "n", NodeKind::Tool, "")]).unwrap()
}

fn patches(folder: &str) -> CapabilityManager {
    CapabilityManager::with_folder(tree(), folder, String::new)
}

/// What a started process does; without the variable it is an empty test.
#[test]
fn child_that_changes_stores() {
    let (Ok(folder), Ok(name)) = (std::env::var(FOLDER), std::env::var(NAME)) else { return };
    let pipelines = Store::file(&folder);
    let tools = |_: &str| Some(ToolNode::new("n"));
    let env = EnvSource::new(|_: &str| None);
    let provider = SecretProvider::new().with_source("env", std::sync::Arc::new(env));
    for number in 0..CHANGES {
        let (mut store, problems) = Store::load(&pipelines).unwrap();
        assert_eq!(problems, [""; 0], "a reader never sees half a file");
        let origin = Origin::new(format!("{name}-{number}"), "text");
        store.compile(&origin, &ToolSchema::new(vec![Step::new("a", "n")]), &tools).unwrap();
        store.save(&pipelines, "now").unwrap();

        let propose =
            json!({"action": "propose_update", "nodeId": "n", "updates": {"display": {"title": name}}});
        let reply = patches(&folder).call(&propose, None).now_or_never().unwrap();
        assert!(reply.ok, "{}", reply.text());

        let (profiles, problems) = ProfileManager::open(provider.clone(), &folder, String::new).unwrap();
        assert_eq!(problems, [""; 0]);
        let register = json!({"action": "register", "name": format!("{name}-{number}"), "type": "raw", "source": "env:A"});
        assert!(profiles.call(&register).now_or_never().unwrap().ok);
    }
}

#[test]
fn changes_of_several_processes_at_once_all_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes::child_that_changes_stores"])
                .env(FOLDER, folder)
                .env(NAME, format!("p{number}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "the child ran the test");
    }
    let (store, problems) = Store::load(&Store::file(folder)).unwrap();
    assert_eq!((store.definitions().len(), problems.len()), (PROCESSES * CHANGES, 0));

    let file = StateFile::new(std::path::Path::new(folder).join("capability_patches.json"), "patches");
    let (managed, problems) = ManagedTree::replay(tree(), &file.load().unwrap().entries);
    assert_eq!(problems, [""; 0]);
    let ids: std::collections::BTreeSet<&str> =
        managed.patches().iter().map(|patch: &Patch| patch.id.as_str()).collect();
    assert_eq!(ids.len(), PROCESSES * CHANGES, "no number was given twice");

    let profiles = StateFile::new(std::path::Path::new(folder).join("secret_profiles.json"), "profiles");
    assert_eq!(profiles.load().unwrap().entries.len(), PROCESSES * CHANGES);
    let left: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("corrupt") || name.ends_with(".new"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_corrupt_store_is_set_aside_and_reported_and_work_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = Store::file(folder.path());
    for corrupt in ["{ half a fil", "[]", "{\"version\": 2, \"tools\": {}}", "{\"version\": 1}", "\u{0}"] {
        std::fs::write(file.path(), corrupt).unwrap();
        let (store, problems) = Store::load(&file).unwrap();
        assert_eq!((store.definitions().len(), problems.len()), (0, 1), "{corrupt}");
        let changed = store.save(&file, "now").unwrap();
        let (kept, why) = changed.set_aside.unwrap();
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), corrupt);
        assert!(!why.is_empty());
        let stored: Value = serde_json::from_str(&std::fs::read_to_string(file.path()).unwrap()).unwrap();
        assert_eq!((&stored["version"], &stored["tools"]), (&json!(1), &json!({})));
    }
}
