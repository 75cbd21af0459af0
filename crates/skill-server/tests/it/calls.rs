//! What a call of each kind of skill gives back.

use std::sync::Arc;

use haversack_agent_core::prelude::*;
use haversack_agent_core::testing::{Answer, ScriptedModel};
use haversack_agent_core::tool_fn::tool_fn;
use haversack_skill_server::Host;
use serde_json::{Value, json};

use crate::wire::{Wire, folder, serve, text};

pub(crate) const PIPE: &str = "---
name: pipe
description: Runs a pipeline.
skill_mode: tool
tool_schema:
  input: {type: object, properties: {who: {type: string}}, required: [who]}
  steps:
    - action: greet
      tool: echo
      input_map: {text: 'Hello {{ input.who }}'}
      output_as: greeting
    - action: shout
      tool: shout
      input_map: {text: '{{ greeting }}'}
---
Pipe.
";

pub(crate) const AGENT: &str = "---
name: worker
description: Works on a task.
skill_mode: agent
agent_config: {role_title: Worker}
---
Work.
";

fn word(arguments: &Value) -> String {
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
    let echo = tool_fn(ToolSpec::new("echo", "Says it."), async |a: Value, _| Ok(word(&a)));
    let shout = tool_fn(ToolSpec::new("shout", "Shouts it."), async |a: Value, context: ToolContext| {
        if word(&a).contains("fail") {
            return Err(ToolError::failed("no: Authorization: Bearer abcdefghijklmnopqrstuvwxyz"));
        }
        if word(&a).contains("wait") {
            context.cancellation().cancelled().await;
        }
        Ok(word(&a).to_uppercase())
    });
    vec![Arc::new(echo), Arc::new(shout)]
}

