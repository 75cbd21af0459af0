use super::*;
use crate::message::{Block, Reasoning, Role, Seal, ToolCall, ToolResult, ToolStatus};

fn call(id: &str) -> Block {
    ToolCall::new(id, "t", json!({"a": 1})).into()
}

fn result(id: &str) -> Block {
    ToolResult::new(id, "t", ToolStatus::Ok, vec![Block::text("ok")]).into()
}

fn sealed() -> Block {
    Block::Reasoning(Reasoning::new("hm").with_seal(Seal::new("x", "sig")))
}

fn history(messages: &[(Role, &[Block])]) -> Vec<Arc<Message>> {
    messages.iter().map(|(role, blocks)| Arc::new(Message::new(*role, blocks.to_vec()))).collect()
}

/// Which wires find fault with a history.
fn at_fault(messages: &[(Role, &[Block])]) -> Vec<Wire> {
    let history = history(messages);
    Wire::ALL.into_iter().filter(|wire| !wire.check_history(&history).is_empty()).collect()
}

use Role::{Assistant, Tool, User};
use Wire::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

#[test]
fn sound_histories_pass_everywhere() {
    let hi = Block::text("hi");
    let hi = std::slice::from_ref(&hi);
    let two = [Block::text("let me look"), call("1"), call("2")];
    let thought = [sealed(), call("3")];
    for sound in [
        &[(User, hi)][..],
        &[(User, hi), (Assistant, hi), (User, hi)],
        &[(User, hi), (Assistant, &two), (Tool, &[result("1"), result("2")]), (Assistant, hi)],
        &[(User, hi), (Assistant, &two), (Tool, &[result("1"), result("2")]), (User, hi)],
        &[
            (User, hi),
            (Assistant, &two),
            (Tool, &[result("1"), result("2")]),
            (Assistant, &thought),
            (Tool, &[result("3")]),
        ],
        &[(User, hi), (User, hi), (Assistant, hi)],
    ] {
        assert_valid(&history(sound));
    }
}

#[test]
fn each_fault_is_found_by_the_wires_that_refuse_it() {
    let hi = Block::text("hi");
    let hi = std::slice::from_ref(&hi);
    let one = &[call("1")][..];
    let both = &[call("1"), call("2")][..];
    let all = Wire::ALL.to_vec();
    for (fault, messages, expected) in [
        ("nothing at all", &[][..], all.clone()),
        ("no result", &[(User, hi), (Assistant, one)], all.clone()),
        ("no result before the next message", &[(User, hi), (Assistant, one), (User, hi)], all.clone()),
        ("one result of two", &[(User, hi), (Assistant, both), (Tool, &[result("1")])], all.clone()),
        (
            "two results of one",
            &[(User, hi), (Assistant, one), (Tool, &[result("1"), result("1")])],
            all.clone(),
        ),
        ("a result of no call", &[(User, hi), (Tool, &[result("1")])], all.clone()),
        ("a result of another call", &[(User, hi), (Assistant, one), (Tool, &[result("9")])], all.clone()),
        (
            "a result after the user's word",
            &[(User, hi), (Assistant, one), (User, hi), (Tool, &[result("1")])],
            // The flat list of Responses only wants the result somewhere after the call.
            vec![OpenAiChat, Anthropic, Gemini],
        ),
        (
            "results out of order",
            &[(User, hi), (Assistant, both), (Tool, &[result("2"), result("1")])],
            vec![Gemini],
        ),
        (
            "one id twice in an answer",
            &[(User, hi), (Assistant, &[call("1"), call("1")]), (Tool, &[result("1"), result("1")])],
            vec![OpenAiChat, OpenAiResponses, Anthropic],
        ),
        (
            "one id twice in a conversation",
            &[(User, hi), (Assistant, one), (Tool, &[result("1")]), (Assistant, one), (Tool, &[result("1")])],
            vec![OpenAiResponses, Anthropic],
        ),
        ("an empty answer", &[(User, hi), (Assistant, &[]), (User, hi)], all.clone()),
        ("an empty user message", &[(User, &[]), (Assistant, hi)], all),
        ("an empty text", &[(User, &[Block::text("")]), (Assistant, hi)], vec![Anthropic, Gemini]),
        ("white space", &[(User, &[Block::text(" \n")]), (Assistant, hi)], vec![Anthropic]),
        ("the assistant first", &[(Assistant, hi), (User, hi)], vec![Anthropic, Gemini]),
        (
            "calls after an answer",
            &[(User, hi), (Assistant, hi), (Assistant, one), (Tool, &[result("1")])],
            vec![],
        ),
        (
            "reasoning with nothing after it",
            &[(User, hi), (Assistant, &[sealed()]), (User, hi)],
            vec![OpenAiChat, OpenAiResponses, Gemini],
        ),
        (
            "an id with odd letters",
            &[(User, hi), (Assistant, &[call("a b")]), (Tool, &[result("a b")])],
            vec![OpenAiResponses, Anthropic],
        ),
    ] {
        assert_eq!(at_fault(messages), expected, "{fault}");
    }
}

