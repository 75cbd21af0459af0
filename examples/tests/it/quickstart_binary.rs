//! The built program, as the README starts it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Output, Stdio};

use crate::stage::Stage;

fn quickstart(stage: &Stage) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quickstart"));
    command.arg("--notes").arg(stage.notes_file()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn yes_on_the_command_line_needs_no_input_and_leaves_no_process() {
    let stage = Stage::new();
    let output = quickstart(&stage).arg("--yes").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("the task is finished"), "{}", text(&output));
    assert_eq!(stage.notes().len(), 1);
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[test]
fn four_lines_of_yes_do_the_same() {
    let stage = Stage::new();
    let mut child = quickstart(&stage).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"y\ny\ny\ny\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output).contains("the task is finished"), "{}", text(&output));
    assert_eq!((stage.notes().len(), stage.processes()), (1, Vec::new()));
}

#[test]
fn without_input_and_without_yes_nothing_of_the_repository_is_used() {
    let stage = Stage::new();
    let output = quickstart(&stage).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && text(&output).contains("nobody agreed"), "{}", text(&output));
    assert_eq!(stage.notes().len(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_half_way_ends_with_a_valid_saved_history_and_no_process() {
    let stage = Stage::new();
    let file = stage.folder.path().join("session.json");
    let mut child =
        quickstart(&stage).args(["--yes", "--save"]).arg(&file).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let began = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("> skill"));
    assert!(began);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("stopped by the user")), "{rest:?}");
    let session = haversack_examples::quickstart::load(&file).unwrap();
    assert!(session.check().is_empty(), "{:?}", session.check());
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[test]
fn wrong_options_are_one_line_and_exit_codes() {
    for (arguments, code, part) in [
        (vec!["--base-url", "http://127.0.0.1:9"], 2, "--model"),
        (vec!["--workspace", "no/such/folder"], 1, "no/such/folder"),
        (vec!["--resume", "no-such-session.json"], 1, "no-such-session.json"),
        (
            vec!["--base-url", "http://x", "--model", "m", "--api-key-env", "NO_SUCH_VARIABLE"],
            1,
            "NO_SUCH_VARIABLE",
        ),
    ] {
        let stage = Stage::new();
        let output = quickstart(&stage).args(&arguments).arg("--yes").stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{arguments:?}: {}", text(&output));
    }
}
