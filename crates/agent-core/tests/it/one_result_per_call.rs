//! Every call in a history has exactly one truthful result, whatever happened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::event::Event;
use haversack_agent_core::message::ToolStatus;
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use serde_json::json;

use crate::play::{Log, Probe, Script, block_on, calls, poll_times, says, shape, silence_panics};

fn six_calls(turn: usize) -> crate::play::Answer {
    let id = |n: usize| format!("t{turn}c{n}");
    calls(&[
        (&id(0), "read", json!({"n": 0})),
        (&id(1), "read", json!({"n": 1})),
        (&id(2), "read", json!({"n": 2})),
        (&id(3), "write", json!({"n": 3})),
        (&id(4), "nowhere", json!({})),
        (&id(5), "crash", json!({})),
    ])
}

fn agent(log: &Arc<Log>) -> Agent {
    Agent::builder(Script::new([six_calls(0), six_calls(1), says("done")]))
        .tool(Probe::reads("read", log))
        .tool(Probe::writes("write", log))
        .tool(Probe::writes("crash", log).panicking())
        .policy(Policy::new(Mode::Autonomous))
        .build()
        .unwrap()
}

#[test]
fn a_run_that_ends_by_itself_answers_every_call_in_order() {
    silence_panics();
    let log = Arc::default();
    let agent = agent(&log);
    let mut session = Session::new();
    let outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(outcome, Outcome::Done { text: "done".into(), structured: None });
    let batch = |t| {
        [
            format!("assistant(t{t}c0 t{t}c1 t{t}c2 t{t}c3 t{t}c4 t{t}c5)"),
            format!("tool(t{t}c0:ok t{t}c1:ok t{t}c2:ok t{t}c3:ok t{t}c4:error t{t}c5:error)"),
        ]
    };
    let expected: Vec<String> = std::iter::once("user".to_owned())
        .chain(batch(0))
        .chain(batch(1))
        .chain(["assistant".to_owned()])
        .collect();
    assert_eq!(shape(&session), expected);
    assert_eq!(log.overlaps.load(Ordering::SeqCst), 0);
}

/// The truth about each call is what the host saw: started and ended, started only, or neither.
fn assert_truthful(session: &Session, events: &[Event], at: &str) {
    assert_eq!(session.check(), [], "{at}");
    assert!(!session.has_open_calls(), "{at}");
    for message in session.messages() {
        for result in message.tool_results() {
            let started =
                events.iter().any(|e| matches!(e, Event::ToolStarted { call, .. } if *call == result.id));
            let ended = events.iter().find_map(|e| match e {
                Event::ToolEnded { call, result: r, .. } if *call == result.id => Some(r.status),
                _ => None,
            });
            match ended {
                Some(status) => assert_eq!(result.status, status, "{at}: {}", result.id),
                None if started => assert!(
                    matches!(
                        result.status,
                        ToolStatus::Interrupted | ToolStatus::NotStarted | ToolStatus::Ok | ToolStatus::Error
                    ),
                    "{at}: {} {:?}",
                    result.id,
                    result.status
                ),
                None => assert!(
                    matches!(result.status, ToolStatus::NotStarted | ToolStatus::Error),
                    "{at}: {} {:?}",
                    result.id,
                    result.status
                ),
            }
        }
    }
}

#[test]
fn the_prototypes_script_can_be_dropped_and_cancelled_at_every_poll() {
    silence_panics();
    let mut cut_points = 0;
    for polls in 0.. {
        let mut ended = [false; 2];
        for (way, ended) in ["drop", "cancel"].into_iter().zip(&mut ended) {
            let log = Arc::default();
            let agent = agent(&log);
            let mut session = Session::new();
            let at = format!("{way} at poll {polls}");
            let mut run = agent.start(&mut session, "go");
            let (mut events, over) = poll_times(&mut run, polls);
            *ended = over;
            if way == "cancel" {
                run.handle().cancel("test");
                let (rest, over) = poll_times(&mut run, 10_000);
                assert!(over, "{at}: a cancelled run has to end");
                events.extend(rest);
                assert_eq!(events.last(), Some(&Event::RunEnded), "{at}");
            }
            drop(run);
            assert_truthful(&session, &events, &at);
            assert_eq!(log.alive.load(Ordering::SeqCst), 0, "{at}: a tool future outlived its run");
            let saved = serde_json::to_string(&session).unwrap();
            let loaded: Session = serde_json::from_str(&saved).unwrap();
            assert_eq!(loaded, session, "{at}");
            cut_points += usize::from(!over);
        }
        if ended == [true; 2] {
            break;
        }
    }
    assert!(cut_points >= 108, "only {cut_points} cut points");
}
