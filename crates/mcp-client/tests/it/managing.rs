//! The manager with real child processes.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haversack_mcp_client::config::{Config, ProblemKind};
use haversack_mcp_client::environment::{Environment, EnvironmentPolicy, Inherit};
use haversack_mcp_client::manager::{
    Clock, Manager, ManagerEvent, ManagerEvents, ManagerOptions, ServerState, StartError,
};
use haversack_mcp_client::{Client, ClientOptions};
use serde_json::{Map, Value, json};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/small_server.py")
}

/// An entry that runs the small server with more arguments.
fn small(more: &[&str]) -> Value {
    let mut args = vec![script().to_str().unwrap().to_owned()];
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    json!({"command": "python3", "args": args})
}

fn host() -> Environment {
    // The tests run where a `python3` is on PATH; nothing else of the environment matters.
    Environment::default().with("PATH", std::env::var_os("PATH").unwrap()).with("GITHUB_TOKEN", "s3cret")
}

fn options() -> ManagerOptions {
    let client = ClientOptions::new("test", "0")
        .with_probe_timeout(Duration::from_millis(500))
        .with_close_grace(Duration::from_millis(300), Duration::from_millis(300));
    ManagerOptions::new(client)
}

struct Bench {
    manager: Manager,
    folder: tempfile::TempDir,
    events: ManagerEvents,
}

impl Bench {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: ManagerOptions) -> Self {
        let manager = Manager::new(options);
        let events = manager.events();
        Self { manager, folder: tempfile::tempdir().unwrap(), events }
    }

    fn want(&self, servers: &Value) {
        self.want_with(servers, &host());
    }

    fn want_with(&self, servers: &Value, environment: &Environment) {
        let config = Config::new(self.folder.path()).with_host_servers(servers);
        assert_eq!(config.problems(), []);
        self.manager.set_config(&config.withhold(), environment);
    }

    /// What the process of a server says of itself.
    async fn facts(&self, server: &str) -> Value {
        facts(&self.manager.client(server).unwrap()).await
    }

    async fn pid(&self, server: &str) -> u64 {
        self.facts(server).await["pid"].as_u64().unwrap()
    }

    fn log(&self) -> String {
        self.folder.path().join("log").to_str().unwrap().to_owned()
    }

    fn logged(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }
}

async fn facts(client: &Client) -> Value {
    let result = client.call_tool("facts", Map::new()).await.unwrap();
    serde_json::from_str(&result.text()).unwrap()
}

