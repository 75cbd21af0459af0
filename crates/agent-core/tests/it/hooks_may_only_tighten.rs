//! Hooks: each joint of a run, what a hook may do there, and that one which fails counts as a no.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::event::Event;
use haversack_agent_core::hooks::{Ending, Flow, Gate, Hooks, OnStop, PlannedCall};
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::ModelRequest;
use haversack_agent_core::outcome::{Outcome, RunError, StopCause};
use haversack_agent_core::policy::{Mode, Policy, Rule};
use haversack_agent_core::session::Session;
use haversack_agent_core::tool::ToolOutput;
use serde_json::{Value, json};

use crate::play::{Log, Probe, Script, block_on, calls, says, shape, silence_panics};

/// What a hook does at one joint; at all others it does nothing.
#[derive(Clone)]
enum At {
    Request(Option<Flow>),
    Before(Option<Gate>),
    After(Option<&'static str>),
    Stop(Option<OnStop>),
}

struct One(At);

fn or_panic<T>(answer: Option<T>) -> T {
    answer.unwrap_or_else(|| panic!("this hook always panics"))
}

#[async_trait]
impl Hooks for One {
    async fn before_request(&self, _: &mut ModelRequest) -> Flow {
        match self.0.clone() {
            At::Request(answer) => or_panic(answer),
            _ => Flow::Continue,
        }
    }

    async fn before_tool(&self, _: &PlannedCall) -> Gate {
        match self.0.clone() {
            At::Before(answer) => or_panic(answer),
            _ => Gate::Pass,
        }
    }

    async fn after_tool(&self, _: &PlannedCall, output: &mut ToolOutput) {
        if let At::After(answer) = self.0 {
            *output = or_panic(answer).into();
        }
    }

