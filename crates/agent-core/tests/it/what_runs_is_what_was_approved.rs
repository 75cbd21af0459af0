//! What runs is byte for byte what was approved; an answer is used once; stale, doubled and foreign answers are
//! refused.

use std::sync::Arc;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::{Ask, Refused, Verdict};
use haversack_agent_core::outcome::{Outcome, StopCause};
use haversack_agent_core::session::Session;
use serde_json::{Value, json};

use crate::play::{Answer, Log, Probe, Script, block_on, calls, says, shape};

fn two_writes() -> Answer {
    calls(&[("a", "write", json!({"n": 1})), ("b", "write", json!({"n": 2}))])
}

fn agent(answers: Vec<Answer>, log: &Arc<Log>) -> haversack_agent_core::agent::AgentBuilder {
    Agent::builder(Script::new(answers)).tool(Probe::reads("read", log)).tool(Probe::writes("write", log))
}

fn started(log: &Log) -> Vec<Value> {
    log.started.lock().unwrap().clone()
}

/// The session as another process would read it.
fn reloaded(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

#[test]
fn without_an_approver_the_run_pauses_and_nothing_is_asked_of_the_model_until_all_is_settled() {
    let log = Arc::default();
    let agent = agent(vec![two_writes(), says("done")], &log).build().unwrap();
    let mut session = Session::new();
    assert_eq!(block_on(agent.start(&mut session, "go").outcome()), Ok(Outcome::Paused));
    assert_eq!(session.check(), []);
    let asks = session.pending_asks();
    assert_eq!(asks.iter().map(|a| a.call.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    let mut session = reloaded(&session);
    session.answer(&asks[0].digest, Verdict::Allow).unwrap();
    assert_eq!(session.answer(&asks[0].digest, Verdict::Allow), Err(Refused::Answered));
    assert_eq!(block_on(agent.resume(&mut session).outcome()), Ok(Outcome::Paused));
    assert_eq!(started(&log), [json!({"n": 1})]);
    assert_eq!(session.answer(&asks[0].digest, Verdict::Allow), Err(Refused::Stale), "it is spent");

    let mut session = reloaded(&session);
    session.answer(&asks[1].digest, Verdict::deny("not today")).unwrap();
    let outcome = block_on(agent.resume(&mut session).outcome());
    assert_eq!(outcome, Ok(Outcome::Done { text: "done".into(), structured: None }));
    assert_eq!(started(&log), [json!({"n": 1})], "what ran is not run again");
    assert_eq!(shape(&session), ["user", "assistant(a b)", "tool(a:ok b:denied)", "assistant"]);
    let text = session.messages()[2].tool_results().nth(1).unwrap().text();
    assert!(text.contains("not today"), "{text}");
}

#[test]
fn a_tool_that_changed_since_the_answer_is_asked_about_again() {
    let log = Arc::default();
    let agent = agent(vec![two_writes()], &log).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let asks = session.pending_asks();
    for ask in &asks {
        session.answer(&ask.digest, Verdict::Allow).unwrap();
    }
    let changed = Agent::builder(Script::new([says("done")]))
        .tool(Probe::writes("write", &log).described("sends everything to somebody"))
        .build()
        .unwrap();
    assert_eq!(block_on(changed.resume(&mut session).outcome()), Ok(Outcome::Paused));
    assert!(started(&log).is_empty());
    let again = session.pending_asks();
    assert_eq!(again.len(), 2);
    assert!(again.iter().zip(&asks).all(|(new, old)| new.digest != old.digest));
    assert_eq!(session.answer(&asks[0].digest, Verdict::Allow), Err(Refused::Stale));
}

#[test]
fn arguments_that_changed_in_the_store_do_not_run_on_the_old_approval() {
    let log = Arc::default();
    let agent = agent(vec![two_writes()], &log).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let ask = session.pending_asks().remove(0);
    session.answer(&ask.digest, Verdict::Allow).unwrap();
    let stored = serde_json::to_string(&session).unwrap();
    let forged =
        stored.replace(r#""name":"write","arguments":{"n":1}"#, r#""name":"write","arguments":{"n":666}"#);
    assert_ne!(stored, forged);
    let mut session: Session = serde_json::from_str(&forged).unwrap();
    assert_eq!(block_on(agent.resume(&mut session).outcome()), Ok(Outcome::Paused));
    assert!(started(&log).is_empty());
}

#[test]
fn a_new_message_instead_of_verdicts_closes_the_calls_and_makes_old_answers_stale() {
    let log = Arc::default();
    let agent = agent(vec![two_writes(), says("fine")], &log).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let ask = session.pending_asks().remove(0);
    block_on(agent.start(&mut session, "never mind").outcome()).unwrap();
    assert_eq!(shape(&session)[..4], ["user", "assistant(a b)", "tool(a:not_started b:not_started)", "user"]);
    assert_eq!(session.answer(&ask.digest, Verdict::Allow), Err(Refused::Stale));
    assert!(started(&log).is_empty());
}

#[test]
fn edited_arguments_run_as_edited_and_the_model_is_told() {
    let log = Arc::default();
    let agent = agent(vec![two_writes(), says("done")], &log)
        .approver(|asks: Vec<Ask>| async move {
            asks.iter().map(|_| Verdict::AllowEdited(json!({"n": 9}))).collect()
        })
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(started(&log), [json!({"n": 9}), json!({"n": 9})]);
    assert_eq!(session.messages()[1].tool_calls().next().unwrap().arguments, json!({"n": 1}));
    let text = session.messages()[2].tool_results().next().unwrap().text();
    assert!(text.contains(r#"changed the arguments of this call to {"n":9}"#), "{text}");
}

#[test]
fn a_missing_verdict_defers_a_panic_denies_and_stop_ends_the_run_with_a_valid_history() {
    type Approve = fn(Vec<Ask>) -> std::pin::Pin<Box<dyn Future<Output = Vec<Verdict>> + Send>>;
    let cases: [(&str, Approve, Outcome, &str); 4] = [
        ("short", |_| Box::pin(async { vec![Verdict::Allow] }), Outcome::Paused, "assistant(a b)"),
        (
            "panic",
            |_| Box::pin(async { panic!("this approver always panics") }),
            Outcome::Done { text: "done".into(), structured: None },
            "assistant",
        ),
        (
            "stop",
            |_| Box::pin(async { vec![Verdict::Stop { reason: "enough".into() }] }),
            Outcome::Stopped { why: StopCause::Approver("enough".into()) },
            "tool(a:denied b:not_started)",
        ),
        (
            "defer",
            |asks| Box::pin(async move { asks.iter().map(|_| Verdict::Defer).collect() }),
            Outcome::Paused,
            "assistant(a b)",
        ),
    ];
    for (name, approve, expected, last) in cases {
        let log = Arc::default();
        let agent = agent(vec![two_writes(), says("done")], &log).approver(approve).build().unwrap();
        let mut session = Session::new();
        let outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
        assert_eq!(outcome, expected, "{name}");
        assert_eq!(shape(&session).last().unwrap(), last, "{name}");
        assert_eq!(session.check(), [], "{name}");
    }
}

#[test]
fn a_grant_holds_for_the_next_call_of_the_same_tool() {
    let log = Arc::default();
    let one = |id: &str, n: u32| calls(&[(id, "write", json!({"n": n}))]);
    let agent = agent(vec![one("a", 1), one("b", 2), says("done")], &log)
        .approver(|asks: Vec<Ask>| async move {
            asks.iter().map(|a| Verdict::AllowAlways(a.suggested.clone())).collect()
        })
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(started(&log).len(), 2);
    assert_eq!(session.grants().iter().count(), 1);
}
