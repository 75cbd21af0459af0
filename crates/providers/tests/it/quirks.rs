//! What servers that imitate Chat Completions really send, one quirk a line: the stream, and what has to come of it.
#![expect(
    clippy::too_many_lines,
    clippy::needless_pass_by_value,
    reason = "tables are as long as there are quirks, and read best with values written in place"
)]

use haversack_agent_core::message::{Block, Message, Role};
use haversack_agent_core::model::{
    Model, ModelErrorKind, ModelRequest, PromptSection, ResponseFormat, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::StopReason;
use haversack_providers::{OpenAiChat, Profile, SystemRole};
use serde_json::{Value, json};

use crate::memory::{Memory, Reply};
use crate::observe::{Outcome, call, hello, shape};

/// A stream of these chunks.
fn stream(chunks: &[Value]) -> String {
    chunks
        .iter()
        .map(|chunk| format!("data: {}\n\n", chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned)))
        .collect()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn calls(calls: Value) -> Value {
    delta(json!({"tool_calls": calls}))
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn done() -> Value {
    "[DONE]".into()
}

async fn read(body: &str) -> Outcome {
    let memory = Memory::new([Reply::new(200, body)]);
    call(&OpenAiChat::new(memory, "http://in.memory/v1", "m"), hello()).await
}

fn names_and_arguments(outcome: &Outcome) -> Vec<(String, Value)> {
    let shape = shape("openai_chat", outcome);
    let calls = shape["tool_calls"].as_array().unwrap();
    calls.iter().map(|call| (call["name"].as_str().unwrap().to_owned(), call["arguments"].clone())).collect()
}

#[tokio::test]
async fn tool_calls_come_together_however_servers_cut_and_number_them() {
    let a = |arguments: Value| ("a".to_owned(), arguments);
    let b = |arguments: Value| ("b".to_owned(), arguments);
    let f = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    for (quirk, chunks, expected) in [
        (
            "no index: a new id begins a call, nothing new goes on",
            vec![
                calls(json!([{"id": "1", "function": f("a", "{\"x\"")}])),
                calls(json!([{"function": {"arguments": ":1}"}}])),
                calls(json!([{"id": "2", "function": f("b", "{}")}])),
            ],
            vec![a(json!({"x": 1})), b(json!({}))],
        ),
        (
            "all with index 0",
            vec![
                calls(json!([{"index": 0, "id": "1", "function": f("a", "{}")}])),
                calls(json!([{"index": 0, "id": "2", "function": f("b", "{}")}])),
            ],
            vec![a(json!({})), b(json!({}))],
        ),
        (
            "all with index 0 and no ids",
            vec![
                calls(json!([{"index": 0, "function": f("a", "{}")}])),
                calls(json!([{"index": 0, "function": f("b", "{}")}])),
            ],
            vec![a(json!({})), b(json!({}))],
        ),
        (
            "several in one chunk",
            vec![calls(
                json!([{"index": 0, "id": "1", "function": f("a", "{}")}, {"index": 1, "id": "2", "function": f("b", "{}")}]),
            )],
            vec![a(json!({})), b(json!({}))],
        ),
        (
            "arguments as an object, and as nothing at all",
            vec![calls(
                json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": {"x": 1}}}, {"index": 1, "id": "2", "function": {"name": "b"}}]),
            )],
            vec![a(json!({"x": 1})), b(json!({}))],
        ),
        (
            "id and name repeated, empty or null later",
            vec![
                calls(json!([{"index": 0, "id": "1", "function": f("a", "{")}])),
                calls(json!([{"index": 0, "id": "", "function": {"name": "", "arguments": "\"x\":1"}}])),
                calls(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": ""}}])),
                calls(json!([{"index": 0, "id": null, "function": {"name": null, "arguments": "}"}}])),
            ],
            vec![a(json!({"x": 1}))],
        ),
        (
            "arguments before the name",
            vec![
                calls(json!([{"index": 0, "function": {"arguments": "{\"x\":"}}])),
                calls(json!([{"index": 0, "id": "1", "function": f("a", "1}")}])),
            ],
            vec![a(json!({"x": 1}))],
        ),
        (
            "halves of a surrogate pair in two pieces",
            vec![
                calls(json!([{"index": 0, "id": "1", "function": f("a", "{\"x\":\"\\ud83c")}])),
                calls(json!([{"index": 0, "function": {"arguments": "\\udf27\"}"}}])),
            ],
            vec![a(json!({"x": "🌧"}))],
        ),
    ] {
        for reason in ["tool_calls", "stop", "eos"] {
            let body = stream(&[&chunks[..], &[end(reason), done()]].concat());
            let outcome = read(&body).await;
            assert_eq!(names_and_arguments(&outcome), expected, "{quirk}");
            assert_eq!(shape("openai_chat", &outcome)["stop"], "tool_use", "{quirk}, {reason}");
        }
    }
}

#[tokio::test]
async fn an_answer_ends_when_and_only_when_it_says_so() {
    let text = || delta(json!({"content": "a"}));
    let half = || calls(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\""}}]));
    let bare = || calls(json!([{"index": 0, "id": "1", "function": {"name": "a"}}]));
    for (quirk, chunks, stop) in [
        ("no end mark after a finish", vec![text(), end("stop")], Some("end")),
        ("no finish before an end mark", vec![text(), done()], Some("end")),
        ("neither", vec![text()], None),
        ("a half call and an end mark", vec![half(), done()], None),
        ("a name and an end mark", vec![bare(), done()], None),
        ("a name and nothing more", vec![bare()], None),
        ("a half call at the limit", vec![half(), end("length"), done()], Some("max_tokens")),
        (
            "a second finish that knows less",
            vec![text(), end("length"), end("stop"), done()],
            Some("max_tokens"),
        ),
        ("a finish that is empty", vec![text(), end(""), end("stop"), done()], Some("end")),
        ("a finish nobody knows", vec![text(), end("eos"), done()], Some("other")),
        ("nothing at all", vec![], None),
        ("something after the end mark", vec![text(), end("stop"), done(), text()], Some("end")),
    ] {
        let outcome = read(&stream(&chunks)).await;
        match stop {
            Some(stop) => {
                let shape = shape("openai_chat", &outcome);
                let is_known = if shape["stop"].is_null() { "end" } else { shape["stop"].as_str().unwrap() };
                assert_eq!(is_known, stop, "{quirk}");
            }
            None => {
                assert_eq!(outcome.error.as_ref().unwrap().kind, ModelErrorKind::Interrupted, "{quirk}");
                assert!(names_and_arguments(&outcome).is_empty(), "{quirk}");
            }
        }
    }
}

