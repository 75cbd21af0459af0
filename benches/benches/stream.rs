//! What decoding a streamed answer costs, beside a floor in the same run: a line split by memchr and a typed, borrowing
//! parse of each data line, which is the least that a reader without a shortcut does.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that cannot run should stop")]

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use futures_util::{StreamExt as _, stream};
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
use haversack_http::{Bytes, HttpClient, HttpError, HttpRequest, HttpResponse, ResponseBody, StatusCode};
use haversack_providers::{Anthropic, OpenAiChat};
use serde::Deserialize;

/// Bytes of a piece, as they come from a socket.
const PIECE: usize = 16 << 10;

#[derive(Clone, Debug)]
struct Canned(Vec<Bytes>);

impl Canned {
    fn new(body: &str) -> Self {
        Self(body.as_bytes().chunks(PIECE).map(Bytes::copy_from_slice).collect())
    }
}

#[async_trait::async_trait]
impl HttpClient for Canned {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        let body = ResponseBody::from_stream(stream::iter(self.0.clone().into_iter().map(Ok)));
        Ok(HttpResponse::new(StatusCode::OK, body))
    }
}

/// An OpenAI stream of text, about 300 bytes an event.
fn openai(events: usize) -> String {
    let head = "data: {\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"gpt-5.4-mini-2026-03-17\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_06737a9306\",\"choices\":[{\"index\":0,\"delta\":{";
    let tail = "},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let mut body = format!("{head}\"role\":\"assistant\",\"content\":\"\"{tail}");
    for n in 0..events {
        // One in forty has an escape, as prose has line ends.
        let text = if n % 40 == 0 { "\\n" } else { " word" };
        body.push_str(&format!("{head}\"content\":\"{text}\"{tail}"));
    }
    body.push_str(&format!("{head}{}", tail.replace("null}]", "\"stop\"}]")));
    body + "data: [DONE]\n\n"
}

/// One OpenAI tool call whose arguments come in pieces of six bytes.
fn openai_arguments(bytes: usize) -> String {
    let head = "data: {\"id\":\"chatcmpl-B9\",\"object\":\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,";
    let tail = "}]},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let piece = |text: &str| format!("{head}\"function\":{{\"arguments\":\"{text}\"}}{tail}");
    let mut body = format!(
        "{head}\"id\":\"c\",\"type\":\"function\",\"function\":{{\"name\":\"t\",\"arguments\":\"\"}}{tail}"
    );
    body.push_str(&piece("{\\\"a\\\":\\\""));
    for _ in 0..bytes / 6 {
        body.push_str(&piece("abcdef"));
    }
    body.push_str(&piece("\\\"}"));
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
    body + "data: [DONE]\n\n"
}

/// An Anthropic stream of text, about 120 bytes an event.
fn anthropic(events: usize) -> String {
    let mut body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n".to_owned();
    for n in 0..events {
        let text = if n % 40 == 0 { "\\n" } else { " word" };
        body.push_str(&format!("event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"));
    }
    body.push_str("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    body
}

/// serde borrows a bare `Cow` and never one inside an `Option`.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: Text<'a>,
}

impl Delta<'_> {
    fn bytes(&self) -> usize {
        let text = self.content.as_ref().or(self.text.as_ref()).map_or(0, |text| text.0.len());
        text + self.tool_calls.iter().map(|call| call.function.arguments.0.len()).sum::<usize>()
    }
}

/// The floor: every line found, every data line parsed, no event made of it.
fn floor(pieces: &[Bytes]) -> usize {
    let mut bytes = 0;
    let mut carry: Vec<u8> = Vec::new();
    let mut line = |line: &[u8]| {
        let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { return };
        let chunk: Chunk<'_> = serde_json::from_slice(data).unwrap();
        bytes += chunk.choices.iter().map(|choice| choice.delta.bytes()).sum::<usize>();
        bytes += chunk.delta.map_or(0, |delta| delta.bytes());
    };
    for piece in pieces {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            if carry.is_empty() {
                line(&piece[start..end]);
            } else {
                carry.extend_from_slice(&piece[start..end]);
                line(&carry);
                carry.clear();
            }
            start = end + 1;
        }
        carry.extend_from_slice(&piece[start..]);
    }
    bytes
}

/// Ours: the public client, from the body's pieces to the last event.
fn ours(model: &dyn Model, runtime: &tokio::runtime::Runtime) -> usize {
    runtime.block_on(async {
        let mut bytes = 0;
        let request = ModelRequest::new([Message::user("hi")].into_iter().collect());
        let mut events = model.stream(request);
        while let Some(event) = events.next().await {
            match event.unwrap() {
                ModelEvent::Text(delta) | ModelEvent::ToolArguments { delta, .. } => bytes += delta.len(),
                _ => {}
            }
        }
        bytes
    })
}

fn stream(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut group = criterion.benchmark_group("stream");
    let cases = [
        ("openai-text", openai(20_000)),
        ("anthropic-text", anthropic(20_000)),
        ("openai-arguments-25KB", openai_arguments(25 << 10)),
        ("openai-arguments-50KB", openai_arguments(50 << 10)),
    ];
    for (case, body) in cases {
        let canned = Canned::new(&body);
        let model: Box<dyn Model> = if case.starts_with("anthropic") {
            Box::new(Anthropic::new(canned.clone(), "http://in.memory", "m"))
        } else {
            Box::new(OpenAiChat::new(canned.clone(), "http://in.memory/v1", "m"))
        };
        assert_eq!(ours(&*model, &runtime), floor(&canned.0), "{case}: both read the same");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::new("floor", case), |bench| {
            bench.iter(|| floor(black_box(&canned.0)))
        });
        group.bench_function(BenchmarkId::new("ours", case), |bench| bench.iter(|| ours(&*model, &runtime)));
    }
    group.finish();
}

criterion::criterion_group!(benches, stream);
criterion::criterion_main!(benches);
