//! The program: what it prints, where, and with which exit status.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::wire::folder;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haversack-skill-server"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn greet() -> tempfile::TempDir {
    folder(&[("greet", "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n")])
}

#[test]
fn a_wrong_command_line_is_exit_status_2_and_says_so_on_standard_error() {
    let skills = greet();
    let dir = shown(skills.path());
    let broken = skills.path().join("broken.json");
    std::fs::write(&broken, "{").unwrap();
    for arguments in [
        &["--bogus"][..],
        &["--port", "abc"],
        &["--port", "70000"],
        &["--transport", "grpc"],
        &["--skills-dir"],
        &["--skills-dir", "/no/such/folder"],
        &["--skills-dir", dir, "--transport", "http", "--host", "0.0.0.0", "--port", "0"],
        &["--skills-dir", dir, "--transport", "http", "--bearer-token-file", "/no/such/file"],
        &["--skills-dir", dir, "--pre-approve", "everything"],
        &["--skills-dir", dir, "--model", "m"],
        &[
            "--skills-dir",
            dir,
            "--model-api",
            "ollama",
            "--model",
            "m",
            "--api-key-env",
            "NO_SUCH_VARIABLE_HERE",
        ],
        &["--skills-dir", dir, "--servers", shown(&broken)],
        &["call", "greet", "[1]"],
        &["nonsense"],
        &["validate"],
        &["validate", "/no/such/folder"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["completions", "bash"], &["call", "--help"]] {
        let output = run(arguments);
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(String::from_utf8(run(&["--version"]).stdout).unwrap().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn validate_compile_list_and_call_print_data_and_say_by_their_status_whether_all_is_well() {
    let skills = greet();
    let dir = shown(skills.path()).to_owned();
    let json_of = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap();

    assert_eq!(run(&["validate", &dir]).status.code(), Some(0));
    let bad = "---\nname: pipe\ndescription: P.\nskill_mode: tool\ntool_schema:\n  steps:\n    - {tool: x, input_map: {a: '{{ gone }}'}}\n---\n";
    crate::wire::write(skills.path(), "pipe", bad);
    let output = run(&["validate", &dir, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json_of(&output)["errors"], 1);
    assert!(json_of(&output)["findings"].to_string().contains("gone"));
    assert_eq!(run(&["compile", &dir]).status.code(), Some(1));

    crate::wire::write(skills.path(), "pipe", &bad.replace("{{ gone }}", "{{ input }}"));
    let state = tempfile::tempdir().unwrap();
    let output = run(&["compile", &dir, "--json", "--state-dir", shown(state.path())]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json_of(&output)["pipelines"][0]["steps"][0]["tool"], "x");
    let stored = std::fs::read_to_string(state.path().join("composed_tools.json")).unwrap();
    assert!(stored.contains("skill_pipe"));

    let output = run(&["list", "--skills-dir", &dir, "--json", "--log", "off"]);
    let listed = json_of(&output);
    assert_eq!(listed["skills"][0]["tool"], "greet");
    assert_eq!(listed["skills"][1]["tool"], Value::Null);
    assert!(listed["problems"].to_string().contains("`x` is not known"));

    let output = run(&["call", "--skills-dir", &dir, "greet", "{\"query\": \"hi?\"}"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "## Query\nhi?\n\n## SKILL: greet\n\nSay hello.\n\n");
    let output = run(&["call", "--skills-dir", &dir, "greet", "{\"page\": 9}", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json_of(&output)["isError"], true);
    assert_eq!(run(&["call", "--skills-dir", &dir, "gone"]).status.code(), Some(1));
}

#[test]
fn standard_output_is_protocol_only_garbage_is_survived_and_the_end_of_input_is_the_end() {
    let skills = greet();
    crate::wire::write(skills.path(), "bad", "---\nname: [\n---\n");
    let mut child = program(&["--skills-dir", shown(skills.path()), "--log", "debug"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let about = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let lines = [
        "\u{feff}".to_owned(),
        "garbage".to_owned(),
        "[1,2".to_owned(),
        json!({"jsonrpc": "2.0", "id": "one", "method": "initialize", "params": about}).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "{\"jsonrpc\":\"2.0\"}".to_owned(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "no/such"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "greet"}}).to_string(),
    ];
    for line in lines {
        input.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    // The answers are there before the input ends: each is waited for.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let messages: Vec<Value> =
        reader.join().unwrap().lines().map(|line| serde_json::from_str(line).expect("only JSON")).collect();
    let of =
        |id: Value| messages.iter().find(|m| m["id"] == id).unwrap_or_else(|| panic!("{id}: {messages:?}"));
    assert!(of(json!("one"))["result"]["protocolVersion"].is_string(), "an unknown version is negotiated");
    assert_eq!(of(json!(2))["error"]["code"], -32601);
    assert_eq!(of(json!(3))["result"]["content"][0]["text"], "Say hello.\n");
}
