//! Fingerprints, questions, stores, and who may run.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use haversack_mcp_client::config::Config;
use haversack_mcp_client::consent::{
    ConsentPrompt, ConsentQuestion, ConsentStore, ConsentStoreError, Decision, FileConsentStore,
    MAX_DECISIONS, MemoryConsentStore, Outcome, settle,
};
use haversack_mcp_client::fingerprint::Fingerprint;
use serde_json::{Value, json};

const WORKSPACE: &str = "/home/u/project";

fn with(servers: &Value) -> Config {
    Config::new(WORKSPACE)
        .with_repository_file(".mcp.json", json!({"mcpServers": servers}).to_string().as_bytes())
}

fn base() -> Value {
    json!({
        "a": {"command": "npx", "args": ["-y", "pkg"], "env": {"K1": "v1", "K2": "${SECRET}"}, "cwd": "sub"},
        "b": {"command": "uvx", "passEnv": ["TOKEN"]}
    })
}

fn fingerprint(config: &Config) -> Fingerprint {
    config.consent_question().unwrap().fingerprint()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Answers in order and keeps what it was asked.
#[derive(Default)]
struct Person {
    answers: Mutex<Vec<Option<Decision>>>,
    asked: Mutex<Vec<ConsentQuestion>>,
}

impl Person {
    fn who_says(answers: impl IntoIterator<Item = Option<Decision>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    fn times_asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl ConsentPrompt for Person {
    async fn ask(&self, question: &ConsentQuestion) -> Option<Decision> {
        self.asked.lock().unwrap().push(question.clone());
        self.answers.lock().unwrap().remove(0)
    }
}

#[test]
fn the_order_of_members_and_blanks_do_not_change_a_fingerprint() {
    let expected = fingerprint(&with(&base()));
    let rewritten = br#"{ "mcpServers" : {
        "b": {"passEnv": ["TOKEN"], "command": "uvx", "args": [], "timeout": 5, "type": "stdio", "unknown": [1]},
        "a": {"cwd": "sub", "env": {"K2": "${SECRET}", "K1": "v1"}, "args": ["-y", "pkg"], "command": "\u006epx"}
    } }"#;
    let rewritten = Config::new("/elsewhere").with_repository_file(".gbs/mcp.json", rewritten);
    assert_eq!(fingerprint(&rewritten), expected);
}

type Change = &'static dyn Fn(&mut Value);

#[test]
fn every_change_of_what_runs_changes_the_fingerprint() {
    let change = |change: Change| {
        let mut servers = base();
        change(&mut servers);
        fingerprint(&with(&servers))
    };
    let changes: [(&str, Change); 16] = [
        ("nothing", &|_| {}),
        ("command", &|s| s["a"]["command"] = "npy".into()),
        ("argument order", &|s| s["a"]["args"] = json!(["pkg", "-y"])),
        ("argument value", &|s| s["a"]["args"][1] = "pkg2".into()),
        ("argument split", &|s| s["a"]["args"] = json!(["-y pkg"])),
        ("argument added", &|s| s["a"]["args"] = json!(["-y", "pkg", ""])),
        ("variable value", &|s| s["a"]["env"]["K1"] = "v2".into()),
        ("variable name", &|s| s["a"]["env"] = json!({"K3": "v1", "K2": "${SECRET}"})),
        ("variable added", &|s| s["a"]["env"]["K3"] = "".into()),
        ("variable removed", &|s| s["a"]["env"] = json!({"K2": "${SECRET}"})),
        ("folder", &|s| s["a"]["cwd"] = "sub2".into()),
        ("folder removed", &|s| s["a"]["cwd"] = Value::Null),
        ("passed variable", &|s| s["b"]["passEnv"] = json!(["OTHER"])),
        ("server added", &|s| s["c"] = json!({"command": "x"})),
        ("server renamed", &|s| *s = json!({"a2": s["a"], "b": s["b"]})),
        ("server switched off", &|s| s["b"]["disabled"] = true.into()),
    ];
    let all: BTreeSet<_> = changes.iter().map(|&(_, apply)| change(apply)).collect();
    assert_eq!(all.len(), changes.len(), "two of these changes have one fingerprint");
}

#[test]
fn tuning_and_tool_lists_and_host_servers_and_variables_do_not_count() {
    let expected = fingerprint(&with(&base()));
    let mut tuned = base();
    tuned["a"]["timeout"] = 1.into();
    tuned["a"]["era"] = "legacy".into();
    tuned["a"]["denyTools"] = json!(["x"]);
    tuned["a"]["required"] = true.into();
    assert_eq!(fingerprint(&with(&tuned)), expected);

    let with_host = with(&base()).with_host_servers(&json!({"mine": {"command": "x"}}));
    assert_eq!(fingerprint(&with_host), expected);

    let mut unsupported = base();
    unsupported["web"] = json!({"type": "ws", "url": "wss://h"});
    assert_eq!(fingerprint(&with(&unsupported)), expected);

    // A name that the host takes is none of the repository's any more.
    let taken = with(&base()).with_host_servers(&json!({"a": {"command": "x"}}));
    let mut without = base();
    without.as_object_mut().unwrap().remove("a");
    assert_eq!(fingerprint(&taken), fingerprint(&with(&without)));
}

#[test]
fn a_fingerprint_is_stable_over_versions_and_reads_back() {
    let fingerprint = fingerprint(&with(&json!({"s": {"command": "x"}})));
    // SHA-256 of ["haversack-mcp/1",[["s",["stdio","x",[],[],null,[]]]]]
    let text = "368342197293ad951f23ad8caf50ae2cfb3f38bfcaea178b7c61afff1f0f85f2";
    assert_eq!(fingerprint.to_string(), text);
    assert_eq!(text.parse(), Ok(fingerprint));
    assert_eq!(serde_json::from_value::<Fingerprint>(json!(text)).unwrap(), fingerprint);
    for bad in ["", "00", &text.to_uppercase(), &format!("{text}0"), &text.replace('0', "g")] {
        assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
    }
}

#[test]
fn only_servers_of_the_repository_that_would_start_are_asked_about() {
    assert!(Config::new("/p").consent_question().is_none());
    assert!(Config::new("/p").with_host_servers(&base()).consent_question().is_none());
    for entry in [
        json!({"command": "x", "disabled": true}),
        json!({"type": "ws", "url": "wss://h"}),
        json!({"command": ""}),
    ] {
        assert!(with(&json!({"s": entry})).consent_question().is_none(), "{entry}");
    }
}

#[cfg(feature = "http")]
#[test]
fn the_question_about_a_server_over_http_shows_where_it_is_and_what_it_gets_but_no_value() {
    let question = with(&json!({
        "both": {"command": "x"},
        "web": {"url": "https://h/mcp?team=${TEAM}", "headers": {
            "Authorization": "Bearer ${GH_TOKEN}${OTHER:-s3cret}", "X-\u{202e}Plain": "s3cret"}}
    }))
    .consent_question()
    .unwrap();
    let expected = r#"This repository wants to start or connect to 2 MCP servers:

both (from .mcp.json)
  runs: x

web (from .mcp.json)
  connects to: https://h/mcp?team=${TEAM}
  sends: Authorization (with your: GH_TOKEN, OTHER)
  sends: "X-\u{202e}Plain""#;
    assert_eq!(question.to_string(), expected);
    assert!(!format!("{question:?}").contains("s3cret"));
}

#[cfg(feature = "http")]
#[test]
fn any_change_of_an_address_or_a_header_is_another_fingerprint() {
    let base = json!({"web": {"url": "https://h/mcp", "headers": {"A": "${X}", "B": "2"}}});
    let changes: [&dyn Fn(&mut Value); 6] = [
        &|_| {},
        &|s| s["web"]["url"] = json!("https://h/other"),
        &|s| s["web"]["headers"]["A"] = json!("${SECRET}"),
        &|s| s["web"]["headers"]["C"] = json!("2"),
        &|s| s["web"]["headers"] = json!({"A": "${X}", "C": "2"}),
        &|s| *s = json!({"web": {"command": "https://h/mcp"}}),
    ];
    let all: BTreeSet<_> = changes
        .iter()
        .map(|change| {
            let mut servers = base.clone();
            change(&mut servers);
            fingerprint(&with(&servers))
        })
        .collect();
    assert_eq!(all.len(), changes.len(), "two of these changes have one fingerprint");
}

#[test]
fn the_question_shows_all_that_runs_with_nothing_hidden() {
    let question = with(&json!({
        "a\u{202e}x": {"command": "npx", "args": ["-y", "two words", "\u{200b}"], "env": {"K": "${V}\u{1b}[2K", "E": ""},
            "cwd": "../out", "passEnv": ["GH_TOKEN", "B"]},
        "plain": {"command": "C:\\tools\\x.exe"}
    }))
    .consent_question()
    .unwrap();
    let expected = r#"This repository wants to start 2 MCP servers:

a\u{202e}x (from .mcp.json)
  runs: npx -y "two words" "\u{200b}"
  in: ../out
  sets: E=""
  sets: K="${V}\u{1b}[2K"
  gets your: GH_TOKEN, B

plain (from .mcp.json)
  runs: C:\tools\x.exe"#;
    assert_eq!(question.to_string(), expected);
    assert_eq!(question.servers().len(), 2);
}

#[test]
fn the_consent_matrix_holds() {
    use Decision::{Allow, Refuse};
    use Outcome::{Answered, NotNeeded, Remembered, Unanswered};
    // What is stored, what a person would say (None: nobody is there), the outcome, whether it runs, and what is stored
    // afterwards.
    let cases = [
        (None, None, Unanswered, false, None),
        (None, Some(None), Unanswered, false, None),
        (None, Some(Some(Allow)), Answered(Allow), true, Some(Allow)),
        (None, Some(Some(Refuse)), Answered(Refuse), false, Some(Refuse)),
        (Some(Allow), None, Remembered(Allow), true, Some(Allow)),
        (Some(Allow), Some(Some(Refuse)), Remembered(Allow), true, Some(Allow)),
        (Some(Refuse), None, Remembered(Refuse), false, Some(Refuse)),
        (Some(Refuse), Some(Some(Allow)), Remembered(Refuse), false, Some(Refuse)),
    ];
    for (stored, says, outcome, runs, kept) in cases {
        run(async {
            let case = format!("{stored:?} {says:?}");
            let config = with(&base()).with_host_servers(&json!({"mine": {"command": "x"}}));
            let store = MemoryConsentStore::default();
            let print = fingerprint(&config);
            if let Some(decision) = stored {
                store.record(WORKSPACE, print, decision).await.unwrap();
            }
            let person = says.map(|says| Person::who_says([says]));
            let prompt = person.as_ref().map(|person| person as &dyn ConsentPrompt);
            let settled = settle(config, WORKSPACE, &store, prompt).await;
            assert_eq!(settled.outcome, outcome, "{case}");
            let started: Vec<_> = settled.approved.startable().map(|server| server.name()).collect();
            assert_eq!(started, if runs { vec!["a", "b", "mine"] } else { vec!["mine"] }, "{case}");
            let withheld: Vec<_> = settled.approved.withheld().collect();
            assert_eq!(withheld, if runs { vec![] } else { vec!["a", "b"] }, "{case}");
            assert_eq!(store.decision(WORKSPACE, print).await.unwrap(), kept, "{case}");
            let asked = person.map_or(0, |person| person.times_asked());
            assert_eq!(asked, usize::from(stored.is_none() && says.is_some()), "{case}");
        });
    }
    run(async {
        let person = Person::default();
        let host_only = Config::new("/p").with_host_servers(&base());
        let settled = settle(host_only, WORKSPACE, &MemoryConsentStore::default(), Some(&person)).await;
        assert_eq!((settled.outcome, person.times_asked()), (NotNeeded, 0));
        assert_eq!(settled.approved.startable().count(), 2);
    });
}

#[test]
fn a_changed_set_asks_again_and_a_refusal_stays_for_its_set() {
    use Decision::{Allow, Refuse};
    run(async {
        let store = MemoryConsentStore::default();
        let person = Person::who_says([Some(Refuse), Some(Allow), Some(Allow), Some(Allow)]);
        let first = with(&base());
        let mut servers = base();
        servers["a"]["args"][0] = "--yes".into();
        let second = with(&servers);
        let ask = async |config: &Config, workspace: &str| {
            settle(config.clone(), workspace, &store, Some(&person)).await.outcome
        };
        assert_eq!(ask(&first, WORKSPACE).await, Outcome::Answered(Refuse));
        assert_eq!(ask(&second, WORKSPACE).await, Outcome::Answered(Allow));
        assert_eq!(ask(&first, WORKSPACE).await, Outcome::Remembered(Refuse));
        assert_eq!(ask(&second, WORKSPACE).await, Outcome::Remembered(Allow));
        // Another workspace is another question.
        assert_eq!(ask(&second, "/home/u/other").await, Outcome::Answered(Allow));
        // A reload forgets the refusal too.
        store.forget(WORKSPACE).await.unwrap();
        assert_eq!(ask(&first, WORKSPACE).await, Outcome::Answered(Allow));
        assert_eq!(ask(&second, "/home/u/other").await, Outcome::Remembered(Allow));
    });
}

#[test]
fn an_approval_is_good_for_nothing_but_the_set_that_was_shown() {
    let shown = with(&base());
    let print = fingerprint(&shown);
    assert_eq!(shown.approve(print).unwrap().startable().count(), 2);
    assert_eq!(shown.withhold().startable().count(), 0);

    let mut servers = base();
    servers["c"] = json!({"command": "late"});
    let changed = with(&servers);
    let error = changed.approve(print).unwrap_err();
    assert_eq!((error.approved, error.current), (print, fingerprint(&changed)));
}

struct BrokenStore;

#[async_trait]
impl ConsentStore for BrokenStore {
    async fn decision(&self, _: &str, _: Fingerprint) -> Result<Option<Decision>, ConsentStoreError> {
        Err(ConsentStoreError::Host("first".into()))
    }
    async fn record(&self, _: &str, _: Fingerprint, _: Decision) -> Result<(), ConsentStoreError> {
        Err(ConsentStoreError::Host("second".into()))
    }
    async fn forget(&self, _: &str) -> Result<(), ConsentStoreError> {
        Ok(())
    }
}

#[test]
fn a_broken_store_counts_as_no_answer_and_is_reported() {
    run(async {
        let alone = settle(with(&base()), WORKSPACE, &BrokenStore, None).await;
        assert_eq!((alone.outcome, alone.approved.startable().count()), (Outcome::Unanswered, 0));
        assert!(alone.store_error.is_some());

        let person = Person::who_says([Some(Decision::Allow)]);
        let asked = settle(with(&base()), WORKSPACE, &BrokenStore, Some(&person)).await;
        assert_eq!(asked.outcome, Outcome::Answered(Decision::Allow));
        assert_eq!(asked.approved.startable().count(), 2);
        let error = asked.store_error.unwrap();
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "first");
    });
}

