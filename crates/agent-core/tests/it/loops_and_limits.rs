//! Loops end, limits hold, and what was done stays.

use std::sync::Arc;

use haversack_agent_core::agent::{Agent, BuildError};
use haversack_agent_core::event::{Closed, Event};
use haversack_agent_core::limits::{Limit, Limits};
use haversack_agent_core::message::ToolStatus;
use haversack_agent_core::model::ToolChoice;
use haversack_agent_core::outcome::{Outcome, StopCause};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::usage::StopReason;
use serde_json::json;

use crate::play::{Answer, Log, Probe, Script, block_on, calls, calls_with, says, shape};

fn turns(n: usize) -> Vec<Answer> {
    (0..n).map(|t| calls(&[(&format!("t{t}"), "write", json!({"n": t}))])).collect()
}

fn agent(script: &Script, log: &Arc<Log>, limits: Limits) -> Agent {
    Agent::builder(script.clone())
        .tool(Probe::writes("write", log))
        .policy(Policy::new(Mode::Autonomous))
        .prices(|_, usage| usage.input.map(|i| i * 100))
        .limits(limits)
        .build()
        .unwrap()
}

fn stopped(limit: Limit) -> Outcome {
    Outcome::Stopped { why: StopCause::Limit(limit) }
}

#[test]
fn a_reached_limit_lands_softly_once_and_a_raised_one_goes_on() {
    // Each answer of the script uses 10 input and 5 output tokens, and costs 1,000.
    let limits = Limits::default;
    let cases = [
        (Limit::Turns, limits().with_turns(Some(2)), 2),
        (Limit::ToolCalls, limits().with_tool_calls(Some(2)), 2),
        (Limit::InputTokens, limits().with_input_tokens(Some(22)), 2),
        (Limit::OutputTokens, limits().with_output_tokens(Some(11)), 2),
        (Limit::Cost, limits().with_cost_micros(Some(2200)), 2),
    ];
    for (limit, limits, ran) in cases {
        let log = Arc::default();
        let mut answers = turns(2);
        answers.push(says("two are done, more are left"));
        let script = Script::new(answers);
        let mut session = Session::new();
        let outcome = block_on(agent(&script, &log, limits).start(&mut session, "go").outcome()).unwrap();
        assert_eq!(outcome, stopped(limit), "{limit}");
        assert_eq!(log.started.lock().unwrap().len(), ran, "{limit}");
        let requests = script.requests.lock().unwrap();
        assert_eq!(requests.len(), 3, "{limit}: overshoot is one request");
        assert_eq!(requests[2].tool_choice, ToolChoice::None);
        assert_eq!(requests[2].tools, requests[0].tools, "the list stays, for the cache");
        assert_eq!(session.messages().last().unwrap().text(), "two are done, more are left");

        let more = agent(&Script::new([says("all done")]), &log, Limits::default());
        let outcome = block_on(more.resume(&mut session).outcome()).unwrap();
        assert_eq!(outcome, Outcome::Done { text: "all done".into(), structured: None }, "{limit}");
    }
}

#[test]
fn a_limit_without_reserve_or_landing_stops_at_once() {
    for limits in [
        Limits::default().with_input_tokens(Some(10)),
        Limits::default().with_turns(Some(1)).with_soft_landing(false),
        Limits::default().with_turns(Some(0)),
    ] {
        let log = Arc::default();
        let script = Script::new(turns(3));
        let mut session = Session::new();
        let outcome = block_on(agent(&script, &log, limits.clone()).start(&mut session, "go").outcome());
        assert!(matches!(outcome, Ok(Outcome::Stopped { why: StopCause::Limit(_) })), "{outcome:?}");
        let requests = script.requests.lock().unwrap().len();
        assert_eq!(requests, if limits.turns == Some(0) { 0 } else { 1 });
        assert_eq!(session.check(), []);
    }
}

#[test]
fn calls_beyond_the_limit_of_one_batch_have_not_started() {
    let log = Arc::default();
    let all: Vec<_> = ["a", "b", "c"].iter().map(|id| (*id, "write", json!({}))).collect();
    let script = Script::new([calls(&all), says("ok")]);
    let limits = Limits::default().with_tool_calls(Some(2));
    let mut session = Session::new();
    block_on(agent(&script, &log, limits).start(&mut session, "go").outcome()).unwrap();
    assert_eq!(shape(&session)[2], "tool(a:ok b:ok c:not_started)");
}

