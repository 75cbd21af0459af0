//! Nothing below a run can pass its ceiling, spend what it has not got, or fail unseen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::approval::{Ask, Verdict};
use haversack_agent_core::clock::{Clock, Sleep};
use haversack_agent_core::event::Event;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::ToolStatus;
use haversack_agent_core::model::{Model, ModelInfo, ModelRequest, ModelStream};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::policy::{Ceiling, Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::subagent::SubAgent;
use haversack_agent_core::testing::{Answer as Scripted, ScriptedModel};
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::tool_context::{Tool, ToolContext, ToolNote};
use haversack_agent_core::tool_fn::tool_fn;
use haversack_agent_core::usage::Usage;
use serde_json::{Value, json};

use crate::play::{Answer, Log, Probe, Script, block_on, calls, poll_times, says, shape};

fn delegate(id: &str) -> Answer {
    calls(&[(id, "helper", json!({"prompt": "help"}))])
}

fn child(log: &Arc<Log>) -> AgentBuilder {
    Agent::builder(Script::new([calls(&[("w", "write", json!({"n": 1}))]), says("child is done")]))
        .tool(Probe::writes("write", log))
        .policy(Policy::new(Mode::Autonomous))
}

fn parent(child: AgentBuilder, answers: Vec<Answer>) -> AgentBuilder {
    Agent::builder(Script::new(answers))
        .tool(SubAgent::new("helper", "Helps", child.build().unwrap()))
        .policy(Policy::new(Mode::Autonomous))
}

fn result_text(session: &Session) -> String {
    session.messages()[2].tool_results().next().unwrap().text()
}

#[test]
fn by_default_a_child_may_do_what_its_parent_may_and_nothing_more() {
    let log = Arc::default();
    let bare = parent(child(&log), vec![delegate("d"), says("ok")]).build().unwrap();
    let mut session = Session::new();
    block_on(bare.start(&mut session, "go").outcome()).unwrap();
    assert!(log.started.lock().unwrap().is_empty(), "the parent has no such tool");

    let with_tool = parent(child(&log), vec![delegate("d"), says("ok")])
        .tool(Probe::writes("write", &log))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(with_tool.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(log.started.lock().unwrap().len(), 1);
    assert_eq!(result_text(&session), "child is done");
}

#[test]
fn a_coordinator_may_delegate_what_it_may_not_do_if_the_host_says_so() {
    let log = Arc::default();
    let agent = parent(child(&log), vec![delegate("d"), says("ok")])
        .ceiling(Ceiling::new(Policy::new(Mode::Autonomous)))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(log.started.lock().unwrap().len(), 1);
}

#[test]
fn a_grandchild_is_bound_by_the_ceiling_of_the_top() {
    let log = Arc::default();
    let middle = Agent::builder(Script::new([delegate("m"), says("middle is done")]))
        .tool(SubAgent::new("helper", "Helps", child(&log).build().unwrap()))
        .ceiling(Ceiling::new(Policy::new(Mode::Autonomous)))
        .policy(Policy::new(Mode::Autonomous));
    let top = Agent::builder(Script::new([calls(&[("t", "middle", json!({"prompt": "x"}))]), says("ok")]))
        .tool(SubAgent::new("middle", "Delegates", middle.build().unwrap()))
        .policy(Policy::new(Mode::Autonomous))
        .ceiling(Ceiling::new(
            Policy::new(Mode::Autonomous).with_rule(haversack_agent_core::policy::Rule::deny("write")),
        ))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(top.start(&mut session, "go").outcome()).unwrap();
    assert!(log.started.lock().unwrap().is_empty());
    assert_eq!(result_text(&session), "middle is done");
}

#[test]
fn what_a_child_uses_stands_in_the_books_of_the_parent_and_counts_against_its_limits() {
    let log = Arc::default();
    let agent = parent(child(&log), vec![delegate("d"), says("ok")])
        .tool(Probe::writes("write", &log))
        .limits(Limits::default().with_input_tokens(Some(1000)))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let paths: Vec<Vec<&str>> =
        session.ledger().entries().iter().map(|e| e.path.iter().map(|p| &**p).collect()).collect();
    assert_eq!(paths, [vec![], vec!["helper"], vec!["helper"], vec![]]);
    assert_eq!(session.ledger().total(), Usage::new(40, 12));
    assert_eq!(session.spent().input_tokens, 40);
}

#[test]
fn a_child_that_stops_or_fails_is_reported_as_such() {
    let log = Arc::default();
    let limited = child(&log).limits(Limits::default().with_turns(Some(1)).with_soft_landing(false));
    let agent =
        parent(limited, vec![delegate("d"), says("ok")]).tool(Probe::writes("write", &log)).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(shape(&session)[2], "tool(d:error)");
    assert!(result_text(&session).contains("turn limit"), "{}", result_text(&session));

    let broken = Agent::builder(Script::new([vec![]]));
    let agent = parent(broken, vec![delegate("d"), says("ok")]).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(shape(&session)[2], "tool(d:error)");
    assert!(result_text(&session).contains("failed"), "{}", result_text(&session));
}

#[test]
fn a_childs_share_of_the_budget_is_its_limit() {
    let log = Arc::default();
    let endless =
        Agent::builder(Script::new((0..50).map(|t| calls(&[(&format!("t{t}"), "write", json!({"n": t}))]))))
            .tool(Probe::writes("write", &log))
            .policy(Policy::new(Mode::Autonomous));
    let agent = parent(endless, vec![delegate("d"), says("ok")])
        .tool(Probe::writes("write", &log))
        .limits(Limits::default().with_input_tokens(Some(200)).with_soft_landing(false))
        .build()
        .unwrap();
    let mut session = Session::new();
    let outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(outcome, Outcome::Done { text: "ok".into(), structured: None });
    // 190 are left when it starts, half of that is 95: at 10 a request, and a landing reserve of a tenth.
    let used = session.ledger().entries().iter().filter(|e| !e.path.is_empty()).count();
    assert!((8..=10).contains(&used), "{used} requests");
}

#[test]
fn questions_of_a_child_go_to_the_parents_approver_with_the_path() {
    let log = Arc::default();
    let asking = child(&log).policy(Policy::default());
    let agent = parent(asking, vec![delegate("d"), says("ok")])
        .tool(Probe::writes("write", &log))
        .approver(|asks: Vec<Ask>| async move {
            assert_eq!(asks[0].path.iter().map(|p| &**p).collect::<Vec<_>>(), ["helper"]);
            vec![Verdict::Allow]
        })
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
    drop(run);
    assert_eq!(log.started.lock().unwrap().len(), 1);
    let inside = events.iter().any(
        |e| matches!(e, Event::SubAgent { event, .. } if matches!(**event, Event::ApprovalAsked { .. })),
    );
    assert!(inside);
}

#[test]
fn a_deferred_question_of_a_child_pauses_everything_and_goes_on_from_the_store() {
    let log = Arc::default();
    let build = |answers, child_answers: Vec<Answer>| {
        let asking = Agent::builder(Script::new(child_answers)).tool(Probe::writes("write", &log));
        parent(asking, answers).tool(Probe::writes("write", &log)).build().unwrap()
    };
    let agent = build(vec![delegate("d")], vec![calls(&[("w", "write", json!({"n": 1}))])]);
    let mut session = Session::new();
    assert_eq!(block_on(agent.start(&mut session, "go").outcome()), Ok(Outcome::Paused));
    assert_eq!(session.check(), []);
    let ask = session.pending_asks().remove(0);
    assert_eq!(&*ask.path[0], "helper");

    // Another process, with what the models had still to say.
    let agent = build(vec![says("ok")], vec![says("child is done")]);
    let mut session: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    assert_eq!(block_on(agent.resume(&mut session).outcome()), Ok(Outcome::Paused), "nobody has answered");
    session.answer(&ask.digest, Verdict::Allow).unwrap();
    let outcome = block_on(agent.resume(&mut session).outcome());
    assert_eq!(outcome, Ok(Outcome::Done { text: "ok".into(), structured: None }));
    assert_eq!(log.started.lock().unwrap().len(), 1);
    assert_eq!(result_text(&session), "child is done");
    assert_eq!(session.ledger().entries().len(), 4, "each call is booked once");
}

/// An agent that only delegates, `levels` deep.
fn nest(levels: usize, depth: usize) -> Agent {
    let say = || vec![calls(&[("d", "helper", json!({"prompt": "help"}))]), says("delegated")];
    let limits = Limits::default().with_agent_depth(depth);
    let mut agent = Agent::builder(Script::new([says("the bottom")])).build().unwrap();
    for _ in 0..levels {
        agent = Agent::builder(Script::new(say()))
            .tool(SubAgent::new("helper", "Helps", agent))
            .policy(Policy::new(Mode::Autonomous))
            .ceiling(Ceiling::new(Policy::new(Mode::Autonomous)))
            .limits(limits.clone())
            .build()
            .unwrap();
    }
    agent
}

#[test]
fn sub_agents_nest_as_deep_as_the_top_allows_and_no_deeper() {
    for (depth, refused) in [(0, true), (1, true), (2, true), (3, false), (9, false)] {
        let mut session = Session::new();
        let agent = nest(3, depth);
        let mut run = agent.start(&mut session, "go");
        let events = block_on(async { run.by_ref().collect::<Vec<_>>().await });
        drop(run);
        let told = format!("{events:?}");
        assert_eq!(told.contains("may not be nested any deeper"), refused, "depth {depth}");
        let deepest = session.ledger().entries().iter().map(|e| e.path.len()).max();
        assert_eq!(deepest, Some(depth.min(3)), "depth {depth}");
    }
}

#[test]
fn no_more_sub_agents_run_at_once_and_in_all_than_the_limits_say() {
    let log: Arc<Log> = Arc::default();
    let ids: Vec<String> = (0..10).map(|i| format!("d{i}")).collect();
    let all: Vec<_> = ids.iter().map(|id| (id.as_str(), "helper", json!({"prompt": "help"}))).collect();
    // Each child has one read that takes a few polls, so that children overlap when they may.
    let looking = Agent::builder(AnyTime).tool(Probe::reads("look", &log).taking(5));
    let agent = Agent::builder(Script::new([calls(&all), says("ok")]))
        .tool(SubAgent::new("helper", "Helps", looking.build().unwrap()).read_only())
        .tool(Probe::reads("look", &log))
        .limits(Limits::default().with_agents_at_once(3).with_agents(7).with_repeat_stop(100))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    assert_eq!(log.most.load(Ordering::SeqCst), 3, "three at once");
    assert_eq!(log.started.lock().unwrap().len(), 7, "seven in all");
    let beyond: Vec<_> = session.messages()[2].tool_results().skip(7).map(|r| (r.status, r.text())).collect();
    assert_eq!(beyond.len(), 3);
    for (status, text) in beyond {
        assert!(status == ToolStatus::NotStarted && text.contains("no more sub-agents"), "{text}");
    }
}

/// Looks once, then is done: in as many conversations at once as there are.
struct AnyTime;

impl Model for AnyTime {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("any", "time")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let first = request.messages.len() == 1;
        let answer = if first { calls(&[("r", "look", json!({}))]) } else { says("looked") };
        Box::pin(futures_util::stream::iter(answer))
    }
}

#[test]
fn what_several_children_spend_counts_together_and_each_gets_a_share_of_what_is_left() {
    // 200 tokens at 10 a request: each child may use half of what is left when it starts.
    let log = Arc::default();
    let endless = || (0..50).map(|t| calls(&[(&format!("t{t}"), "write", json!({"n": t}))]));
    let child = |share| {
        let agent = Agent::builder(Script::new(endless()))
            .tool(Probe::writes("write", &log))
            .policy(Policy::new(Mode::Autonomous))
            .build()
            .unwrap();
        SubAgent::new(format!("helper{share}"), "Helps", agent).with_share_percent(share)
    };
    let all = [("a", "helper50", json!({"prompt": "x"})), ("b", "helper0", json!({"prompt": "x"}))];
    let agent = Agent::builder(Script::new([calls(&all), says("ok")]))
        .tool(child(50))
        .tool(child(0))
        .tool(Probe::writes("write", &log))
        .policy(Policy::new(Mode::Autonomous))
        .limits(Limits::default().with_input_tokens(Some(200)).with_soft_landing(false))
        .build()
        .unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let by = |name: &str| {
        let entries = session.ledger().entries().iter();
        entries.filter(|e| e.path.first().is_some_and(|p| **p == *name)).count()
    };
    assert!((8..=10).contains(&by("helper50")), "{}", by("helper50"));
    assert_eq!(by("helper0"), 0, "a share of nothing is nothing");
    assert_eq!(session.spent().input_tokens, session.ledger().total().input.unwrap());
}

#[test]
fn a_cancel_reaches_the_child_first_and_its_result_says_so() {
    let log = Arc::default();
    let agent = parent(child(&log), vec![delegate("d"), says("ok")])
        .tool(Probe::writes("write", &log))
        .clock(Standing)
        .build()
        .unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let handle = run.handle();
    let mut ends = Vec::new();
    block_on(async {
        while let Some(event) = run.next().await {
            match event {
                Event::SubAgent { event, .. } => match *event {
                    Event::ToolStarted { .. } => handle.cancel("enough"),
                    Event::RunEnded => ends.push("child"),
                    _ => {}
                },
                Event::RunEnded => ends.push("parent"),
                _ => {}
            }
        }
    });
    assert_eq!(block_on(run.outcome()), Ok(Outcome::Cancelled { reason: "enough".into() }));
    assert_eq!(ends, ["child", "parent"]);
    assert_eq!(shape(&session)[2], "tool(d:interrupted)");
    assert!(result_text(&session).contains("cancelled"), "{}", result_text(&session));
}

/// A clock that stands still: there is a grace period, and it never ends.
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

#[test]
fn children_can_be_cut_at_every_poll_and_the_books_still_balance() {
    for polls in 0.. {
        for cancel in [false, true] {
            let log = Arc::default();
            let agent = parent(child(&log), vec![delegate("d"), says("ok")])
                .tool(Probe::writes("write", &log))
                .build()
                .unwrap();
            let mut session = Session::new();
            let mut run = agent.start(&mut session, "go");
            let (_, over) = poll_times(&mut run, polls);
            if cancel {
                run.handle().cancel("test");
                assert!(poll_times(&mut run, 10_000).1);
            }
            drop(run);
            let at = format!("poll {polls}, cancel {cancel}");
            assert_eq!(session.check(), [], "{at}");
            let total = session.ledger().total();
            assert_eq!(session.spent().input_tokens, total.input.unwrap_or(0), "{at}");
            assert_eq!(log.alive.load(Ordering::SeqCst), 0, "{at}");
            if over && cancel {
                return;
            }
        }
    }
}

#[test]
fn a_host_that_calls_an_agent_itself_is_told_what_happens_and_asked_what_it_may_do() {
    // More events than any queue holds, so that a queue that nobody reads would hold the agent up for ever.
    let turns: usize = 400;
    let model = ScriptedModel::from_fn(move |_, asked| {
        if asked < turns {
            Scripted::call(format!("c{asked}"), "note", json!({"n": asked}))
        } else {
            Scripted::text("done")
        }
    });
    let note = tool_fn(ToolSpec::new("note", ""), async |_: Value, context: ToolContext| {
        context.progress("half way");
        Ok("noted")
    });
    let limits = Limits::default().with_turns(None);
    let agent = Agent::builder(model).tool(note).limits(limits).build().unwrap();
    let tool = SubAgent::new("helper", "Helps.", agent);

    let refused = block_on(tool.call(json!({"prompt": "go"}), ToolContext::detached("1")));
    assert!(refused.is_err(), "an agent that nobody let start");

    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let approver = move |asks: Vec<Ask>| {
        counter.fetch_add(asks.len(), Ordering::Relaxed);
        async move { vec![Verdict::Allow; asks.len()] }
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let context =
        ToolContext::detached("1").with_agents(Some(Arc::new(approver)), 1).with_observer(move |note| {
            if let ToolNote::Agent { name, event: Event::ToolProgress { text, .. } } = note {
                seen.lock().unwrap().push(format!("{name}: {text}"));
            }
        });
    let output = block_on(tool.call(json!({"prompt": "go"}), context)).unwrap();
    assert_eq!(output.blocks[0].as_text(), Some("done"));
    assert_eq!(asked.load(Ordering::Relaxed), turns);
    assert_eq!(told.lock().unwrap().len(), turns);
    assert_eq!(told.lock().unwrap()[0], "helper: half way");
}
