//! Agent skills run on the real loop, and their contracts hold whatever the model wants.

mod limits;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::Verdict;
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::testing::{Answer as Says, FakeClock, ScriptedModel};
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::Usage;
use haversack_skill_runtime::agent::{
    AgentSkill, AgentSkills, Answer, Contract, ContractState, Handoff, HandoffBus, Report, Review,
    ReviewVerdict, SpawnRequest, Spawned, Spawner, ToolFacts,
};
use haversack_skill_runtime::metadata::{AgentConfig, Escalation, Inherit, Reviewer, RuntimeKind};
use serde_json::{Value, json};

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100_000 {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
    }
    panic!("the future waits for something that never comes");
}

/// A tool that counts its calls.
#[derive(Clone)]
struct Counted {
    spec: ToolSpec,
    calls: Arc<AtomicUsize>,
}

impl Counted {
    fn new(name: &str) -> Self {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        Self { spec: ToolSpec::new(name, "Counts.").with_schema(schema), calls: Arc::default() }
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn shared(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Counted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok("counted".into())
    }
}

fn config() -> AgentConfig {
    AgentConfig::new("Reviewer")
}

fn record(status: &str, result: &str) -> Says {
    Says::text(json!({"status": status, "result": result}).to_string())
}

fn bash(id: &str, command: &str) -> Says {
    Says::call(id, "bash", json!({"command": command}))
}

/// A host with one agent skill called `rev`.
struct House {
    child: ScriptedModel,
    clock: FakeClock,
    skills: AgentSkills,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
}

impl House {
    fn new(config: AgentConfig, answers: Vec<Says>) -> Self {
        let (child, clock) = (ScriptedModel::new(answers), FakeClock::new());
        let ids = AtomicUsize::new(0);
        let skills = AgentSkills::new(child.clone(), clock.clone())
            .with_policy(Policy::new(Mode::Autonomous))
            .with_ids(move || format!("contract-{}", ids.fetch_add(1, Ordering::Relaxed)))
            .with_skill(AgentSkill::new("rev", "Reviews", config).with_body("Look closely."));
        Self { child, clock, skills, tools: Vec::new(), policy: Policy::new(Mode::Autonomous) }
    }

    fn with_tool(mut self, tool: &Counted) -> Self {
        self.tools.push(tool.shared());
        self.skills = self.skills.with_tools([tool.shared()]);
        self
    }

    fn map(mut self, change: impl FnOnce(AgentSkills) -> AgentSkills) -> Self {
        self.skills = change(self.skills);
        self
    }

    fn agent(&self, answers: Vec<Says>) -> Agent {
        Agent::builder(ScriptedModel::new(answers))
            .tools(self.skills.tools())
            .tools(self.tools.iter().cloned())
            .policy(self.policy.clone())
            .clock(self.clock.clone())
            .build()
            .unwrap()
    }

    /// Calls the skill once per set of arguments, and gives the text and the structured part of each result.
    fn call(&self, calls: &[Value]) -> Vec<(String, Option<Value>)> {
        let mut answers: Vec<Says> = calls
            .iter()
            .enumerate()
            .map(|(n, args)| Says::call(format!("c{n}"), "rev", args.clone()))
            .collect();
        answers.push(Says::text("done"));
        let mut session = Session::new();
        let agent = self.agent(answers);
        block_on(agent.start(&mut session, "go").outcome()).unwrap();
        let results = session.messages().iter().flat_map(|m| m.tool_results().cloned().collect::<Vec<_>>());
        results.map(|result| (result.text(), result.structured)).collect()
    }

    fn task(&self) -> (String, Option<Value>) {
        self.call(&[json!({"task": "Review it"})]).remove(0)
    }

