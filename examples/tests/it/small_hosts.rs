//! The small hosts, as their own pages start them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn ok(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

const PAUSE: &str = env!("CARGO_BIN_EXE_pause_to_disk");

/// Starts a run in a process that ends, and gives the digest of its question.
fn paused(file: &str) -> String {
    let output = ok(PAUSE, &["start", file, "The books have come."]);
    assert!(output.contains("paused"), "{output}");
    let asks = ok(PAUSE, &["asks", file]);
    assert!(asks.contains("send_letter") && asks.contains("The books have come."), "{asks}");
    asks.split_whitespace().next().unwrap().to_owned()
}

fn outbox(file: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(file).with_extension("outbox")).ok()
}

#[test]
fn a_call_that_another_process_allows_runs_in_a_third_one_and_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.json").to_string_lossy().into_owned();
    let digest = paused(&file);
    ok(PAUSE, &["answer", &file, &digest, "allow"]);
    assert_eq!(outbox(&file), None, "an answer runs nothing");
    let output = ok(PAUSE, &["resume", &file]);
    assert!(output.contains("It is done: sent to Ada."), "{output}");
    assert_eq!(outbox(&file).unwrap(), "To Ada: The books have come.\n");
    // The answer is used up: resuming again makes no call.
    std::fs::remove_file(Path::new(&file).with_extension("outbox")).unwrap();
    ok(PAUSE, &["resume", &file]);
    assert_eq!(outbox(&file), None);
}

#[test]
fn a_denial_of_another_process_reaches_the_model_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.json").to_string_lossy().into_owned();
    let digest = paused(&file);
    ok(PAUSE, &["answer", &file, &digest, "deny", "not on a Sunday"]);
    let output = ok(PAUSE, &["resume", &file]);
    assert!(output.contains("not on a Sunday"), "{output}");
    assert_eq!(outbox(&file), None);
}

#[test]
fn a_run_that_is_resumed_unanswered_pauses_again_and_wrong_answers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.json").to_string_lossy().into_owned();
    let digest = paused(&file);
    assert!(ok(PAUSE, &["resume", &file]).contains("paused"));
    ok(PAUSE, &["answer", &file, &digest, "allow"]);
    let other = "0".repeat(64);
    for (arguments, part) in [
        (["answer", &file, &digest, "deny"], "answered before"),
        (["answer", &file, &other, "allow"], "no such ask"),
        (["answer", &file, "no digest", "allow"], "no digest"),
        (["answer", "no-such-file.json", &digest, "allow"], "no-such-file.json"),
    ] {
        let output = run(PAUSE, &arguments);
        assert!(!output.status.success() && text(&output).contains(part), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn a_model_of_the_hosts_own_streams_and_calls_tools() {
    let output = ok(env!("CARGO_BIN_EXE_own_model"), &["3", "4", "5"]);
    for part in ["First 3 and 4.", "-> 7", "First 7 and 5.", "-> 12", "The sum is 12."] {
        assert!(output.contains(part), "{part} is not in:\n{output}");
    }
}

#[test]
fn an_http_client_of_the_hosts_own_carries_a_whole_answer() {
    let client = env!("CARGO_BIN_EXE_own_http_client");
    let output = ok(client, &[]);
    assert!(output.contains("(rehearsal) I have no tool for this task: Say what you can do."), "{output}");
    // Nobody listens on port 1, and a key does not travel without TLS.
    for (url, part) in [("http://127.0.0.1:1/v1", "127.0.0.1:1"), ("https://127.0.0.1:1/v1", "only http://")]
    {
        let output = run(client, &[url, "m", "Hello."]);
        assert!(!output.status.success() && text(&output).contains(part), "{url}: {}", text(&output));
    }
}

#[test]
fn a_recording_replays_to_the_same_bytes_and_a_changed_one_says_where_it_differs() {
    let program = env!("CARGO_BIN_EXE_record_replay");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json").to_string_lossy().into_owned();
    let output = ok(program, &["record", &file, "Measure at the pond. Then measure in the wood."]);
    assert!(output.contains("degrees"), "{output}");
    let output = ok(program, &["replay", &file]);
    assert!(output.contains("the same to the byte") && output.contains("degrees"), "{output}");

    let recording = std::fs::read(&file).unwrap();
    let mut changed: serde_json::Value = serde_json::from_slice(&recording).unwrap();
    changed["outputs"][0]["result"]["Ok"]["blocks"][0]["text"] = "too cold to say".into();
    std::fs::write(&file, changed.to_string()).unwrap();
    let output = run(program, &["replay", &file]);
    assert!(!output.status.success() && text(&output).contains("message 2 differs"), "{}", text(&output));
}
