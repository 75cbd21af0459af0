//! Approvals as a machine: every order of answering, cancelling, crashing, resuming and changing tools, five steps deep.
//!
//! Whatever the order, a call runs at most once, and only with the arguments and the tool that somebody allowed.

use std::collections::BTreeSet;

use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::Verdict;
use haversack_agent_core::digest::Fingerprint;
use haversack_agent_core::message::Role;
use haversack_agent_core::session::Session;
use haversack_agent_core::testing::{Answer, ScriptedModel, ScriptedTool, assert_valid};
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::tool_context::Tool as _;
use serde_json::json;

use crate::play::poll_times;

const DEPTH: u32 = 5;

/// What may happen to a session between its ask and its end.
#[derive(Clone, Copy, Debug)]
enum Act {
    AllowFirst,
    EditFirst,
    DenyLast,
    /// The session is read from where it was stored last, and the tools are the other ones.
    CrashAndDrift,
    Resume,
    /// Resumes, and cancels in the middle of it.
    Cancel,
    /// A new message comes instead of answers.
    Interrupt,
}

const ACTS: [Act; 7] = [
    Act::AllowFirst,
    Act::EditFirst,
    Act::DenyLast,
    Act::CrashAndDrift,
    Act::Resume,
    Act::Cancel,
    Act::Interrupt,
];

/// The same tool before and after somebody changed it, each with its own log.
struct World {
    tools: [ScriptedTool; 2],
    fingerprints: [String; 2],
    agents: [Agent; 2],
}

impl World {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let tools = ["writes", "writes and tells everybody"]
            .map(|text| ScriptedTool::new(ToolSpec::new("write", text).with_schema(schema.clone())));
        let agents = tools.clone().map(|tool| {
            let model = ScriptedModel::from_fn(|request, _| {
                let asked = request.messages.iter().any(|m| m.role == Role::Assistant);
                let first = Answer::call("a", "write", json!({"n": 1}));
                if asked { Answer::text("done") } else { first.with_call("b", "write", json!({"n": 2})) }
            });
            Agent::builder(model).tool(tool).build().unwrap()
        });
        let fingerprints = tools.each_ref().map(|tool| Fingerprint::of(tool.spec()).to_string());
        Self { tools, fingerprints, agents }
    }
}

/// Plays one order of acts. Gives the number of calls that ran.
fn play(world: &World, acts: &[Act]) -> usize {
    // The tools keep all calls of all orders.
    let before = world.tools.each_ref().map(|tool| tool.calls().len());
    let mut now = 0;
    let mut session = Session::new();
    poll_to_end(&world.agents[now], &mut session, Some("go"));
    let mut stored = serde_json::to_string(&session).unwrap();
    let mut allowed = BTreeSet::new();
    let mut answered = Vec::new();
    for act in acts {
        let asks = session.pending_asks();
        match act {
            Act::AllowFirst | Act::EditFirst | Act::DenyLast => {
                let last = matches!(act, Act::DenyLast);
                let Some(ask) = (if last { asks.last() } else { asks.first() }) else { continue };
                let (verdict, arguments) = match act {
                    Act::AllowFirst => (Verdict::Allow, Some(ask.arguments.clone())),
                    Act::EditFirst => (Verdict::AllowEdited(json!({"n": 9})), Some(json!({"n": 9}))),
                    _ => (Verdict::deny("no"), None),
                };
                session.answer(&ask.digest, verdict).unwrap();
                let fingerprint = ask.fingerprint.to_string();
                allowed.extend(arguments.map(|a| (ask.call.to_string(), a.to_string(), fingerprint)));
                answered.push(ask.digest);
            }
            Act::CrashAndDrift => {
                session = serde_json::from_str(&stored).unwrap();
                now = 1 - now;
            }
            Act::Resume => poll_to_end(&world.agents[now], &mut session, None),
            Act::Interrupt => poll_to_end(&world.agents[now], &mut session, Some("never mind")),
            Act::Cancel => {
                let mut run = world.agents[now].resume(&mut session);
                poll_times(&mut run, 3);
                run.handle().cancel("enough");
                assert!(poll_times(&mut run, 10_000).1);
            }
        }
        // An answer is used once, and the first one counts. (A session that was read again has not had it yet.)
        if !matches!(act, Act::CrashAndDrift) && !acts.iter().any(|a| matches!(a, Act::CrashAndDrift)) {
            for digest in &answered {
                assert!(session.answer(digest, Verdict::Allow).is_err(), "{acts:?}");
            }
        }
        assert_eq!(session.check(), [], "{acts:?}");
        // A host that stores what it was given before it goes on loses no run; one that does not would run a call twice.
        if !matches!(act, Act::AllowFirst | Act::EditFirst | Act::DenyLast) {
            stored = serde_json::to_string(&session).unwrap();
        }
    }
    let mut ran = BTreeSet::new();
    for ((tool, fingerprint), before) in world.tools.iter().zip(&world.fingerprints).zip(before) {
        for log in tool.calls().split_off(before) {
            assert!(ran.insert(log.call.to_string()), "{} ran twice: {acts:?}", log.call);
            let approval = (log.call.to_string(), log.arguments.to_string(), fingerprint.clone());
            assert!(allowed.contains(&approval), "{approval:?} was never allowed: {acts:?}");
        }
    }
    if !session.has_open_calls() {
        assert_valid(session.messages());
    }
    ran.len()
}

fn poll_to_end(agent: &Agent, session: &mut Session, message: Option<&str>) {
    let mut run = match message {
        Some(text) => agent.start(session, text),
        None => agent.resume(session),
    };
    assert!(poll_times(&mut run, 10_000).1);
}

#[test]
fn a_call_runs_at_most_once_and_only_as_it_was_allowed_in_every_order_of_five_acts() {
    let mut world = World::new();
    let mut ran = [0; 3];
    for number in 0..ACTS.len().pow(DEPTH) {
        let acts: Vec<Act> =
            (0..DEPTH).map(|place| ACTS[number / ACTS.len().pow(place) % ACTS.len()]).collect();
        if number % 50 == 0 {
            world = World::new();
        }
        ran[play(&world, &acts)] += 1;
    }
    assert!(ran.iter().all(|orders| *orders > 100), "orders in which none, one and both ran: {ran:?}");
}
