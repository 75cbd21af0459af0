//! The queue between a run and its reader, and whole runs on a task.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use serde_json::json;

use super::*;
use crate::message::ToolStatus;
use crate::policy::{Mode, Policy};
use crate::testing::{Answer, Gate, ScriptedModel, ScriptedTool};
use crate::tool::ToolSpec;

fn text(message: u64, delta: &str) -> Event {
    Event::Text { message, delta: delta.to_owned() }
}

/// A waker that counts.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn push(queue: &Queue, event: Event, woken: &Arc<Woken>) -> Option<Event> {
    let waker = Waker::from(Arc::clone(woken));
    let mut event = Some(event);
    let polled = queue.poll_push(&mut event, &mut Context::from_waker(&waker));
    assert_eq!(polled.is_ready(), event.is_none(), "what is not taken in is given back");
    event
}

fn pop(queue: &Queue, woken: &Arc<Woken>) -> Poll<Option<Event>> {
    queue.poll_pop(&mut Context::from_waker(&Waker::from(Arc::clone(woken))))
}

#[test]
fn a_full_queue_merges_neighbours_of_one_block_and_takes_no_more_than_its_bound() {
    let (queue, woken) = (Queue::default(), Arc::default());
    let mut sent = String::new();
    for n in 0..10_000 {
        let delta = format!("{n} ");
        assert_eq!(push(&queue, text(1, &delta), &woken), None);
        sent.push_str(&delta);
    }
    // Deltas of other blocks are no neighbours.
    assert_eq!(push(&queue, Event::Reasoning { message: 1, delta: "hm".into() }, &woken), None);
    assert_eq!(push(&queue, text(2, "other"), &woken), None);
    assert!(queue.lock().events.len() <= MAX_WAITING_EVENTS);
    let mut read = String::new();
    while let Poll::Ready(Some(event)) = pop(&queue, &woken) {
        if let Event::Text { message: 1, delta } = event {
            assert!(delta.len() <= MAX_MERGED_BYTES);
            read.push_str(&delta);
        }
    }
    assert_eq!(read, sent);
}

#[test]
fn what_cannot_be_merged_waits_and_both_sides_are_woken() {
    let (queue, writer, reader) = (Queue::default(), Arc::default(), Arc::default());
    assert!(pop(&queue, &reader).is_pending());
    for turn in 0..MAX_WAITING_EVENTS as u32 {
        assert_eq!(push(&queue, Event::TurnEnded { turn }, &writer), None);
    }
    assert_eq!(reader.0.load(Ordering::SeqCst), 1, "the reader was asleep, once");
    let back = push(&queue, Event::RunEnded, &writer).unwrap();
    assert_eq!(writer.0.load(Ordering::SeqCst), 0);
    assert_eq!(pop(&queue, &reader), Poll::Ready(Some(Event::TurnEnded { turn: 0 })));
    assert_eq!(writer.0.load(Ordering::SeqCst), 1, "room wakes the writer");
    assert_eq!(push(&queue, back, &writer), None);
    queue.close();
    for turn in 1..MAX_WAITING_EVENTS as u32 {
        assert_eq!(pop(&queue, &reader), Poll::Ready(Some(Event::TurnEnded { turn })));
    }
    assert_eq!(pop(&queue, &reader), Poll::Ready(Some(Event::RunEnded)), "closing loses nothing");
    assert_eq!(pop(&queue, &reader), Poll::Ready(None));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// An answer of many small deltas, then a call, then a last word.
fn chatty(deltas: usize) -> Agent {
    let first = (0..deltas)
        .fold(Answer::new(), |answer, n| answer.event(crate::model::ModelEvent::Text(format!("{n} "))));
    let model = ScriptedModel::new([first.with_call("c", "t", json!({})), Answer::text("done")]);
    let tool = ScriptedTool::new(ToolSpec::new("t", "A tool"));
    Agent::builder(model).tool(tool).policy(Policy::new(Mode::Autonomous)).build().unwrap()
}

#[test]
fn a_reader_that_stalls_costs_bounded_memory_and_no_event_and_gets_all_of_the_text() {
    runtime().block_on(async {
        let mut run = chatty(50_000).spawn(Session::new(), "go");
        // Nobody reads: the run goes on until it has to wait, and stays there.
        let queue = Arc::clone(&run.queue);
        let mut before = usize::MAX;
        loop {
            tokio::task::yield_now().await;
            let bytes = queue.lock().events.iter().map(event_bytes).sum();
            assert!(queue.lock().events.len() <= MAX_WAITING_EVENTS);
            assert!(bytes <= MAX_WAITING_EVENTS * MAX_MERGED_BYTES);
            if queue.lock().closed || bytes == before && queue.lock().writer.is_some() {
                break;
            }
            before = bytes;
        }
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let (session, outcome) = run.finish().await.unwrap();
        assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?}");
        let read: String = events
            .iter()
            .filter_map(|e| match e {
                Event::Text { message: 2, delta } => Some(&**delta),
                _ => None,
            })
            .collect();
        assert_eq!(read, (0..50_000).map(|n| format!("{n} ")).collect::<String>());
        assert_eq!(lifecycle(&events), lifecycle(&directly(50_000)));
        assert_eq!(session.check(), []);
    });
}

