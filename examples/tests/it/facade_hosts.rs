//! The hosts that show one part of the facade each, as programs.

use std::process::{Output, Stdio};

use haversack_examples::rehearsal::{MODEL, Rehearsal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::stage::workspace;

async fn run(program: &str, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("FIELD_NOTES_SERVER", env!("CARGO_BIN_EXE_field-notes"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    child.wait_with_output().await.unwrap()
}

async fn ok(program: &str, arguments: &[&str], input: &str) -> String {
    let output = run(program, arguments, input).await;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

#[tokio::test]
async fn minimal_answers_a_task() {
    let rehearsal = Rehearsal::start(std::time::Duration::ZERO).await.unwrap();
    let text = ok(env!("CARGO_BIN_EXE_minimal"), &[&rehearsal.base_url(), MODEL, "Hello."], "").await;
    assert!(text.contains("Done"), "{text}");
    assert_eq!(run(env!("CARGO_BIN_EXE_minimal"), &[], "").await.status.code(), Some(1));
}

#[tokio::test]
async fn list_tools_shows_the_tools_of_a_server_and_says_when_it_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.json");
    let server = [env!("CARGO_BIN_EXE_field-notes"), "--file", notes.to_str().unwrap()];
    let text = ok(env!("CARGO_BIN_EXE_list_tools"), &server, "").await;
    assert!(text.contains("mcp__server__") && text.contains("says that it only reads"), "{text}");
    let failed = run(env!("CARGO_BIN_EXE_list_tools"), &["no-such-program-anywhere"], "").await;
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stdout).contains("no-such-program-anywhere"));
}

#[tokio::test]
async fn manager_with_consent_starts_nothing_without_a_yes_and_asks_once() {
    let answers = tempfile::tempdir().unwrap();
    let project = workspace();
    let arguments = [project.to_str().unwrap(), answers.path().to_str().unwrap()];
    let host = env!("CARGO_BIN_EXE_manager_with_consent");
    let nobody = ok(host, &arguments, "").await;
    assert!(nobody.contains("Start them?") && nobody.contains("0 tools"), "{nobody}");
    let agreed = ok(host, &arguments, "y\n").await;
    assert!(agreed.contains("Start them?") && !agreed.contains("0 tools"), "{agreed}");
    let again = ok(host, &arguments, "").await;
    assert!(!again.contains("Start them?") && !again.contains("0 tools"), "{again}");
}

#[tokio::test]
async fn disclose_skills_shows_the_three_levels() {
    let project = workspace();
    let project = project.to_str().unwrap();
    let host = env!("CARGO_BIN_EXE_disclose_skills");
    let list = ok(host, &[project], "").await;
    assert!(
        list.contains("field-note (.agents/skills): offered") && list.contains("section skills"),
        "{list}"
    );
    assert!(ok(host, &[project, "field-note"], "").await.contains("<skill name=\"field-note\""));
    assert!(ok(host, &[project, "field-note", "references/tags.md"], "").await.contains("<skill_resource"));
    assert!(!run(host, &[project, "no-such-skill"], "").await.status.success());
}

#[tokio::test]
async fn narrowed_subagent_reads_and_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("here.txt"), "").unwrap();
    let text = ok(env!("CARGO_BIN_EXE_narrowed_subagent"), &[folder.path().to_str().unwrap()], "").await;
    assert!(text.contains("here.txt") && text.contains("writing was not possible"), "{text}");
    assert!(!folder.path().join("planted").exists());
}

#[tokio::test]
async fn skill_modes_runs_a_skill_of_each_mode() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("skill_modes");
    let text = ok(env!("CARGO_BIN_EXE_skill_modes"), &[folder.to_str().unwrap()], "").await;
    for part in [
        "skill greet: offered",
        "skill proof-reader: the tool proof-reader, a sub-agent",
        "skill shout: the tool skill_shout, a pipeline",
        "Say hello, use the first name",
        "asked: skill_shout",
        "[\"HELLO\",\"YOU\"]",
        "### Step 2: count [done]\n8\n",
        "[Agent Result]\nSkill: proof-reader\n",
        "Status: completed\n\nHelo -> Hello\n",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}
