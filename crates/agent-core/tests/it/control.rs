//! Nothing is lost silently: messages, answers that were cut, attempts, asks that nobody answered.

use std::sync::Arc;

use futures_util::StreamExt as _;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::{Refused, Verdict};
use haversack_agent_core::event::{Added, Closed, Event};
use haversack_agent_core::handle::Steered;
use haversack_agent_core::ledger::{AttemptEnd, Purpose};
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{ModelError, ModelErrorKind, ModelEvent};
use haversack_agent_core::outcome::{Outcome, RunError};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::retry::RetryPolicy;
use haversack_agent_core::session::Session;
use haversack_agent_core::usage::Usage;
use serde_json::json;

use crate::play::{Log, Probe, Script, block_on, calls, poll_times, says, shape};

fn agent(script: &Script, log: &Arc<Log>) -> Agent {
    Agent::builder(script.clone())
        .tool(Probe::reads("read", log))
        .tool(Probe::writes("write", log))
        .policy(Policy::new(Mode::Autonomous))
        .build()
        .unwrap()
}

fn done(text: &str) -> Result<Outcome, RunError> {
    Ok(Outcome::Done { text: text.into(), structured: None })
}

#[test]
fn steering_enters_after_the_calls_and_follow_ups_when_the_run_would_end_one_at_a_time() {
    let log = Arc::default();
    let script = Script::new([
        calls(&[("a", "write", json!({})), ("b", "write", json!({}))]),
        says("one"),
        says("two"),
        says("three"),
    ]);
    let agent = agent(&script, &log);
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let handle = run.handle();
    let mut added = Vec::new();
    block_on(async {
        while let Some(event) = run.next().await {
            match event {
                Event::ToolStarted { call, .. } if call.as_str() == "a" => {
                    assert_eq!(handle.steer("faster"), Steered::Queued);
                    assert_eq!(handle.follow_up("then this"), Steered::Queued);
                    assert_eq!(handle.follow_up("and that"), Steered::Queued);
                }
                Event::MessageAdded { why, content, .. } => added.push((why, content.text())),
                _ => {}
            }
        }
    });
    assert_eq!(block_on(run.outcome()), done("three"));
    let expected = [
        (Added::Input, "go"),
        (Added::Steering, "faster"),
        (Added::FollowUp, "then this"),
        (Added::FollowUp, "and that"),
    ];
    assert_eq!(added, expected.map(|(why, text)| (why, text.to_owned())));
    assert_eq!(
        shape(&session)[..4],
        ["user", "assistant(a b)", "tool(a:ok b:ok)", "user"],
        "no call is skipped"
    );
    assert!(handle.undelivered().is_empty());
    assert_eq!(handle.steer("too late"), Steered::NotRunning(Message::user("too late")));
}

#[test]
fn messages_that_were_not_delivered_before_a_cancel_or_a_drop_are_handed_back() {
    for cancel in [true, false] {
        let log = Arc::default();
        let script = Script::new([calls(&[("a", "write", json!({}))])]);
        let agent = agent(&script, &log);
        let mut session = Session::new();
        let mut run = agent.start(&mut session, "go");
        let handle = run.handle();
        poll_times(&mut run, 4);
        let _ = handle.follow_up("second");
        let _ = handle.steer("first");
        if cancel {
            handle.cancel("enough");
            assert_eq!(block_on(run.outcome()), Ok(Outcome::Cancelled { reason: "enough".into() }));
        } else {
            drop(run);
        }
        assert_eq!(handle.undelivered(), [Message::user("first"), Message::user("second")]);
        assert!(!handle.is_running());
    }
}

#[test]
fn what_the_model_had_said_before_a_cancel_is_kept_and_marked_and_what_it_used_is_booked() {
    let log = Arc::default();
    let mut half = says("half a thought");
    half.truncate(1);
    half.push(Ok(ModelEvent::Usage(Usage::new(7, 2))));
    half.extend((0..1000).map(|_| Ok(ModelEvent::Started { response_id: None, model: None })));
    let agent = agent(&Script::new([half]), &log);
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    poll_times(&mut run, 100);
    run.handle().cancel("enough");
    block_on(run.outcome()).unwrap();
    assert_eq!(session.messages()[1].text(), "half a thought");
    assert_eq!(session.messages()[1].stop, None);
    let entry = &session.ledger().entries()[0];
    assert_eq!((entry.end, entry.usage), (AttemptEnd::Aborted, Usage::new(7, 2)));
}

