//! Time: what takes too long ends, what was told to wait waits, and no wait is deaf to a cancel.

use std::time::Duration;

use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::clock::Clock as _;
use haversack_agent_core::event::Event;
use haversack_agent_core::ledger::{AttemptEnd, Purpose};
use haversack_agent_core::limits::{Limit, Limits};
use haversack_agent_core::message::ToolStatus;
use haversack_agent_core::model::{ModelError, ModelErrorKind};
use haversack_agent_core::outcome::{Outcome, RunError, StopCause};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::retry::RetryPolicy;
use haversack_agent_core::run::Run;
use haversack_agent_core::session::Session;
use haversack_agent_core::subagent::SubAgent;
use haversack_agent_core::testing::{
    Answer, FakeClock, Fate, Gate, ScriptedModel, ScriptedTool, assert_valid,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::usage::Usage;
use serde_json::json;

use crate::play::{block_on, poll_times};

/// Polls of a run that has nothing to wait for but time.
const POLLS: usize = 500;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn tool() -> ScriptedTool {
    ScriptedTool::new(ToolSpec::new("t", "A tool"))
}

fn agent(clock: &FakeClock, model: &ScriptedModel, tool: ScriptedTool, limits: Limits) -> AgentBuilder {
    let agent = Agent::builder(model.clone()).tool(tool).policy(Policy::new(Mode::Autonomous));
    agent.limits(limits).clock(clock.clone())
}

fn one_call() -> ScriptedModel {
    ScriptedModel::new([Answer::call("c", "t", json!({})), Answer::text("done")])
}

/// Polls until nothing moves, which must not be the end, and says until when the run waits.
fn waits(run: &mut Run<'_>, clock: &FakeClock) -> (Vec<Event>, Duration) {
    let (events, over) = poll_times(run, POLLS);
    assert!(!over, "{events:#?}");
    (events, clock.next_deadline().unwrap())
}

fn only_result(session: &Session) -> (ToolStatus, String) {
    let result = session.messages().iter().flat_map(|m| m.tool_results()).next().unwrap();
    (result.status, result.text())
}

#[test]
fn a_call_that_takes_too_long_is_dropped_and_the_run_goes_on() {
    // The limit of the run, and a tool's own, which counts more.
    for (own, due) in [(None, 5), (Some(seconds(9)), 9), (Some(seconds(1)), 1)] {
        let clock = FakeClock::new();
        let stuck = tool().with_fates([Fate::Hang]);
        let stuck = own.map_or(stuck.clone(), |own| stuck.with_time_limit(own));
        let limits = Limits::default().with_tool_timeout(Some(seconds(5)));
        let agent = agent(&clock, &one_call(), stuck.clone(), limits).build().unwrap();
        let mut session = Session::new();
        let mut run = agent.start(&mut session, "go");
        assert_eq!(waits(&mut run, &clock).1, seconds(due));
        assert_eq!(stuck.running(), 1);
        clock.advance(seconds(due) - Duration::from_millis(1));
        assert_eq!(waits(&mut run, &clock).1, seconds(due), "not a moment earlier");
        clock.advance(Duration::from_millis(1));
        assert!(poll_times(&mut run, POLLS).1);
        assert_eq!(stuck.running(), 0, "the call is dropped");
        assert!(matches!(block_on(run.outcome()), Ok(Outcome::Done { .. })));
        let (status, text) = only_result(&session);
        assert_eq!(status, ToolStatus::Error);
        assert!(text.contains(&format!("Timed out after {due}.0 s")) && text.contains("unknown"), "{text}");
        assert_valid(session.messages());
    }
}

#[test]
fn calls_behind_a_call_that_took_too_long_still_run() {
    let clock = FakeClock::new();
    let first = Answer::call("a", "t", json!({"n": 1})).with_call("b", "t", json!({"n": 2}));
    let model = ScriptedModel::new([first, Answer::text("done")]);
    let limits = Limits::default().with_tool_timeout(Some(seconds(5)));
    let agent = agent(&clock, &model, tool().with_fates([Fate::Hang]), limits).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    waits(&mut run, &clock);
    clock.advance(seconds(5));
    assert!(poll_times(&mut run, POLLS).1);
    drop(run);
    let statuses: Vec<_> = session.messages()[2].tool_results().map(|r| r.status).collect();
    assert_eq!(statuses, [ToolStatus::Error, ToolStatus::Ok]);
}

#[test]
fn the_time_limit_of_a_run_counts_work_and_not_waiting_for_people() {
    let clock = FakeClock::new();
    let limits = Limits::default().with_wall_time(Some(seconds(10))).with_soft_landing(false);
    let asking = Agent::builder(one_call())
        .tool(tool().with_fates([Fate::Hang]))
        .wait_for_verdicts()
        .limits(limits)
        .clock(clock.clone())
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = asking.start(&mut session, "go");
    let (events, over) = poll_times(&mut run, POLLS);
    assert!(!over);
    assert_eq!(clock.next_deadline(), None, "a person may take as long as it takes");
    clock.advance(seconds(1_000));
    assert!(!poll_times(&mut run, POLLS).1);
    let ask = events.iter().find_map(|e| match e {
        Event::ApprovalAsked { ask } => Some(ask.digest),
        _ => None,
    });
    let handle = run.handle();
    handle.decide(&ask.unwrap(), haversack_agent_core::approval::Verdict::Allow).unwrap();
    assert_eq!(waits(&mut run, &clock).1, seconds(1_010), "ten seconds of work are left");
    clock.advance(seconds(10));
    waits(&mut run, &clock);
    clock.advance(seconds(2));
    assert!(poll_times(&mut run, POLLS).1);
    let why = StopCause::Limit(Limit::WallTime);
    assert_eq!(block_on(run.outcome()), Ok(Outcome::Stopped { why }));
    assert_eq!(only_result(&session).0, ToolStatus::Interrupted);
    assert_eq!(session.spent().wall_millis, 12_000, "winding down is work as well");
    assert_valid(session.messages());
}

#[test]
fn a_person_who_answers_a_sub_agent_late_costs_the_run_above_no_time_either() {
    let clock = FakeClock::new();
    let asking = Agent::builder(one_call()).tool(tool()).clock(clock.clone()).build().unwrap();
    let model =
        ScriptedModel::new([Answer::call("d", "helper", json!({"prompt": "x"})), Answer::text("done")]);
    let top = Agent::builder(model)
        .tool(SubAgent::new("helper", "Helps", asking))
        .tool(tool())
        .policy(Policy::new(Mode::Autonomous))
        .wait_for_verdicts()
        // Neither of them is for a sub-agent that waits: it has limits of its own.
        .limits(Limits::default().with_wall_time(Some(seconds(10))).with_tool_timeout(Some(seconds(10))))
        .clock(clock.clone())
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = top.start(&mut session, "go");
    let (events, over) = poll_times(&mut run, POLLS);
    assert!(!over);
    let ask = events.iter().find_map(|e| match e {
        Event::SubAgent { event, .. } => match &**event {
            Event::ApprovalAsked { ask } => Some(ask.digest),
            _ => None,
        },
        _ => None,
    });
    clock.advance(seconds(1_000));
    assert!(!poll_times(&mut run, POLLS).1);
    let handle = run.handle();
    handle.decide(&ask.unwrap(), haversack_agent_core::approval::Verdict::Allow).unwrap();
    assert!(poll_times(&mut run, POLLS).1);
    assert!(matches!(block_on(run.outcome()), Ok(Outcome::Done { .. })));
    assert_eq!(session.spent().wall_millis, 0);
    assert_valid(session.messages());
}

#[test]
fn a_silent_model_is_cut_when_the_time_of_the_run_is_up() {
    let clock = FakeClock::new();
    let model = ScriptedModel::new([Answer::text("half").hang()]);
    let limits = Limits::default().with_wall_time(Some(seconds(3)));
    let agent = agent(&clock, &model, tool(), limits).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    assert_eq!(waits(&mut run, &clock).1, seconds(3));
    clock.advance(seconds(3));
    let (events, over) = poll_times(&mut run, POLLS);
    assert!(over && events.contains(&Event::LimitReached { limit: Limit::WallTime, landing: false }));
    assert_eq!(block_on(run.outcome()), Ok(Outcome::Stopped { why: StopCause::Limit(Limit::WallTime) }));
    assert_eq!(session.messages().last().unwrap().text(), "half");
}

#[test]
fn a_cancelled_call_has_the_grace_period_and_no_more() {
    for (in_time, without_grace) in [(true, false), (false, false), (false, true)] {
        let clock = FakeClock::new();
        let gate = Gate::new();
        let slow = tool().with_gate(&gate);
        let grace = if without_grace { Duration::ZERO } else { seconds(2) };
        let limits = Limits::default().with_grace(grace);
        let agent = agent(&clock, &one_call(), slow.clone(), limits).build().unwrap();
        let mut session = Session::new();
        let mut run = agent.start(&mut session, "go");
        assert!(!poll_times(&mut run, POLLS).1);
        clock.advance(seconds(4));
        run.handle().cancel("enough");
        let (_, over) = poll_times(&mut run, POLLS);
        assert_eq!(over, without_grace);
        if in_time {
            clock.advance(seconds(1));
            gate.open();
        } else if !without_grace {
            assert_eq!(clock.next_deadline(), Some(seconds(6)));
            clock.advance(seconds(2));
        }
        assert!(poll_times(&mut run, POLLS).1);
        assert_eq!(block_on(run.outcome()), Ok(Outcome::Cancelled { reason: "enough".into() }));
        assert_eq!(slow.running(), 0);
        let (status, text) = only_result(&session);
        if in_time {
            assert_eq!(status, ToolStatus::Ok, "what ended in time counts");
        } else {
            let after = if without_grace { "after 4.0 s" } else { "after 6.0 s" };
            assert!(status == ToolStatus::Interrupted && text.contains(after), "{text}");
        }
        assert_valid(session.messages());
    }
}

fn failing(kind: ModelErrorKind, retry_after: Option<Duration>) -> Answer {
    let mut error = ModelError::new(kind, "busy");
    error.retry_after = retry_after;
    Answer::text("half of it").with_usage(Usage::new(5, 1)).fail(error)
}

#[test]
fn waits_between_attempts_grow_are_told_and_what_was_shown_is_withdrawn() {
    let clock = FakeClock::new();
    let busy = || failing(ModelErrorKind::Overloaded, None);
    let model = ScriptedModel::new([busy(), busy(), Answer::text("done").with_usage(Usage::new(5, 2))]);
    let agent = agent(&clock, &model, tool(), Limits::default()).randomness(|| 0.5).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let mut events = Vec::new();
    for due in [Duration::from_millis(500), Duration::from_millis(1_500)] {
        let (more, deadline) = waits(&mut run, &clock);
        events.extend(more);
        assert_eq!(deadline, due);
        clock.advance_to_next();
    }
    let (more, over) = poll_times(&mut run, POLLS);
    assert!(over);
    events.extend(more);
    drop(run);
    let told: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            Event::AttemptDiscarded { attempt, .. } => Some(format!("discard {attempt}")),
            Event::Retrying { attempt, delay, .. } => Some(format!("again {attempt} after {delay:?}")),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["discard 1", "again 2 after 500ms", "discard 2", "again 3 after 1s"]);
    let books: Vec<_> = session.ledger().entries().iter().map(|e| (e.purpose, e.end)).collect();
    assert_eq!(
        books,
        [
            (Purpose::Turn, AttemptEnd::Failed),
            (Purpose::Retry, AttemptEnd::Failed),
            (Purpose::Retry, AttemptEnd::Answered)
        ]
    );
    assert_eq!(session.ledger().total(), Usage::new(15, 4), "failed attempts cost as well");
    assert_eq!(session.spent().wall_millis, 1_500, "waiting between attempts is work");
}

