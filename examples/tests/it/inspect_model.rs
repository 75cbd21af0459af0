//! `inspect-model` over every recorded exchange: what it prints is what the oracle expects.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use haversack_examples::inspect_model::ask::Target;
use haversack_examples::inspect_model::outcome::ApiName;
use haversack_examples::inspect_model::request::NeutralRequest;
use haversack_http::ReqwestClient;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Four answers spliced into one stream: a client is done at the first end, and the oracle reads the last.
const SPLICED: &str = "08c41f48e67b2880";

/// The recorded exchanges, if the shared folder is here.
fn records() -> Option<Vec<Value>> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    if !shared.exists() {
        eprintln!("SKIPPED: there is no shared folder at {}", shared.display());
        return None;
    }
    let text = std::fs::read_to_string(shared.join("corpus/providers/visible.jsonl")).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn api(record: &Value) -> ApiName {
    match record["api"].as_str().unwrap() {
        "openai_chat" => ApiName::OpenAiChat,
        "openai_responses" => ApiName::OpenAiResponses,
        "anthropic_messages" => ApiName::Anthropic,
        "gemini" => ApiName::Gemini,
        "ollama_chat" => ApiName::Ollama,
        other => unreachable!("{other}"),
    }
}

/// The answer of a record as it goes over the wire.
fn answer(record: &Value) -> Vec<u8> {
    let body = record["response_body_raw"].as_str().unwrap();
    let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", record["response_status"], body.len());
    for name in ["content-type", "x-request-id", "request-id", "retry-after", "x-should-retry"] {
        if let Some(value) = record["response_headers_subset"].get(name).and_then(Value::as_str) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    [head.as_bytes(), b"\r\n", body.as_bytes()].concat()
}

/// Answers each request with what stands under the first part of its path.
async fn serve(answers: HashMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answers = Arc::new(answers);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&answers)));
        }
    });
    address
}

async fn converse(mut stream: TcpStream, answers: Arc<HashMap<String, Vec<u8>>>) {
    let mut buffer = Vec::new();
    loop {
        while let Some((key, length)) = whole_request(&buffer) {
            buffer.drain(..length);
            if stream.write_all(&answers[&key]).await.is_err() {
                return;
            }
        }
        if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

/// The key and the length of a request that is here as a whole.
fn whole_request(buffer: &[u8]) -> Option<(String, usize)> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&buffer[..head]);
    let path = text.split(' ').nth(1)?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
    });
    let end = head + 4 + length.unwrap_or(0);
    (buffer.len() >= end).then(|| (path.split('/').nth(1).unwrap_or_default().to_owned(), end))
}

/// Calls that the server gave no id have one of ours.
fn without_made_ids(api: ApiName, mut printed: Value, mut expected: Value) -> (Value, Value) {
    let count = expected["tool_calls"].as_array().map_or(0, Vec::len);
    for at in 0..count {
        let is_made = api == ApiName::Ollama || expected["tool_calls"][at]["id"].is_null();
        if is_made && printed["tool_calls"][at]["id"].is_string() {
            printed["tool_calls"][at]["id"] = Value::Null;
            expected["tool_calls"][at]["id"] = Value::Null;
        }
    }
    (printed, expected)
}

#[tokio::test]
async fn what_is_printed_of_every_recorded_exchange_is_what_the_oracle_expects() {
    let Some(records) = records() else { return };
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let base = serve(records.iter().map(|record| (id(record), answer(record))).collect()).await;
    let http = ReqwestClient::new().unwrap();
    let (mut counts, mut wrong) = (HashMap::<_, usize>::new(), Vec::new());
    for record in &records {
        let Some(expected) = record.get("expected").filter(|_| id(record) != SPLICED) else { continue };
        let target = Target {
            api: api(record),
            base_url: format!("{base}/{}", id(record)),
            model: "m".into(),
            key: None,
            streams: record["streaming"].as_bool().unwrap(),
        };
        let request = NeutralRequest::hello().into_request().unwrap();
        let printed = target.ask(http.clone(), request, |_| {}).await.to_json();
        let (printed, expected) = without_made_ids(target.api, printed, expected.clone());
        *counts.entry(target.api.name()).or_default() += 1;
        for (field, wanted) in expected.as_object().unwrap() {
            if printed[field] != *wanted {
                wrong.push(format!("{} {field}: {} and not {wanted}", id(record), printed[field]));
            }
        }
    }
    eprintln!("{counts:?}");
    assert!(counts.values().sum::<usize>() > 900, "{counts:?}");
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
