//! Skills in tool and agent mode, through the facade.

use std::sync::{Arc, Mutex};

use haversack::agent_core::testing::{Answer, ScriptedModel};
use haversack::agent_core::tool_fn::{NoArguments, tool_fn};
use haversack::prelude::*;
use haversack::skill_runtime::redact::Redactor;
use haversack::{Equipped, Haversack, HaversackBuilder, SkillModes, SkillState};
use serde_json::{Value, json};

use crate::project::Project;

const PIPELINE: &str = "tool_schema:\n  steps:\n  - tool: note\n";
const AGENT: &str = "skill_mode: agent\nagent_config: {role_title: Reviewer}\n";

fn project() -> Project {
    let project = Project::new();
    project.skill("text", "", "Read me.");
    project.skill("pipe", PIPELINE, "A pipeline.");
    project.skill("rev", AGENT, "An agent.");
    project
}

/// A tool that is no reading one, so that it is asked about.
fn note() -> (impl Tool, Arc<Mutex<usize>>) {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let tool = tool_fn(ToolSpec::new("note", "Notes"), move |_: NoArguments, _| {
        *counted.lock().unwrap() += 1;
        async { Ok(format!("noted ghp_{}", "a1".repeat(12))) }
    });
    (tool, calls)
}

fn builder(project: &Project, answers: Vec<Answer>) -> HaversackBuilder {
    Haversack::builder(ScriptedModel::new(answers))
        .project(project.root())
        .consent(async |_: haversack::ConsentQuestion| Some(true))
}

fn states(equipped: &Equipped) -> Vec<(&str, String)> {
    equipped.report().skills.iter().map(|s| (s.name.as_str(), s.state.to_string())).collect()
}

fn tools(equipped: &Equipped) -> Vec<&str> {
    equipped.report().tools.iter().map(|t| &**t).collect()
}

async fn results(equipped: &Equipped, session: &mut Session, text: &str) -> Vec<(String, Option<Value>)> {
    let before = session.messages().len();
    equipped.start(session, text).outcome().await.unwrap();
    let new = session.messages().iter().skip(before);
    let found = new.flat_map(|message| message.tool_results().cloned().collect::<Vec<_>>());
    found.map(|result| (result.text(), result.structured)).collect()
}

#[tokio::test]
async fn each_usable_skill_is_a_tool_of_its_own_and_texts_stay_with_the_skill_tool() {
    let project = project();
    project.skill("broken", "skill_mode: agent\n", "No agent.");
    let (tool, _) = note();
    let haversack = builder(&project, vec![]).tool(tool).skill_modes(SkillModes::new()).build().unwrap();
    let equipped = haversack.prepare().await.unwrap();
    assert_eq!(tools(&equipped), ["note", "rev", "skill", "skill_pipe"]);
    let told = states(&equipped);
    assert!(told[0].1.starts_with("withheld: ") && told[0].1.contains("missing_agent_config"), "{told:?}");
    let pipe = SkillState::Pipeline("skill_pipe".into()).to_string();
    let agent = SkillState::Agent("rev".into()).to_string();
    assert_eq!(told[1..], [("pipe", pipe), ("rev", agent), ("text", "offered".to_owned())]);
    let reader = equipped.skills().unwrap();
    assert!(reader.load("text", 1).is_ok());
    assert!(
        reader.load("pipe", 1).is_err()
            && reader.load("rev", 1).is_err()
            && reader.load("broken", 1).is_err()
    );
    assert!(equipped.report().notes.iter().any(|note| note.about == "skill broken"));
}

#[tokio::test]
async fn without_modes_or_consent_no_skill_is_a_tool() {
    let project = project();
    let equipped = builder(&project, vec![]).build().unwrap().prepare().await.unwrap();
    assert_eq!(tools(&equipped), ["skill"]);
    assert_eq!(equipped.report().skills.iter().filter(|s| s.state == SkillState::Offered).count(), 3);

    let (tool, _) = note();
    let refused = project.builder(Some(false)).tool(tool).skill_modes(SkillModes::new()).build().unwrap();
    assert_eq!(tools(&refused.prepare().await.unwrap()), ["note"]);
}