/// What is found in a body, and the beginning or a part of it that is expected; nothing where nothing is wrong.
fn check_bodies(wire: Wire, cases: &[(Value, Option<&str>)]) {
    for (body, problem) in cases {
        let found: Vec<_> = wire.check_body(body).iter().map(ToString::to_string).collect();
        match problem {
            None => assert_eq!(found, [""; 0], "{body}"),
            Some(problem) => assert!(found.iter().any(|f| f.contains(problem)), "{problem}: {found:?}"),
        }
    }
}

#[test]
fn bodies_of_openai_are_checked_as_they_go_over_the_wire() {
    let user = json!({"role": "user", "content": "hi"});
    let call = |arguments: &str, name: &str| {
        let function = json!({"name": name, "arguments": arguments});
        let calls = [json!({"id": "1", "type": "function", "function": function})];
        let answer = json!({"role": "assistant", "content": null, "tool_calls": calls});
        json!({"messages": [user, answer, {"role": "tool", "tool_call_id": "1", "content": ""}]})
    };
    let no_calls = json!({"role": "assistant", "content": "a", "tool_calls": []});
    check_bodies(
        OpenAiChat,
        &[
            (call("{}", "t"), None),
            (call("{", "t"), Some("messages[1].tool_calls[0]: the arguments")),
            (call("{}", "t.u"), Some("messages[1].tool_calls[0]: the name")),
            (json!({"messages": [user, no_calls]}), Some("empty list")),
            (json!({"messages": [{"role": "robot", "content": "hi"}]}), Some("unknown role `robot`")),
        ],
    );
    let output = json!({"type": "function_call_output", "call_id": "1", "output": ""});
    check_bodies(
        OpenAiResponses,
        &[
            (json!({"input": "hi"}), None),
            (json!({"input": [user]}), None),
            (json!({"previous_response_id": "r", "input": [output]}), None),
            (json!({"input": [output]}), Some("without a call")),
        ],
    );
}

#[test]
fn bodies_of_anthropic_and_gemini_are_checked_as_they_go_over_the_wire() {
    let user = json!({"role": "user", "content": "hi"});
    let thinking = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "a"}]});
    let tool_use =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]});
    let result = json!({"type": "tool_result", "tool_use_id": "1"});
    let late = json!({"role": "user", "content": [{"type": "text", "text": "a"}, result]});
    check_bodies(
        Anthropic,
        &[
            (json!({"messages": [user]}), None),
            (json!({"messages": [user, thinking]}), Some("signature")),
            (json!({"messages": [user, tool_use, late]}), Some("after something else")),
            (json!({"messages": [user, {"role": "system", "content": "a"}]}), Some("unknown role")),
        ],
    );
    let text = |role: &str| json!({"role": role, "parts": [{"text": "hi"}]});
    let call =
        |args: Value| json!({"role": "model", "parts": [{"functionCall": {"name": "t", "args": args}}]});
    let response =
        |r: Value| json!({"role": "user", "parts": [{"functionResponse": {"name": "t", "response": r}}]});
    let late = [text("user"), text("model"), call(json!({})), response(json!({}))];
    check_bodies(
        Gemini,
        &[
            (json!({"contents": [text("user")]}), None),
            (json!({"contents": [text("user"), call(json!({})), response(json!({}))]}), None),
            (json!({"contents": [{"role": "user", "parts": [{}]}]}), Some("empty part")),
            (json!({"contents": late}), Some("right after the user's turn")),
            (
                json!({"contents": [text("user"), call(json!([])), response(json!({}))]}),
                Some("arguments are no object"),
            ),
            (
                json!({"contents": [text("user"), call(json!({})), response(json!(1))]}),
                Some("response is no object"),
            ),
        ],
    );
}

#[test]
#[should_panic(expected = "call 1 has no result")]
fn the_assertion_names_what_is_wrong() {
    assert_valid(&history(&[(User, &[Block::text("hi")]), (Assistant, &[call("1")])]));
}
