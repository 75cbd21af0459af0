//! What the MCP client costs: cutting and reading lines, and calls in memory and over a real child, each beside a floor
//! in the same run, and beside the official SDK's client where a child answers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench that fails or hears a wrong answer should stop"
)]

use std::borrow::Cow;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use haversack_mcp_client::protocol::{
    ClientConfig, ClientInfo, ClientMachine, EraChoice, Line, LineBuffer, Output, Revision, ServerMachine,
    ServerOutput, Timing,
};
use haversack_mcp_client::{Client, ClientOptions, ServerCommand};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, split};
use tokio::runtime::Runtime;

/// The server of this package: pre-rendered answers.
const STUB: &str = env!("CARGO_BIN_EXE_stub_mcp");

/// Bytes of text in the result of a call.
const TEXT: usize = 100;

/// Bytes of a piece, as they come from a pipe.
const PIECE: usize = 16 << 10;

/// Bytes between the two ends in memory.
const DUPLEX: usize = 64 << 10;

/// Messages that are read at a time.
const MESSAGES: u64 = 1000;

/// The least that tells an answer apart and finds its result.
#[derive(Deserialize)]
struct Envelope<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The least that gives the caller the text of a result.
#[derive(Deserialize)]
struct Called<'a> {
    id: u64,
    #[serde(borrow)]
    result: CalledResult<'a>,
}

#[derive(Deserialize)]
struct CalledResult<'a> {
    #[serde(borrow)]
    content: Vec<CalledContent<'a>>,
}

#[derive(Deserialize)]
struct CalledContent<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// A call as it is written; its arguments are built for it, as every client of the bench does.
#[derive(Serialize)]
struct Request {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: RequestParams,
}

#[derive(Serialize)]
struct RequestParams {
    name: &'static str,
    arguments: Map<String, Value>,
}

/// The least that a server must know of a request.
#[derive(Deserialize)]
struct Asked {
    id: u64,
}

#[derive(Serialize)]
struct Answered<'a> {
    jsonrpc: &'static str,
    id: u64,
    result: &'a Value,
}

fn write_request(id: u64, out: &mut Vec<u8>) {
    let params = RequestParams { name: "tool_0", arguments: arguments() };
    serde_json::to_writer(&mut *out, &Request { jsonrpc: "2.0", id, method: "tools/call", params }).unwrap();
    out.push(b'\n');
}

fn called_text(line: &[u8], ids: std::ops::RangeInclusive<u64>) -> String {
    let called: Called<'_> = serde_json::from_slice(line).unwrap();
    assert!(ids.contains(&called.id), "an answer to {}, which is not one of {ids:?}", called.id);
    let text = called.result.content[0].text.clone().into_owned();
    assert_eq!(text.len(), TEXT);
    text
}

fn arguments() -> Map<String, Value> {
    Map::from_iter([("path".to_owned(), "src/main.rs".into()), ("limit".to_owned(), 10.into())])
}

fn call_result() -> Value {
    json!({"content": [{"type": "text", "text": "x".repeat(TEXT)}], "isError": false})
}

