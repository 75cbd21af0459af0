//! A stored session of every schema number can be read, means the same, and is written again as it was.

use std::path::PathBuf;
use std::sync::Arc;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::Verdict;
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::session::Session;
use serde_json::json;

use crate::play::{Probe, Script, block_on, calls, says};

#[test]
fn a_paused_session_of_schema_one_goes_on() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/session-1.json");
    let log = Arc::default();
    let agent = |answers| {
        Agent::builder(Script::new(answers))
            .tool(Probe::reads("read", &log))
            .tool(Probe::writes("write", &log))
            .build()
            .unwrap()
    };
    if std::env::var_os("UPDATE").is_some() {
        let first = calls(&[("a", "read", json!({"n": 1})), ("b", "write", json!({"n": 2}))]);
        let mut session = Session::new();
        block_on(agent(vec![first]).start(&mut session, "go").outcome()).unwrap();
        std::fs::write(&file, serde_json::to_string_pretty(&session).unwrap() + "\n").unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap();
    let mut session: Session = serde_json::from_str(&stored).unwrap();
    assert_eq!(serde_json::to_string_pretty(&session).unwrap() + "\n", stored);
    assert_eq!(session.check(), []);
    let ask = session.pending_asks().remove(0);
    session.answer(&ask.digest, Verdict::Allow).unwrap();
    let outcome = block_on(agent(vec![says("done")]).resume(&mut session).outcome());
    assert_eq!(outcome, Ok(Outcome::Done { text: "done".into(), structured: None }));

    let later = stored.replacen("\"schema\": 1", "\"schema\": 2", 1);
    let error = serde_json::from_str::<Session>(&later).unwrap_err();
    assert!(error.to_string().contains("later version"), "{error}");
}

#[test]
fn what_an_earlier_version_did_not_write_is_read_as_nothing() {
    let session: Session = serde_json::from_str(r#"{"schema": 1}"#).unwrap();
    assert_eq!(session, Session::new());
    // As the first version of the schema wrote it: without whatever was added since.
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/session-1.json");
    let mut stored: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let open = stored["open"].as_object_mut().unwrap();
    open.retain(|key, _| ["spent", "batch"].contains(&key.as_str()));
    stored.as_object_mut().unwrap().remove("ledger");
    let session: Session = serde_json::from_value(stored).unwrap();
    assert_eq!(session.check(), []);
    assert_eq!(session.pending_asks().len(), 1);
}

#[test]
fn a_number_that_never_was_and_one_that_is_yet_to_come_are_refused_with_words() {
    for (stored, words) in [
        (r#"{"schema": 0}"#, "never existed"),
        (r#"{"schema": 2}"#, "reads up to 1"),
        (r#"{"messages": []}"#, "schema"),
    ] {
        let error = serde_json::from_str::<Session>(stored).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
