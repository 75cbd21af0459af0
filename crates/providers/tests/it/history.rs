//! Histories that real servers accepted, read into our types and written again: ids, arguments and seals stay.

use std::sync::Arc;

use haversack_agent_core::history::History;
use haversack_agent_core::message::{
    Block, Media, Message, Reasoning, Role, Seal, ToolCall, ToolResult, ToolStatus,
};
use haversack_agent_core::model::{Model, ModelRequest};
use haversack_providers::{OpenAiChat, OpenAiResponses, Profile, ReplayReasoning};
use serde_json::{Map, Value, json};

use crate::memory::{Memory, Reply};
use crate::observe::call;
use crate::shared;

/// Requests of one API that were answered with success.
fn requests(api: &str) -> Vec<(String, Value)> {
    let records = shared::records().unwrap_or_default();
    let good = records.into_iter().filter(|r| r["api"] == api && r["response_status"] == 200);
    good.map(|r| (r["id"].as_str().unwrap().to_owned(), r["request_json"].clone())).collect()
}

/// The body that a model sends for a history.
async fn sent(model: &dyn Model, memory: &Memory, history: History) -> Value {
    call(model, ModelRequest::new(history)).await;
    memory.only().json()
}

fn image(url: &str) -> Block {
    Block::Image(match url.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
        Some((kind, data)) => Media::base64(kind, data),
        None => Media::url("image/*", url),
    })
}

fn blocks(content: &Value) -> Vec<Block> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Block::text(text)],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match part["type"].as_str()? {
                "text" | "input_text" | "output_text" => Some(Block::text(part["text"].as_str()?)),
                "image_url" => Some(image(part["image_url"]["url"].as_str()?)),
                "input_image" => Some(image(part["image_url"].as_str()?)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// What has to survive of a Chat history, in order.
fn chat_facts(messages: &[Value]) -> Vec<Value> {
    let mut facts = Vec::new();
    for message in
        messages.iter().filter(|message| message["role"] == "assistant" || message["role"] == "tool")
    {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            // A stored call always has an object: `null`, nothing and half an object go back as an empty one.
            let arguments =
                serde_json::from_str(arguments).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
            facts.push(json!([
                "call",
                call["id"],
                call["function"]["name"],
                arguments,
                call.get("extra_content")
            ]));
        }
        for field in ["reasoning_content", "reasoning", "reasoning_details", "refusal"] {
            if let Some(value) = message.get(field).filter(|value| !value.is_null() && *value != "") {
                facts.push(json!([field, value]));
            }
        }
        if message["role"] == "tool" {
            facts.push(json!(["result", message["tool_call_id"]]));
        }
    }
    facts
}

fn from_chat(messages: &[Value], issuer: &Arc<str>) -> History {
    let mut history: Vec<Message> = Vec::new();
    for message in messages {
        let mut content = blocks(&message["content"]);
        match message["role"].as_str().unwrap() {
            "assistant" => {
                let mut all = Vec::new();
                for field in ["reasoning_content", "reasoning"] {
                    if let Some(text) = message[field].as_str().filter(|text| !text.is_empty()) {
                        let mut data = Map::from_iter([("field".to_owned(), field.into())]);
                        if let Some(details) = message.get("reasoning_details") {
                            data.insert("reasoning_details".into(), details.clone());
                        }
                        all.push(Block::Reasoning(
                            Reasoning::new(text).with_seal(Seal::new(Arc::clone(issuer), data)),
                        ));
                    }
                }
                if let (true, Some(details)) = (all.is_empty(), message.get("reasoning_details")) {
                    let data = json!({"reasoning_details": details});
                    all.push(Block::Reasoning(
                        Reasoning::new("").with_seal(Seal::new(Arc::clone(issuer), data)),
                    ));
                }
                all.append(&mut content);
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let arguments = function["arguments"].as_str().unwrap_or_default();
                    let mut block = ToolCall::from_text(
                        call["id"].as_str().unwrap(),
                        function["name"].as_str().unwrap(),
                        arguments,
                    );
                    block.seal = call
                        .get("extra_content")
                        .map(|extra| Seal::new(Arc::clone(issuer), json!({"extra_content": extra})));
                    all.push(block.into());
                }
                history.push(Message::new(Role::Assistant, all));
            }
            "tool" => {
                let result =
                    ToolResult::new(message["tool_call_id"].as_str().unwrap(), "", ToolStatus::Ok, content);
                match history.last_mut().filter(|last| last.role == Role::Tool) {
                    Some(last) => last.blocks.push(result.into()),
                    None => history.push(Message::new(Role::Tool, vec![result.into()])),
                }
            }
            "user" => history.push(Message::new(Role::User, content)),
            _ => {}
        }
    }
    history.into_iter().collect()
}

