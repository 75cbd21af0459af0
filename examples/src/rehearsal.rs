//! A rehearsal model server: a real HTTP server that speaks OpenAI Chat streaming and decides by plain rules.
//!
//! It is **no language model**. It exists so that the first run, the examples and the tests need no key and no
//! network: everything between the host and the wire is real, only the judgement is rehearsed. Each answer says
//! so. The rules are in [`rules`]; a server on the loopback interface is in [`Rehearsal`].

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub mod rules;

use rules::Answer;

/// The name that the server gives its model.
pub const MODEL: &str = "rehearsal";

/// How many request bodies are kept for tests; later ones are not recorded.
const MAX_RECORDED: usize = 256;

/// A running server. Dropping it ends the server and its connections.
#[derive(Debug)]
pub struct Rehearsal {
    address: SocketAddr,
    recorded: Recorded,
    task: JoinHandle<()>,
}

type Recorded = Arc<Mutex<Vec<Bytes>>>;

impl Rehearsal {
    /// Starts a server on a free port of the loopback interface. `pace` is the pause between two pieces of a
    /// streamed answer, so that a person can watch; tests give zero.
    pub async fn start(pace: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let recorded = Recorded::default();
        let state = Shared { pace, recorded: Arc::clone(&recorded) };
        let app = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/models", get(models))
            .with_state(state);
        let task = tokio::spawn(async move {
            // An accept error ends the server; the host then sees a refused connection and says so.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, recorded, task })
    }

    /// The base URL for a client, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the chat requests so far, as they came.
    pub fn requests(&self) -> Vec<Bytes> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Shared {
    pace: Duration,
    recorded: Recorded,
}

async fn models() -> impl IntoResponse {
    axum::Json(json!({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "rehearsal"}]}))
}

async fn chat(State(shared): State<Shared>, body: Bytes) -> Response {
    {
        let mut recorded = shared.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.len() < MAX_RECORDED {
            recorded.push(body.clone());
        }
    }
    let request: Value = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return refusal(&format!("the body is not JSON: {error}")),
    };
    let Some(answer) = rules::answer(&request) else {
        return refusal("`messages` must hold at least one user message");
    };
    let usage = usage(body.len(), &answer);
    if request["stream"].as_bool() == Some(true) {
        let with_usage = request["stream_options"]["include_usage"].as_bool() == Some(true);
        streamed(&answer, with_usage.then_some(usage), shared.pace)
    } else {
        axum::Json(whole(&answer, &usage)).into_response()
    }
}

fn refusal(message: &str) -> Response {
    let error =
        json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}});
    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
}

/// Tokens are estimated as a quarter of the bytes: the server has no tokenizer and says the same for the same bytes.
fn usage(prompt_bytes: usize, answer: &Answer) -> Value {
    let written =
        answer.text.len() + answer.calls.iter().map(|c| c.arguments.to_string().len()).sum::<usize>();
    let (prompt, completion) = (prompt_bytes.div_ceil(4), written.div_ceil(4));
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn whole(answer: &Answer, usage: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.calls.is_empty() {
        message["tool_calls"] = answer
            .calls
            .iter()
            .map(|c| {
                json!({"id": c.id, "type": "function",
                    "function": {"name": c.name, "arguments": c.arguments.to_string()}})
            })
            .collect();
    }
    json!({"id": "chatcmpl-rehearsal", "object": "chat.completion", "created": 0, "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(answer)}], "usage": usage})
}

fn streamed(answer: &Answer, usage: Option<Value>, pace: Duration) -> Response {
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    events.extend(pieces(&answer.text, 12).map(|p| chunk(json!({"content": p}), None)));
    for (index, call) in answer.calls.iter().enumerate() {
        let start = json!({"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [start]}), None));
        events.extend(
            pieces(&call.arguments.to_string(), 16).map(|p| {
                chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": p}}]}), None)
            }),
        );
    }
    events.push(chunk(json!({}), Some(finish_reason(answer))));
    if let Some(usage) = usage {
        let mut last = chunk(json!({}), None);
        last["choices"] = json!([]);
        last["usage"] = usage;
        events.push(last);
    }
    let texts = events.into_iter().map(|e| format!("data: {e}\n\n")).chain(["data: [DONE]\n\n".to_owned()]);
    let body = stream::iter(texts.collect::<Vec<_>>()).then(move |text| async move {
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        Ok::<_, Infallible>(text)
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-rehearsal", "object": "chat.completion.chunk", "created": 0, "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

/// Cuts a text into pieces of at most `width` characters.
fn pieces(text: &str, width: usize) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(width).map(String::from_iter).collect::<Vec<_>>().into_iter()
}
