//! The manager with real MCP servers, all at once: six SDKs in four languages, five revisions, both eras.
#![expect(clippy::unwrap_used, reason = "tests say what broke by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use haversack_interop_tests::peer;
use haversack_mcp_client::ClientOptions;
use haversack_mcp_client::config::Config;
use haversack_mcp_client::environment::Environment;
use haversack_mcp_client::manager::{Manager, ManagerOptions};
use serde_json::{Map, Value, json};

/// One real server: its entry, the revision it is met in, a tool with its arguments, and what its answer must hold.
struct Real {
    name: &'static str,
    entry: Value,
    revision: &'static str,
    call: Option<(&'static str, Value, &'static str)>,
}

/// The peers that are installed; those that are not are named on standard error.
fn real_servers(folder: &Path) -> Vec<Real> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, kubeconfig) = (folder.to_str().unwrap(), folder.join("kubeconfig"));
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let mut servers = Vec::new();
    let mut add = |name, peer_name: &str, program: &str, rest: Value, revision, call| {
        let Some(peer) = peer(peer_name) else { return };
        let mut entry = rest;
        entry["command"] = peer.join(program).to_str().unwrap().into();
        servers.push(Real { name, entry, revision, call });
    };
    let bin = |name: &str| format!("node_modules/.bin/{name}");
    let echo = || Some(("echo", json!({"message": "otter"}), "otter"));

    add(
        "everything",
        "mcp-reference",
        &bin("mcp-server-everything"),
        json!({"args": ["stdio"]}),
        "2025-11-25",
        echo(),
    );
    let listing = Some(("list_directory", json!({"path": folder}), "kubeconfig"));
    add(
        "filesystem",
        "mcp-reference",
        &bin("mcp-server-filesystem"),
        json!({"args": [folder]}),
        "2025-11-25",
        listing,
    );
    let memory = json!({"env": {"MEMORY_FILE_PATH": format!("{folder}/memory.json")}});
    add(
        "memory",
        "mcp-reference",
        &bin("mcp-server-memory"),
        memory,
        "2025-11-25",
        Some(("read_graph", json!({}), "entities")),
    );
    let thought =
        json!({"thought": "otters", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let thinking = Some(("sequentialthinking", thought, "thoughtNumber"));
    add("thinking", "mcp-more", &bin("mcp-server-sequential-thinking"), json!({}), "2025-11-25", thinking);
    let sum = Some(("add", json!({"a": 1, "b": 2}), "3"));
    add("hello", "mcp-more", &bin("mcp-hello-world"), json!({}), "2025-11-25", sum);
    add("everything-old", "mcp-old", &bin("mcp-server-everything"), json!({}), "2024-11-05", echo());
    let time = Some(("get_current_time", json!({"timezone": "UTC"}), "UTC"));
    add("time", "mcp-python", "bin/mcp-server-time", json!({}), "2026-07-28", time);
    let status = Some(("git_status", json!({"repo_path": folder}), "kubeconfig"));
    add(
        "git",
        "mcp-python",
        "bin/mcp-server-git",
        json!({"args": ["--repository", folder]}),
        "2026-07-28",
        status,
    );
    // Its tool needs the network.
    add("fetch", "mcp-python-fetch", "bin/mcp-server-fetch", json!({}), "2026-07-28", None);
    let database = json!({"args": ["--db-path", format!("{folder}/db")]});
    add(
        "sqlite",
        "mcp-python-1",
        "bin/mcp-server-sqlite",
        database,
        "2025-11-25",
        Some(("list_tables", json!({}), "[]")),
    );
    let script = json!({"args": [here.join("peers/old_sdk_server.py").to_str().unwrap()]});
    add(
        "old-sdk",
        "mcp-python-old",
        "bin/python",
        script,
        "2024-11-05",
        Some(("shout", json!({"text": "hi"}), "HI")),
    );
    let clock = "node_modules/mcp-time-linux-x64/bin/mcp-time";
    add("go-time", "mcp-binaries", clock, json!({}), "2025-03-26", Some(("current_time", json!({}), "20")));
    let kubernetes = "node_modules/kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64";
    let args = json!({"args": ["--kubeconfig", kubeconfig.to_str().unwrap()]});
    let view = Some(("configuration_view", json!({}), "127.0.0.1"));
    add("kubernetes", "mcp-binaries", kubernetes, args, "2026-07-28", view);
    servers
}

/// A cluster that is not there, which is enough to start.
const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "none",
"clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
"contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}], "users": [{"name": "none", "user": {}}]}"#;

fn manager() -> Manager {
    Manager::new(ManagerOptions::new(
        ClientOptions::new("interop", "0").with_start_timeout(Duration::from_secs(120)),
    ))
}

/// A repository of git's, since one of the servers wants one.
fn workspace() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let made =
        std::process::Command::new("git").args(["init", "--quiet"]).current_dir(&path).status().unwrap();
    assert!(made.success());
    (folder, path)
}

fn want(manager: &Manager, folder: &Path, servers: &[Real], change: impl Fn(&mut Value)) {
    let entries: Map<_, _> = servers
        .iter()
        .map(|server| {
            let mut entry = server.entry.clone();
            change(&mut entry);
            (server.name.to_owned(), entry)
        })
        .collect();
    let config = Config::new(folder).with_host_servers(&entries.into());
    assert_eq!(config.problems(), []);
    let environment: Environment = std::env::vars_os().collect();
    assert_eq!(manager.set_config(&config.withhold(), &environment), []);
}

#[tokio::test]
async fn real_servers_start_together_answer_and_are_kept() {
    let (_kept, folder) = workspace();
    let servers = real_servers(&folder);
    let manager = manager();
    want(&manager, &folder, &servers, |_| {});
    let report = manager.ensure_started().await;
    for status in &report.statuses {
        assert!(status.state.is_ready(), "{}: {}", status.name, status.state);
    }
    for server in &servers {
        let client = manager.client(server.name).unwrap();
        let revision = client.info().protocol_version.as_str();
        assert_eq!(revision, server.revision, "{}", server.name);
        let tools = client.list_tools().await.unwrap();
        assert!(!tools.items.is_empty() && tools.problems.is_empty(), "{}: {tools:?}", server.name);
        if let Some((tool, arguments, answer)) = &server.call {
            let result = client.call_tool(tool, arguments.as_object().unwrap().clone()).await.unwrap();
            assert!(!result.is_error && result.text().contains(answer), "{}: {result:?}", server.name);
        }
        eprintln!("{}: {} tools in {revision}", server.name, tools.items.len());
    }
    assert_eq!(manager.era_memory().len(), servers.len());
    manager.close().await;
    assert!(manager.ready().is_empty());
}

#[tokio::test]
async fn servers_of_both_eras_are_met_in_the_older_one_when_it_is_set() {
    let (_kept, folder) = workspace();
    let servers: Vec<_> =
        real_servers(&folder).into_iter().filter(|server| server.revision == "2026-07-28").collect();
    let manager = manager();
    want(&manager, &folder, &servers, |entry| entry["era"] = "legacy".into());
    manager.ensure_started().await;
    for server in &servers {
        let Some(client) = manager.client(server.name) else {
            panic!("{}: {}", server.name, manager.status(server.name).unwrap().state)
        };
        assert_eq!(client.info().era.as_str(), "legacy", "{}", server.name);
        assert!(!client.list_tools().await.unwrap().items.is_empty(), "{}", server.name);
    }
    manager.close().await;
}
