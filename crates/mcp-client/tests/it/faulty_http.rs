//! Every mode of the HTTP server that misbehaves on purpose, against the outcome that its own list names.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use haversack_http::{ReqwestClient, Secret};
use haversack_mcp_client::http::HttpOptions;
use haversack_mcp_client::protocol::{Era, ListKind, Notice, ProblemCode};
use haversack_mcp_client::{Client, ClientOptions, Error, Event};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// No mode may take longer than this: a hang.
const HANG: Duration = Duration::from_secs(40);

fn script() -> Option<PathBuf> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.is_dir() {
        eprintln!(
            "SKIPPED: {} is missing, and with it the HTTP server that misbehaves on purpose",
            shared.display()
        );
        return None;
    }
    Some(shared.join("probes/mcp/faulty_http.py").canonicalize().unwrap())
}

/// What was seen of one conversation: connect, list, call, close.
struct Report {
    connected: Result<(Era, usize, String), Error>,
    events: Vec<Event>,
    log: Vec<Value>,
}

impl Report {
    fn works(&self, era: Era) {
        let (seen, tools, text) = self.connected.as_ref().unwrap();
        assert_eq!((*seen, *tools, text.as_str()), (era, 1, "echo: hi ü\u{2028}"));
    }

    fn error(&self) -> &Error {
        self.connected.as_ref().unwrap_err()
    }

    fn sent(&self, method: &str) -> Vec<&Value> {
        self.log.iter().filter(|line| line["body"]["method"] == method).collect()
    }

    fn verbs(&self, verb: &str) -> usize {
        self.log.iter().filter(|line| line["http"] == verb).count()
    }

    fn transport_problems(&self) -> usize {
        let is = |event: &&Event| matches!(event, Event::Notice(Notice::Problem(problem)) if problem.code == ProblemCode::Transport);
        self.events.iter().filter(is).count()
    }
}

type Check = fn(&Report);

#[expect(clippy::too_many_lines, reason = "a table is as long as what it lists")]
fn cases() -> Vec<(&'static str, Check)> {
    let legacy: Check = |report| report.works(Era::Legacy);
    let modern: Check = |report| report.works(Era::Modern);
    vec![
        ("ok", legacy),
        ("modern", modern),
        ("dual", modern),
        ("sse", legacy),
        ("sse-crlf", legacy),
        ("sse-cr", legacy),
        ("sse-multi-data", legacy),
        ("sse-comments", legacy),
        ("sse-bytes", legacy),
        ("sse-open", legacy),
        ("sse-retry", |report| {
            report.works(Era::Legacy);
            let resumed = report.log.iter().filter(|line| line["headers"]["last-event-id"] == "ev-1").count();
            assert_eq!(resumed, 1, "asked for again once, from its last event on");
            let call = report.sent("tools/call")[0]["t"].as_f64().unwrap();
            let again = report.log.iter().find(|line| line["headers"]["last-event-id"] == "ev-1").unwrap();
            assert!(again["t"].as_f64().unwrap() - call >= 0.29, "not before the server allows it");
        }),
        ("session", |report| {
            report.works(Era::Legacy);
            for line in &report.log {
                let opens = matches!(line["body"]["method"].as_str(), Some("initialize" | "server/discover"));
                assert_eq!(line["headers"].get("mcp-session-id").is_some(), !opens, "{line}");
            }
            assert_eq!(report.verbs("DELETE"), 1);
        }),
        ("session-lost", |report| {
            report.works(Era::Legacy);
            let opened = report.sent("initialize");
            assert_eq!(opened.len(), 2);
            assert!(opened.iter().all(|line| line["headers"].get("mcp-session-id").is_none()));
        }),
        ("note-200", legacy),
        ("note-400", |report| {
            report.works(Era::Legacy);
            assert!(report.transport_problems() >= 1, "{:?}", report.events);
        }),
        ("get-405", legacy),
        ("get-400", legacy),
        ("get-sse", |report| {
            report.works(Era::Legacy);
            let changed =
                |event: &Event| matches!(event, Event::Notice(Notice::ListChanged(ListKind::Tools)));
            assert!(report.events.iter().any(changed), "{:?}", report.events);
            let pong = report.log.iter().filter(|line| line["body"]["id"] == "srv-1").count();
            assert_eq!(pong, 1, "the ping is answered by a POST");
        }),
        ("no-type", legacy),
        ("bad-gateway", |report| {
            assert!(report.error().to_string().contains("502"), "{}", report.error());
            assert!(report.log.len() <= 2, "nothing is tried again");
        }),
        ("unauthorized", |report| {
            let Error::AuthorizationRequired { status: 401, challenge: Some(challenge), .. } = report.error()
            else {
                panic!("{}", report.error())
            };
            assert_eq!(challenge.scope(), Some("a b"));
            assert!(
                challenge.resource_metadata().unwrap().ends_with("/.well-known/oauth-protected-resource")
            );
            assert_eq!(report.log.len(), 1, "no loop");
        }),
        ("forbidden-scope", |report| {
            let Error::AuthorizationRequired { status: 403, challenge: Some(challenge), .. } = report.error()
            else {
                panic!("{}", report.error())
            };
            assert_eq!(challenge.error(), Some("insufficient_scope"));
            assert_eq!(report.log.len(), 1);
        }),
        ("redirect-loop", |report| {
            assert!(report.error().to_string().contains("307"), "{}", report.error());
            assert!(report.log.len() <= 2);
        }),
        ("redirect-other", |report| {
            assert!(report.error().to_string().contains("http://127.0.0.1:9/mcp"), "{}", report.error());
            assert!(report.log.len() <= 2);
        }),
        // 2025-03-26 alone has batches; one answer in a list is clear all the same.
        ("array", legacy),
        ("wrong-id", |report| {
            assert!(report.error().to_string().contains("no answer to this request"), "{}", report.error());
        }),
        ("legacy-400-empty", legacy),
        ("legacy-400-jsonrpc", legacy),
        ("legacy-200-error", legacy),
        ("modern-header-strict", |report| {
            report.works(Era::Modern);
            assert_eq!(report.sent("tools/call")[0]["headers"]["mcp-param-region"], "us west");
        }),
        ("old-sse", |report| report.works(Era::Legacy)),
    ]
}

