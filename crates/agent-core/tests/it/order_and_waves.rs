//! Reads run together, writes are barriers, results stand in the order of the calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use serde_json::json;

use crate::play::{Log, Probe, Script, block_on, calls, says, shape};

fn run(width: usize, answer: crate::play::Answer) -> (Arc<Log>, Session) {
    let log = Arc::new(Log::default());
    let agent = Agent::builder(Script::new([answer, says("done")]))
        .tool(Probe::reads("read", &log))
        .tool(Probe::reads("slow", &log).taking(20))
        .tool(Probe::writes("write", &log))
        .policy(Policy::new(Mode::Autonomous))
        .limits(Limits::default().with_parallel_calls(width))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    (log, session)
}

#[test]
fn the_slowest_read_comes_first_in_the_history_if_it_was_called_first() {
    let read = |id: &'static str| (id, "read", json!({}));
    let (log, session) = run(8, calls(&[("a", "slow", json!({})), read("b"), read("c")]));
    assert_eq!(shape(&session)[2], "tool(a:ok b:ok c:ok)");
    assert_eq!(log.most.load(Ordering::SeqCst), 3);
}

#[test]
fn a_read_behind_a_write_waits_for_it_and_writes_run_alone() {
    let n = |n: u32| json!({"n": n});
    let (log, session) = run(
        8,
        calls(&[
            ("a", "read", n(0)),
            ("b", "write", n(1)),
            ("c", "read", n(2)),
            ("d", "read", n(3)),
            ("e", "write", n(4)),
        ]),
    );
    assert_eq!(shape(&session)[2], "tool(a:ok b:ok c:ok d:ok e:ok)");
    assert_eq!(log.overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(log.most.load(Ordering::SeqCst), 2);
    assert_eq!(*log.started.lock().unwrap(), [n(0), n(1), n(2), n(3), n(4)]);
}

#[test]
fn no_more_reads_run_at_once_than_the_width_allows() {
    let ids: Vec<String> = (0..30).map(|i| format!("c{i}")).collect();
    let reads: Vec<_> = ids.iter().map(|id| (id.as_str(), "read", json!({}))).collect();
    let (log, _) = run(3, calls(&reads));
    assert_eq!(log.most.load(Ordering::SeqCst), 3);
    assert_eq!(log.started.lock().unwrap().len(), 30);
}