#[tokio::test]
async fn errors_are_found_wherever_servers_put_them() {
    let error = json!({"error": {"message": "boom", "type": "server_error"}});
    let text = stream(&[delta(json!({"content": "a"}))]);
    for (place, body) in [
        ("a chunk", format!("{text}data: {error}\n\n")),
        ("an event of its own name", format!("{text}event: error\ndata: {error}\n\n")),
        ("a field of its own", format!("{text}error: {error}\n\n")),
        ("a bare line", format!("{text}{error}\n\n")),
        ("a whole body after blank lines", format!("\n\n \n{error}")),
    ] {
        let outcome = read(&body).await;
        let found = outcome.error.as_ref().unwrap();
        assert_eq!(
            (&found.kind, found.reply.as_ref().unwrap().message.as_deref()),
            (&ModelErrorKind::Server, Some("boom")),
            "{place}"
        );
        // What came before stays.
        let kept = if body.starts_with("data") { "a" } else { "" };
        assert_eq!(shape("openai_chat", &outcome)["text"], kept, "{place}");
    }
}

#[tokio::test]
async fn reasoning_is_read_under_each_of_its_names_and_once() {
    for (delta_of, text) in [
        (json!({"reasoning_content": "r", "content": "a"}), "a"),
        (json!({"reasoning": "r", "content": "a"}), "a"),
        (json!({"reasoning": "r", "reasoning_content": "r", "content": "a"}), "a"),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "a"}]}),
            "a",
        ),
        (json!({"reasoning": "r", "content": null}), ""),
    ] {
        let outcome = read(&stream(&[delta(delta_of.clone()), end("stop"), done()])).await;
        let shape = shape("openai_chat", &outcome);
        assert_eq!((&shape["reasoning"], &shape["text"]), (&json!("r"), &json!(text)), "{delta_of}");
    }
}

