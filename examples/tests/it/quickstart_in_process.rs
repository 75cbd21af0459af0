//! The first run, driven in this process with scripted answers.

use std::future::pending;

use haversack::agent_core::message::ToolStatus;
use haversack::prelude::*;
use haversack_examples::quickstart::{Options, run};
use tokio::sync::Notify;

use crate::stage::Stage;

fn results(session: &Session) -> Vec<(String, ToolStatus, String)> {
    let results = session.messages().iter().flat_map(|m| m.tool_results().cloned().collect::<Vec<_>>());
    results.map(|r| (r.name.to_string(), r.status, r.text())).collect()
}

async fn play(stage: &Stage, options: Options, answers: &[&str]) -> Session {
    run(options, stage.terminal(answers), pending())
        .await
        .unwrap_or_else(|e| panic!("{e}\n{}", stage.output()))
}

#[tokio::test]
async fn with_yes_to_everything_the_task_is_finished_with_a_body_a_resource_and_two_calls() {
    let stage = Stage::new();
    let session = play(&stage, stage.options(), &["y", "y", "y", "y"]).await;
    let results = results(&session);
    let names: Vec<_> = results.iter().map(|(name, status, _)| (name.as_str(), *status)).collect();
    assert_eq!(
        names,
        [
            ("skill", ToolStatus::Ok),
            ("skill", ToolStatus::Ok),
            ("mcp__field-notes__add_note", ToolStatus::Ok),
            ("mcp__field-notes__search_notes", ToolStatus::Ok),
        ]
    );
    assert!(results[0].2.contains("# Writing a field note"), "{}", results[0].2);
    assert!(results[1].2.contains("kingfisher, duck"), "{}", results[1].2);
    // The tags come from the bundled file: without level 3 they could not be right.
    assert_eq!(stage.notes()[0].tags, ["birds", "weather"]);
    assert!(stage.output().contains("the task is finished"), "{}", stage.output());
    assert!(session.check().is_empty(), "{:?}", session.check());
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_denied_call_is_not_made_and_the_reason_reaches_the_model() {
    let stage = Stage::new();
    let session = play(&stage, stage.options(), &["y", "y", "n the archive is closed", "y"]).await;
    let denied = results(&session).into_iter().find(|(_, status, _)| *status == ToolStatus::Denied).unwrap();
    assert_eq!(denied.0, "mcp__field-notes__add_note");
    assert!(denied.2.contains("the archive is closed"), "{}", denied.2);
    assert!(stage.notes().is_empty());
    assert!(stage.output().contains("the task is finished"), "{}", stage.output());
}

#[tokio::test]
async fn always_is_asked_once_for_a_tool_and_each_tool_for_itself() {
    let stage = Stage::new();
    let mut options = stage.options();
    options.task = Some(format!("{} Add a note: fog.", haversack_examples::quickstart::DEFAULT_TASK));
    play(&stage, options, &["y", "y", "a", "y"]).await;
    assert_eq!(stage.notes().len(), 2, "{}", stage.output());
    assert_eq!(stage.output().matches("add_note wants to run").count(), 1, "{}", stage.output());
}

#[tokio::test]
async fn with_nobody_to_agree_the_run_goes_on_without_skills_and_servers_and_says_so() {
    let stage = Stage::new();
    let session = play(&stage, stage.options(), &[]).await;
    assert!(results(&session).is_empty());
    assert_eq!(stage.output().matches("nobody agreed").count(), 2, "{}", stage.output());
    assert!(stage.output().contains("the task is finished"), "{}", stage.output());
}

#[tokio::test]
async fn a_run_that_waits_for_an_answer_goes_on_from_its_file() {
    let stage = Stage::new();
    let file = stage.folder.path().join("session.json");
    let mut options = stage.options();
    options.save = Some(file.clone());
    let paused = play(&stage, options, &["y", "y"]).await;
    assert!(stage.output().contains("paused"), "{}", stage.output());
    assert_eq!(paused.pending_asks().len(), 1);
    assert!(stage.notes().is_empty());

    let mut options = stage.options();
    options.resume = Some(file);
    let finished = play(&stage, options, &["y", "y", "y", "y"]).await;
    assert_eq!(stage.notes().len(), 1);
    assert!(finished.pending_asks().is_empty() && finished.check().is_empty());
    assert!(stage.output().contains("the task is finished"), "{}", stage.output());
}

#[tokio::test]
async fn a_run_that_is_stopped_half_way_leaves_a_valid_history_and_no_process() {
    for moment in ["> skill", "wants to run", "> mcp__field-notes__add_note"] {
        let stage = Stage::new();
        let stop = std::sync::Arc::new(Notify::new());
        let signal = std::sync::Arc::clone(&stop);
        let terminal = stage.watched_terminal(&["y", "y", "y", "y"], move |output| {
            if output.contains(moment) {
                signal.notify_one();
            }
        });
        let session = run(stage.options(), terminal, async move { stop.notified().await }).await.unwrap();
        assert!(session.check().is_empty(), "{moment}: {:?}", session.check());
        assert!(stage.output().contains("stopped by the user"), "{moment}: {}", stage.output());
        assert_eq!(stage.processes(), Vec::<String>::new(), "{moment}");
    }
}