#[test]
fn a_server_that_says_when_to_come_back_is_obeyed_up_to_the_cap() {
    for (asked, waits_for) in [(0, Some(0)), (7, Some(7)), (120, Some(120)), (121, None), (u64::MAX, None)] {
        let clock = FakeClock::new();
        let model = ScriptedModel::new([
            failing(ModelErrorKind::RateLimited, Some(seconds(asked))),
            Answer::text("done"),
        ]);
        let agent = agent(&clock, &model, tool(), Limits::default()).build().unwrap();
        let mut session = Session::new();
        let mut run = agent.start(&mut session, "go");
        if waits_for.is_some_and(|s| s > 0) {
            assert_eq!(Some(waits(&mut run, &clock).1), waits_for.map(seconds));
            clock.advance_to_next();
        }
        assert!(poll_times(&mut run, POLLS).1, "{asked}");
        match (waits_for, block_on(run.outcome())) {
            (Some(_), Ok(Outcome::Done { .. })) => {}
            (None, Err(RunError::Model(error))) => assert_eq!(error.retry_after, Some(seconds(asked))),
            other => panic!("{asked}: {other:?}"),
        }
        assert_valid(session.messages());
    }
}

#[test]
fn a_wait_before_an_attempt_can_be_cancelled_and_attempts_are_counted() {
    let clock = FakeClock::new();
    let always = ScriptedModel::from_fn(|_, _| failing(ModelErrorKind::Server, None));
    let builder =
        || agent(&clock, &always, tool(), Limits::default()).retry(RetryPolicy::default().with_attempts(3));
    let cancelled = builder().build().unwrap();
    let mut session = Session::new();
    let mut run = cancelled.start(&mut session, "go");
    waits(&mut run, &clock);
    run.handle().cancel("enough");
    assert!(poll_times(&mut run, POLLS).1, "a cancel needs no time to pass");
    assert_eq!(block_on(run.outcome()), Ok(Outcome::Cancelled { reason: "enough".into() }));
    assert_eq!(always.request_count(), 1);

    let exhausted = builder().build().unwrap();
    let mut session = Session::new();
    let mut run = exhausted.start(&mut session, "go");
    while !poll_times(&mut run, POLLS).1 {
        assert!(clock.advance_to_next());
    }
    assert!(matches!(block_on(run.outcome()), Err(RunError::Model(_))));
    assert_eq!(always.request_count(), 4);
    assert_valid(session.messages());
}

#[test]
fn the_next_model_of_the_list_takes_over_with_attempts_of_its_own() {
    let clock = FakeClock::new();
    let first = ScriptedModel::from_fn(|_, _| failing(ModelErrorKind::Overloaded, None));
    let second = ScriptedModel::new([failing(ModelErrorKind::Overloaded, None), Answer::text("done")]);
    let agent = agent(&clock, &first, tool(), Limits::default())
        .retry(RetryPolicy::default().with_attempts(2))
        .fallback(second.clone())
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let mut events = Vec::new();
    loop {
        let (more, over) = poll_times(&mut run, POLLS);
        events.extend(more);
        if over {
            break;
        }
        assert!(clock.advance_to_next());
    }
    assert!(matches!(block_on(run.outcome()), Ok(Outcome::Done { .. })));
    assert_eq!((first.request_count(), second.request_count()), (2, 2));
    assert_eq!(events.iter().filter(|e| matches!(e, Event::ModelSwitched { .. })).count(), 1);
    assert!(clock.now() >= seconds(1));
}