fn numbered(number: usize) -> Fingerprint {
    format!("{number:064x}").parse().unwrap()
}

#[test]
fn a_file_keeps_answers_over_a_restart() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/consent.json");
        let store = FileConsentStore::new(&path);
        assert_eq!(store.decision("w", numbered(1)).await.unwrap(), None);
        store.forget("w").await.unwrap();
        assert!(!path.exists(), "nothing to write");

        store.record("w", numbered(1), Decision::Allow).await.unwrap();
        store.record("w", numbered(2), Decision::Refuse).await.unwrap();
        store.record("v", numbered(1), Decision::Refuse).await.unwrap();
        let again = FileConsentStore::new(&path);
        assert_eq!(again.decision("w", numbered(1)).await.unwrap(), Some(Decision::Allow));
        assert_eq!(again.decision("w", numbered(2)).await.unwrap(), Some(Decision::Refuse));
        assert_eq!(again.decision("v", numbered(1)).await.unwrap(), Some(Decision::Refuse));
        again.record("w", numbered(1), Decision::Refuse).await.unwrap();
        assert_eq!(store.decision("w", numbered(1)).await.unwrap(), Some(Decision::Refuse));

        again.forget("w").await.unwrap();
        assert_eq!(store.decision("w", numbered(2)).await.unwrap(), None);
        assert_eq!(store.decision("v", numbered(1)).await.unwrap(), Some(Decision::Refuse));
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no file is left beside the store: {left:?}");
    });
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_only_even_if_it_was_not_before() {
    use std::os::unix::fs::PermissionsExt as _;
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("consent.json");
        let store = FileConsentStore::new(&path);
        for _ in 0..2 {
            store.record("w", numbered(1), Decision::Allow).await.unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            store.forget("w").await.unwrap();
        }
    });
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    for (text, reason) in [
        ("{", "EOF while parsing"),
        ("[]", "invalid"),
        ("{\"version\": 2, \"ledger\": {\"workspaces\": []}}", "version 2 is not known"),
        ("{\"name\": \"package.json\"}", "missing field"),
    ] {
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("consent.json");
            std::fs::write(&path, text).unwrap();
            let store = FileConsentStore::new(&path);
            let read = store.decision("w", numbered(1)).await.unwrap_err().to_string();
            assert!(read.contains(reason) && read.contains("consent.json"), "{read}");
            assert!(store.record("w", numbered(1), Decision::Allow).await.is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        });
    }
}