    fn offered(&self, request: usize) -> Vec<String> {
        self.child.requests()[request].tools.iter().map(|tool| tool.name.to_string()).collect()
    }
}

#[test]
fn an_agent_skill_runs_on_our_own_loop_and_reports() {
    let house = House::new(config(), vec![record("completed", "Looks good.")]);
    let (text, structured) = house.task();
    assert_eq!(text, "[Agent Result]\nSkill: rev\nContract: contract-0\nStatus: completed\n\nLooks good.\n");
    assert_eq!(structured.unwrap()["contract"]["state"], "completed");
    let system = house.child.requests()[0].system_text();
    for part in ["# Role: Reviewer", "Look closely.", "- Task: Review it", "\"reasoning_summary\""] {
        assert!(system.contains(part), "{part} is missing in {system}");
    }
}

#[test]
fn the_tools_of_an_agent_are_always_an_explicit_subset() {
    let (bash_tool, other) = (Counted::new("bash"), Counted::new("other"));
    let with = |config: AgentConfig| {
        let house =
            House::new(config, vec![record("completed", "x")]).with_tool(&bash_tool).with_tool(&other);
        let (_, structured) = house.task();
        (
            house.offered(0),
            structured.unwrap()["withheld"].as_object().unwrap().keys().cloned().collect::<Vec<_>>(),
        )
    };
    // Nothing said: what the parent has, but no agent, since none is listed.
    assert_eq!(with(config()), (vec!["bash".into(), "other".into()], vec!["rev".into()]));
    let mut minimal = config();
    minimal.inherit = Inherit::Minimal;
    assert_eq!(with(minimal).0, ["bash"]);
    let mut offline = config();
    offline.no_network = true;
    let (offered, withheld) = with(offline);
    assert!(offered.is_empty());
    assert_eq!(withheld, ["bash", "other", "rev"]);
    let mut sandboxed = config();
    sandboxed.sandbox_required = true;
    assert!(with(sandboxed.clone()).0.is_empty());
    let house = House::new(sandboxed, vec![record("completed", "x")])
        .with_tool(&other)
        .map(|skills| skills.with_tool_facts("other", ToolFacts::offline().sandboxed()));
    house.task();
    assert_eq!(house.offered(0), ["other"]);
}

#[test]
fn commands_beyond_the_contract_do_not_run() {
    let tool = Counted::new("bash");
    let mut limited = config();
    limited.max_bash_calls = Some(1);
    limited.allowed_commands = Some(vec!["ls".into()]);
    let answers = vec![
        bash("a", "rm -rf /"),
        bash("b", "ls; rm x"),
        bash("c", "ls -l"),
        bash("d", "ls"),
        record("completed", "x"),
    ];
    let house = House::new(limited, answers).with_tool(&tool);
    house.task();
    assert_eq!(tool.count(), 1);
    let last = house.child.requests().pop().unwrap();
    let results: Vec<String> =
        last.messages.iter().flat_map(|m| m.tool_results().map(|r| r.text()).collect::<Vec<_>>()).collect();
    assert!(results[0].contains("does not allow the command `rm -rf /`"), "{results:?}");
    assert!(results[3].contains("commands are used up: 1/1"), "{results:?}");
    let mut none = config();
    none.max_bash_calls = Some(0);
    let tool = Counted::new("bash");
    House::new(none, vec![bash("a", "ls"), record("completed", "x")]).with_tool(&tool).task();
    assert_eq!(tool.count(), 0, "0 is none at all");
}

#[test]
fn an_agent_without_tokens_stops_and_its_contract_has_failed() {
    let mut limited = config();
    limited.max_tokens_per_session = Some(100);
    let tool = Counted::new("other");
    let answers = vec![
        Says::call("a", "other", json!({})).with_usage(Usage::new(90, 20)),
        record("completed", "must not be reached"),
        record("completed", "must not be reached"),
    ];
    let (text, structured) = House::new(limited, answers).with_tool(&tool).task();
    assert!(!text.contains("must not be reached"), "{text}");
    assert!(text.contains("Status: timeout") || text.contains("Status: failed"), "{text}");
    let contract = &structured.unwrap()["contract"];
    assert_eq!((&contract["state"], &contract["used"]["tokens"]), (&json!("failed"), &json!(110)));
}

#[test]
fn an_agent_that_falls_silent_is_cut_at_its_time_limit() {
    for stall in [None, Some(10)] {
        let mut silent = config();
        silent.stall_threshold_ms = stall;
        let house = House::new(silent, vec![Says::new().hang(), Says::new().hang(), Says::new().hang()]);
        let agent = house
            .agent(vec![Says::call("c", "rev", json!({"task": "t", "timeout_ms": 50})), Says::text("k")]);
        let mut session = Session::new();
        let mut run = std::pin::pin!(agent.start(&mut session, "go").outcome());
        let mut cx = Context::from_waker(Waker::noop());
        let mut outcome = None;
        for _ in 0..10_000 {
            if let Poll::Ready(out) = run.as_mut().poll(&mut cx) {
                outcome = Some(out);
                break;
            }
            house.clock.advance(Duration::from_millis(1));
        }
        assert!(matches!(outcome, Some(Ok(Outcome::Done { .. }))), "{stall:?}: {outcome:?}");
    }
}

#[test]
fn every_status_leaves_its_state_and_a_suspended_contract_goes_on() {
    for (status, state) in
        [("completed", "completed"), ("partial", "suspended"), ("failed", "failed"), ("timeout", "failed")]
    {
        let (_, structured) = House::new(config(), vec![record(status, "r")]).task();
        assert_eq!(structured.unwrap()["contract"]["state"], state, "{status}");
    }
    let house =
        House::new(config(), vec![record("needs_help", "Which one?"), record("completed", "That one.")]);
    let results = house.call(&[
        json!({"task": "Review it"}),
        json!({"task": "The second", "resume": "contract-0"}),
        json!({"task": "again", "resume": "contract-0"}),
    ]);
    assert!(results[0].0.contains("Status: needs_help"));
    assert!(results[1].0.contains("Contract: contract-0\nStatus: completed"), "{results:?}");
    assert!(results[2].0.contains("no suspended contract `contract-0`"), "{results:?}");
    let prompt = house.child.requests()[1].messages[0].text();
    assert!(prompt.contains("Which one?") && prompt.contains("The second"), "{prompt}");
    assert!(house.skills.suspended().is_empty());
}

#[test]
fn an_agent_that_waits_for_a_verdict_goes_on_with_what_its_contract_had_left() {
    let tool = Counted::new("bash");
    let mut limited = config();
    limited.max_bash_calls = Some(1);
    let answers = vec![bash("a", "ls"), bash("b", "ls"), record("completed", "x")];
    let mut house = House::new(limited, answers).with_tool(&tool);
    house = house.map(|skills| skills.with_policy(Policy::default()));
    let agent = house.agent(vec![Says::call("c", "rev", json!({"task": "t"})), Says::text("done")]);
    let mut session = Session::new();
    let mut rounds = 0;
    let mut outcome = block_on(agent.start(&mut session, "go").outcome()).unwrap();
    while outcome == Outcome::Paused {
        rounds += 1;
        assert!(rounds < 5, "never ends");
        // Saved and loaded: another process goes on.
        session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
        for ask in session.pending_asks() {
            session.answer(&ask.digest, Verdict::Allow).unwrap();
        }
        outcome = block_on(agent.resume(&mut session).outcome()).unwrap();
    }
    assert!(rounds >= 1);
    assert_eq!(tool.count(), 1, "the second command is beyond the contract");
    let text = session.messages().iter().flat_map(|m| m.tool_results().map(|r| r.text()).collect::<Vec<_>>());
    assert!(text.collect::<String>().contains("Contract: contract-0\nStatus: completed"));
}

struct Person;

#[async_trait]
impl Answer for Person {
    async fn answer(&self, _: &Contract, report: &Report) -> Option<String> {
        Some(format!("I say 42 to {}", report.result))
    }
}

#[test]
fn a_stuck_agent_walks_up_its_chain_once() {
    let mut stuck = config();
    stuck.escalation_chain = vec![Escalation::Own, Escalation::Human, Escalation::Parent];
    let answers = vec![record("needs_help", "q"), record("blocked", "q"), record("needs_help", "still")];
    let house = House::new(stuck, answers).map(|skills| skills.with_answer(Person));
    let (text, _) = house.task();
    assert!(text.contains("Status: needs_help\n\nstill"), "{text}");
    let last = house.child.requests().pop().unwrap();
    let said: String = last.messages.iter().map(|m| m.text()).collect();
    assert!(said.contains("I say 42 to q"), "{said}");
}

struct Strict(AtomicUsize);

#[async_trait]
impl Review for Strict {
    async fn review(&self, by: Reviewer, _: &Contract, _: &Report) -> ReviewVerdict {
        assert_eq!(by, Reviewer::Rule);
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => ReviewVerdict::Reject("tests are missing".into()),
            _ => ReviewVerdict::Pass,
        }
    }
}