#[test]
fn ten_thousand_calls_in_one_answer_are_answered_and_few_of_them_run() {
    let log = Arc::default();
    let ids: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let all: Vec<_> = ids.iter().map(|id| (id.as_str(), "write", json!({}))).collect();
    let script = Script::new([calls(&all), says("ok")]);
    let limits = Limits::default().with_calls_per_turn(20).with_repeat_stop(u32::MAX);
    let mut session = Session::new();
    block_on(agent(&script, &log, limits).start(&mut session, "go").outcome()).unwrap();
    assert_eq!(session.messages()[2].tool_results().count(), 10_000);
    assert_eq!(log.started.lock().unwrap().len(), 20);
}

#[test]
fn the_same_call_with_the_same_result_is_noticed_at_three_and_stopped_at_five() {
    let log = Arc::default();
    // The id differs, and the tool's output holds it: a tool that does not exist gives the same result each time.
    let answers = (0..10).map(|t| calls(&[(&format!("t{t}"), "writ", json!({"b": 1, "a": 2}))]));
    let script = Script::new(answers);
    let mut session = Session::new();
    let outcome =
        block_on(agent(&script, &log, Limits::default()).start(&mut session, "go").outcome()).unwrap();
    assert_eq!(outcome, Outcome::Stopped { why: StopCause::Repeats { tool: "writ".into(), times: 5 } });
    let texts: Vec<String> =
        session.messages().iter().flat_map(|m| m.tool_results()).map(|r| r.text()).collect();
    assert_eq!(texts.len(), 5);
    assert!(texts[0].contains("`write`"), "the nearest name is told: {}", texts[0]);
    let told: Vec<bool> = texts.iter().map(|t| t.contains("the same call with the same result")).collect();
    assert_eq!(told, [false, false, true, true, false]);
}

#[test]
fn a_thousand_same_calls_in_one_answer_are_stopped_at_five() {
    // What comes back has to be the same as well, so the tool does not say the id.
    let ids: Vec<String> = (0..1_000).map(|i| format!("c{i}")).collect();
    for (tool, width, most) in [("same", 1, 5), ("look", 8, 12)] {
        let log = Arc::default();
        let all: Vec<_> = ids.iter().map(|id| (id.as_str(), tool, json!({"n": 1}))).collect();
        let agent = Agent::builder(Script::new([calls(&all), says("never asked")]))
            .tool(Probe::writes("same", &log).saying("same"))
            .tool(Probe::reads("look", &log).saying("same"))
            .policy(Policy::new(Mode::Autonomous))
            .limits(Limits::default().with_parallel_calls(width))
            .build()
            .unwrap();
        let mut session = Session::new();
        let outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
        let Outcome::Stopped { why: StopCause::Repeats { times, .. } } = outcome else {
            panic!("{outcome:?}");
        };
        // Reads that run beside the fifth come to their end.
        let ran = log.started.lock().unwrap().len();
        assert!((5..=most).contains(&ran) && times as usize == ran, "{tool}: {ran} ran, {times} times");
        let statuses: Vec<ToolStatus> =
            session.messages()[2].tool_results().map(|result| result.status).collect();
        assert_eq!(statuses.iter().filter(|s| **s == ToolStatus::Ok).count(), ran, "{tool}");
        assert!(statuses[ran..].iter().all(|s| *s == ToolStatus::NotStarted), "{tool}");
        assert_eq!(session.check(), []);
    }
}

