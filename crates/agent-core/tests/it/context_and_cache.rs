//! The request prefix changes only when the model, the host or compaction changed it.

use std::sync::Arc;

use futures_util::StreamExt as _;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::compaction::Compaction;
use haversack_agent_core::event::Event;
use haversack_agent_core::ledger::Purpose;
use haversack_agent_core::message::Role;
use haversack_agent_core::model::{ModelError, ModelErrorKind, ModelRequest};
use haversack_agent_core::outcome::{Outcome, RunError};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::structured::{StructuredMode, StructuredOutput};
use haversack_agent_core::tool_context::Tool;
use haversack_agent_core::usage::StopReason;
use proptest::prelude::*;
use serde_json::json;

use crate::play::{Answer, Log, Probe, Script, block_on, calls, poll_times, says, shape};

fn starts_with(later: &ModelRequest, earlier: &ModelRequest) -> bool {
    later.system == earlier.system
        && later.tools.starts_with(&earlier.tools)
        && later.messages.starts_with(&earlier.messages)
}

#[test]
fn each_request_begins_with_the_one_before_and_shares_its_messages() {
    let log = Arc::default();
    let script = Script::new(
        (0..6).map(|t| calls(&[(&format!("t{t}"), "read", json!({"n": t})), ("same", "gone", json!({}))])),
    );
    let agent = Agent::builder(script.clone())
        .section("role", "You read.")
        .tool(Probe::reads("read", &log))
        .policy(Policy::new(Mode::Autonomous))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    block_on(agent.start(&mut session, "again").outcome()).unwrap();
    let requests = script.requests.lock().unwrap();
    assert!(requests.len() > 6);
    for pair in requests.windows(2) {
        assert!(starts_with(&pair[1], &pair[0]));
        let shared = pair[0].messages.iter().zip(&pair[1].messages).all(|(a, b)| Arc::ptr_eq(a, b));
        assert!(shared, "messages are shared, not copied");
        assert_eq!(pair[1].cache.messages.last(), Some(&(pair[1].messages.len() - 1)));
    }
    let ids: Vec<_> = session.messages().iter().flat_map(|m| m.tool_calls()).map(|c| c.id.clone()).collect();
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), distinct.len(), "ids that the wire repeats are made unique");
}

#[test]
fn tools_are_offered_in_one_order_whatever_the_order_of_registration() {
    let log = Arc::new(Log::default());
    let names = ["c", "a", "b"];
    let build = |order: [usize; 3]| {
        let script = Script::new([says("x")]);
        let tools = order.map(|i| Arc::new(Probe::reads(names[i], &log)) as Arc<dyn Tool>);
        let agent = Agent::builder(script).tools(tools).build().unwrap();
        agent.tools().to_vec()
    };
    assert_eq!(build([0, 1, 2]), build([2, 0, 1]));
}

#[test]
fn loaded_tools_are_appended_and_stay_for_the_session() {
    let log = Arc::new(Log::default());
    let deferred = || ["zeta", "alpha"].map(|n| Arc::new(Probe::reads(n, &log)) as Arc<dyn Tool>);
    let script = Script::new([
        calls(&[("s", "tool_search", json!({"query": "zeta"}))]),
        calls(&[("z", "zeta", json!({})), ("a", "alpha", json!({}))]),
        says("done"),
        says("done again"),
    ]);
    let agent = Agent::builder(script.clone())
        .tool(Probe::reads("mine", &log))
        .deferred_tools(deferred())
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let mut session: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    block_on(agent.start(&mut session, "again").outcome()).unwrap();
    let requests = script.requests.lock().unwrap();
    let names = |i: usize| requests[i].tools.iter().map(|t| t.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(0), ["mine", "tool_search"]);
    assert_eq!(names(1), ["mine", "tool_search", "zeta"]);
    assert_eq!(names(2), ["mine", "tool_search", "zeta", "alpha"], "a guessed call loads what it names");
    assert_eq!(names(3), names(2));
    assert!(requests[0].system_text().contains("- alpha: reads"));
    assert_eq!(shape(&session)[2..5], ["tool(s:ok)", "assistant(z a)", "tool(z:ok a:error)"]);
    assert_eq!(log.started.lock().unwrap().len(), 1);
}

/// A conversation of `turns` turns with results of some size, and the summary as the model's next word.
fn long(turns: usize, log: &Arc<Log>, compaction: Compaction, then: Vec<Answer>) -> (Script, Agent) {
    let answers = (0..turns).map(|t| calls(&[(&format!("t{t}"), "read", json!({"n": t}))])).chain(then);
    let script = Script::new(answers);
    let agent = Agent::builder(script.clone())
        .tool(Probe::reads("read", log))
        .compaction(compaction)
        .build()
        .unwrap();
    (script, agent)
}

