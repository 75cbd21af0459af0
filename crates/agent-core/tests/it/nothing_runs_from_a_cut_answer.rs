//! Nothing runs from an answer that was cut off, and the model learns that nothing did.

use std::sync::Arc;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{ModelError, ModelErrorKind, ModelEvent};
use haversack_agent_core::outcome::{Outcome, RunError};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::usage::StopReason;
use serde_json::json;

use crate::play::{Answer, Log, Probe, Script, block_on, calls, calls_with, says, shape};

fn run(answers: Vec<Answer>) -> (Arc<Log>, Session, Result<Outcome, RunError>) {
    let log = Arc::new(Log::default());
    let agent = Agent::builder(Script::new(answers))
        .tool(Probe::reads("read", &log))
        .policy(Policy::new(Mode::Autonomous))
        .build()
        .unwrap();
    let mut session = Session::new();
    let outcome = block_on(agent.start(&mut session, "go").outcome());
    (log, session, outcome)
}

fn one_call() -> Answer {
    calls(&[("a", "read", json!({}))])
}

#[test]
fn only_two_stop_reasons_let_calls_run() {
    for (reason, runs) in [
        (StopReason::EndTurn, true),
        (StopReason::ToolUse, true),
        (StopReason::MaxTokens, false),
        (StopReason::StopSequence, false),
        (StopReason::Filtered, false),
        (StopReason::Pause, false),
        (StopReason::ContextWindow, false),
        (StopReason::Other("odd".into()), false),
    ] {
        let (log, session, _) =
            run(vec![calls_with(&[("a", "read", json!({}))], reason.clone()), says("done")]);
        assert_eq!(!log.started.lock().unwrap().is_empty(), runs, "{reason:?}");
        let result = if runs { "tool(a:ok)" } else { "tool(a:not_started)" };
        assert_eq!(shape(&session)[2], result, "{reason:?}");
    }
}

#[test]
fn the_model_is_told_that_the_output_limit_was_hit_and_not_that_a_field_is_missing() {
    let (_, session, _) =
        run(vec![calls_with(&[("a", "read", json!({}))], StopReason::MaxTokens), says("done")]);
    let text = session.messages()[2].tool_results().next().unwrap().text();
    assert!(text.contains("output limit") && text.contains("smaller pieces"), "{text}");
}

#[test]
fn a_stop_with_a_call_that_was_never_finished_counts_as_cut_off() {
    let mut answer = one_call();
    let unfinished = Ok(ModelEvent::ToolCallStarted { index: 7, id: "b".into(), name: "read".into() });
    answer.insert(answer.len() - 1, unfinished);
    let (log, session, _) = run(vec![answer, says("done")]);
    assert!(log.started.lock().unwrap().is_empty());
    assert_eq!(shape(&session)[1..3], ["assistant(a b)", "tool(a:not_started b:not_started)"]);
}

#[test]
fn a_stream_cut_at_every_event_runs_nothing_and_leaves_a_valid_session() {
    let whole = calls(&[("a", "read", json!({"n": 1})), ("b", "read", json!({"n": 2}))]);
    for cut in 0..whole.len() {
        for end in [None, Some(ModelError::new(ModelErrorKind::Transport, "gone"))] {
            let mut part: Answer = whole[..cut].to_vec();
            part.extend(end.map(Err));
            let (log, session, outcome) = run(vec![part]);
            assert!(matches!(outcome, Err(RunError::Model(_))), "cut at {cut}: {outcome:?}");
            assert!(log.started.lock().unwrap().is_empty(), "cut at {cut}");
            assert_eq!(session.messages().iter().map(|m| &**m).collect::<Vec<_>>(), [&Message::user("go")]);
            assert_eq!(session.ledger().entries().len(), 1, "cut at {cut}: the attempt is booked");
        }
    }
}
