//! Requests that real servers took, read into our types and written again: nothing that matters changes on the way.

use std::sync::Arc;

use haversack_agent_core::history::History;
use haversack_agent_core::message::{
    Author, Block, Media, Message, Opaque, Reasoning, Role, Seal, ToolCall, ToolResult, ToolStatus,
};
use haversack_agent_core::model::{Model, ModelRequest, PromptSection};
use haversack_agent_core::tool::ToolSpec;
use haversack_providers::{Anthropic, Gemini, Ollama, SchemaForm};
use serde_json::{Map, Value, json};

use crate::memory::Memory;
use crate::observe::call;
use crate::shared;

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn request(system: String, messages: Vec<Message>, tools: Vec<ToolSpec>) -> ModelRequest {
    let mut request = ModelRequest::new(messages.into_iter().collect::<History>());
    if !system.is_empty() {
        request.system = [PromptSection::new("system", system)].into();
    }
    request.tools = tools.into_iter().map(Arc::new).collect();
    request
}

/// What an API reads out of its own request, and what of a body has to come back.
trait Wire {
    fn decode(&self, body: &Value, issuer: &str) -> ModelRequest;
    fn canon(&self, body: &Value) -> Value;
}

struct Messages;

impl Messages {
    fn content(content: &Value) -> Vec<Value> {
        match content {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            other => list(other).to_vec(),
        }
    }

    fn media(block: &Value) -> Media {
        let source = &block["source"];
        let media = match source["type"].as_str() {
            Some("url") => Media::url("", string(&source["url"])),
            _ => Media::base64(string(&source["media_type"]), string(&source["data"])),
        };
        block["title"].as_str().into_iter().fold(media, Media::with_name)
    }

    fn block(block: &Value, issuer: &str, out: &mut Vec<Block>) {
        let seal = |data: Value| Seal::new(issuer, data);
        match block["type"].as_str().unwrap() {
            "text" => {
                out.push(Block::text(string(&block["text"])));
                if !list(&block["citations"]).is_empty() {
                    let raw = json!({"type": "text", "citations": block["citations"]});
                    out.push(Block::Opaque(Opaque::new(issuer, raw)));
                }
            }
            "image" => out.push(Block::Image(Self::media(block))),
            "document" => out.push(Block::Document(Self::media(block))),
            "thinking" => {
                let reasoning = Reasoning::new(string(&block["thinking"]));
                out.push(Block::Reasoning(
                    reasoning.with_seal(seal(json!({"signature": block["signature"]}))),
                ));
            }
            "redacted_thinking" => {
                let seal = seal(json!({"redacted_thinking": block["data"]}));
                out.push(Block::Reasoning(Reasoning::new("").with_seal(seal)));
            }
            "tool_use" => {
                let call =
                    ToolCall::new(string(&block["id"]), string(&block["name"]), block["input"].clone());
                out.push(call.into());
            }
            "tool_result" => {
                let status = if block["is_error"] == true { ToolStatus::Error } else { ToolStatus::Ok };
                let mut content = Vec::new();
                Self::content(&block["content"])
                    .iter()
                    .for_each(|block| Self::block(block, issuer, &mut content));
                out.push(ToolResult::new(string(&block["tool_use_id"]), "", status, content).into());
            }
            _ => out.push(Block::Opaque(Opaque::new(issuer, without(block, &["cache_control"])))),
        }
    }
}

fn without(value: &Value, keys: &[&str]) -> Value {
    let map = value.as_object().cloned().unwrap_or_default();
    Value::Object(map.into_iter().filter(|(key, _)| !keys.contains(&key.as_str())).collect())
}

impl Wire for Messages {
    fn decode(&self, body: &Value, issuer: &str) -> ModelRequest {
        let system: Vec<String> =
            Self::content(&body["system"]).iter().map(|block| string(&block["text"])).collect();
        let message = |message: &Value| {
            let mut blocks = Vec::new();
            Self::content(&message["content"])
                .iter()
                .for_each(|block| Self::block(block, issuer, &mut blocks));
            let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
            Message::new(role, blocks)
        };
        let own = list(&body["tools"]).iter().filter(|tool| tool["input_schema"].is_object());
        let tool = |tool: &Value| {
            ToolSpec::new(string(&tool["name"]), string(&tool["description"]))
                .with_schema(tool["input_schema"].clone())
        };
        request(
            system.join("\n\n"),
            list(&body["messages"]).iter().map(message).collect(),
            own.map(tool).collect(),
        )
    }