async fn run(mode: &str, check: Check, script: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut server = tokio::process::Command::new("python3")
        .arg(script)
        .args(["--mode", mode, "--log"])
        .arg(&log)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).await.unwrap();
    let report = tokio::time::timeout(HANG, converse(first.trim(), mode)).await;
    let mut report = report.map_err(|_| "it hangs".to_owned())?;
    server.kill().await.unwrap();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    report.log = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&report)));
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

async fn converse(url: &str, mode: &str) -> Report {
    let options = ClientOptions::new("haversack-tests", "0")
        .with_start_timeout(Duration::from_secs(15))
        .with_probe_timeout(Duration::from_secs(5));
    let http = HttpOptions::new(url, Arc::new(ReqwestClient::new().unwrap()))
        .with_bearer_token(Secret::new("s3cret-token"))
        .with_old_transport(true);
    let mut report =
        Report { connected: Ok((Era::Legacy, 0, String::new())), events: Vec::new(), log: Vec::new() };
    let client = match Client::connect_http(http, options).await {
        Ok(client) => client,
        Err(error) => {
            report.connected = Err(error);
            return report;
        }
    };
    let mut events = client.events();
    report.connected = async {
        client.list_tools().await?;
        let arguments = json!({"text": "hi ü\u{2028}", "region": "us west"});
        let result = client.call_tool("echo", arguments.as_object().unwrap().clone()).await?;
        // The third request of a session, which one of the modes has forgotten by then.
        let tools = client.list_tools().await?;
        Ok((client.info().era, tools.items.len(), result.text()))
    }
    .await;
    if mode == "get-sse" {
        while let Some(event) = events.next().await {
            let is_it = matches!(event, Event::Notice(Notice::ListChanged(_)));
            report.events.push(event);
            if is_it {
                break;
            }
        }
    }
    assert_eq!(client.in_flight(), 0, "nothing waits any more");
    client.close().await;
    while let Some(event) = events.try_next() {
        report.events.push(event);
    }
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_over_http_has_the_outcome_that_its_list_names() {
    let Some(script) = script() else { return };
    let listed = std::process::Command::new("python3").arg(&script).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let modes = listed.lines().filter(|line| !line.starts_with(' '));
    let modes: Vec<&str> = modes.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(modes.len() >= 31, "the list is not what it was: {listed}");
    let cases = cases();
    for mode in modes {
        assert!(cases.iter().any(|(name, _)| *name == mode), "no test of {mode}");
    }
    let gate = Arc::new(tokio::sync::Semaphore::new(4));
    let mut running = tokio::task::JoinSet::new();
    for (mode, check) in cases {
        let (gate, script) = (Arc::clone(&gate), script.clone());
        running.spawn(async move {
            let _turn = gate.acquire_owned().await;
            run(mode, check, &script).await.err().map(|wrong| format!("{mode}: {wrong}"))
        });
    }
    let failures: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
