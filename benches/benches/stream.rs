//! What decoding a streamed answer costs, beside a floor in the same run: a line split by memchr and a typed, borrowing
//! parse of each data line, which is the least that a reader without a shortcut does.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that cannot run should stop")]

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use futures_util::StreamExt as _;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
use haversack_benches::streams::{Canned, anthropic, openai, openai_arguments};
use haversack_http::Bytes;
use haversack_providers::{Anthropic, OpenAiChat};
use serde::Deserialize;

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
        assert_eq!(ours(&*model, &runtime), floor(canned.pieces()), "{case}: both read the same");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(BenchmarkId::new("floor", case), |bench| {
            bench.iter(|| floor(black_box(canned.pieces())))
        });
        group.bench_function(BenchmarkId::new("ours", case), |bench| bench.iter(|| ours(&*model, &runtime)));
    }
    group.finish();
}

criterion::criterion_group!(benches, stream);
criterion::criterion_main!(benches);
