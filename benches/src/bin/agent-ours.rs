//! The agent loop beside its peers: `--case inproc --steps N --calls C`.
//!
//! One message, N model turns with C calls each of the tool `noop`, then the text `done`. The model is scripted in the
//! process and marks the clock once a turn, so that the time between two marks is what the loop spends on a step: events
//! read, arguments checked, policy asked, tools run, history stored.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use futures_util::{FutureExt as _, StreamExt as _};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::session::Session;
use haversack_benches::contest::{Flags, Marks, Report, Resources};
use haversack_benches::scripted_agent::agent;

fn main() {
    let flags = Flags::of_process();
    let case = flags.text("case", "inproc");
    assert_eq!(case, "inproc", "this contestant knows no other case");
    let (steps, calls) = (flags.number("steps", 200), flags.number("calls", 1));
    let marks = Marks::default();
    let agent = agent(steps, calls, Some(marks.clone()));
    let mut session = Session::new();

    let before = Resources::now();
    let start = Instant::now();
    let mut run = agent.start(&mut session, "go");
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = 0_usize;
    loop {
        match run.poll_next_unpin(&mut cx) {
            Poll::Ready(Some(_)) => events += 1,
            Poll::Ready(None) => break,
            // Everything is ready at once: the run only lets others go first.
            Poll::Pending => {}
        }
    }
    let wall = start.elapsed();
    let cpu = Resources::now().since(before).cpu();

    let outcome = run.outcome().now_or_never();
    let done = Outcome::Done { text: "done".to_owned(), structured: None };
    assert_eq!(outcome, Some(Ok(done)));
    let results: usize = session.messages().iter().map(|m| m.tool_results().count()).sum();
    assert_eq!(results, steps * calls, "every call has its result");

    let sample = marks.steps();
    assert_eq!(sample.len(), steps);
    Report::new("agent", "ours", case)
        .with("steps", steps)
        .with("calls", calls)
        .sample(&sample)
        .with("deciles_us", sample.tenths_us())
        .with("wall_ms", wall.as_secs_f64() * 1e3)
        .with("cpu_us_per_step", cpu.as_secs_f64() * 1e6 / steps as f64)
        .with("events", events)
        .used_since(before)
        .print();
}
