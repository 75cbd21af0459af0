//! Who is asked about what, through a whole run.

use std::sync::{Arc, Mutex};

use haversack::Haversack;
use haversack::agent_core::policy::Mode;
use haversack::agent_core::testing::{Answer, ScriptedModel};
use haversack::fs_tools::FsTools;
use haversack::prelude::*;
use serde_json::{Value, json};

use crate::project::Project;

/// The ask that a call leads to, if it does.
async fn ask(project: &Project, mode: Mode, tool: &str, arguments: Value) -> Option<Ask> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&asked);
    let model = ScriptedModel::new([Answer::call("1", tool, arguments), Answer::text("Done.")]);
    let haversack = Haversack::builder(model)
        .project(project.root())
        .mode(mode)
        .fs_tools(FsTools::new(project.root()))
        .approver(move |asks: Vec<Ask>| {
            sink.lock().unwrap().extend(asks.iter().cloned());
            async move { vec![Verdict::deny("no"); asks.len()] }
        })
        .build()
        .unwrap();
    let equipped = haversack.prepare().await.unwrap();
    equipped.start(&mut Session::default(), "Go.").outcome().await.unwrap();
    let mut asked = asked.lock().unwrap();
    assert!(asked.len() <= 1);
    asked.pop()
}

#[tokio::test]
async fn each_kind_of_call_asks_as_the_table_says() {
    let project = Project::new();
    project.write("src/a.rs", "a");
    project.write(".env", "KEY=1");
    let read = |path: &str| ("read_file", json!({"path": path}));
    let edit = |path: &str| ("write_file", json!({"path": path, "content": "b"}));
    let run = |line: &str| ("run_command", json!({"command": line}));
    // (call, asked in ask mode, asked in accept-known mode, whether an "always" is offered)
    for ((tool, arguments), in_ask, in_accept, always) in [
        (read("src/a.rs"), false, false, false),
        (read("sub/../.env"), true, true, false),
        (read(".ENV.local"), true, true, false),
        (("list_files", json!({})), false, false, false),
        (("search_files", json!({"query": "x"})), false, false, false),
        (edit("src/a.rs"), true, false, true),
        (edit("package.json"), true, true, false),
        (edit("src/../.GIT/hooks/pre-commit"), true, true, false),
        (edit(".gbs/skills/x/SKILL.md"), true, true, false),
        (run("git status"), false, false, false),
        (run("npm run test"), true, true, true),
        (run("ls; id"), true, true, false),
        (run("echo $HOME"), true, true, false),
        (run("echo \u{202e}x"), true, true, false),
    ] {
        for (mode, expected) in
            [(Mode::Ask, in_ask), (Mode::AcceptKnown, in_accept), (Mode::Autonomous, false)]
        {
            if mode == Mode::Autonomous && tool == "run_command" {
                continue;
            }
            let ask = ask(&project, mode, tool, arguments.clone()).await;
            assert_eq!(ask.is_some(), expected, "{mode} {tool} {arguments}");
            if let Some(ask) = ask {
                assert_eq!(
                    !ask.suggested.is_empty(),
                    always,
                    "{mode} {tool} {arguments}: {:?}",
                    ask.suggested
                );
            }
        }
    }
}

#[tokio::test]
async fn an_ask_about_an_edit_carries_its_diff_and_says_which_rule_it_was() {
    let project = Project::new();
    project.write("Makefile", "all:\n\ttrue\n");
    let arguments = json!({"path": "Makefile", "old": "true", "new": "rm -r /"});
    let ask = ask(&project, Mode::AcceptKnown, "edit_file", arguments).await.unwrap();
    assert_eq!(
        ask.preview.as_deref(),
        Some("--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,2 @@\n all:\n-\ttrue\n+\trm -r /\n")
    );
    assert_eq!(ask.keys, [haversack::agent_core::policy::ApprovalKey::path("Makefile")]);
    assert!(ask.reason.contains("**/Makefile*"), "{}", ask.reason);
}

#[tokio::test]
async fn a_read_only_mode_lets_reading_pass_and_nothing_else() {
    let project = Project::new();
    project.write("a", "a");
    let write = json!({"path": "a", "content": "b"});
    assert!(ask(&project, Mode::ReadOnly, "write_file", write).await.is_none());
    assert_eq!(std::fs::read_to_string(project.root().join("a")).unwrap(), "a");
    assert!(ask(&project, Mode::ReadOnly, "read_file", json!({"path": "a"})).await.is_none());
    assert!(ask(&project, Mode::ReadOnly, "run_command", json!({"command": "touch b"})).await.is_none());
    assert!(!project.root().join("b").exists());
}

#[test]
fn fewer_tools_are_one_word_and_a_root_that_is_not_there_is_an_error() {
    let project = Project::new();
    let names = |tools: &FsTools| -> Vec<String> {
        tools.tools().unwrap().iter().map(|tool| tool.spec().name.to_string()).collect()
    };
    let tools = FsTools::new(project.root());
    assert_eq!(names(&tools.clone().read_only()), ["read_file", "list_files", "search_files"]);
    assert_eq!(names(&tools.clone().without_commands()).len(), 5);
    assert_eq!(names(&tools).len(), 6);
    let builder = project.builder(None).fs_tools(FsTools::new(project.root().join("none")));
    let error = builder.build().unwrap_err();
    assert!(error.to_string().contains("none"), "{error}");
}
