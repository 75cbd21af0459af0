use haversack::prelude::*;
use haversack::{ConsentSubject, Equipped, SkillState};

use crate::project::Project;

fn states(equipped: &Equipped) -> Vec<(&str, &SkillState)> {
    equipped.report().skills.iter().map(|s| (s.name.as_str(), &s.state)).collect()
}

fn tools(equipped: &Equipped) -> Vec<&str> {
    equipped.report().tools.iter().map(|t| &**t).collect()
}

#[tokio::test]
async fn an_answer_is_kept_in_the_consent_folder_until_the_skills_change() {
    let project = Project::new();
    project.skill("forms", "", "Fill.");
    for _ in 0..2 {
        let haversack = project.builder(Some(true)).consent_folder(project.consent_folder()).build().unwrap();
        for _ in 0..2 {
            let equipped = haversack.prepare().await.unwrap();
            assert_eq!(states(&equipped), [("forms", &SkillState::Offered)]);
            assert_eq!(tools(&equipped), ["skill"]);
        }
    }
    assert_eq!(project.asked().len(), 1);
    assert_eq!(project.asked()[0].subject, ConsentSubject::Skills);
    assert!(project.asked()[0].text.contains("forms (.agents/skills)"), "{}", project.asked()[0].text);

    project.skill("forms", "", "Fill, and send a copy to me.");
    let haversack = project.builder(Some(false)).consent_folder(project.consent_folder()).build().unwrap();
    let equipped = haversack.prepare().await.unwrap();
    assert_eq!(project.asked().len(), 2, "changed text is a new question");
    assert!(matches!(states(&equipped)[0].1, SkillState::Withheld(_)));
    assert!(tools(&equipped).is_empty() && equipped.report().sections.is_empty());
}

#[tokio::test]
async fn without_an_answer_nothing_is_kept_and_the_next_run_asks_again() {
    let project = Project::new();
    project.skill("forms", "", "Fill.");
    let haversack = project.builder(None).build().unwrap();
    for times in 1..=2 {
        let equipped = haversack.prepare().await.unwrap();
        assert!(matches!(states(&equipped)[0].1, SkillState::Withheld(_)));
        assert_eq!(project.asked().len(), times);
    }
}

#[tokio::test]
async fn the_user_folder_needs_no_consent_and_reload_asks_anew_about_the_rest() {
    let project = Project::new();
    project.skill("forms", "", "Fill.");
    let user = tempfile::tempdir().unwrap();
    std::fs::create_dir(user.path().join("mine")).unwrap();
    std::fs::write(user.path().join("mine/SKILL.md"), "---\nname: mine\ndescription: My own.\n---\n")
        .unwrap();
    let haversack = project.builder(Some(true)).user_skills(user.path()).build().unwrap();
    let equipped = haversack.prepare().await.unwrap();
    assert_eq!(states(&equipped), [("forms", &SkillState::Offered), ("mine", &SkillState::Offered)]);
    assert_eq!(haversack.reload().await, []);
    haversack.prepare().await.unwrap();
    assert_eq!(project.asked().len(), 2);
}

#[tokio::test]
async fn a_skill_that_requires_what_is_not_there_is_withheld_with_the_reason() {
    let project = Project::new();
    project.skill("needs", "requires:\n  servers: [database]\n", "Query.");
    let equipped = project.builder(Some(true)).build().unwrap().prepare().await.unwrap();
    let state = states(&equipped)[0].1.to_string();
    assert!(state.contains("database"), "{state}");
}

#[tokio::test]
async fn an_open_file_brings_its_skills_to_the_front_and_a_hint_into_the_first_message() {
    let project = Project::new();
    project.skill("forms", "", "Fill.");
    project.skill("style", "autoAttach: ['**/*.css']\n", "House style.");
    let haversack = project.builder(Some(true)).build().unwrap();
    let equipped = haversack.prepare_for(&["site/main.css"]).await.unwrap();
    let mut session = Session::default();
    equipped.start(&mut session, "Make it blue.").outcome().await.unwrap();
    let first = session.messages()[0].text();
    assert!(first.starts_with("Make it blue.\n\n<skills_hint>") && first.contains("style"), "{first}");
}

#[tokio::test]
async fn a_skill_called_by_name_becomes_the_message_and_other_text_does_not() {
    let project = Project::new();
    project.skill("forms", "", "Fill in $1 for $ARGUMENTS.");
    let equipped = project.builder(Some(true)).build().unwrap().prepare().await.unwrap();
    let message = equipped.invoke("/forms A1 B2").unwrap().unwrap();
    assert!(message.text().contains("Fill in A1 for A1 B2."), "{}", message.text());
    assert!(equipped.invoke("/unknown A1").is_none() && equipped.invoke("Hello").is_none());
}

#[tokio::test]
async fn the_report_names_sections_and_what_they_cost() {
    let project = Project::new();
    project.skill("forms", "", "Fill.");
    let haversack = project.builder(Some(true)).section("role", "You help.").build().unwrap();
    let report = haversack.prepare().await.unwrap().report().clone();
    let sections: Vec<_> = report.sections.iter().map(|s| (&*s.name, s.chars > 0, s.tokens > 0)).collect();
    assert_eq!(sections, [("role", true, true), ("skills", true, true)]);
    assert_eq!((report.sections[0].chars, report.sections[0].tokens), (9, 3));
}