#[test]
fn a_thousand_same_calls_that_cannot_run_are_stopped_at_five_and_nobody_is_asked_about_the_rest() {
    let log = Arc::default();
    let ids: Vec<String> = (0..1_000).map(|i| format!("c{i}")).collect();
    let mut all: Vec<_> = ids.iter().map(|id| (id.as_str(), "nowhere", json!({}))).collect();
    all.insert(0, ("w", "write", json!({"n": 1})));
    let agent =
        Agent::builder(Script::new([calls(&all)])).tool(Probe::writes("write", &log)).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let (events, over) = crate::play::poll_times(&mut run, 100_000);
    assert!(over);
    assert_eq!(
        block_on(run.outcome()),
        Ok(Outcome::Stopped { why: StopCause::Repeats { tool: "nowhere".into(), times: 5 } })
    );
    let asked = events.iter().filter(|e| matches!(e, Event::ApprovalAsked { .. })).count();
    let withdrawn = |e: &&Event| matches!(e, Event::ApprovalClosed { how: Closed::Withdrawn, .. });
    assert_eq!((asked, events.iter().filter(withdrawn).count()), (1, 1));
    assert!(log.started.lock().unwrap().is_empty());
    assert!(session.pending_asks().is_empty() && !session.has_open_calls());
    assert_eq!(session.check(), []);
}

#[test]
fn an_unknown_tool_under_a_new_name_each_time_does_not_go_on_for_ever() {
    let unknown = |t: usize| {
        let (id, name) = (format!("t{t}"), format!("tool{t}"));
        calls(&[(&id, &name, json!({"n": t}))])
    };
    let log = Arc::default();
    let script = Script::new((0..100).map(unknown));
    let limits = Limits::default().with_turns(None);
    let mut session = Session::new();
    let outcome = block_on(agent(&script, &log, limits.clone()).start(&mut session, "go").outcome());
    assert_eq!(outcome, Ok(Outcome::Stopped { why: StopCause::UnknownTools { times: 5 } }));
    assert_eq!(script.requests.lock().unwrap().len(), 5);

    // Many in one answer are one slip; a call that works in between begins the count again.
    let guesses: Vec<(String, String)> = (0..20).map(|i| (format!("g{i}"), format!("guess{i}"))).collect();
    let guesses: Vec<_> = guesses.iter().map(|(id, name)| (id.as_str(), name.as_str(), json!({}))).collect();
    let mut answers = vec![calls(&guesses)];
    answers.extend((0..3).map(unknown));
    answers.push(calls(&[("w", "write", json!({"n": 1})), ("x", "nowhere", json!({}))]));
    answers.extend((3..7).map(unknown));
    answers.push(says("found it"));
    let mut session = Session::new();
    let outcome = block_on(agent(&Script::new(answers), &log, limits).start(&mut session, "go").outcome());
    assert_eq!(outcome, Ok(Outcome::Done { text: "found it".into(), structured: None }));
}

#[test]
fn a_cut_answer_is_asked_to_go_on_twice_and_then_the_run_stops() {
    let cut = || {
        let mut answer = says("part ");
        answer.pop();
        answer.push(crate::play::stop(StopReason::MaxTokens));
        answer
    };
    let log = Arc::default();
    let script = Script::new([cut(), cut(), cut(), says("never asked")]);
    let mut session = Session::new();
    let outcome =
        block_on(agent(&script, &log, Limits::default()).start(&mut session, "go").outcome()).unwrap();
    assert_eq!(outcome, Outcome::Stopped { why: StopCause::OutputLimit });
    assert_eq!(shape(&session), ["user", "assistant", "user", "assistant", "user", "assistant"]);

    // Calls that are cut count as well: the same oversized call is not made for ever.
    let script = Script::new(
        (0..9).map(|t| calls_with(&[(&format!("t{t}"), "write", json!({}))], StopReason::MaxTokens)),
    );
    let mut session = Session::new();
    let outcome =
        block_on(agent(&script, &log, Limits::default()).start(&mut session, "go").outcome()).unwrap();
    assert_eq!(outcome, Outcome::Stopped { why: StopCause::OutputLimit });
    assert_eq!(script.requests.lock().unwrap().len(), 3);
    assert!(log.started.lock().unwrap().is_empty());
}

#[test]
fn limits_that_cannot_be_kept_do_not_build() {
    let build = |limits| Agent::builder(Script::default()).limits(limits).build().map(|_| ());
    let second = std::time::Duration::from_secs(1);
    assert_eq!(
        build(Limits::default().with_wall_time(Some(second))),
        Err(BuildError::NeedsClock("wall_time"))
    );
    assert_eq!(build(Limits::default().with_cost_micros(Some(1))), Err(BuildError::NeedsPrices));
}