    fn canon(&self, body: &Value) -> Value {
        fn block(block: &Value) -> Option<Value> {
            let mut block = without(block, &["cache_control"]);
            let map = block.as_object_mut().unwrap();
            if map["type"] == "text" && string(&map["text"]).trim().is_empty() {
                return None;
            }
            if map.get("citations").is_some_and(|citations| list(citations).is_empty()) {
                map.remove("citations");
            }
            if map.get("is_error") == Some(&false.into()) {
                map.remove("is_error");
            }
            if map["type"] == "tool_result" {
                let content = Messages::content(map.get("content").unwrap_or(&Value::Null));
                map.insert("content".into(), content.iter().filter_map(Messages::canon_block).collect());
            }
            Some(block)
        }
        let mut messages: Vec<(Value, Vec<Value>)> = Vec::new();
        for message in list(&body["messages"]) {
            let mut blocks: Vec<Value> =
                Self::content(&message["content"]).iter().filter_map(block).collect();
            if blocks.is_empty() {
                continue;
            }
            // Results come first; that is our order, and what the API asks for.
            blocks.sort_by_key(|block| block["type"] != "tool_result");
            match messages.last_mut() {
                Some((role, content)) if *role == message["role"] => content.extend(blocks),
                _ => messages.push((message["role"].clone(), blocks)),
            }
        }
        let system: Vec<_> =
            Self::content(&body["system"]).iter().map(|block| string(&block["text"])).collect();
        let tools: Vec<_> = list(&body["tools"])
            .iter()
            .filter(|tool| tool["input_schema"].is_object())
            .map(|tool| json!([tool["name"], string(&tool["description"]), tool["input_schema"]]))
            .collect();
        json!([system.join("\n\n"), messages, tools])
    }
}

impl Messages {
    fn canon_block(block: &Value) -> Option<Value> {
        let blank = block["type"] == "text" && string(&block["text"]).trim().is_empty();
        (!blank).then(|| without(block, &["cache_control"]))
    }
}

struct GenerateContent;