fn gated(reviewer: &str, rounds: u64) -> AgentConfig {
    let text = format!(
        "---\nskill_mode: agent\nagent_config:\n  role_title: R\n  review_gate: {{enabled: true, reviewer: {reviewer}, max_rounds: {rounds}}}\n---\n"
    );
    let options = haversack_skills::document::ParseOptions::default();
    let document = haversack_skills::Document::parse(text.as_bytes(), &options);
    haversack_skill_runtime::metadata::Metadata::read(document.fields().unwrap())
        .metadata
        .agent_config
        .unwrap()
}

#[test]
fn a_result_counts_only_after_its_review() {
    let answers = || vec![record("completed", "one"), record("completed", "two")];
    let house = House::new(gated("rule", 1), answers()).map(|s| s.with_review(Strict(AtomicUsize::new(0))));
    assert!(house.task().0.contains("Status: completed\n\ntwo"));
    // No rounds: the first rejection is the last word.
    let house = House::new(gated("rule", 0), answers()).map(|s| s.with_review(Strict(AtomicUsize::new(0))));
    let (text, _) = house.task();
    assert!(text.contains("Status: needs_help\n\none") && text.contains("tests are missing"), "{text}");
    // Nobody who could review: not reviewed is not passed.
    let (text, _) = House::new(gated("human", 0), answers()).task();
    assert!(text.contains("Status: needs_help") && text.contains("nobody who reviews"), "{text}");
    // A model reviews: result, rejection, better result, pass.
    let answers = vec![
        record("completed", "one"),
        Says::text("REJECT: too short"),
        record("completed", "two"),
        Says::text("PASS"),
    ];
    let (text, _) = House::new(gated("llm", 2), answers).task();
    assert!(text.contains("Status: completed\n\ntwo"), "{text}");
}