fn overflow() -> Answer {
    vec![Err(ModelError::new(ModelErrorKind::ContextOverflow { limit: None, used: None }, "too long"))]
}

#[test]
fn an_overflow_compacts_once_tries_once_more_and_the_summariser_has_no_tools() {
    let log = Arc::default();
    let settings = Compaction::default().with_protected(|_| vec!["Skill: be kind.".into()]);
    let (script, agent) = long(10, &log, settings, vec![overflow(), says("what was done"), says("done")]);
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
    assert_eq!(block_on(run.outcome()), Ok(Outcome::Done { text: "done".into(), structured: None }));
    let requests = script.requests.lock().unwrap();
    let summary = &requests[requests.len() - 2];
    assert!(summary.tools.is_empty());
    assert_eq!(summary.messages.len(), 1);
    let first = session.messages()[0].text();
    assert!(first.contains("what was done") && first.contains("Skill: be kind."), "{first}");
    assert_eq!(session.check(), []);
    assert_eq!(requests.last().unwrap().messages[0], session.messages()[0]);
    let purposes: Vec<_> = session.ledger().entries().iter().rev().take(3).map(|e| e.purpose).collect();
    assert_eq!(purposes, [Purpose::Retry, Purpose::Compaction, Purpose::Turn]);
    assert!(
        events.iter().any(
            |e| matches!(e, Event::CompactionEnded { summarised, problem: None, .. } if *summarised > 10)
        )
    );
    let roles: Vec<_> = session.messages().iter().map(|m| m.role).collect();
    assert!(roles.windows(2).all(|p| p[0] != Role::Tool || p[1] != Role::Tool));
}

#[test]
fn a_second_overflow_and_a_compaction_without_gain_end_the_run_with_an_error() {
    let log = Arc::default();
    let (_, agent) = long(10, &log, Compaction::default(), vec![overflow(), says("short"), overflow()]);
    let mut session = Session::new();
    let outcome = block_on(agent.start(&mut session, "go").outcome());
    assert!(matches!(outcome, Err(RunError::ContextFull(_))), "{outcome:?}");

    let long_summary = says(&"x".repeat(100_000));
    let (_, agent) = long(10, &log, Compaction::default(), vec![overflow(), long_summary]);
    let mut session = Session::new();
    let outcome = block_on(agent.start(&mut session, "go").outcome());
    assert!(matches!(outcome, Err(RunError::ContextFull(_))), "{outcome:?}");
    assert_eq!(session.check(), []);
}

#[test]
fn a_full_window_is_compacted_between_turns_and_a_breaker_stops_what_frees_nothing() {
    let log = Arc::default();
    // A window so small that everything is too much: without a breaker every turn would compact.
    let settings = Compaction::default().with_window(10);
    let summaries = (0..30)
        .map(|t| if t % 2 == 0 { says("s") } else { calls(&[(&format!("u{t}"), "read", json!({"n": t}))]) });
    let script = Script::new(summaries);
    let agent = Agent::builder(script).tool(Probe::reads("read", &log)).compaction(settings).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
    drop(run);
    let spent =
        events.iter().filter(|e| matches!(e, Event::CompactionEnded { problem: Some(_), .. })).count();
    assert!(spent <= 1, "{spent} compactions without gain");
    assert_eq!(session.check(), []);
}

#[test]
fn compact_makes_room_by_hand_and_leaves_open_calls_open() {
    let log = Arc::default();
    let agent = Agent::builder(Script::new([
        calls(&[("a", "read", json!({}))]),
        calls(&[("b", "read", json!({}))]),
        calls(&[("c", "read", json!({}))]),
        calls(&[("w", "write", json!({}))]),
        says("the summary"),
    ]))
    .tool(Probe::reads("read", &log))
    .tool(Probe::writes("write", &log))
    .build()
    .unwrap();
    let mut session = Session::new();
    assert_eq!(block_on(agent.start(&mut session, "go").outcome()), Ok(Outcome::Paused));
    let asks = session.pending_asks();
    let outcome = block_on(agent.compact(&mut session).outcome());
    assert_eq!(outcome, Ok(Outcome::Done { text: "the summary".into(), structured: None }));
    assert_eq!(session.pending_asks(), asks);
    assert!(session.messages()[0].text().contains("the summary"));
    assert_eq!(session.check(), []);
}