    async fn on_stop(&self, _: &Ending) -> OnStop {
        match self.0.clone() {
            At::Stop(answer) => or_panic(answer),
            _ => OnStop::End,
        }
    }
}

fn agent(log: &Arc<Log>, hooks: impl IntoIterator<Item = At>) -> AgentBuilder {
    let script = Script::new([calls(&[("c", "write", json!({"n": 1}))]), says("done"), says("really done")]);
    let agent =
        Agent::builder(script).tool(Probe::writes("write", log)).policy(Policy::new(Mode::Autonomous));
    hooks.into_iter().fold(agent, |agent, at| agent.hooks(One(at)))
}

struct Played {
    outcome: Result<Outcome, RunError>,
    events: Vec<Event>,
    session: Session,
    ran: Vec<Value>,
}

fn play(builder: AgentBuilder, log: &Log) -> Played {
    silence_panics();
    let agent = builder.build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
    let outcome = block_on(run.outcome());
    assert_eq!(session.check(), []);
    let ran = log.started.lock().unwrap().clone();
    Played { outcome, events, session, ran }
}

fn done(text: &str) -> Result<Outcome, RunError> {
    Ok(Outcome::Done { text: text.into(), structured: None })
}

fn panicked(played: &Played, hook: &str) -> bool {
    played.events.iter().any(|e| matches!(e, Event::HookPanicked { hook: name } if *name == hook))
}

#[test]
fn a_hook_that_panics_before_a_request_ends_the_run_and_nothing_is_sent() {
    let log = Arc::default();
    let played = play(agent(&log, [At::Request(None)]), &log);
    assert_eq!(played.outcome, Err(RunError::HookPanicked));
    assert!(panicked(&played, "before_request") && played.ran.is_empty());
    assert!(played.session.ledger().entries().is_empty(), "nothing was sent, so nothing was used");
    assert_eq!(shape(&played.session), ["user"]);
}

#[test]
fn a_hook_that_panics_over_a_call_denies_it_and_the_run_goes_on() {
    let log = Arc::default();
    let played = play(agent(&log, [At::Before(Some(Gate::Pass)), At::Before(None)]), &log);
    assert_eq!(played.outcome, done("done"));
    assert!(played.ran.is_empty());
    assert_eq!(shape(&played.session)[2], "tool(c:denied)");
}

#[test]
fn an_output_that_a_panicking_hook_meant_to_hide_is_withheld() {
    let log = Arc::default();
    let played = play(agent(&log, [At::After(None)]), &log);
    assert_eq!(played.ran.len(), 1);
    assert_eq!(shape(&played.session)[2], "tool(c:error)");
    let text = played.session.messages()[2].tool_results().next().unwrap().text();
    assert!(text.contains("withheld") && !text.contains("\"n\""), "{text}");
}

#[test]
fn a_hook_that_panics_over_the_end_lets_the_run_end_and_is_told() {
    let log = Arc::default();
    let played = play(agent(&log, [At::Stop(None)]), &log);
    assert_eq!(played.outcome, done("done"));
    assert!(panicked(&played, "on_stop"));
}

#[test]
fn a_hook_may_stop_a_request_and_the_run_can_be_resumed_without_it() {
    let log = Arc::default();
    let played = play(agent(&log, [At::Request(Some(Flow::Stop("office hours".into())))]), &log);
    assert_eq!(played.outcome, Ok(Outcome::Stopped { why: StopCause::Hook("office hours".into()) }));
    let mut session = played.session;
    let free = agent(&log, []).build().unwrap();
    assert_eq!(block_on(free.resume(&mut session).outcome()), done("done"));
}

#[test]
fn no_hook_can_loosen_what_the_policy_says() {
    // Whatever a hook says, a denied call does not run and an ask is asked.
    let gates =
        [Gate::Pass, Gate::Rewrite(json!({"n": 2})), Gate::Ask("why".into()), Gate::Deny("no".into())];
    for gate in gates {
        let log = Arc::default();
        let denied = agent(&log, [At::Before(Some(gate.clone()))])
            .policy(Policy::new(Mode::Autonomous).with_rule(Rule::deny("write")));
        let played = play(denied, &log);
        assert!(played.ran.is_empty(), "{gate:?}");
        assert_eq!(shape(&played.session)[2], "tool(c:denied)");

        let log = Arc::default();
        let asked = agent(&log, [At::Before(Some(gate.clone()))]).policy(Policy::new(Mode::Ask));
        let played = play(asked, &log);
        assert!(played.ran.is_empty(), "{gate:?}");
        let expected = if matches!(gate, Gate::Deny(_)) { done("done") } else { Ok(Outcome::Paused) };
        assert_eq!(played.outcome, expected, "{gate:?}");
    }
}

#[test]
fn reasons_of_all_hooks_reach_the_person_who_is_asked() {
    let log = Arc::default();
    let hooks = ["it costs money", "it is late"].map(|why| At::Before(Some(Gate::Ask(why.into()))));
    let played = play(agent(&log, hooks), &log);
    assert_eq!(played.outcome, Ok(Outcome::Paused));
    let reason = &played.session.pending_asks()[0].reason;
    assert!(reason.contains("it costs money; it is late"), "{reason}");
}

#[test]
fn a_rewrite_is_validated_and_is_what_runs() {
    let log = Arc::default();
    let played = play(agent(&log, [At::Before(Some(Gate::Rewrite(json!({"n": 7}))))]), &log);
    assert_eq!(played.ran, [json!({"n": 7})]);
    let log = Arc::default();
    let played = play(agent(&log, [At::Before(Some(Gate::Rewrite(json!({"n": "seven"}))))]), &log);
    assert!(played.ran.is_empty());
    assert_eq!(shape(&played.session)[2], "tool(c:error)");
}

#[test]
fn a_hook_that_never_lets_go_is_bounded_by_the_turn_limit() {
    let log = Arc::default();
    let more = At::Stop(Some(OnStop::Continue(Message::user("more"))));
    let limits = Limits::default().with_turns(Some(4)).with_soft_landing(false);
    let played = play(agent(&log, [more]).limits(limits), &log);
    assert!(
        matches!(played.outcome, Ok(Outcome::Stopped { why: StopCause::Limit(_) })),
        "{:?}",
        played.outcome
    );
}

#[test]
fn what_a_hook_makes_of_an_output_is_what_the_model_sees() {
    let log = Arc::default();
    let played = play(agent(&log, [At::After(Some("redacted"))]), &log);
    assert_eq!(played.session.messages()[2].tool_results().next().unwrap().text(), "redacted");
}