#[test]
fn a_failed_try_is_repeated_as_often_as_the_skill_says() {
    let mut again = config();
    again.max_retry = Some(1);
    let house = House::new(again, vec![record("failed", "oops"), record("completed", "ok")]);
    assert!(house.task().0.contains("Status: completed\n\nok"));
    let house = House::new(config(), vec![record("failed", "oops")]);
    assert!(house.task().0.contains("Status: failed\n\noops"));
}

struct Bus {
    listens: bool,
    heard: Arc<Mutex<Vec<Handoff>>>,
}

impl HandoffBus for Bus {
    fn has_subscriber(&self, _: &str) -> bool {
        self.listens
    }

    fn publish(&self, handoff: Handoff) {
        self.heard.lock().unwrap().push(handoff);
    }
}

#[test]
fn a_handoff_goes_to_whoever_listens_and_else_is_recorded_and_run() {
    for listens in [true, false] {
        let heard: Arc<Mutex<Vec<Handoff>>> = Arc::default();
        let house = House::new(config(), vec![record("completed", "x")])
            .map(|skills| skills.with_handoff_bus(Bus { listens, heard: Arc::clone(&heard) }));
        let args = json!({"task": "t", "handoff_reason": "yours", "handoff_context": {"a": 1}});
        let text = house.call(&[args]).remove(0).0;
        assert_eq!(heard.lock().unwrap().len(), 1);
        assert_eq!(text.contains("was handed to"), listens);
        assert_eq!(house.child.request_count(), usize::from(!listens));
    }
    let heard: Arc<Mutex<Vec<Handoff>>> = Arc::default();
    let house = House::new(config(), vec![record("completed", "x")])
        .map(|skills| skills.with_handoff_bus(Bus { listens: true, heard: Arc::clone(&heard) }));
    house.task();
    assert!(heard.lock().unwrap().is_empty(), "no reason, no handoff");
}

