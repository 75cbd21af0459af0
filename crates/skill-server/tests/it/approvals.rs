//! What wants an approval asks whoever the client can ask, in the way of its revision; else it does not run.

use haversack_agent_core::testing::{Answer, ScriptedModel};
use haversack_skill_runtime::metadata::Approval;
use haversack_skill_server::Host;
use serde_json::{Value, json};

use crate::calls::{AGENT, tools};
use crate::wire::{Wire, folder, serve, text};

const ASKS: &str = "---
name: asks
description: Asks first.
skill_mode: tool
tool_schema:
  input: {type: object, properties: {who: {type: string}}}
  steps:
    - {action: one, tool: echo, input_map: {text: 'Hello {{ input.who }}'}, approval: plan_confirm}
    - {action: two, tool: shout, input_map: {text: '{{ input.who }}'}, approval: exec_escalation}
---
";

fn accepts(allow: bool) -> Value {
    json!({"action": "accept", "content": {"allow": allow}})
}

#[tokio::test]
async fn a_client_with_elicitation_is_asked_with_the_arguments_that_will_run() {
    for (answers, is_error) in [
        ([accepts(true), accepts(true)], false),
        ([accepts(true), accepts(false)], true),
        ([json!({"action": "decline"}), accepts(true)], true),
        ([json!({"action": "cancel"}), accepts(true)], true),
    ] {
        let skills = folder(&[("asks", ASKS)]);
        let server = serve(skills.path(), Host::new().with_tools(tools()));
        let mut wire = Wire::legacy(&server, json!({"elicitation": {}})).await;
        let id = wire.ask("tools/call", json!({"name": "asks", "arguments": {"who": "Ada"}})).await;
        let mut given = answers.iter();
        let result = loop {
            let message = wire.read().await;
            if message["method"] == "elicitation/create" {
                let shown = message["params"]["message"].as_str().unwrap();
                assert!(shown.contains("`asks`") && shown.contains("Ada"), "{shown}");
                let answer = given.next().expect("no more questions than answers");
                wire.send(json!({"jsonrpc": "2.0", "id": message["id"], "result": answer})).await;
            } else if message["id"] == id {
                break message["result"].clone();
            }
        };
        assert_eq!(result["isError"], is_error, "{answers:?}: {result}");
        assert_eq!(text(&result).contains("ADA"), !is_error);
    }
}

#[tokio::test]
async fn a_client_without_elicitation_gets_the_reason_and_the_way_out() {
    let skills = folder(&[("asks", ASKS), ("worker", AGENT)]);
    let model = ScriptedModel::from_fn(|_, _| Answer::call("1", "echo", json!({"text": "x"})));
    let server = serve(skills.path(), Host::new().with_tools(tools()).with_model(model));
    for mut wire in [Wire::legacy(&server, json!({})).await, Wire::modern(&server, &json!({}))] {
        let refused = wire.call("asks", json!({"who": "Ada"})).await;
        assert_eq!(refused["isError"], true);
        assert!(
            text(&refused).contains("plan_confirm") && text(&refused).contains("--pre-approve"),
            "{refused}"
        );
        let stopped = wire.call("worker", json!({"task": "Go."})).await;
        assert_eq!(stopped["isError"], true, "{stopped}");
    }
}

#[tokio::test]
async fn what_was_approved_beforehand_runs_unasked_and_nothing_above_it() {
    for (given, runs) in [(Approval::PlanConfirm, false), (Approval::ExecEscalation, true)] {
        let skills = folder(&[("asks", ASKS)]);
        let server = serve(skills.path(), Host::new().with_tools(tools()).with_pre_approved(given));
        let mut wire = Wire::legacy(&server, json!({})).await;
        let result = wire.call("asks", json!({"who": "Ada"})).await;
        assert!(text(&result).contains("Hello Ada"), "{result}");
        assert_eq!(text(&result).contains("ADA"), runs);
        assert_eq!(result["isError"], !runs);
    }
}

#[tokio::test]
async fn a_client_of_the_newer_revision_is_asked_by_an_answer_and_comes_back_with_the_verdict() {
    let skills = folder(&[("asks", ASKS)]);
    let server = serve(skills.path(), Host::new().with_tools(tools()));
    let mut wire = Wire::modern(&server, &json!({"elicitation": {"form": {}}}));
    let call = json!({"name": "asks", "arguments": {"who": "Ada"}});
    let with = |state: &Value, answers: Value| {
        let mut call = call.clone();
        call["requestState"] = state.clone();
        call["inputResponses"] = answers;
        call
    };
    let first = wire.request("tools/call", call.clone()).await["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let question = &first["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("Hello Ada"));

    // Without the answer the question stands.
    let again = wire.request("tools/call", with(&first["requestState"], json!({}))).await["result"].clone();
    assert_eq!(again["resultType"], "input_required");
    let state = again["requestState"].clone();
    // A state counts once, for its own call, and only as it was given.
    for (params, why) in [
        (with(&first["requestState"], json!({"approval": accepts(true)})), "used"),
        (
            with(&json!(format!("{}x", state.as_str().unwrap())), json!({"approval": accepts(true)})),
            "changed",
        ),
        (
            {
                let mut other = with(&state, json!({"approval": accepts(true)}));
                other["arguments"]["who"] = json!("Eve");
                other
            },
            "of another call",
        ),
    ] {
        let refused = wire.request("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{why}: {refused}");
    }
    let second =
        wire.request("tools/call", with(&state, json!({"approval": accepts(true)}))).await["result"].clone();
    assert_eq!(second["resultType"], "input_required", "{second}");
    let done =
        wire.request("tools/call", with(&second["requestState"], json!({"approval": accepts(true)}))).await;
    let done = &done["result"];
    assert_eq!(done["isError"], false, "{done}");
    assert!(text(done).contains("Hello Ada") && text(done).contains("ADA"));
}