#[tokio::test]
async fn tags_and_printed_calls_are_read_only_where_the_profile_says_so() {
    let body = stream(&[
        delta(json!({"content": "<thi"})),
        delta(json!({"content": "nk>r</think>\n\n<tool_call>{\"name\":\"a\","})),
        delta(json!({"content": "\"arguments\":{\"x\":1}}</tool_call>"})),
        end("stop"),
        done(),
    ]);
    let mut profile = Profile::default();
    profile.think_tags = true;
    profile.text_tool_rescue = true;
    for (profile, tool, calls) in [(profile.clone(), "a", 1), (profile, "b", 0), (Profile::default(), "a", 0)]
    {
        let reads = profile.think_tags;
        let memory = Memory::new([Reply::new(200, body.clone())]);
        let model: &dyn Model = &OpenAiChat::new(memory, "http://in.memory/v1", "m").with_profile(profile);
        let mut request: ModelRequest = hello();
        request.tools = vec![std::sync::Arc::new(ToolSpec::new(tool, ""))].into();
        let outcome = call(model, request).await;
        assert_eq!(names_and_arguments(&outcome).len(), calls);
        let shape = shape("openai_chat", &outcome);
        assert_eq!(shape["reasoning"], if reads { "r" } else { "" });
        assert_eq!(shape["text"].as_str().unwrap().is_empty(), calls == 1);
        assert_eq!(shape["stop"], if calls == 1 { "tool_use" } else { "end" });
    }
}

#[tokio::test]
async fn a_call_that_the_limit_cut_is_told_as_malformed_and_goes_back_as_no_call_of_halves() {
    let half = calls(json!([{"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\""}}]));
    let outcome = read(&stream(&[half, end("length"), done()])).await;
    let Some(Block::ToolCall(call)) = outcome.blocks().next() else { panic!("{outcome:?}") };
    assert_eq!((call.malformed.as_deref(), &call.arguments), (Some("{\"x\""), &json!({})));
}

#[tokio::test]
async fn whatever_is_missing_or_comes_with_the_finish_the_text_and_the_usage_are_read() {
    let usage = |n: u64| json!({"prompt_tokens": n, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}});
    let with = |mut chunk: Value, name: &str, value: Value| {
        chunk[name] = value;
        chunk
    };
    let text = || delta(json!({"content": "a"}));
    let last = || json!({"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]});
    let filters = || json!({"choices": [], "prompt_filter_results": [{"content_filter_results": {}}]});
    for (quirk, chunks, expected, input) in [
        ("no usage", vec![text(), last()], "ab", None),
        (
            "usage null",
            vec![with(text(), "usage", Value::Null), with(last(), "usage", Value::Null)],
            "ab",
            None,
        ),
        ("usage on the finish", vec![text(), with(last(), "usage", usage(7))], "ab", Some(7)),
        (
            "usage in a chunk of its own",
            vec![text(), last(), json!({"choices": [], "usage": usage(7)})],
            "ab",
            Some(7),
        ),
        (
            "usage in several, the last counts",
            vec![with(text(), "usage", usage(3)), with(last(), "usage", usage(7))],
            "ab",
            Some(7),
        ),
        (
            "usage on two finishes",
            vec![text(), with(last(), "usage", usage(3)), with(end("stop"), "usage", usage(7))],
            "ab",
            Some(7),
        ),
        ("filter results first", vec![filters(), text(), last()], "ab", None),
        ("no delta", vec![json!({"choices": [{"index": 0}]}), text(), last()], "ab", None),
        (
            "delta null, content null",
            vec![json!({"choices": [{"delta": null}]}), delta(json!({"content": null})), text(), last()],
            "ab",
            None,
        ),
        (
            "an empty list of calls",
            vec![delta(json!({"content": "a", "tool_calls": []})), last()],
            "ab",
            None,
        ),
        ("calls null", vec![delta(json!({"content": "a", "tool_calls": null})), last()], "ab", None),
    ] {
        let outcome = read(&stream(&[&chunks[..], &[done()]].concat())).await;
        let shape = shape("openai_chat", &outcome);
        assert_eq!(
            (shape["text"].as_str(), shape["usage"]["input"].as_u64()),
            (Some(expected), input),
            "{quirk}"
        );
        assert_eq!(shape["stop"], "end", "{quirk}");
    }
    let whole = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {"content": "b", "tool_calls": [
        {"index": 0, "id": "1", "function": {"name": "a", "arguments": "{}"}}]}}]});
    let outcome = read(&stream(&[text(), whole, end("stop"), done()])).await;
    assert_eq!(
        (names_and_arguments(&outcome).len(), &shape("openai_chat", &outcome)["text"]),
        (1, &json!("ab"))
    );
}