struct Host {
    seen: Arc<Mutex<Vec<SpawnRequest>>>,
    fate: u8,
}

#[async_trait]
impl Spawner for Host {
    async fn spawn(&self, request: SpawnRequest) -> Spawned {
        self.seen.lock().unwrap().push(request);
        match self.fate {
            0 => Spawned::Said("{\"status\": \"completed\", \"result\": \"by host\"}".into()),
            1 => Spawned::Failed("no room".into()),
            _ => panic!("the host's bug"),
        }
    }
}

#[test]
fn a_host_may_run_the_agents_itself() {
    for (fate, expected) in [(0, "by host"), (1, "no room"), (2, "the spawner panicked")] {
        let seen: Arc<Mutex<Vec<SpawnRequest>>> = Arc::default();
        let mut rich = config();
        rich.inherit = Inherit::Minimal;
        rich.allow = vec!["echo".into(), "forbidden".into()];
        rich.deny = vec!["read_file".into()];
        rich.runtime_kind = RuntimeKind::Coder;
        let house = House::new(rich, vec![])
            .with_tool(&Counted::new("echo"))
            .with_tool(&Counted::new("uppercase"))
            .with_tool(&Counted::new("read_file"))
            .map(|skills| skills.with_spawner(Host { seen: Arc::clone(&seen), fate }));
        let text = house.call(&[json!({"task": "t", "timeout_ms": 7})]).remove(0).0;
        assert!(text.contains(expected), "{text}");
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].tools, ["echo"]);
        assert_eq!((seen[0].kind, seen[0].label.as_str()), (RuntimeKind::Coder, "rev-contract"));
        assert_eq!(seen[0].timeout, Duration::from_millis(7));
        assert_eq!(seen[0].contract.state(), ContractState::Active);
    }
}

#[test]
fn an_agent_starts_another_only_if_its_contract_lists_it() {
    for (listed, runs) in [(vec![], false), (vec!["helper".to_owned()], true), (vec!["*".to_owned()], true)] {
        let mut leader = config();
        leader.can_dispatch_to = listed;
        let answers = if runs {
            vec![
                Says::call("h", "helper", json!({"task": "sub"})),
                record("completed", "helped").with_usage(Usage::new(5, 5)),
                record("completed", "led"),
            ]
        } else {
            vec![record("completed", "alone")]
        };
        let house = House::new(leader, answers)
            .map(|skills| skills.with_skill(AgentSkill::new("helper", "Helps", config())));
        let (text, structured) = house.task();
        assert_eq!(house.offered(0).contains(&"helper".to_owned()), runs);
        assert!(text.contains(if runs { "led" } else { "alone" }), "{text}");
        if runs {
            let used = &structured.unwrap()["contract"]["used"]["tokens"];
            assert!(used.as_u64().unwrap() >= 10, "what the helper used counts for the leader: {used}");
            let system = house.child.requests()[1].system_text();
            assert!(system.contains("Contract above: contract-0"), "{system}");
        }
    }
}

#[test]
fn arguments_that_make_no_task_are_refused() {
    for args in [
        json!({}),
        json!({"task": "  "}),
        json!({"task": "t", "timeout_ms": 0}),
        json!({"task": "x".repeat(501)}),
    ] {
        let house = House::new(config(), vec![]);
        house.call(std::slice::from_ref(&args));
        assert_eq!(house.child.request_count(), 0, "{args}");
    }
}