#[test]
fn a_failed_attempt_is_withdrawn_booked_and_retried_and_its_text_is_not_stored_twice() {
    let log = Arc::default();
    let mut broken = says("the same paragraph");
    broken.truncate(2);
    broken.push(Ok(ModelEvent::Usage(Usage::new(10, 3))));
    broken.push(Err(ModelError::new(ModelErrorKind::InvalidToolCall, "unreadable")));
    let script = Script::new([broken, says("the same paragraph")]);
    let agent = agent(&script, &log);
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
    assert_eq!(block_on(run.outcome()), done("the same paragraph"));
    let at = |what: fn(&Event) -> bool| events.iter().position(what).unwrap();
    let discarded = at(|e| matches!(e, Event::AttemptDiscarded { attempt: 1, .. }));
    let retrying = at(|e| matches!(e, Event::Retrying { attempt: 2, .. }));
    let ended = at(|e| matches!(e, Event::MessageEnded { .. }));
    assert!(discarded < retrying && retrying < ended);
    assert_eq!(shape(&session), ["user", "assistant"]);
    let books: Vec<_> = session.ledger().entries().iter().map(|e| (e.purpose, e.end)).collect();
    assert_eq!(books, [(Purpose::Turn, AttemptEnd::Failed), (Purpose::Retry, AttemptEnd::Answered)]);
    assert_eq!(session.ledger().total(), Usage::new(20, 4));
}

#[test]
fn without_a_clock_a_failure_that_needs_a_wait_is_returned_and_the_next_model_takes_over_if_there_is_one() {
    let busy = || vec![Err(ModelError::new(ModelErrorKind::Overloaded, "busy"))];
    let mut session = Session::new();
    let alone = Agent::builder(Script::new([busy()])).build().unwrap();
    let error = block_on(alone.start(&mut session, "go").outcome()).unwrap_err();
    assert!(matches!(&error, RunError::Model(e) if e.kind == ModelErrorKind::Overloaded), "{error}");

    let two = Agent::builder(Script::new([busy()])).fallback(Script::new([says("here")])).build().unwrap();
    assert_eq!(block_on(two.resume(&mut session).outcome()), done("here"));
    assert_eq!(shape(&session), ["user", "assistant"], "a resumed run asks the same question again");
}

#[test]
fn retries_that_are_switched_off_do_not_happen() {
    let script = Script::new([vec![Err(ModelError::new(ModelErrorKind::InvalidToolCall, "x"))], says("no")]);
    let agent = Agent::builder(script.clone()).retry(RetryPolicy::never()).build().unwrap();
    let mut session = Session::new();
    assert!(block_on(agent.start(&mut session, "go").outcome()).is_err());
    assert_eq!(script.requests.lock().unwrap().len(), 1);
}

#[test]
fn a_cancel_while_somebody_is_asked_closes_the_question_and_the_call_has_not_started() {
    let log = Arc::default();
    let agent = Agent::builder(Script::new([calls(&[("a", "write", json!({}))])]))
        .tool(Probe::writes("write", &log))
        .wait_for_verdicts()
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let handle = run.handle();
    let (events, over) = poll_times(&mut run, 100);
    assert!(!over, "it waits");
    let ask = events
        .iter()
        .find_map(|e| if let Event::ApprovalAsked { ask } = e { Some(ask.digest) } else { None });
    let ask = ask.unwrap();
    handle.cancel("gone home");
    let (events, over) = poll_times(&mut run, 100);
    assert!(over);
    assert!(events.iter().any(|e| matches!(e, Event::ApprovalClosed { how: Closed::Withdrawn, .. })));
    assert_eq!(handle.decide(&ask, Verdict::Allow), Err(Refused::Stale));
    drop(run);
    assert_eq!(shape(&session), ["user", "assistant(a)", "tool(a:not_started)"]);
}

#[test]
fn a_handle_decides_from_elsewhere_and_the_first_answer_counts() {
    let log = Arc::default();
    let agent = Agent::builder(Script::new([calls(&[("a", "write", json!({}))]), says("done")]))
        .tool(Probe::writes("write", &log))
        .wait_for_verdicts()
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let handle = run.handle();
    block_on(async {
        while let Some(event) = run.next().await {
            if let Event::ApprovalAsked { ask } = event {
                assert_eq!(handle.decide(&ask.digest, Verdict::Defer), Ok(()));
                assert_eq!(handle.decide(&ask.digest, Verdict::Allow), Ok(()));
                assert_eq!(handle.decide(&ask.digest, Verdict::deny("no")), Err(Refused::Stale));
            }
        }
    });
    assert_eq!(block_on(run.outcome()), done("done"));
    assert_eq!(log.started.lock().unwrap().len(), 1);
}

#[test]
fn a_run_lets_other_tasks_go_first_now_and_then() {
    let mut chatty = vec![];
    chatty.extend((0..500).map(|_| Ok(ModelEvent::Text("x".into()))));
    chatty.extend(says(""));
    let ready = Script::new([chatty]).without_pauses();
    let agent = Agent::builder(ready).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let mut in_a_row = 0;
    let mut most = 0;
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        match std::pin::Pin::new(&mut run).poll_next_unpin(&mut cx) {
            std::task::Poll::Ready(Some(_)) => in_a_row += 1,
            std::task::Poll::Ready(None) => break,
            std::task::Poll::Pending => in_a_row = 0,
        }
        most = most.max(in_a_row);
    }
    assert!((32..=64).contains(&most), "{most} events without a pause");
}