#[tokio::test]
async fn a_whole_answer_may_leave_out_or_reshape_what_it_likes() {
    for (quirk, message, text, calls) in [
        (
            "content absent",
            json!({"tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]}),
            "",
            1,
        ),
        (
            "content null",
            json!({"content": null, "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]}),
            "",
            1,
        ),
        (
            "content as parts",
            json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            "ab",
            0,
        ),
        ("an empty list of calls", json!({"content": "ab", "tool_calls": []}), "ab", 0),
        (
            "a call without id",
            json!({"content": "", "tool_calls": [{"function": {"name": "a", "arguments": {}}}]}),
            "",
            1,
        ),
    ] {
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
        let model = OpenAiChat::new(Memory::new([Reply::new(200, body)]), "http://in.memory/v1", "m");
        let outcome = call(&model.without_streaming(), hello()).await;
        let shape = shape("openai_chat", &outcome);
        assert_eq!(
            (shape["text"].as_str(), names_and_arguments(&outcome).len()),
            (Some(text), calls),
            "{quirk}"
        );
        let ids = shape["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap());
        assert!(ids.into_iter().all(|id| !id.is_empty()), "{quirk}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_text_that_goes_back_as_a_refusal_to_its_own_api_and_as_a_text_to_others() {
    let refusal = |text: &str| delta(json!({"refusal": text}));
    let body = stream(&[refusal("I "), refusal("won't."), end("stop"), done()]);
    let http = Memory::new([Reply::new(200, body), Reply::new(500, "")]);
    let model = OpenAiChat::new(http.clone(), "http://in.memory/v1", "m");
    let outcome = call(&model, hello()).await;
    assert_eq!(outcome.stop().map(|(reason, _)| reason), Some(&StopReason::Filtered));
    let answer = Message::new(Role::Assistant, outcome.blocks().cloned().collect());
    assert_eq!(answer.text(), "I won't.");
    let history =
        || ModelRequest::new([Message::user("q"), answer.clone(), Message::user("?")].into_iter().collect());
    call(&model, history()).await;
    let sent = http.seen().pop().unwrap().json();
    assert_eq!(sent["messages"][1], json!({"role": "assistant", "content": null, "refusal": "I won't."}));

    let http = Memory::default();
    call(&OpenAiChat::new(http.clone(), "http://in.memory/v1", "another"), history()).await;
    assert_eq!(http.only().json()["messages"][1], json!({"role": "assistant", "content": "I won't."}));
}

#[tokio::test]
async fn nothing_is_sent_that_was_not_asked_for_and_each_profile_has_its_form() {
    async fn sent(profile: Profile, request: ModelRequest) -> Value {
        let http = Memory::default();
        call(&OpenAiChat::new(http.clone(), "http://in.memory/v1", "m").with_profile(profile), request).await;
        http.only().json()
    }
    let body = sent(Profile::mistral(), hello()).await;
    assert_eq!(
        body,
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]})
    );

    let mut request = hello();
    request.system = vec![PromptSection::new("s", "be kind")].into();
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}});
    let tools =
        ["a", "b"].map(|name| std::sync::Arc::new(ToolSpec::new(name, "").with_schema(schema.clone())));
    request.tools = tools.to_vec().into();
    request.tool_choice = ToolChoice::Tool("b".into());
    request.response_format = Some(ResponseFormat::new("f", json!({"type": "object"})));
    request.options.parallel_tool_calls = Some(false);
    let body = sent(Profile::openai(), request.clone()).await;
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "be kind"}));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "b"}}));
    assert_eq!(
        (body["response_format"]["type"].as_str(), &body["parallel_tool_calls"]),
        (Some("json_schema"), &json!(false))
    );
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert!(body["tools"][0]["function"].get("strict").is_none() && !body.to_string().contains("$schema"));
    // Servers that refuse the object form are offered the one tool and told to call one.
    for profile in [Profile::lm_studio(), Profile::llama_cpp()] {
        let body = sent(profile, request.clone()).await;
        assert_eq!(
            (body["tool_choice"].as_str(), body["tools"].as_array().unwrap().len()),
            (Some("required"), 1)
        );
        assert_eq!(body["tools"][0]["function"]["name"], "b");
    }
    let mut profile = Profile::ollama();
    profile.system_role = SystemRole::Developer;
    let body = sent(profile, request.clone()).await;
    assert_eq!(body["messages"][0]["role"], "developer");
    assert!(body.get("parallel_tool_calls").is_none());
}
