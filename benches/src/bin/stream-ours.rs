//! Our contestant of the stream suite: one streamed request over HTTP, read by the public client.
//!
//! ```text
//! stream-ours --stub STUB_LLM --file REPLY.sse --case http|ttfe --provider openai|anthropic
//!             [--chunk BYTES] [--iters N] [--runtime multi|current]
//! stream-ours --stub STUB_LLM --case turns [--steps N]
//! stream-ours --case mem --provider openai|anthropic --events N
//! ```
//!
//! The server sends the file as one answer. With `ttfe` it pauses after the first text, so that what is measured is the
//! time to the first event and not the reading of the rest. The runtime is that of the peers, two worker threads, unless
//! told otherwise. `turns` is a loop by hand around the client, one tool call a turn, against a scripted server: what a long
//! history costs when only its end is encoded. `mem` reads one answer of so many events from memory, without a server:
//! what decoding alone costs, for instruction counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use haversack_agent_core::message::{Block, Message, Role, ToolResult, ToolStatus};
use haversack_agent_core::model::{Model, ModelEvent, ModelRequest};
use haversack_agent_core::tool::ToolSpec;
use haversack_benches::contest::{Flags, Report, Resources, Sample, StubServer};
use haversack_benches::streams::{self, Canned};
use haversack_http::ReqwestClient;
use haversack_providers::{Anthropic, OpenAiChat};

/// What reached the caller of one request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Received {
    deltas: u64,
    bytes: u64,
    first: Duration,
}

async fn read(model: &dyn Model) -> Received {
    let start = Instant::now();
    let mut received = Received::default();
    let mut events = model.stream(ModelRequest::new([Message::user("hi")].into_iter().collect()));
    let mut whole = false;
    while let Some(event) = events.next().await {
        match event.expect("the answer reads") {
            ModelEvent::Text(delta) | ModelEvent::ToolArguments { delta, .. } => {
                if received.deltas == 0 {
                    received.first = start.elapsed();
                }
                received.deltas += 1;
                received.bytes += delta.len() as u64;
            }
            ModelEvent::Stop { .. } => whole = true,
            _ => {}
        }
    }
    assert!(whole, "the answer has an end");
    received
}

/// A tool with the schema that the other contestants of the agent suite send, and its answer of about 100 bytes.
fn tool() -> ToolSpec {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
    });
    ToolSpec::new("noop", "Reads a file").with_schema(schema)
}

/// Runs a history of so many turns and gives the number of calls that were answered.
async fn turns(model: &dyn Model, steps: &mut Sample) -> usize {
    let mut request = ModelRequest::new([Message::user("go")].into_iter().collect());
    request.tools = Arc::new([Arc::new(tool())]);
    let mut answered = 0;
    loop {
        let start = Instant::now();
        let mut blocks = Vec::new();
        let mut events = model.stream(request.clone());
        while let Some(event) = events.next().await {
            if let ModelEvent::BlockDone(block) = event.expect("the answer reads") {
                blocks.push(block);
            }
        }
        drop(events);
        let answer = Message::new(Role::Assistant, blocks);
        let results: Vec<Block> = answer
            .tool_calls()
            .map(|call| {
                let path = call.arguments["path"].as_str().expect("a path");
                let text = format!("{path}: {}", "0123456789 ".repeat(8));
                ToolResult::new(call.id.clone(), call.name.clone(), ToolStatus::Ok, vec![Block::text(text)])
                    .into()
            })
            .collect();
        if results.is_empty() {
            assert_eq!(answer.text(), "done");
            return answered;
        }
        answered += results.len();
        request.messages.push(answer);
        request.messages.push(Message::new(Role::Tool, results));
        steps.push(start.elapsed());
    }
}

fn runtime(flags: &Flags) -> tokio::runtime::Runtime {
    let mut builder = match flags.text("runtime", "multi") {
        "current" => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(2).enable_all().build().expect("a runtime")
}

fn long_run(flags: &Flags) {
    let count = flags.text("steps", "1000");
    let server = StubServer::start(flags.required("stub"), &["--mode", "script", "--steps", count])
        .expect("the server starts");
    let http = ReqwestClient::new().expect("a client");
    let model = OpenAiChat::new(http, format!("http://127.0.0.1:{}/v1", server.port()), "m");
    let model = if flags.get("whole").is_some() { model.without_streaming() } else { model };
    let mut sample = Sample::default();
    let before = Resources::now();
    let answered = runtime(flags).block_on(turns(&model, &mut sample));
    let cpu = Resources::now().since(before).cpu().as_secs_f64() * 1e6;
    assert_eq!(answered.to_string(), count);
    Report::new("agent", "ours-client", "http")
        .sample(&sample)
        .with("deciles_us", sample.tenths_us())
        .with("cpu_us_per_step", cpu / answered as f64)
        .used_since(before)
        .print();
}

/// One answer from memory.
fn from_memory(flags: &Flags) {
    let (provider, events) = (flags.text("provider", "openai"), flags.number("events", 10_000));
    let model: Box<dyn Model> = match provider {
        "anthropic" => {
            Box::new(Anthropic::new(Canned::new(&streams::anthropic(events)), "http://in.memory", "m"))
        }
        _ => Box::new(OpenAiChat::new(Canned::new(&streams::openai(events)), "http://in.memory/v1", "m")),
    };
    let before = Resources::now();
    let mut sample = Sample::default();
    let received = sample.time(|| runtime(flags).block_on(read(&*model)));
    assert_eq!(received.deltas, events as u64, "every event reached the caller");
    let report =
        Report::new("stream", "ours", "mem").with("provider", provider).with("deltas", received.deltas);
    report.sample(&sample).used_since(before).print();
}

fn main() {
    let flags = Flags::of_process();
    match flags.get("case") {
        Some("turns") => return long_run(&flags),
        Some("mem") => return from_memory(&flags),
        _ => {}
    }
    let (case, provider) = (flags.text("case", "http"), flags.text("provider", "openai"));
    let file = flags.required("file");
    let size = std::fs::metadata(file).expect("the file is there").len() as f64;
    let hold = if case == "ttfe" { "50" } else { "0" };
    let chunk = flags.text("chunk", "16384");
    let arguments = ["--mode", "file", "--file", file, "--chunk", chunk, "--hold-ms", hold];
    let server = StubServer::start(flags.required("stub"), &arguments).expect("the server starts");
    let runtime = runtime(&flags);
    let http = ReqwestClient::new().expect("a client");
    let model: Box<dyn Model> = match provider {
        "anthropic" => Box::new(Anthropic::new(http, format!("http://127.0.0.1:{}", server.port()), "m")),
        _ => Box::new(OpenAiChat::new(http, format!("http://127.0.0.1:{}/v1", server.port()), "m")),
    };
    let (mut walls, mut firsts) = (Sample::default(), Sample::default());
    let mut last = Received::default();
    let iters = flags.number("iters", 3_u32);
    let before = Resources::now();
    for _ in 0..iters {
        last = walls.time(|| runtime.block_on(read(&*model)));
        firsts.push(last.first);
    }
    let cpu = Resources::now().since(before).cpu().as_secs_f64() * 1e6 / f64::from(iters);
    Report::new("stream", "ours", case)
        .with("provider", provider)
        .with("deltas", last.deltas)
        .with("text_bytes", last.bytes)
        .sample(&walls)
        .with("mb_per_s", size / walls.percentile_us(0.5))
        .with("mb_per_cpu_s", size / cpu)
        .with("ttfe_us", firsts.percentile_us(0.5))
        .used_since(before)
        .print();
}