#[tokio::test]
async fn chat_histories_keep_ids_arguments_and_reasoning() {
    let mut count = 0;
    for (id, request) in requests("openai_chat") {
        let Some(messages) =
            request["messages"].as_array().filter(|m| m.iter().all(|m| m["role"].is_string()))
        else {
            continue;
        };
        let memory = Memory::new([Reply::new(500, "")]);
        let model = OpenAiChat::new(memory.clone(), "http://in.memory/v1", "m");
        let history = from_chat(messages, &model.issuer());
        let body = sent(&model, &memory, history).await;
        let mut expected = chat_facts(messages);
        expected.retain(|fact| fact[0] != "refusal");
        assert_eq!(chat_facts(body["messages"].as_array().unwrap()), expected, "{id}");
        count += 1;
    }
    eprintln!("{count} histories");
}

/// What has to survive of a Responses history, in order.
fn response_facts(items: &[Value]) -> Vec<Value> {
    let mut facts = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("function_call") => {
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                facts.push(json!(["call", item["call_id"], item["name"], arguments]));
            }
            Some("function_call_output") => facts.push(json!(["result", item["call_id"]])),
            // Reasoning belongs to the item after it.
            Some("reasoning") if at + 1 < items.len() => {
                let mut item = item.clone();
                item.as_object_mut().unwrap().remove("status");
                facts.push(item);
            }
            _ => {}
        }
    }
    facts
}

fn from_responses(items: &[Value], issuer: &Arc<str>) -> History {
    let mut history: Vec<Message> = Vec::new();
    let mut push = |role: Role, mut new: Vec<Block>| match history.last_mut().filter(|last| last.role == role)
    {
        Some(last) if role != Role::User => last.blocks.append(&mut new),
        _ => history.push(Message::new(role, new)),
    };
    for item in items {
        match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
            ("message", Some("assistant")) => push(Role::Assistant, blocks(&item["content"])),
            ("message", Some("user")) => push(Role::User, blocks(&item["content"])),
            ("function_call", _) => {
                let arguments = item["arguments"].as_str().unwrap();
                let call = ToolCall::from_text(
                    item["call_id"].as_str().unwrap(),
                    item["name"].as_str().unwrap(),
                    arguments,
                );
                push(Role::Assistant, vec![call.into()]);
            }
            ("function_call_output", _) => {
                let content = blocks(&item["output"]);
                push(
                    Role::Tool,
                    vec![
                        ToolResult::new(item["call_id"].as_str().unwrap(), "", ToolStatus::Ok, content)
                            .into(),
                    ],
                );
            }
            ("reasoning", _) => {
                let seal = Seal::new(Arc::clone(issuer), item.clone());
                push(Role::Assistant, vec![Block::Reasoning(Reasoning::new("").with_seal(seal))]);
            }
            _ => {}
        }
    }
    history.into_iter().collect()
}

#[tokio::test]
async fn responses_histories_keep_ids_arguments_and_sealed_reasoning() {
    let mut count = 0;
    for (id, request) in requests("openai_responses") {
        let Some(items) = request["input"].as_array() else { continue };
        let memory = Memory::new([Reply::new(500, "")]);
        let model = OpenAiResponses::new(memory.clone(), "http://in.memory/v1", "m");
        let body = sent(&model, &memory, from_responses(items, &model.issuer())).await;
        assert_eq!(response_facts(body["input"].as_array().unwrap()), response_facts(items), "{id}");
        count += 1;
    }
    eprintln!("{count} histories");
}

/// One history with everything in it.
fn full_history(issuer: &Arc<str>) -> History {
    let sealed = |text: &str, data: Value| {
        Block::Reasoning(Reasoning::new(text).with_seal(Seal::new(Arc::clone(issuer), data)))
    };
    let chat_seal = json!({"field": "reasoning_content", "encrypted_content": "E", "type": "reasoning"});
    [
        Message::new(Role::User, vec![Block::text("look"), Block::Image(Media::base64("image/png", "AA=="))]),
        Message::new(
            Role::Assistant,
            vec![
                sealed("hm", chat_seal),
                ToolCall::new("call_1", "a.b", json!({"z": 1, "a": [2]})).into(),
                ToolCall::from_text("call_2", "c", "{\"half").into(),
            ],
        ),
        Message::new(
            Role::Tool,
            vec![
                ToolResult::new(
                    "call_1",
                    "a.b",
                    ToolStatus::Ok,
                    vec![Block::text("ok"), Block::Image(Media::base64("image/png", "BB=="))],
                )
                .into(),
                ToolResult::new("call_2", "c", ToolStatus::Error, vec![Block::text("no such thing")]).into(),
            ],
        ),
        Message::user("go on"),
    ]
    .into_iter()
    .collect()
}

