//! Whatever is broken gives one clear line, and the run goes on where it can.

use std::future::pending;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use haversack_examples::quickstart::{Endpoint, run};
use tokio::net::TcpListener;

use crate::stage::Stage;

/// A model server that gives the same answer to everything; its base URL.
async fn server<A>(answer: A) -> String
where
    A: IntoResponse + Clone + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = Router::new().fallback(move || async move { answer.clone() });
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

async fn error_of(base_url: &str) -> String {
    let stage = Stage::new();
    let empty = stage.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut options = stage.options();
    options.workspace = empty;
    options.endpoint = Some(Endpoint::new(base_url, "some-model"));
    run(options, stage.terminal(&[]), pending()).await.expect_err("a broken model server")
}

#[tokio::test]
async fn a_model_server_that_refuses_or_talks_nonsense_is_named_with_the_next_step() {
    let unauthorized = (StatusCode::UNAUTHORIZED, r#"{"error":{"message":"Incorrect API key provided"}}"#);
    let limited =
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")], r#"{"error":{"message":"Slow down"}}"#);
    let missing = (StatusCode::NOT_FOUND, r#"{"error":{"message":"no such model"}}"#);
    for (url, parts) in [
        (server(unauthorized).await, ["Incorrect API key", "--api-key-env"]),
        (server(limited).await, ["Slow down", "later"]),
        (server(missing).await, ["no such model", "--model"]),
        (server("<html>hello</html>").await, ["127.0.0.1", "OpenAI-compatible"]),
    ] {
        let line = error_of(&url).await;
        assert!(parts.iter().all(|part| line.contains(part)) && !line.contains('\n'), "{line}");
    }
}

#[tokio::test]
async fn a_model_server_that_is_not_there_or_says_nothing_is_named_with_the_next_step() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hangs_up = format!("http://{}/v1", silent.local_addr().unwrap());
    tokio::spawn(async move { while silent.accept().await.is_ok() {} });
    for url in [nobody, hangs_up] {
        let line = error_of(&url).await;
        assert!(line.contains("127.0.0.1") && line.contains("--base-url"), "{line}");
    }
}

#[tokio::test]
async fn broken_files_and_servers_take_a_line_each_and_the_rest_works() {
    let stage = Stage::new();
    let project = stage.folder.path().join("project");
    for (folder, text) in [
        ("broken", "---\nname: [oops\ndescription\n"),
        ("mute", "---\nname: mute\n---\nHas no description."),
        ("fine", "---\nname: fine\ndescription: Field notes are written by this skill.\n---\nJust do it."),
    ] {
        let folder = project.join(".gbs/skills").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let servers = r#"{"mcpServers": {
        "absent": {"command": "no-such-program-anywhere"},
        "dies": {"command": "sh", "args": ["-c", "echo cannot find my configuration >&2; exit 3"]},
        "remote": {"type": "carrier-pigeon"},
        "odd": 7
    }}"#;
    std::fs::write(project.join(".mcp.json"), servers).unwrap();
    let mut options = stage.options();
    options.workspace = project;
    run(options, stage.terminal(&["y", "y", "y"]), pending()).await.unwrap();
    let output = stage.output();
    for part in [
        "broken/SKILL.md",
        "mute/SKILL.md",
        "no-such-program-anywhere",
        "No such file",
        "cannot find my configuration",
        "carrier-pigeon",
        "`odd`",
        "the task is finished",
    ] {
        assert!(output.contains(part), "{part} is not in:\n{output}");
    }
    assert!(output.contains("skills: fine"), "{output}");
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_and_the_run_goes_on() {
    let stage = Stage::new();
    // The notes cannot be stored: where the file should be, there is a folder.
    std::fs::create_dir(stage.notes_file()).unwrap();
    let session = run(stage.options(), stage.terminal(&["y", "y", "y", "y"]), pending()).await.unwrap();
    assert!(stage.output().contains("Error:"), "{}", stage.output());
    assert!(stage.output().contains("the task is finished"), "{}", stage.output());
    assert!(session.check().is_empty());
}