/// Google's SDKs write some keys with underscores; servers take both.
fn camel(value: &Value) -> Value {
    const KEYS: [(&str, &str); 9] = [
        ("function_call", "functionCall"),
        ("function_response", "functionResponse"),
        ("thought_signature", "thoughtSignature"),
        ("inline_data", "inlineData"),
        ("file_data", "fileData"),
        ("file_uri", "fileUri"),
        ("mime_type", "mimeType"),
        ("parameters_json_schema", "parametersJsonSchema"),
        ("function_declarations", "functionDeclarations"),
    ];
    let key =
        |key: &str| KEYS.iter().find(|(snake, _)| *snake == key).map_or(key, |(_, camel)| camel).to_owned();
    match value {
        Value::Object(map) => {
            let entries = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                entries
                    .map(|(name, value)| {
                        (key(name), if name == "args" { value.clone() } else { camel(value) })
                    })
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(camel).collect(),
        other => other.clone(),
    }
}

impl GenerateContent {
    fn parts(content: &Value) -> Vec<Value> {
        list(&content["parts"]).iter().map(camel).collect()
    }

    fn block(part: &Value, issuer: &str, made: &mut u32, out: &mut Vec<Block>) {
        let signature = part.get("thoughtSignature").map(|s| json!({"thoughtSignature": s}));
        let behind = |out: &mut Vec<Block>| {
            if let Some(signature) = &signature {
                out.push(Block::Opaque(Opaque::new(issuer, signature.clone())));
            }
        };
        let mut id = |call: &Value| {
            call["id"].as_str().map_or_else(
                || {
                    *made += 1;
                    format!("made_{made}")
                },
                str::to_owned,
            )
        };
        if let Some(call) = part.get("functionCall") {
            let arguments = call.get("args").cloned().unwrap_or_else(|| json!({}));
            let mut own = ToolCall::new(id(call), string(&call["name"]), arguments);
            own.seal = signature.clone().map(|data| Seal::new(issuer, data));
            out.push(own.into());
        } else if let Some(response) = part.get("functionResponse") {
            let is_error = response["response"].get("error").is_some();
            let status = if is_error { ToolStatus::Error } else { ToolStatus::Ok };
            let content = vec![Block::text(response["response"].to_string())];
            out.push(ToolResult::new(id(response), string(&response["name"]), status, content).into());
        } else if part["thought"] == true && part["text"].is_string() {
            let seal = Seal::new(issuer, signature.clone().unwrap_or_default());
            out.push(Block::Reasoning(Reasoning::new(string(&part["text"])).with_seal(seal)));
        } else if part["text"] == "" && signature.is_some() {
            out.push(Block::Opaque(Opaque::new(issuer, without(part, &["thought"]))));
        } else if let Some(text) = part["text"].as_str() {
            out.push(Block::text(text));
            behind(out);
        } else if let Some(data) = part.get("inlineData") {
            out.push(Block::Image(Media::base64(string(&data["mimeType"]), string(&data["data"]))));
            behind(out);
        } else {
            out.push(Block::Opaque(Opaque::new(issuer, part.clone())));
        }
    }
}

impl Wire for GenerateContent {
    fn decode(&self, body: &Value, issuer: &str) -> ModelRequest {
        let system: Vec<_> =
            Self::parts(&body["systemInstruction"]).iter().map(|part| string(&part["text"])).collect();
        let (mut calls, mut results) = (0, 0);
        let message = |content: &Value| {
            let mut blocks = Vec::new();
            for part in Self::parts(content) {
                // Ids that are made go by order, here as in the decoder.
                let made = if part.get("functionCall").is_some() { &mut calls } else { &mut results };
                Self::block(&part, issuer, made, &mut blocks);
            }
            let role = if content["role"] == "model" { Role::Assistant } else { Role::User };
            Message::new(role, blocks)
        };
        let messages = list(&body["contents"]).iter().map(message).collect();
        request(system.join("\n\n"), messages, Vec::new())
    }

    fn canon(&self, body: &Value) -> Value {
        let mut contents: Vec<(bool, Vec<Value>)> = Vec::new();
        for content in list(&body["contents"]) {
            let parts = Self::parts(content).into_iter().filter_map(|part| {
                let mut part = part.as_object().cloned().unwrap_or_default();
                if part.get("thought") == Some(&false.into()) {
                    part.remove("thought");
                }
                // A thought cannot be the user's, and calls have no text.
                if part.contains_key("functionCall") || part.contains_key("functionResponse") {
                    part.remove("thought");
                }
                for key in ["functionCall", "functionResponse"] {
                    if let Some(Value::Object(call)) = part.get_mut(key) {
                        call.entry("args").or_insert_with(|| json!({}));
                        if call.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with("made_")) {
                            call.remove("id");
                        }
                        // The response is ours to word; that it is there, for whom and in which order is what counts.
                        call.remove("response");
                        call.remove("parts");
                    }
                }
                (part.get("text") != Some(&"".into()) || part.len() > 1).then_some(Value::Object(part))
            });
            let mut parts: Vec<Value> = parts.collect();
            parts.sort_by_key(|part| part.get("functionResponse").is_none());
            let is_model = content["role"] == "model";
            match contents.last_mut() {
                _ if parts.is_empty() => {}
                Some((role, all)) if *role == is_model => all.extend(parts),
                _ => contents.push((is_model, parts)),
            }
        }
        json!(contents)
    }
}

struct OllamaChat;