fn options() -> ClientOptions {
    ClientOptions::new("bench", "1").with_era(EraChoice::Legacy)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

// ---- lines and envelopes ----

/// The answers to the requests 2 and up, one a line.
fn answers() -> Vec<u8> {
    let result = call_result();
    let lines =
        (0..MESSAGES).map(|n| format!("{}\n", json!({"jsonrpc": "2.0", "id": n + 2, "result": result})));
    lines.collect::<String>().into_bytes()
}

/// Calls back with each line of pieces, by memchr alone.
fn floor_lines(bytes: &[u8], mut line: impl FnMut(&[u8])) {
    let mut carry: Vec<u8> = Vec::new();
    for piece in bytes.chunks(PIECE) {
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
}

fn our_lines(bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
    let mut lines = LineBuffer::new(1 << 20);
    for piece in bytes.chunks(PIECE) {
        lines.feed(piece);
        while let Some(line) = lines.next_line() {
            each(line);
        }
    }
}

/// A machine with all the requests made that [`answers`] answers.
fn asking_machine(now: Instant) -> ClientMachine<u64> {
    let mut config = ClientConfig::new(ClientInfo::new("bench", "1"));
    config.era = EraChoice::Legacy;
    let mut machine = ClientMachine::new(config);
    machine.start(now);
    machine.handle_message(now, br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    assert!(matches!(machine.poll_output(), Some(Output::Ready(_))));
    for tag in 0..MESSAGES {
        let id = machine.request(now, "tools/call", &(), Timing::unlimited(), tag).unwrap();
        assert_eq!(id.get(), tag + 2);
    }
    machine
}

fn lines(criterion: &mut Criterion) {
    let bytes = answers();
    let mut group = criterion.benchmark_group("mcp lines");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("split/floor", |b| {
        b.iter(|| {
            let mut sum = 0;
            floor_lines(&bytes, |line| sum += line.len());
            black_box(sum)
        });
    });
    group.bench_function("split/haversack", |b| {
        b.iter(|| {
            let mut sum = 0;
            our_lines(&bytes, |line| match line {
                Line::Text(text) => sum += text.as_bytes().len(),
                other => panic!("{other:?}"),
            });
            black_box(sum)
        });
    });
    // The floor keeps the line as bytes of its own too: whoever asked gets it after the buffer has moved on.
    group.bench_function("envelope/floor", |b| {
        b.iter_batched(
            Vec::new,
            |mut kept| {
                floor_lines(&bytes, |line| {
                    let envelope: Envelope<'_> = serde_json::from_slice(line).unwrap();
                    kept.push((envelope.id, envelope.result.get().len(), line.to_vec()));
                });
                assert_eq!(kept.len() as u64, MESSAGES);
                kept
            },
            criterion::BatchSize::LargeInput,
        );
    });
    let now = Instant::now();
    group.bench_function("envelope/haversack", |b| {
        b.iter_batched(
            || asking_machine(now),
            |mut machine| {
                let mut kept = Vec::new();
                our_lines(&bytes, |line| {
                    machine.handle_line(now, line);
                    while let Some(output) = machine.poll_output() {
                        match output {
                            Output::Settled { tag, outcome } => kept.push((tag, outcome)),
                            other => panic!("{other:?}"),
                        }
                    }
                });
                assert_eq!(kept.len() as u64, MESSAGES);
                (machine, kept)
            },
            criterion::BatchSize::LargeInput,
        );
    });
    group.finish();
}

// ---- in memory ----

/// Answers every call at once, until the client has gone.
async fn serve(stream: DuplexStream) {
    let (mut reader, mut writer) = split(stream);
    let mut machine = ServerMachine::new([Revision::V2025_06_18], json!({"tools": {}}));
    let mut lines = LineBuffer::new(1 << 20);
    let result = call_result();
    while let Ok(1..) = reader.read_buf(lines.read_target()).await {
        while let Some(Line::Text(line)) = lines.next_line() {
            machine.handle_line(line.as_bytes());
        }
        while let Some(output) = machine.poll_output() {
            if let ServerOutput::Request { id, .. } = output {
                machine.answer(&id, Ok(result.clone()));
            }
        }
        let answers = std::mem::take(machine.outgoing());
        if writer.write_all(&answers).await.is_err() {
            break;
        }
    }
}

/// The floor's server: lines and values, nothing checked.
async fn serve_floor(stream: DuplexStream) {
    let (reader, mut writer) = split(stream);
    let mut reader = tokio::io::BufReader::new(reader);
    let (mut line, mut answer, result) = (Vec::new(), Vec::new(), call_result());
    while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
        let Asked { id } = serde_json::from_slice(&line).unwrap();
        line.clear();
        answer.clear();
        serde_json::to_writer(&mut answer, &Answered { jsonrpc: "2.0", id, result: &result }).unwrap();
        answer.push(b'\n');
        if writer.write_all(&answer).await.is_err() {
            break;
        }
    }
}

/// The floor's client in memory: one call at a time, no ids to look up, no timeouts.
struct FloorClient {
    reader: tokio::io::BufReader<tokio::io::ReadHalf<DuplexStream>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
    line: Vec<u8>,
    last_id: u64,
}

impl FloorClient {
    async fn call(&mut self) -> String {
        self.last_id += 1;
        self.line.clear();
        write_request(self.last_id, &mut self.line);
        self.writer.write_all(&self.line).await.unwrap();
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).await.unwrap();
        called_text(&self.line, self.last_id..=self.last_id)
    }
}

async fn our_call(client: &Client) -> String {
    let text = client.call_tool("tool_0", arguments()).await.unwrap().text();
    assert_eq!(text.len(), TEXT);
    text
}

fn memory(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mcp call in memory");
    group.throughput(Throughput::Elements(1));
    let runtime = runtime();
    let (ours, theirs) = tokio::io::duplex(DUPLEX);
    runtime.spawn(serve_floor(theirs));
    let (reader, writer) = split(ours);
    let mut floor =
        FloorClient { reader: tokio::io::BufReader::new(reader), writer, line: Vec::new(), last_id: 0 };
    group.bench_function("floor", |b| b.iter(|| runtime.block_on(floor.call())));

    let (ours, theirs) = tokio::io::duplex(DUPLEX);
    runtime.spawn(serve(theirs));
    let (reader, writer) = split(ours);
    let client = runtime.block_on(Client::connect(reader, writer, options())).unwrap();
    group.bench_function("haversack", |b| b.iter(|| runtime.block_on(our_call(&client))));
    runtime.block_on(client.close());
    group.finish();
}

// ---- over a real child ----

/// The floor over a child: blocking pipes and serde_json, all requests of a round in one write. With many in flight it is
/// no lower bound: the child has nothing to do while a round is rendered, nor this side until the child answers.
struct Pipe {
    child: Child,
    /// Dropped first at the end, which tells the child to go.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Pipe {
    fn new() -> Self {
        let mut child = Command::new(STUB)
            .args(["--size", &TEXT.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::with_capacity(64 << 10, child.stdout.take().unwrap());
        Self { child, input, output, line: Vec::new(), last_id: 0 }
    }

    /// A round fits into the buffers of two pipes (256 calls are some 40 KiB each way), so no side waits for ever.
    fn calls(&mut self, count: u64) -> Vec<String> {
        let ids = self.last_id + 1..=self.last_id + count;
        self.last_id += count;
        self.line.clear();
        ids.clone().for_each(|id| write_request(id, &mut self.line));
        self.input.as_mut().unwrap().write_all(&self.line).unwrap();
        (0..count)
            .map(|_| {
                self.line.clear();
                self.output.read_until(b'\n', &mut self.line).unwrap();
                called_text(&self.line, ids.clone())
            })
            .collect()
    }

    fn close(mut self) {
        drop(self.input.take());
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() && self.child.wait().unwrap().success());
    }
}

async fn rmcp_client() -> RunningService<RoleClient, ()> {
    let mut command = tokio::process::Command::new(STUB);
    command.args(["--size", &TEXT.to_string()]);
    ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap()
}

async fn rmcp_call(peer: &Peer<RoleClient>) -> String {
    let params = CallToolRequestParams::new("tool_0").with_arguments(arguments());
    let result = peer.call_tool(params).await.unwrap();
    let text = result.content[0].as_text().unwrap().text.clone();
    assert_eq!(text.len(), TEXT);
    text
}

fn child(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut pipe = Pipe::new();
    let command = ServerCommand::new(STUB).args(["--size".to_owned(), TEXT.to_string()]);
    let client = runtime.block_on(Client::start(&command, options())).unwrap();
    let rmcp = runtime.block_on(rmcp_client());
    let mut group = criterion.benchmark_group("mcp calls over a child");
    for in_flight in [1, 16, 256] {
        group.throughput(Throughput::Elements(in_flight));
        group.bench_function(BenchmarkId::new("floor", in_flight), |b| b.iter(|| pipe.calls(in_flight)));
        group.bench_function(BenchmarkId::new("haversack", in_flight), |b| {
            b.iter(|| runtime.block_on(join_all((0..in_flight).map(|_| our_call(&client)))));
        });
        group.bench_function(BenchmarkId::new("rmcp", in_flight), |b| {
            b.iter(|| runtime.block_on(join_all((0..in_flight).map(|_| rmcp_call(rmcp.peer())))));
        });
    }
    group.finish();
    pipe.close();
    runtime.block_on(client.close());
    runtime.block_on(rmcp.cancel()).unwrap();
}

criterion_group!(benches, lines, memory, child);
criterion_main!(benches);