#[tokio::test]
async fn the_host_decides_about_the_calls_of_a_pipeline_and_no_secret_comes_out() {
    for (allows, ran) in [(true, 1), (false, 0)] {
        let project = project();
        let (tool, calls) = note();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let answers = vec![Answer::call("c", "skill_pipe", json!({})), Answer::text("done")];
        let haversack = builder(&project, answers)
            .tool(tool)
            .skill_modes(SkillModes::new().redactor(Redactor::new()))
            .approver(move |asks: Vec<Ask>| {
                let verdicts: Vec<Verdict> = asks
                    .iter()
                    .map(|ask| {
                        if allows || &*ask.tool == "skill_pipe" {
                            Verdict::Allow
                        } else {
                            Verdict::deny("no")
                        }
                    })
                    .collect();
                seen.lock().unwrap().extend(asks.iter().map(|ask| ask.tool.to_string()));
                async move { verdicts }
            })
            .build()
            .unwrap();
        let equipped = haversack.prepare().await.unwrap();
        let results = results(&equipped, &mut Session::default(), "go").await;
        assert_eq!(*asked.lock().unwrap(), ["skill_pipe", "note"]);
        assert_eq!(*calls.lock().unwrap(), ran);
        let (text, structured) = &results[0];
        assert_eq!(text.contains("noted ***"), allows, "{text}");
        assert!(!format!("{text}{structured:?}").contains("ghp_"));
    }
}

#[tokio::test]
async fn a_contract_that_waits_is_resumed_by_a_later_run_and_by_a_later_process() {
    let stuck = json!({"status": "needs_help", "result": "", "help_request": {"question": "Which one?"}});
    let answers = vec![
        Answer::call("a", "rev", json!({"task": "Review it"})),
        Answer::text(stuck.to_string()),
        Answer::text("it asks"),
    ];
    let project = project();
    let haversack = builder(&project, answers)
        .policy(haversack::agent_core::policy::Policy::new(haversack::agent_core::policy::Mode::Autonomous))
        .skill_modes(SkillModes::new())
        .build()
        .unwrap();
    let mut session = Session::default();
    let told = results(&haversack.prepare().await.unwrap(), &mut session, "go").await;
    let id = told[0].1.as_ref().unwrap()["contract"]["contract_id"].as_str().unwrap().to_owned();
    haversack.prepare().await.unwrap();
    let waiting = haversack.agent_skills().unwrap().suspended();
    assert_eq!(waiting.len(), 1, "a new run does not forget it");

    let stored = serde_json::to_string(&waiting).unwrap();
    let restored: Vec<haversack::skill_runtime::agent::Contract> = serde_json::from_str(&stored).unwrap();
    let model = ScriptedModel::new([
        Answer::call("b", "rev", json!({"task": "The first", "resume": id})),
        Answer::text(json!({"status": "completed", "result": "good"}).to_string()),
        Answer::text("done"),
    ]);
    let later = Haversack::builder(model.clone())
        .project(project.root())
        .consent(async |_: haversack::ConsentQuestion| Some(true))
        .policy(haversack::agent_core::policy::Policy::new(haversack::agent_core::policy::Mode::Autonomous))
        .skill_modes(SkillModes::new().agents(move |agents| agents.with_suspended(restored.clone())))
        .build()
        .unwrap();
    let told = results(&later.prepare().await.unwrap(), &mut session, "go on").await;
    let report = told[0].1.as_ref().unwrap();
    assert_eq!(
        (&report["contract"]["state"], &report["contract"]["contract_id"]),
        (&json!("completed"), &json!(id))
    );
    assert!(
        model.requests()[1].messages.iter().any(|m| m.text().contains("Which one?")),
        "it reads its own question"
    );
    assert!(later.agent_skills().unwrap().suspended().is_empty());
}