impl Wire for OllamaChat {
    fn decode(&self, body: &Value, issuer: &str) -> ModelRequest {
        let mut system = String::new();
        let mut messages = Vec::new();
        let mut made = 0;
        let mut waiting: Vec<String> = Vec::new();
        for message in list(&body["messages"]) {
            let text = string(&message["content"]);
            let mut blocks = Vec::new();
            if let Some(thinking) = message["thinking"].as_str() {
                blocks.push(Block::Reasoning(
                    Reasoning::new(thinking).with_seal(Seal::new(issuer, Value::Null)),
                ));
            }
            match message["role"].as_str().unwrap() {
                "system" => system = text,
                "tool" => {
                    let id = if waiting.is_empty() { "lost".to_owned() } else { waiting.remove(0) };
                    let content = vec![Block::text(text)];
                    let result = ToolResult::new(id, string(&message["tool_name"]), ToolStatus::Ok, content);
                    messages.push(Message::new(Role::Tool, vec![result.into()]));
                }
                "assistant" => {
                    if !text.is_empty() {
                        blocks.push(Block::text(text));
                    }
                    for call in list(&message["tool_calls"]) {
                        made += 1;
                        waiting.push(format!("made_{made}"));
                        let function = &call["function"];
                        let id = format!("made_{made}");
                        blocks.push(
                            ToolCall::new(id, string(&function["name"]), function["arguments"].clone())
                                .into(),
                        );
                    }
                    messages
                        .push(Message::new(Role::Assistant, blocks).with_author(Author::new("ollama", "m")));
                }
                _ => messages.push(Message::user(text)),
            }
        }
        let tool = |tool: &Value| {
            let function = &tool["function"];
            let schema = function["parameters"].clone();
            ToolSpec::new(string(&function["name"]), string(&function["description"])).with_schema(schema)
        };
        request(system, messages, list(&body["tools"]).iter().map(tool).collect())
    }

    fn canon(&self, body: &Value) -> Value {
        let message = |message: &Value| {
            let mut out = Map::new();
            for key in ["role", "content", "thinking", "images"] {
                if let Some(value) = message.get(key) {
                    out.insert(key.into(), value.clone());
                }
            }
            if let Some(name) = message["tool_name"].as_str().filter(|name| !name.starts_with('_')) {
                out.insert("tool_name".into(), name.into());
            }
            let call = |call: &Value| json!([call["function"]["name"], call["function"]["arguments"]]);
            out.insert("tool_calls".into(), list(&message["tool_calls"]).iter().map(call).collect());
            Value::Object(out)
        };
        let messages: Vec<Value> = list(&body["messages"]).iter().map(message).collect();
        let tool = |tool: &Value| {
            let function = &tool["function"];
            json!([function["name"], string(&function["description"]), function["parameters"]])
        };
        json!([messages, list(&body["tools"]).iter().map(tool).collect::<Vec<_>>()])
    }
}

#[tokio::test]
async fn requests_that_were_taken_are_written_again_as_they_were() {
    let records = shared::records().unwrap_or_default();
    let (mut count, mut problems) = (0, Vec::new());
    for record in
        records.iter().filter(|record| record["response_status"] == 200 && record["request_json"].is_object())
    {
        let body = &record["request_json"];
        let http = Memory::default();
        let (wire, model, issuer): (&dyn Wire, Box<dyn Model>, Arc<str>) =
            match record["api"].as_str().unwrap() {
                "anthropic_messages" => {
                    let model = Anthropic::new(http.clone(), "http://a", "m");
                    let issuer = model.issuer();
                    (&Messages, Box::new(model), issuer)
                }
                "gemini" => {
                    let model =
                        Gemini::new(http.clone(), "http://a", "m").with_schema_form(SchemaForm::JsonSchema);
                    let issuer = model.issuer();
                    (&GenerateContent, Box::new(model), issuer)
                }
                "ollama_chat" => {
                    let model = Ollama::new(http.clone(), "http://a", "m");
                    let issuer = model.issuer();
                    (&OllamaChat, Box::new(model), issuer)
                }
                _ => continue,
            };
        let request = wire.decode(body, &issuer);
        call(&*model, request).await;
        let written = http.only().json();
        count += 1;
        let (was, is) = (wire.canon(body), wire.canon(&written));
        if was != is {
            problems.push(format!("{} {}\nwas {was}\nis  {is}", record["api"], record["id"]));
        }
    }
    eprintln!("{count} requests written again");
    assert!(
        problems.is_empty(),
        "{} differ\n{}",
        problems.len(),
        problems[..problems.len().min(5)].join("\n")
    );
}