#[test]
fn a_structured_answer_is_checked_and_sent_back_a_few_times() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tool = || StructuredOutput::new("answer", schema.clone());
    let native = || tool().with_mode(StructuredMode::Native);
    let wrong = |id: &str| calls(&[(id, "answer", json!({"n": "one"}))]);
    let right = |id: &str| calls(&[(id, "answer", json!({"n": 1}))]);
    let ok = Some(json!({"n": 1}));
    let cases: Vec<(&str, StructuredOutput, Vec<Answer>, Option<serde_json::Value>)> = vec![
        ("tool", tool(), vec![right("a")], ok.clone()),
        ("tool, second try", tool(), vec![wrong("a"), right("b")], ok.clone()),
        ("tool, words first", tool(), vec![says("one"), right("b")], ok.clone()),
        ("tool, never", tool(), vec![wrong("a"), wrong("b"), wrong("c")], None),
        ("native", native(), vec![says(r#"{"n": 1}"#)], ok.clone()),
        ("native, fenced", native(), vec![says("```json\n{\"n\": 1}\n```")], ok.clone()),
        ("native, second try", native(), vec![says("one"), says(r#"{"n": 1}"#)], ok),
        ("native, never", native(), vec![says("1"), says("2"), says("3")], None),
    ];
    for (name, output, answers, expected) in cases {
        let script = Script::new(answers);
        let agent = Agent::builder(script.clone()).output(output).build().unwrap();
        let mut session = Session::new();
        let outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
        match (outcome, expected) {
            (Outcome::Done { structured, .. }, expected @ Some(_)) => {
                assert_eq!(structured, expected, "{name}");
            }
            (Outcome::Stopped { .. }, None) => {}
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
        assert_eq!(session.check(), [], "{name}");
    }
}

/// What happens in one run of a conversation.
#[derive(Clone, Debug)]
struct Happening {
    answers: Vec<u8>,
    cut: Option<(usize, bool)>,
    resumes: bool,
}

fn any_happening() -> impl Strategy<Value = Happening> {
    let cut = prop::option::of((0..40_usize, any::<bool>()));
    (prop::collection::vec(0..8_u8, 0..4), cut, any::<bool>()).prop_map(|(answers, cut, resumes)| Happening {
        answers,
        cut,
        resumes,
    })
}

fn some_answer(kind: u8, n: usize) -> Answer {
    let (one, two) = (format!("c{n}"), format!("d{n}"));
    match kind {
        0 => calls(&[(&one, "read", json!({"n": n})), (&two, "read", json!({"n": n}))]),
        1 => calls(&[(&one, "nowhere", json!({}))]),
        2 => calls(&[("same", "read", json!({"n": "wrong"}))]),
        3 => calls(&[(&one, "tool_search", json!({"query": "later"}))]),
        4 => calls(&[(&one, "later", json!({}))]),
        5 => crate::play::calls_with(&[(&one, "read", json!({}))], StopReason::MaxTokens),
        6 => vec![Err(ModelError::new(ModelErrorKind::InvalidToolCall, "unreadable"))],
        _ => says("so"),
    }
}

/// The parts of a request that a provider caches, in the order in which it sees them, as bytes.
fn parts(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.iter().map(|m| serde_json::to_string(&**m).unwrap());
    messages.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Over any number of runs, cuts, repairs and restarts: tools are appended to and never change, the system prompt
    /// stays, and the messages of a request begin with the bytes of those of the request before.
    #[test]
    fn a_request_begins_with_the_bytes_of_the_one_before(happenings in prop::collection::vec(any_happening(), 1..5)) {
        let log: Arc<Log> = Arc::default();
        let mut session = Session::new();
        let mut requests: Vec<ModelRequest> = Vec::new();
        let mut n = 0;
        for happening in happenings {
            let answers: Vec<Answer> = happening.answers.iter().map(|kind| { n += 1; some_answer(*kind, n) }).collect();
            let script = Script::new(answers);
            // Registered in another order each time.
            let mut tools: Vec<Arc<dyn Tool>> =
                vec![Arc::new(Probe::reads("read", &log)), Arc::new(Probe::writes("write", &log))];
            tools.rotate_left(n % 2);
            let later: Vec<Arc<dyn Tool>> = vec![Arc::new(Probe::reads("later", &log))];
            let agent = Agent::builder(script.clone())
                .section("role", "You read.")
                .tools(tools)
                .deferred_tools(later)
                .build()
                .unwrap();
            let mut run = if happening.resumes { agent.resume(&mut session) } else { agent.start(&mut session, "go") };
            let (polls, cancels) = happening.cut.unwrap_or((100_000, false));
            let (_, over) = poll_times(&mut run, polls);
            if !over && cancels {
                run.handle().cancel("the test");
                poll_times(&mut run, 10_000);
            }
            drop(run);
            requests.extend(script.requests.lock().unwrap().drain(..));
            session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
        }
        for pair in requests.windows(2) {
            prop_assert_eq!(&pair[0].system, &pair[1].system);
            let names = |request: &ModelRequest| request.tools.iter().map(|t| t.name.to_string()).collect::<Vec<_>>();
            prop_assert!(names(&pair[1]).starts_with(&names(&pair[0])), "{:?}", names(&pair[1]));
            prop_assert!(parts(&pair[1]).starts_with(&parts(&pair[0])), "{:#?}", pair);
        }
    }
}
