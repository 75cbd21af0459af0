//! What one step of the loop costs beside a bare hand-written loop: the same scripted answers, the same tool.
#![expect(clippy::unwrap_used, reason = "a bench that fails may panic")]

use std::hint::black_box;
use std::task::{Context, Poll, Waker};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::message::{Block, Message, Role};
use haversack_agent_core::session::Session;
use haversack_benches::scripted_agent::{agent, call, tool_answer};
use serde_json::Value;

/// Runs to the end from wherever the session is.
fn run(agent: &Agent, session: &mut Session) {
    let mut run = agent.start(session, "go");
    let mut cx = Context::from_waker(Waker::noop());
    while !matches!(run.poll_next_unpin(&mut cx), Poll::Ready(None)) {}
}

/// The floor: what anybody would write in ten lines, without streaming, checks, events or cancellation.
fn floor(turns: usize, calls: usize) -> Vec<Message> {
    let mut history = vec![Message::user("go")];
    for turn in 0..turns {
        let made: Vec<(String, String)> = (0..calls).map(|index| call(turn, index)).collect();
        let results: Vec<String> = made
            .iter()
            .map(|(_, arguments)| {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                tool_answer(arguments.get("path").and_then(Value::as_str).unwrap_or_default())
            })
            .collect();
        let asked = made.into_iter().map(|(id, text)| Block::text(id + &text)).collect();
        history.push(Message::new(Role::Assistant, asked));
        history.push(Message::new(Role::Tool, results.into_iter().map(Block::text).collect()));
    }
    history
}

fn steps(criterion: &mut Criterion) {
    const TURNS: usize = 100;
    let mut group = criterion.benchmark_group("agent step");
    group.throughput(Throughput::Elements(TURNS as u64));
    for calls in [1, 8] {
        group.bench_function(BenchmarkId::new("floor", calls), |b| {
            b.iter(|| black_box(floor(TURNS, calls)));
        });
        let agent = agent(TURNS, calls, None);
        group.bench_function(BenchmarkId::new("haversack", calls), |b| {
            b.iter(|| {
                let mut session = Session::new();
                run(&agent, &mut session);
                black_box(session)
            });
        });
    }
    group.finish();
}

/// A hundred turns behind a conversation of two thousand cost what a hundred turns cost at the beginning.
fn long_conversations(criterion: &mut Criterion) {
    const TURNS: usize = 100;
    let mut group = criterion.benchmark_group("agent step behind");
    group.throughput(Throughput::Elements(TURNS as u64));
    for turns in [0, 2_000] {
        let mut session = Session::new();
        run(&agent(turns, 1, None), &mut session);
        let agent = agent(turns + 1 + TURNS, 1, None);
        group.bench_function(BenchmarkId::new("turns", turns), |b| {
            b.iter_batched_ref(
                || session.clone(),
                |session| {
                    run(&agent, session);
                    black_box(session.messages().len())
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, steps, long_conversations);
criterion_main!(benches);
