//! `inspect-mcp` as it is run: the built program against servers that misbehave on purpose.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The server that misbehaves on purpose, or a loud note that it is missing.
fn faulty_server() -> Option<PathBuf> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    if !shared.is_dir() {
        eprintln!(
            "SKIPPED: {} is missing, and with it the server that misbehaves on purpose",
            shared.display()
        );
        return None;
    }
    Some(shared.join("probes/mcp/faulty_server.py").canonicalize().unwrap())
}

fn inspect(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_inspect-mcp")).args(arguments).output().unwrap()
}

fn report(output: &Output) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(if report["ok"] == true { 0 } else { 1 }), "{report}");
    report
}

fn inspect_mode(server: &std::path::Path, mode: &str, options: &[&str]) -> Value {
    let server = server.to_str().unwrap();
    let mut arguments = vec!["--timeout", "6"];
    arguments.extend(options);
    arguments.extend(["--", "python3", server, "--mode", mode]);
    report(&inspect(&arguments))
}

#[test]
fn the_report_has_the_agreed_members() {
    let Some(server) = faulty_server() else { return };
    let report = inspect_mode(&server, "dual", &["--call", "echo", r#"{"text": "hi"}"#]);
    let members: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
    let agreed = [
        "ok",
        "era",
        "protocol_version",
        "server",
        "instructions",
        "tools",
        "resources",
        "prompts",
        "call",
        "read",
        "prompt",
        "problems",
        "noise_lines",
        "exit",
        "elapsed_ms",
        "error",
    ];
    assert_eq!(members, agreed);
    assert_eq!(report["ok"], true);
    assert_eq!((&report["era"], &report["protocol_version"]), (&json!("modern"), &json!("2026-07-28")));
    assert_eq!(report["server"]["name"], "faulty");
    assert_eq!(report["tools"][0]["name"], "echo");
    assert_eq!(report["tools"][0]["public_name"], "mcp__python3__echo");
    assert_eq!(report["tools"][1]["read_only"], true);
    assert_eq!(report["tools"][0]["schema"]["type"], "object");
    let call =
        json!({"content": [{"type": "text", "text": "echo: hi"}], "structured": null, "is_error": false});
    assert_eq!(report["call"], call);
    assert_eq!(report["exit"], json!({"how": "stdin", "status": 0}));
    assert_eq!((&report["noise_lines"], &report["error"]), (&json!(0), &Value::Null));
}

#[test]
fn the_era_can_be_set() {
    let Some(server) = faulty_server() else { return };
    for (era, found) in [("legacy", "legacy"), ("modern", "modern"), ("auto", "modern")] {
        assert_eq!(inspect_mode(&server, "dual", &["--era", era])["era"], found);
    }
    let refused = inspect_mode(&server, "ok", &["--era", "modern"]);
    assert_eq!((&refused["ok"], &refused["error"]["kind"]), (&json!(false), &json!("opening")));
}

#[test]
fn a_server_that_does_not_come_up_leaves_its_last_words() {
    let Some(server) = faulty_server() else { return };
    let report = inspect_mode(&server, "exit-at-start", &[]);
    assert_eq!((&report["ok"], &report["era"]), (&json!(false), &Value::Null));
    assert_eq!(report["exit"], json!({"how": "self", "status": 3}));
    assert!(report["error"]["stderr_tail"].as_str().unwrap().contains("cannot open database"), "{report}");

    let missing = report_of_missing_program();
    assert_eq!((&missing["error"]["kind"], &missing["exit"]), (&json!("spawn"), &Value::Null));
}

fn report_of_missing_program() -> Value {
    report(&inspect(&["--", "no-such-program-here"]))
}

#[test]
fn noise_is_counted_and_what_is_odd_is_a_problem() {
    let Some(server) = faulty_server() else { return };
    let noisy = inspect_mode(&server, "banner", &["--call", "echo", r#"{"text": "x"}"#]);
    assert_eq!(noisy["ok"], true);
    assert!(noisy["noise_lines"].as_u64().unwrap() > 0, "{noisy}");
    let odd = inspect_mode(&server, "bad-tools", &[]);
    assert_eq!(odd["ok"], true, "{odd}");
    assert!(!odd["tools"].as_array().unwrap().is_empty());
    assert!(
        odd["problems"].as_array().unwrap().iter().any(|problem| problem["code"] == "bad_entry"),
        "{odd}"
    );
}

#[test]
fn how_a_process_had_to_be_ended_is_told() {
    let Some(server) = faulty_server() else { return };
    let term = inspect_mode(&server, "ignore-eof", &[]);
    assert_eq!(term["exit"]["how"], "term", "{term}");
    let kill = inspect_mode(&server, "ignore-term", &[]);
    assert_eq!(kill["exit"], json!({"how": "kill", "status": -9}));
}

#[test]
fn an_operation_without_an_answer_is_an_error_and_no_hang() {
    let Some(server) = faulty_server() else { return };
    let began = Instant::now();
    let slow = report(&inspect(&[
        "--timeout",
        "2",
        "--call",
        "echo",
        "{}",
        "--",
        "python3",
        server.to_str().unwrap(),
        "--mode",
        "slow-call",
        "--seconds",
        "600",
    ]));
    assert_eq!((&slow["ok"], &slow["call"]), (&json!(false), &Value::Null));
    assert_eq!(slow["error"]["kind"], "timeout");
    let silent =
        report(&inspect(&["--timeout", "2", "--", "python3", server.to_str().unwrap(), "--mode", "silent"]));
    assert_eq!(silent["error"]["kind"], "opening");
    // Far from the limits, and far from the ten minutes that the server would take: a hang, not a measurement.
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_file_of_servers_is_inspected_whole() {
    let Some(server) = faulty_server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("servers.json");
    let run = |mode: &str| json!({"command": "python3", "args": [server.to_str().unwrap(), "--mode", mode]});
    let servers = json!({"mcpServers": {
        "good": run("ok"), "bad": run("exit-at-start"), "web": {"type": "ws", "url": "wss://example.org"},
        "off": {"command": "x", "disabled": true}
    }});
    std::fs::write(&file, servers.to_string()).unwrap();
    let report = report(&inspect(&["--timeout", "6", "--servers", file.to_str().unwrap()]));
    assert_eq!(report["ok"], false);
    let names: Vec<_> = report["servers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["bad", "good"]);
    assert_eq!(report["servers"]["good"]["ok"], true, "{report}");
    assert_eq!(report["servers"]["good"]["tools"][0]["public_name"], "mcp__good__echo");
    assert!(report["servers"]["bad"]["error"]["message"].as_str().unwrap().contains("cannot open database"));
    assert_eq!(report["problems"].as_array().unwrap().len(), 1, "{report}");
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_a_reason() {
    for (arguments, reason) in [
        (&["--call", "echo", "{", "--", "x"][..], "is no JSON object"),
        (&["--call", "echo", "[]", "--", "x"], "is no JSON object"),
        (&["--era", "old", "--", "x"], "must be `auto`"),
        (&["--timeout", "0", "--", "x"], "number of seconds"),
        (&["--servers", "/no/such/file"], "/no/such/file"),
        (&[], "COMMAND"),
    ] {
        let output = inspect(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty() && said.contains(reason), "{arguments:?}: {said}");
    }
}

/// The HTTP server that misbehaves on purpose, in one of its modes; it ends with the test.
struct OverHttp(std::process::Child, String);

impl OverHttp {
    fn start(mode: &str) -> Option<Self> {
        let script = faulty_server()?.with_file_name("faulty_http.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["--mode", mode])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut url)
            .unwrap();
        Some(Self(child, url.trim().to_owned()))
    }
}

impl Drop for OverHttp {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_over_http_gives_the_report_of_one_over_stdio() {
    let Some(script) = faulty_server() else { return };
    let call = ["--call", "echo", r#"{"text": "hi"}"#];
    let over_stdio = inspect_mode(&script, "dual", &call);
    let Some(server) = OverHttp::start("dual") else { return };
    let mut arguments = vec!["--url", &server.1, "--header", "X-Team: core"];
    arguments.extend(call);
    let over_http = report(&inspect(&arguments));
    let members = |report: &Value| report.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&over_http), members(&over_stdio));
    for same in ["ok", "era", "protocol_version", "call", "error", "noise_lines"] {
        assert_eq!(over_http[same], over_stdio[same], "{same}");
    }
    assert_eq!(over_http["tools"][0]["public_name"], "mcp__127_0_0_1__echo");
}

#[test]
fn a_server_over_http_of_a_file_is_inspected_like_the_others() {
    let Some(server) = OverHttp::start("session") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"web": {"url": server.1}}}).to_string()).unwrap();
    let report = report(&inspect(&["--servers", file.to_str().unwrap()]));
    assert_eq!((&report["servers"]["web"]["ok"], &report["problems"]), (&json!(true), &json!([])));
}

#[test]
fn an_address_where_nobody_answers_is_in_the_report_and_bad_arguments_are_not() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp?key=s3cret");
    let output = inspect(&["--url", &url, "--timeout", "5"]);
    let refused = report(&output);
    assert_eq!((&refused["ok"], &refused["tools"]), (&json!(false), &json!([])));
    assert!(!refused.to_string().contains("s3cret"), "{refused}");
    for bad in [
        &["--url", &url, "--header", "no colon"][..],
        &["--url", &url, "--bearer-env", "NO_SUCH_VARIABLE_ANYWHERE"],
        &["--url", &url, "--", "python3"],
    ] {
        assert_eq!(inspect(bad).status.code(), Some(2), "{bad:?}");
    }
}