#[tokio::test]
async fn a_full_history_is_written_the_way_chat_servers_take_it() {
    let memory = Memory::new([Reply::new(500, "")]);
    let model = OpenAiChat::new(memory.clone(), "http://in.memory/v1", "m");
    let body = sent(&model, &memory, full_history(&model.issuer())).await;
    let name = body["messages"][1]["tool_calls"][0]["function"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("a_b_") && name.len() == 12, "{name}");
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ]},
            {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{\"z\":1,\"a\":[2]}"}},
                {"id": "call_2", "type": "function", "function": {"name": "c", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "ok\n[1 image is shown in the next user message]"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: no such thing"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the tool results above, in order:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}},
            ]},
            {"role": "user", "content": "go on"},
        ])
    );
}

#[tokio::test]
async fn profiles_change_what_servers_differ_in() {
    let memory = Memory::new([Reply::new(500, "")]);
    let mut profile = Profile::mistral();
    profile.merge_user_messages = true;
    profile.replay_reasoning = ReplayReasoning::Never;
    let model = OpenAiChat::new(memory.clone(), "http://in.memory/v1", "m").with_profile(profile);
    let mut history = full_history(&model.issuer());
    history.push(Message::user("and on"));
    let body = sent(&model, &memory, history).await;
    let messages = body["messages"].as_array().unwrap();
    let id = messages[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
    assert_eq!(messages[2]["tool_call_id"], id, "call and result keep together");
    assert!(messages[1].get("reasoning_content").is_none());
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages.last().unwrap()["content"].as_array().unwrap().len(), 2, "two user messages are one");
}

#[tokio::test]
async fn a_full_history_is_written_the_way_responses_servers_take_it() {
    let memory = Memory::new([Reply::new(500, "")]);
    let model = OpenAiResponses::new(memory.clone(), "http://in.memory/v1", "m");
    let body = sent(&model, &memory, full_history(&model.issuer())).await;
    let kinds: Vec<_> =
        body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "reasoning",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "message"
        ]
    );
    assert_eq!(body["input"][1]["encrypted_content"], "E");
    assert_eq!(
        body["input"][4]["output"][1],
        json!({"type": "input_image", "image_url": "data:image/png;base64,BB=="})
    );
    assert_eq!((&body["store"], &body["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
}

#[tokio::test]
async fn reasoning_goes_back_to_its_issuer_and_to_nobody_else() {
    for other in ["someone/chat:m", "openai-compatible/chat:other-model"] {
        let memory = Memory::new([Reply::new(500, "")]);
        let model = OpenAiChat::new(memory.clone(), "http://in.memory/v1", "m");
        let body = sent(&model, &memory, full_history(&other.into())).await;
        assert!(!body.to_string().contains("hm"), "{body}");
    }
}

#[tokio::test]
async fn a_refused_limit_field_is_swapped_once_and_remembered() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#;
    let memory = Memory::new([Reply::new(400, refusal), Reply::new(500, ""), Reply::new(500, "")]);
    let model = OpenAiChat::new(memory.clone(), "http://in.memory/v1", "m");
    for _ in 0..2 {
        let mut request = crate::observe::hello();
        request.options.max_output_tokens = Some(5);
        call(&model, request).await;
    }
    let fields: Vec<_> = memory.seen().iter().map(|seen| seen.json().get("max_tokens").is_some()).collect();
    assert_eq!(fields, [true, false, false]);
}

#[tokio::test]
async fn seals_that_the_server_no_longer_opens_are_left_out_once() {
    let refusal = r#"{"error":{"message":"The encrypted content could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}"#;
    let memory = Memory::new([Reply::new(400, refusal), Reply::new(500, "")]);
    let model = OpenAiResponses::new(memory.clone(), "http://in.memory/v1", "m");
    call(&model, ModelRequest::new(full_history(&model.issuer()))).await;
    let seen = memory.seen();
    let seals: Vec<_> = seen.iter().map(|seen| seen.json()["input"].to_string().contains("\"E\"")).collect();
    assert_eq!(seals, [true, false]);
}
