use haversack::{ConsentSubject, Error, Haversack};
use serde_json::json;

use crate::project::Project;

#[test]
fn a_project_that_is_no_folder_is_an_error_at_once() {
    let model = haversack::agent_core::testing::ScriptedModel::new([]);
    let error = Haversack::builder(model).project("no/such/folder").build().unwrap_err();
    assert!(
        matches!(&error, Error::NoProject { .. }) && error.to_string().contains("no/such/folder"),
        "{error}"
    );
}

#[tokio::test]
async fn a_repository_server_is_asked_about_with_its_exact_command_and_not_started_without_a_yes() {
    let project = Project::new();
    let marker = project.root().join("started");
    let server = json!({"mcpServers": {"evil": {"command": "touch", "args": [marker]}}});
    project.write(".mcp.json", &server.to_string());
    for answer in [None, Some(false)] {
        let equipped = project.builder(answer).build().unwrap().prepare().await.unwrap();
        assert!(!marker.exists());
        let server = &equipped.report().servers[0];
        assert!(!server.is_ready && server.short == "not approved", "{server:?}");
    }
    let question = &project.asked()[0];
    assert_eq!(question.subject, ConsentSubject::Servers);
    assert!(question.text.contains("touch") && question.text.contains("started"), "{}", question.text);
}

#[tokio::test]
async fn a_server_that_fails_is_told_once_and_a_required_one_is_an_error() {
    let project = Project::new();
    let entry = |required| json!({"mine": {"command": "no-such-program-anywhere", "required": required}});
    let haversack = project.builder(None).servers(entry(false)).build().unwrap();
    let first = haversack.prepare().await.unwrap();
    let notes = |equipped: &haversack::Equipped| {
        equipped.report().notes.iter().filter(|n| n.message.contains("no-such-program-anywhere")).count()
    };
    assert_eq!(notes(&first), 1, "{:?}", first.report().notes);
    assert_eq!(notes(&haversack.prepare().await.unwrap()), 0);
    assert!(project.asked().is_empty(), "the host's own servers need no consent");

    let error = project.builder(None).servers(entry(true)).build().unwrap().prepare().await.unwrap_err();
    assert!(matches!(&error, Error::MissingServer { server, .. } if server == "mine"), "{error}");
}
