//! A host that uses no skills and no servers sends what it would send without us.

use std::time::Duration;

use haversack::Haversack;
use haversack::http::ReqwestClient;
use haversack::prelude::*;
use haversack::providers::presets::openai_compatible;
use haversack_examples::rehearsal::{MODEL, Rehearsal};

#[tokio::test]
async fn in_an_empty_workspace_the_request_is_that_of_a_plain_agent_byte_for_byte() {
    let rehearsal = Rehearsal::start(Duration::ZERO).await.unwrap();
    let model = || openai_compatible(ReqwestClient::new().unwrap(), rehearsal.base_url(), MODEL);
    let empty = tempfile::tempdir().unwrap();
    let unusable = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(unusable.path().join(".agents/skills/broken")).unwrap();
    std::fs::write(unusable.path().join(".agents/skills/broken/SKILL.md"), "no front matter").unwrap();
    std::fs::create_dir_all(unusable.path().join(".agents/skills/fine")).unwrap();
    let fine = "---\nname: fine\ndescription: Is not agreed to.\n---\n";
    std::fs::write(unusable.path().join(".agents/skills/fine/SKILL.md"), fine).unwrap();
    std::fs::write(
        unusable.path().join(".mcp.json"),
        r#"{"mcpServers": {"s": {"command": "no-such-program"}}}"#,
    )
    .unwrap();

    let plain = Agent::builder(model()).section("role", "You help.").build().unwrap();
    plain.start(&mut Session::default(), "Hello").outcome().await.unwrap();
    for project in [empty.path(), unusable.path()] {
        let haversack =
            Haversack::builder(model()).project(project).section("role", "You help.").build().unwrap();
        let equipped = haversack.prepare().await.unwrap();
        equipped.start(&mut Session::default(), "Hello").outcome().await.unwrap();
        haversack.close().await;
    }

    let requests = rehearsal.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0], requests[1], "an empty workspace");
    assert_eq!(requests[0], requests[2], "a broken skill, and a skill and a server that nobody agreed to");
}
