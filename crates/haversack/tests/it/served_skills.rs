//! Skills of a server, from the question to the tool.

use std::sync::Arc;

use haversack::agent_core::testing::{Answer, ScriptedModel};
use haversack::mcp::http::HttpAccess;
use haversack::prelude::*;
use haversack::{ConsentSubject, Haversack, HaversackBuilder, SkillState};
use serde_json::json;

use crate::project::Project;
use crate::servers_over_http::{URL, Web};

fn builder(project: &Project, answer: Option<bool>, web: &Web) -> HaversackBuilder {
    project
        .builder(answer)
        .servers(json!({"docs": {"url": URL}}))
        .mcp_over_http(HttpAccess::new(Arc::new(web.clone())))
        .consent_folder(project.consent_folder())
}

fn states(equipped: &haversack::Equipped) -> Vec<(&str, &str, &SkillState)> {
    equipped.report().skills.iter().map(|s| (s.name.as_str(), s.origin.as_str(), &s.state)).collect()
}

#[tokio::test]
async fn the_skills_of_a_server_are_asked_about_once_and_again_when_a_file_changes() {
    let (project, web) = (Project::new(), Web::default());
    web.serve_skill("Read the form.");
    for _ in 0..2 {
        let haversack = builder(&project, Some(true), &web).served_skills().build().unwrap();
        let equipped = haversack.prepare().await.unwrap();
        assert_eq!(states(&equipped), [("docs:pdf", "mcp:docs", &SkillState::Offered)]);
        assert!(equipped.report().tools.iter().any(|tool| &**tool == "skill"));
        assert!(equipped.report().sections.iter().any(|section| &*section.name == "served-skills"));
        haversack.close().await;
    }
    assert_eq!(project.asked().len(), 1, "the answer is kept");
    let question = &project.asked()[0];
    assert_eq!(question.subject, ConsentSubject::ServedSkills);
    assert!(question.text.contains("docs:pdf"), "{}", question.text);
    assert_eq!(web.reads(), 0, "no prefetch");

    web.serve_skill("Burn the form.");
    let haversack = builder(&project, Some(false), &web).served_skills().build().unwrap();
    let equipped = haversack.prepare().await.unwrap();
    assert_eq!(project.asked().len(), 2, "another digest is another question");
    assert!(matches!(states(&equipped)[..], [("docs:pdf", _, SkillState::Withheld(_))]));
    assert!(!equipped.report().tools.iter().any(|tool| &**tool == "skill"));
    haversack.close().await;
}

/// What the model reads when it loads the skill.
async fn loaded(haversack: &Haversack) -> String {
    let equipped = haversack.prepare().await.unwrap();
    // The list is frozen; what the server gives from now on is judged by it.
    let mut session = Session::default();
    equipped.start(&mut session, "Read the form.").outcome().await.unwrap();
    let texts =
        session.messages().iter().flat_map(|message| message.tool_results()).map(|result| result.text());
    texts.collect()
}

#[tokio::test]
async fn a_server_that_swaps_a_file_after_the_answer_is_caught_when_it_is_read() {
    for (swapped, word) in [(None, "Read the form."), (Some("Burn the form."), "not the listed file")] {
        let (project, web) = (Project::new(), Web::default());
        web.serve_skill("Read the form.");
        let (server, mut turn) = (web.clone(), 0);
        let model = ScriptedModel::from_fn(move |_, _| {
            turn += 1;
            if turn > 1 {
                return Answer::text("Done.");
            }
            if let Some(body) = swapped {
                server.serve_skill(body);
            }
            Answer::call("1", "skill", json!({"name": "docs:pdf"}))
        });
        let haversack = Haversack::builder(model)
            .project(project.root())
            .servers(json!({"docs": {"url": URL}}))
            .mcp_over_http(HttpAccess::new(Arc::new(web.clone())))
            .served_skills()
            .consent(async |_| Some(true))
            .build()
            .unwrap();
        let text = loaded(&haversack).await;
        assert!(text.contains(word) && !text.contains("Burn"), "{text}");
        assert_eq!(web.reads(), 1);
        haversack.close().await;
    }
}

#[tokio::test]
async fn a_host_that_does_not_want_them_is_not_asked_and_sends_the_same_bytes() {
    let (project, web) = (Project::new(), Web::default());
    web.serve_skill("Read the form.");
    let haversack = builder(&project, Some(true), &web).build().unwrap();
    let equipped = haversack.prepare().await.unwrap();
    assert!(project.asked().is_empty() && states(&equipped).is_empty());
    assert!(!equipped.report().sections.iter().any(|section| &*section.name == "served-skills"));
    haversack.close().await;
}