/// Whether a process exists; a zombie that nobody reaped counts.
fn is_alive(pid: u64) -> bool {
    Command::new("kill")
        .args(["-0", &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// Waits for what must come: the limit is only there so that a fault fails and does not hang.
async fn until_gone(pid: u64) {
    let gone = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn servers_start_when_first_wanted_and_are_kept() {
    let mut bench = Bench::new();
    let log = bench.log();
    bench.want(&json!({"a": small(&["--log", &log]), "b": small(&["--log", &log])}));
    assert!(bench.logged().is_empty());
    assert!(bench.manager.client("a").is_none() && bench.manager.ready().is_empty());
    let report = bench.manager.ensure_started().await;
    assert!(report.statuses.iter().all(|status| status.state.is_ready()), "{report:?}");
    let pids = [bench.pid("a").await, bench.pid("b").await];
    bench.manager.ensure_started().await;
    assert_eq!([bench.pid("a").await, bench.pid("b").await], pids);
    assert_eq!(bench.logged().iter().filter(|line| *line == "start").count(), 2);
    let ready: Vec<_> = bench.manager.ready().iter().map(|server| server.name.to_string()).collect();
    assert_eq!(ready, ["a", "b"]);

    bench.manager.close().await;
    assert!(!pids.into_iter().any(is_alive));
    let mut kinds = Vec::new();
    while let Some(event) = bench.events.try_next() {
        kinds.push(match event {
            ManagerEvent::Starting { .. } => "starting",
            ManagerEvent::Ready { .. } => "ready",
            ManagerEvent::Stopped { .. } => "stopped",
            other => panic!("{other:?}"),
        });
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["ready", "ready", "starting", "starting", "stopped", "stopped"]);
}

#[tokio::test]
async fn a_process_gets_its_folder_arguments_and_variables_and_no_secret_of_the_host() {
    let bench = Bench::new();
    let sub = bench.folder.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut plain = small(&["${WHO:-nobody}", "${GITHUB_TOKEN}"]);
    plain["env"] = json!({"OWN": "${WHO:-x}${EMPTY}"});
    plain["cwd"] = "sub".into();
    let mut named = small(&[]);
    named["passEnv"] = json!(["GITHUB_TOKEN", "ABSENT"]);
    bench.want_with(&json!({"plain": plain, "named": named}), &host().with("EMPTY", "").with("EDITOR", "vi"));
    bench.manager.ensure_started().await;

    let facts = bench.facts("plain").await;
    assert_eq!(Path::new(facts["cwd"].as_str().unwrap()), sub.canonicalize().unwrap());
    assert_eq!(facts["args"], json!(["nobody", "s3cret"]), "what the entry names is put in");
    for absent in ["EDITOR", "EMPTY", "GITHUB_TOKEN", "CARGO_MANIFEST_DIR"] {
        assert_eq!(facts["env"][absent], Value::Null, "{absent}");
    }
    assert_eq!(facts["env"]["OWN"], "x");
    assert_eq!(bench.facts("named").await["env"]["GITHUB_TOKEN"], "s3cret");
    bench.manager.close().await;

    // The policy is the host's.
    let bench = Bench::with(options().with_environment(EnvironmentPolicy::new(Inherit::AllButSecrets)));
    bench.want_with(&json!({"s": small(&[])}), &host().with("EDITOR", "vi"));
    bench.manager.ensure_started().await;
    let facts = bench.facts("s").await;
    assert_eq!((&facts["env"]["EDITOR"], &facts["env"]["GITHUB_TOKEN"]), (&json!("vi"), &Value::Null));
    bench.manager.close().await;
}

#[tokio::test]
async fn a_changed_configuration_restarts_exactly_that_server_and_a_removed_one_ends() {
    let bench = Bench::new();
    bench.want(&json!({"a": small(&["one"]), "b": small(&[]), "c": small(&[])}));
    bench.manager.ensure_started().await;
    let (a, b, c) = (bench.pid("a").await, bench.pid("b").await, bench.pid("c").await);

    let mut tuned = small(&[]);
    tuned["denyTools"] = json!(["exit"]);
    bench.want(&json!({"a": small(&["two"]), "b": tuned}));
    assert!(is_alive(a) && is_alive(c), "nothing happens before it is asked for");
    bench.manager.ensure_started().await;
    assert!(!is_alive(a), "the new one waits for the end of the old one");
    assert_ne!(bench.pid("a").await, a);
    assert_eq!(bench.facts("a").await["args"], json!(["two"]));
    assert_eq!(bench.pid("b").await, b, "which tools may be used is no reason for a restart");
    assert!(!bench.manager.ready()[1].tools.allows("exit"));
    assert!(bench.manager.client("c").is_none() && bench.manager.status("c").is_none());
    until_gone(c).await;
    bench.manager.close().await;
}

#[tokio::test]
async fn a_changed_variable_restarts_the_servers_that_use_it() {
    let bench = Bench::new();
    let mut passed = small(&[]);
    passed["passEnv"] = json!(["GITHUB_TOKEN"]);
    let servers = json!({"expands": small(&["${GITHUB_TOKEN}"]), "passes": passed, "neither": small(&[])});
    bench.want(&servers);
    bench.manager.ensure_started().await;
    let before = [bench.pid("expands").await, bench.pid("passes").await, bench.pid("neither").await];
    bench.want_with(&servers, &host().with("GITHUB_TOKEN", "renewed"));
    bench.manager.ensure_started().await;
    let after = [bench.pid("expands").await, bench.pid("passes").await, bench.pid("neither").await];
    let changed: Vec<_> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
    assert_eq!(changed, [true, true, false]);
    bench.manager.close().await;
}

#[tokio::test]
async fn a_server_that_exits_during_a_call_fails_it_at_once_and_is_started_again_when_next_wanted() {
    let mut bench = Bench::new();
    bench.want(&json!({"a": small(&[])}));
    bench.manager.ensure_started().await;
    let client = bench.manager.client("a").unwrap();
    let before = bench.pid("a").await;
    let error = client.call_tool("exit", Map::new()).await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert!(error.to_string().contains("told to go"), "{error}");
    assert!(bench.manager.client("a").is_none(), "a client that is of no use is not given out");

    let status = bench.manager.ensure_server("a").await.unwrap();
    assert!(status.state.is_ready(), "{status:?}");
    assert_ne!(bench.pid("a").await, before);
    assert!(bench.manager.ensure_server("unknown").await.is_none());
    let exited = loop {
        if let ManagerEvent::Exited { reason, .. } = bench.events.next().await.unwrap() {
            break reason;
        }
    };
    assert!(exited.contains('7') && exited.contains("told to go"), "{exited}");
    bench.manager.close().await;
}

#[tokio::test]
async fn a_start_that_fails_is_told_once_and_tried_again_only_after_a_change_or_a_reload() {
    let bench = Bench::new();
    let log = bench.log();
    let failing = json!({
        "bad": small(&["--log", &log, "--fail", "no database here"]),
        "gone": {"command": "no-such-program-here"},
        "lost": {"command": "python3", "cwd": "no-such-folder"},
        "good": small(&[])
    });
    bench.want(&failing);
    let report = bench.manager.ensure_started().await;
    let told: Vec<_> = report.new_failures().map(|status| status.state.to_string()).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("no database here"), "{told:?}");
    assert!(told[1].contains("no-such-program-here failed: No such file"), "{told:?}");
    assert!(told[2].contains("no-such-folder is no folder"), "{told:?}");
    let ServerState::Failed(error) = bench.manager.status("bad").unwrap().state else { panic!() };
    let StartError::Client(error) = &*error else { panic!("{error}") };
    assert!(error.stderr_tail().unwrap().contains("no database here"));
    assert!(bench.manager.status("good").unwrap().state.is_ready());

    let starts = |bench: &Bench| bench.logged().iter().filter(|line| *line == "start").count();
    let once = starts(&bench);
    assert_eq!(bench.manager.ensure_started().await.new_failures().count(), 0);
    assert_eq!(starts(&bench), once, "not tried again");

    let mut changed = failing.clone();
    changed["bad"]["args"][4] = "still none".into();
    bench.want(&changed);
    assert_eq!(bench.manager.ensure_started().await.new_failures().count(), 1);
    bench.manager.reload();
    assert_eq!(bench.manager.ensure_started().await.new_failures().count(), 3);
    assert!(bench.manager.status("good").unwrap().state.is_ready());
    bench.manager.close().await;
}

#[tokio::test]
async fn closing_leaves_no_process_even_of_a_server_that_does_not_listen() {
    let bench = Bench::new();
    bench.want(&json!({"stubborn": small(&["--ignore-eof"]), "good": small(&[])}));
    bench.manager.ensure_started().await;
    let pids = [bench.pid("stubborn").await, bench.pid("good").await];
    bench.manager.close().await;
    assert!(!pids.into_iter().any(is_alive));
    assert_eq!(bench.manager.ensure_started().await.new_failures().count(), 0);
    assert!(bench.manager.ready().is_empty(), "a closed manager starts nothing");
}

#[tokio::test]
async fn dropping_the_last_clone_ends_the_servers_even_if_somebody_holds_a_client() {
    let bench = Bench::new();
    bench.want(&json!({"stubborn": small(&["--ignore-eof"])}));
    bench.manager.ensure_started().await;
    let (held, pid) = (bench.manager.client("stubborn").unwrap(), bench.pid("stubborn").await);
    let clone = bench.manager.clone();
    drop(bench);
    assert!(held.is_open());
    drop(clone);
    until_gone(pid).await;
    assert!(held.call_tool("facts", Map::new()).await.unwrap_err().is_closed());
}

#[test]
fn a_runtime_that_goes_down_takes_the_servers_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bench = Bench::new();
    bench.want(&json!({"stubborn": small(&["--ignore-eof"])}));
    let pid = runtime.block_on(async {
        bench.manager.ensure_started().await;
        bench.pid("stubborn").await
    });
    drop(runtime);
    assert!(!is_alive(pid));
    drop(bench);
}

#[derive(Debug, Default)]
struct HandClock(Mutex<Duration>);

impl Clock for HandClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn a_server_that_crashes_again_and_again_is_not_started_again_and_again() {
    let clock = Arc::new(HandClock::default());
    let bench = Bench::with(options().with_clock(Arc::clone(&clock) as _));
    let log = bench.log();
    bench.want(&json!({"a": small(&["--log", &log])}));
    let starts = |bench: &Bench| bench.logged().iter().filter(|line| *line == "start").count();
    bench.manager.ensure_started().await;
    for (exits, pause) in [(1, 0), (2, 1), (3, 2), (4, 4)] {
        let client = bench.manager.client("a").unwrap();
        client.call_tool("exit", Map::new()).await.unwrap_err();
        for _ in 0..3 {
            bench.manager.ensure_started().await;
        }
        if pause > 0 {
            assert_eq!(starts(&bench), exits, "the pause holds");
            let ServerState::Exited { restart_in, .. } = bench.manager.status("a").unwrap().state else {
                panic!()
            };
            assert_eq!(restart_in, Duration::from_secs(pause));
            *clock.0.lock().unwrap() += Duration::from_secs(pause);
            bench.manager.ensure_started().await;
        }
        assert_eq!(starts(&bench), exits + 1);
    }
    bench.manager.close().await;
}

#[tokio::test]
async fn a_server_that_dies_right_after_it_is_ready_does_not_make_a_loop() {
    let clock = Arc::new(HandClock::default());
    let mut bench = Bench::with(options().with_clock(clock));
    let log = bench.log();
    bench.want(&json!({"a": small(&["--log", &log, "--die-after-init"])}));
    for _ in 0..2 {
        bench.manager.ensure_started().await;
        while !matches!(bench.events.next().await.unwrap(), ManagerEvent::Exited { .. }) {}
    }
    for _ in 0..3 {
        bench.manager.ensure_started().await;
    }
    assert_eq!(bench.logged().iter().filter(|line| *line == "start").count(), 2);
    assert!(bench.manager.client("a").is_none());
    bench.manager.close().await;
}

#[tokio::test]
async fn the_era_is_remembered_so_that_a_silent_server_is_probed_once() {
    let bench = Bench::new();
    let log = bench.log();
    let servers = json!({"old": small(&["--log", &log, "--silent-probe"])});
    bench.want(&servers);
    bench.manager.ensure_started().await;
    bench.manager.reload();
    bench.manager.ensure_started().await;
    // And over a restart of the host, if it keeps the memory.
    let kept = serde_json::to_string(&bench.manager.era_memory()).unwrap();
    assert!(!kept.contains("small_server"));
    bench.manager.close().await;
    let manager = Manager::new(options().with_era_memory(serde_json::from_str(&kept).unwrap()));
    let config = Config::new(bench.folder.path()).with_host_servers(&servers);
    manager.set_config(&config.withhold(), &host());
    manager.ensure_started().await;
    manager.close().await;

    let log = bench.logged();
    let starts: Vec<_> = log.split(|line| line == "start").skip(1).map(|asked| asked[0].as_str()).collect();
    assert_eq!(starts, ["server/discover", "initialize", "initialize"]);
}

#[tokio::test]
async fn every_server_of_the_configuration_has_a_status() {
    let manager = Manager::new(options());
    assert!(manager.statuses().is_empty());
    let folder = tempfile::tempdir().unwrap();
    let file = json!({"mcpServers": {"repo": small(&[])}}).to_string();
    let config = Config::new(folder.path())
        .with_repository_file(".mcp.json", file.as_bytes())
        .with_host_servers(&json!({
            "needed": {"command": "no-such-program-here", "required": true},
            "off": {"command": "x", "disabled": true, "required": true},
            "unset": {"command": "no-such-${MISSING}"},
            "web": {"type": "http", "url": "https://example.org/mcp"},
            "odd": {"type": "ws", "url": "wss://example.org"}
        }));
    let problems = manager.set_config(&config.withhold(), &host());
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((problem.kind, problem.server.as_deref()), (ProblemKind::UnsetVariable, Some("unset")));
    assert!(problem.to_string().contains("`MISSING`"), "{problem}");

    let shown = |statuses: Vec<haversack_mcp_client::manager::ServerStatus>| {
        let lines = statuses.iter().map(|status| format!("{} {}", status.name, status.state));
        lines.map(|line| line.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(manager.statuses()),
        [
            "needed not started",
            "odd unsupported (ws)",
            "off disabled",
            "repo not approved",
            "unset not started",
            "web unsupported (http)"
        ]
    );
    let report = manager.ensure_started().await;
    assert_eq!(
        shown(report.statuses.clone()),
        [
            "needed failed",
            "odd unsupported (ws)",
            "off disabled",
            "repo not approved",
            "unset failed",
            "web unsupported (http)"
        ]
    );
    let missing: Vec<_> = report.missing_required().map(|status| status.name.to_string()).collect();
    assert_eq!(missing, ["needed"]);

    // With the approval it runs.
    let approved = config.approve(config.consent_question().unwrap().fingerprint()).unwrap();
    manager.set_config(&approved, &host());
    manager.ensure_started().await;
    assert!(manager.status("repo").unwrap().state.is_ready());
    assert!(manager.ready()[0].origin.is_repository());
    // And without it, not any more.
    manager.set_config(&config.withhold(), &host());
    manager.ensure_started().await;
    assert!(manager.ready().is_empty());
    manager.close().await;
}