#[test]
fn a_write_that_fails_names_the_file_and_leaves_the_old_one() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        std::fs::write(&blocked, "").unwrap();
        let store = FileConsentStore::new(blocked.join("consent.json"));
        let error = store.record("w", numbered(1), Decision::Allow).await.unwrap_err();
        assert!(error.to_string().contains("consent.json"), "{error}");
    });
}

#[test]
fn changes_from_many_tasks_are_all_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let store = FileConsentStore::new(folder.path().join("consent.json"));
        let tasks: Vec<_> = (0..MAX_DECISIONS)
            .map(|number| {
                let store = store.clone();
                tokio::spawn(async move { store.record("w", numbered(number), Decision::Allow).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        for number in 0..MAX_DECISIONS {
            assert_eq!(store.decision("w", numbered(number)).await.unwrap(), Some(Decision::Allow));
        }
        // One more, and the oldest goes.
        store.record("w", numbered(99), Decision::Allow).await.unwrap();
        let mut kept = 0;
        for number in 0..MAX_DECISIONS {
            kept += usize::from(store.decision("w", numbered(number)).await.unwrap().is_some());
        }
        assert_eq!(kept, MAX_DECISIONS - 1);
    });
}

#[test]
fn a_file_store_works_outside_of_a_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileConsentStore::new(folder.path().join("consent.json"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut recording = store.record("w", numbered(1), Decision::Allow);
    assert!(matches!(recording.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))));
}