#[tokio::test]
async fn every_usable_skill_is_a_tool_with_its_own_name_description_and_schema() {
    let agent = ScriptedModel::new([]);
    let skills = folder(&[
        ("greet", "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n"),
        ("team-x", "---\nname: team:x\ndescription: Team.\n---\nX.\n"),
        ("hidden", "---\nname: hidden\ndescription: H.\ndisable-model-invocation: true\n---\nH.\n"),
        ("broken", "---\nname: broken\ndescription: B.\nskill_mode: tool\n---\nB.\n"),
        ("pipe", PIPE),
        ("worker", AGENT),
    ]);
    let server = serve(skills.path(), Host::new().with_tools(tools()).with_model(agent));
    let mut wire = Wire::legacy(&server, json!({})).await;
    let answer = wire.request("tools/list", json!({})).await;
    let listed = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["greet", "pipe", &haversack_skill_server::tool_name("team:x"), "worker"]);
    assert_eq!(listed[0]["description"], "Greets.");
    assert_eq!(listed[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(listed[1]["inputSchema"]["required"], json!(["who"]));
    assert!(listed[3]["inputSchema"]["properties"]["task"].is_object());
    let catalogue = server.catalogue();
    let problems: Vec<_> = catalogue.problems().iter().map(|problem| problem.skill.as_str()).collect();
    assert_eq!(problems, ["broken"]);

    let prompts = wire.request("prompts/list", json!({})).await;
    let prompts = prompts["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["greet", "hidden", "team:x"], "a user may call what is kept from the model");
}

#[tokio::test]
async fn a_prompt_skill_gives_its_text_page_by_page_with_the_query_in_front() {
    let long: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
    let text_of = format!("---\nname: long\ndescription: Long.\n---\n\n\n{long}");
    let skills = folder(&[("long", &text_of)]);
    std::fs::write(skills.path().join("long/more.md"), "More.\n").unwrap();
    let server = serve(skills.path(), Host::new());
    let mut wire = Wire::legacy(&server, json!({})).await;

    let first = wire.call("long", json!({"query": "  why?  "})).await;
    assert!(text(&first).starts_with("## Query\nwhy?\n\n## SKILL: long\n\nline 0\n"), "{first}");
    let pages = first["structuredContent"]["pages"].as_u64().unwrap();
    assert!(pages > 1 && first["structuredContent"]["text"] == first["content"][0]["text"]);
    let mut whole = String::new();
    for page in 1..=pages {
        let result = wire.call("long", json!({"page": page})).await;
        let shown = text(&result);
        whole.push_str(shown.split("\n[Page ").next().unwrap());
    }
    assert_eq!(whole, long);
    assert_eq!(text(&wire.call("long", json!({"file": "more.md"})).await), "More.\n");

    for (arguments, complaint) in [
        (json!({"page": pages + 1}), "pages go from 1 to"),
        (json!({"page": 0}), "page"),
        (json!({"page": "x"}), "expected integer"),
        (json!({"file": "../long/more.md"}), "no such file"),
        (json!({"file": "gone.md"}), "no such file"),
        (json!({"bogus": 1}), "bogus"),
    ] {
        let result = wire.call("long", arguments.clone()).await;
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(text(&result).contains(complaint), "{arguments}: {result}");
    }
    let unknown = wire.request("tools/call", json!({"name": "gone"})).await;
    assert_eq!(unknown["error"]["code"], -32602);

    let prompt = wire.request("prompts/get", json!({"name": "long", "arguments": {"query": "why?"}})).await;
    let prompt = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert_eq!(prompt, format!("## Query\nwhy?\n\n## SKILL: long\n\n{long}"), "a prompt is given whole");
}

#[tokio::test]
async fn a_pipeline_reports_each_step_tells_its_progress_and_fails_as_an_error_without_secrets() {
    let skills = folder(&[("pipe", PIPE)]);
    let server = serve(skills.path(), Host::new().with_tools(tools()));
    let mut wire = Wire::legacy(&server, json!({})).await;

    let params = json!({"name": "pipe", "arguments": {"who": "Ada"}, "_meta": {"progressToken": "p"}});
    let done = wire.request("tools/call", params).await["result"].clone();
    assert_eq!(done["isError"], false, "{done}");
    assert!(text(&done).contains("HELLO ADA"));
    assert_eq!(done["structuredContent"]["steps"][1]["output"], "HELLO ADA");
    let notes: Vec<_> = wire.seen.iter().filter(|m| m["method"] == "notifications/progress").collect();
    let told: Vec<_> = notes.iter().map(|n| n["params"]["message"].as_str().unwrap()).collect();
    assert_eq!(told, ["step 1/2: greet", "step 2/2: shout"]);
    assert!(notes.iter().all(|n| n["params"]["progressToken"] == "p"));
    assert!(notes[0]["params"]["progress"].as_f64() < notes[1]["params"]["progress"].as_f64());

    wire.seen.clear();
    let failed = wire.call("pipe", json!({"who": "fail"})).await;
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["status"]),
        (&json!(true), &json!("failed"))
    );
    assert!(!failed.to_string().contains("abcdefghij"), "{failed}");
    assert!(wire.seen.iter().all(|m| m["method"] != "notifications/progress"), "nobody asked for progress");

    let unfit = wire.call("pipe", json!({})).await;
    assert!(unfit["isError"] == true && text(&unfit).contains("who"), "{unfit}");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_down_to_the_tool_and_the_server_goes_on() {
    let skills = folder(&[("pipe", PIPE)]);
    let server = serve(skills.path(), Host::new().with_tools(tools()));
    let mut wire = Wire::legacy(&server, json!({})).await;
    let params = json!({"name": "pipe", "arguments": {"who": "wait"}, "_meta": {"progressToken": 1}});
    let id = wire.ask("tools/call", params).await;
    while wire.read().await["params"]["message"] != "step 2/2: shout" {}
    let cancel = json!({"requestId": id, "reason": "enough"});
    wire.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})).await;
    assert_eq!(text(&wire.call("pipe", json!({"who": "you"})).await).matches("HELLO YOU").count(), 1);
}

#[tokio::test]
async fn an_agent_works_on_its_task_with_the_tools_it_may_have_and_tells_what_it_does() {
    let report = json!({"status": "completed", "result": "all done"}).to_string();
    let model = ScriptedModel::new([Answer::call("1", "echo", json!({"text": "x"})), Answer::text(report)]);
    let skills = folder(&[("worker", AGENT)]);
    let host = Host::new().with_tools(tools()).with_model(model).with_allowed_tool("ec*");
    let server = serve(skills.path(), host);
    let mut wire = Wire::legacy(&server, json!({})).await;
    let params = json!({"name": "worker", "arguments": {"task": "Go."}, "_meta": {"progressToken": 1}});
    let done = wire.request("tools/call", params).await["result"].clone();
    assert_eq!(done["isError"], false, "{done}");
    assert!(text(&done).contains("all done"), "{done}");
    assert_eq!(done["structuredContent"]["report"]["status"], "completed");
    assert!(wire.seen.iter().any(|m| m["params"]["message"] == "worker: calls echo"), "{:?}", wire.seen);
}

#[tokio::test]
async fn what_cannot_run_here_is_no_tool_and_the_reason_is_kept() {
    let skills = folder(&[("pipe", PIPE), ("worker", AGENT)]);
    let server = serve(skills.path(), Host::new());
    assert_eq!(server.catalogue().tools().count(), 0);
    let catalogue = server.catalogue();
    let told: Vec<_> = catalogue.problems().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|p| p.contains("pipe") && p.contains("`echo` is not known")), "{told:?}");
    assert!(told.iter().any(|p| p.contains("worker") && p.contains("no model")), "{told:?}");
}
