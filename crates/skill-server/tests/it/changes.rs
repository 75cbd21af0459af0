//! Changes on the disk reach the clients.

use haversack_skill_server::Host;
use serde_json::json;

use crate::wire::{Wire, folder, serve, write};

async fn until(wire: &mut Wire, method: &str) {
    while wire.read().await["method"] != method {}
}

#[tokio::test]
async fn clients_of_both_eras_are_told_when_skills_come_change_and_go() {
    let skills = folder(&[("a", "---\nname: a\ndescription: A.\n---\nA.\n")]);
    let server = serve(skills.path(), Host::new());
    let mut legacy = Wire::legacy(&server, json!({})).await;
    let mut modern = Wire::modern(&server, &json!({}));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    modern.ask("subscriptions/listen", filter).await;
    until(&mut modern, "notifications/subscriptions/acknowledged").await;
    let watching = server.clone();
    let watch = tokio::spawn(async move { watching.watch().await });
    let names = |server: &haversack_skill_server::SkillServer| {
        server.catalogue().skills().iter().map(|skill| skill.name().to_owned()).collect::<Vec<_>>()
    };
    write(skills.path(), "b", "---\nname: b\ndescription: B.\n---\nB.\n");
    until(&mut legacy, "notifications/tools/list_changed").await;
    until(&mut legacy, "notifications/resources/list_changed").await;
    until(&mut modern, "notifications/tools/list_changed").await;
    assert_eq!(names(&server), ["a", "b"]);

    write(skills.path(), "a", "---\nname: a\ndescription: Another description.\n---\nA.\n");
    until(&mut legacy, "notifications/tools/list_changed").await;
    assert_eq!(server.catalogue().get("a").unwrap().description(), "Another description.");

    std::fs::remove_dir_all(skills.path().join("b")).unwrap();
    until(&mut legacy, "notifications/tools/list_changed").await;
    assert_eq!(names(&server), ["a"]);
    watch.abort();
}
