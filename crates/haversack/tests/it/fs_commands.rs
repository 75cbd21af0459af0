//! Commands, in the system's own shell.

use std::time::Duration;

use haversack::fs_tools::FsTools;
use haversack::mcp::environment::Environment;
use haversack::prelude::*;
use serde_json::json;

use crate::project::{Project, Tools};

fn tools(project: &Project) -> Tools {
    let environment: Environment =
        [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("MY_SECRET", "s3cret"), ("KIND", "plain")].into();
    Tools::of(&FsTools::new(project.root()).with_environment(environment))
}

/// A process that leaves its number in a file and sleeps.
fn sleeper(file: &str) -> String {
    format!("sh -c 'echo $$ > {file}; exec sleep 600'")
}

async fn number_in(project: &Project, file: &str) -> i32 {
    loop {
        let text = std::fs::read_to_string(project.root().join(file)).unwrap_or_default();
        match text.trim().parse() {
            Ok(number) if text.ends_with('\n') => return number,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// Waits until a process is gone; its new parent may be slow to reap it, so a zombie counts as gone.
async fn gone(process: i32) {
    while std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_gives_its_output_and_its_code_and_runs_in_the_root() {
    let project = Project::new();
    let tools = tools(&project);
    let context = || ToolContext::detached("1");
    let run =
        async |line: &str| tools.get("run_command").call(json!({"command": line}), context()).await.unwrap();
    let text = |output: &ToolOutput| output.blocks[0].as_text().unwrap().to_owned();
    let real = project.root().canonicalize().unwrap();
    assert_eq!(text(&run("pwd").await), format!("{}\n", real.display()));
    assert_eq!(text(&run("printf one; printf two >&2").await).len(), 7);
    assert_eq!(text(&run("true").await), "(no output)\n");
    let failed = run("echo why; exit 3").await;
    assert!(failed.is_error && text(&failed) == "why\n[exit status: 3]", "{failed:?}");
    assert!(text(&run("cat").await).contains("(no output)"), "there is no input");
    assert_eq!(text(&run("echo $KIND$MY_SECRET").await), "plain\n", "secrets are not handed on");
    for line in ["", "  ", "a\0b"] {
        assert!(tools.call("run_command", json!({"command": line})).await.is_err());
    }
}

#[tokio::test]
async fn a_command_whose_time_is_over_is_ended_with_all_that_it_started() {
    let project = Project::new();
    let tools = tools(&project);
    let line = format!("echo before; {} & {}", sleeper("one"), sleeper("two"));
    let error = tools.call("run_command", json!({"command": line, "seconds": 1})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert!(error.message.starts_with("before\n[it was ended after 1 s"), "{error}");
    for file in ["one", "two"] {
        gone(number_in(&project, file).await).await;
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_is_ended_and_told() {
    let project = Project::new();
    let line = format!("{} & while [ ! -s one ]; do :; done; echo started", sleeper("one"));
    let text = tools(&project).call("run_command", json!({"command": line})).await.unwrap();
    assert_eq!(text, "started\n[what it left running in the background was ended]\n");
    gone(number_in(&project, "one").await).await;
}

#[tokio::test]
async fn a_dropped_or_cancelled_call_leaves_no_process() {
    let project = Project::new();
    let tools = tools(&project);
    let call = tools.call("run_command", json!({"command": sleeper("one")}));
    let process = tokio::select! {
        result = call => panic!("{result:?}"),
        process = number_in(&project, "one") => process,
    };
    gone(process).await;

    let stop = haversack::agent_core::cancel::Cancellation::new();
    let context = ToolContext::detached("1").with_cancellation(stop.clone());
    let call = tools.get("run_command").call(json!({"command": sleeper("two")}), context);
    let cancel = async {
        let process = number_in(&project, "two").await;
        stop.cancel();
        process
    };
    let (result, process) = tokio::join!(call, cancel);
    assert_eq!(result.unwrap_err().kind, ToolErrorKind::Interrupted);
    gone(process).await;
}

#[tokio::test]
async fn output_without_end_is_bounded_and_a_shell_that_is_not_there_is_an_error() {
    let project = Project::new();
    let call = tools(&project).call("run_command", json!({"command": "yes | head -c 5000000"})).await;
    let text = call.unwrap();
    assert!(text.len() < 1_100_000 && text.contains("bytes are left out here"), "{}", text.len());
    let none =
        FsTools::new(project.root()).with_shell("/no/such/shell").with_command_time(Duration::from_secs(1));
    let error = Tools::of(&none).call("run_command", json!({"command": "pwd"})).await.unwrap_err();
    assert!(error.message.contains("could not be started"), "{error}");
}