fn event_bytes(event: &Event) -> usize {
    match event {
        Event::Text { delta, .. } | Event::Reasoning { delta, .. } | Event::ToolArguments { delta, .. } => {
            delta.len()
        }
        _ => 0,
    }
}

/// All events of a run that is polled where it is.
fn directly(deltas: usize) -> Vec<Event> {
    let agent = chatty(deltas);
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    loop {
        match run.poll_next_unpin(&mut cx) {
            Poll::Ready(Some(event)) => events.push(event),
            Poll::Ready(None) => return events,
            Poll::Pending => {}
        }
    }
}

fn lifecycle(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|e| event_bytes(e) == 0).collect()
}

#[test]
fn a_cancel_reaches_a_run_that_nobody_reads_and_the_session_comes_back_valid() {
    runtime().block_on(async {
        let gate = Gate::new();
        let model = ScriptedModel::new([Answer::call("c", "t", json!({}))]);
        let tool = ScriptedTool::new(ToolSpec::new("t", "A tool")).with_gate(&gate);
        let agent = Agent::builder(model).tool(tool).policy(Policy::new(Mode::Autonomous)).build().unwrap();
        let run = agent.spawn(Session::new(), "go");
        gate.arrived(1).await;
        run.handle().cancel("enough");
        let (session, outcome) = run.finish().await.unwrap();
        assert_eq!(outcome, Ok(Outcome::Cancelled { reason: "enough".into() }));
        let last = session.messages().last().unwrap();
        assert_eq!(last.tool_results().next().unwrap().status, ToolStatus::Interrupted);
        assert_eq!(session.check(), []);
    });
}

#[test]
fn a_dropped_run_ends_and_its_handle_says_so() {
    runtime().block_on(async {
        let gate = Gate::new();
        let model = ScriptedModel::new([Answer::call("c", "t", json!({}))]);
        let tool = ScriptedTool::new(ToolSpec::new("t", "A tool")).with_gate(&gate);
        let agent = Agent::builder(model).tool(tool.clone()).policy(Policy::new(Mode::Autonomous));
        let run = agent.build().unwrap().spawn(Session::new(), "go");
        gate.arrived(1).await;
        let handle = run.handle();
        drop(run);
        while handle.is_running() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(handle.steer("late"), crate::handle::Steered::NotRunning(_)));
    });
}

#[test]
fn a_paused_session_goes_on_on_a_task() {
    runtime().block_on(async {
        let model = ScriptedModel::new([Answer::call("c", "t", json!({})), Answer::text("done")]);
        let agent =
            Agent::builder(model).tool(ScriptedTool::new(ToolSpec::new("t", "A tool"))).build().unwrap();
        let (mut session, outcome) = agent.spawn(Session::new(), "go").finish().await.unwrap();
        assert_eq!(outcome, Ok(Outcome::Paused));
        let ask = session.pending_asks().remove(0);
        session.answer(&ask.digest, crate::approval::Verdict::Allow).unwrap();
        let (session, outcome) = agent.spawn_resumed(session).finish().await.unwrap();
        assert!(matches!(outcome, Ok(Outcome::Done { .. })), "{outcome:?}");
        assert_eq!(session.check(), []);
    });
}
