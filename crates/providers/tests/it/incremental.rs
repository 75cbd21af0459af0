//! What is kept of an encoded history is what would be written afresh.

use std::sync::Arc;

use haversack_agent_core::history::History;
use haversack_agent_core::message::{
    Block, Media, Message, Opaque, Reasoning, Role, Seal, ToolCall, ToolResult, ToolStatus,
};
use haversack_agent_core::model::{CacheMarkers, Model, ModelRequest, PromptSection};
use haversack_agent_core::tool::ToolSpec;
use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};
use proptest::prelude::*;
use serde_json::json;

use crate::memory::Memory;

type Make = fn(Memory) -> Box<dyn Model>;

const ALL: [(&str, Make); 5] = [
    ("chat", |http| Box::new(OpenAiChat::new(http, "http://a", "m"))),
    ("responses", |http| Box::new(OpenAiResponses::new(http, "http://a", "m"))),
    ("anthropic", |http| Box::new(Anthropic::new(http, "http://a", "m"))),
    ("gemini", |http| Box::new(Gemini::new(http, "http://a", "gemini-3-pro"))),
    ("ollama", |http| Box::new(Ollama::new(http, "http://a", "m"))),
];

/// Blocks of every kind, some of which an API leaves out, so that whole messages vanish.
fn block(n: u8) -> Block {
    let issuers = ["anthropic/messages:m", "gemini/gemini:gemini-3-pro", "ollama/ollama:m", "else"];
    let issuer = issuers[usize::from(n / 16) % issuers.len()];
    match n % 10 {
        0 | 1 => Block::text(format!("text {n}")),
        2 => Block::text(" "),
        3 => Block::Image(Media::base64("image/png", "AA==")),
        4 => Block::Document(Media::base64("text/plain", "aGk=").with_name("a.txt")),
        5 => Block::Reasoning(Reasoning::new("hm").with_seal(Seal::new(issuer, json!({"signature": "s"})))),
        6 => Block::Opaque(Opaque::new(issuer, json!({"type": "text", "thoughtSignature": "t"}))),
        7 => ToolCall::new(format!("c{n}"), "t", json!({"n": n})).into(),
        8 => ToolResult::new(format!("c{n}"), "t", ToolStatus::Error, vec![Block::text("no")]).into(),
        _ => Block::Opaque(Opaque::new(issuer, json!({"thoughtSignature": "t"}))),
    }
}

fn message((role, blocks): (u8, Vec<u8>)) -> Arc<Message> {
    let role = [Role::User, Role::Assistant, Role::Tool][usize::from(role) % 3];
    Arc::new(Message::new(role, blocks.into_iter().map(block).collect()))
}

fn body(
    model: &dyn Model,
    http: &Memory,
    request: &ModelRequest,
    runtime: &tokio::runtime::Runtime,
) -> String {
    runtime.block_on(crate::observe::call(model, request.clone()));
    String::from_utf8(http.seen().pop().unwrap().body).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn kept_bytes_are_those_of_a_fresh_encoding(
        messages in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..4)), 1..10),
        marks in prop::collection::vec(0..10_usize, 0..6),
        prefix in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let messages: Vec<_> = messages.into_iter().map(message).collect();
        let mut request = ModelRequest::default();
        request.system = [PromptSection::new("a", "be brief"), PromptSection::new("b", "be kind")].into();
        request.tools = [Arc::new(ToolSpec::new("t", "a tool"))].into();
        for (api, make) in ALL {
            let kept_http = Memory::default();
            let kept = make(kept_http.clone());
            for count in 1..=messages.len() {
                request.messages = messages[..count].iter().cloned().collect::<History>();
                let mut marked: Vec<_> = marks.iter().copied().filter(|at| *at < count).collect();
                marked.sort_unstable();
                marked.dedup();
                request.cache = CacheMarkers::default();
                request.cache.prefix = prefix;
                request.cache.messages = marked;
                let fresh_http = Memory::default();
                let fresh = make(fresh_http.clone());
                let (got, wanted) =
                    (body(&*kept, &kept_http, &request, &runtime), body(&*fresh, &fresh_http, &request, &runtime));
                prop_assert_eq!(&got, &wanted, "{}", api);
                let json: serde_json::Value = serde_json::from_str(&got).unwrap();
                // Four markers are all that Anthropic takes.
                let markers = got.matches("\"cache_control\"").count();
                prop_assert!(markers <= 4, "{} has {} markers: {}", api, markers, json);
            }
        }
    }
}
