//! Ten thousand random runs, each cut at every poll: whatever the model says, whatever tools, hooks and people do, and
//! wherever the run is dropped, cancelled, or hit by a panic in foreign code, the five invariants hold.
//!
//! Scripts come from a counter, so that a failure names the script and the poll that show it. `HAVERSACK_SCRIPT=number`
//! plays only that one, `HAVERSACK_SCRIPTS=count` as many as there is time for.

#![expect(
    clippy::indexing_slicing,
    reason = "windows of two have two items, and places come from the same list"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream as _;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::{Ask, Verdict};
use haversack_agent_core::digest::Digest;
use haversack_agent_core::event::Event;
use haversack_agent_core::handle::Steered;
use haversack_agent_core::hooks::{Ending, Flow, Gate, Hooks, OnStop, PlannedCall};
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::{Block, CallId, Message, Reasoning, Seal, ToolCall, ToolStatus};
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream,
};
use haversack_agent_core::policy::{Mode, Policy, Rule};
use haversack_agent_core::run::Run;
use haversack_agent_core::session::Session;
use haversack_agent_core::testing::{FakeClock, Wire};
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Value, json};

use crate::play::silence_panics;

/// Scripts of one test run; each is dropped and cancelled at every poll, and hit by a panic at every foreign poll.
const SCRIPTS: u64 = 10_000;

/// Of so many cuts one has all that is costly to check: bytes, wires, and that the session can be taken up again.
const COSTLY: usize = 16;

/// Polls after which a run that can still move is taken to hang.
const MANY_POLLS: usize = 20_000;

/// Steele, Lea and Flood's `SplitMix64`: small, and good enough to pick branches.
#[derive(Clone, Default)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[index].clone()
    }
}

#[derive(Clone, Debug)]
enum Item {
    Event(ModelEvent),
    Error(ModelError),
    Pending,
    Hang,
    Panic,
}

/// Everything that a run is made of, from one number.
#[derive(Clone, Debug)]
struct Plot {
    answers: Vec<Vec<Item>>,
    mode: Mode,
    rules: Vec<Rule>,
    limits: Limits,
    clock: bool,
    approver: Option<u64>,
    hooks: Option<u64>,
    waits: bool,
    fallback: bool,
    tools: u64,
    /// Messages by the poll before which they are sent.
    letters: Vec<(usize, bool)>,
}

const TOOLS: [&str; 7] = ["read", "peek", "write", "fails", "crashes", "stalls", "bites"];

fn plot(number: u64) -> Plot {
    let mut dice = Dice(number.wrapping_mul(0x1234_5678_9abc_def1));
    let answers = (0..=dice.below(3)).map(|turn| answer(&mut dice, turn)).collect();
    let limit =
        |dice: &mut Dice, n| if dice.one_in(4) { Some(u32::try_from(dice.below(n)).unwrap()) } else { None };
    let clock = !dice.one_in(3);
    let mut limits = Limits::default()
        .with_turns(Some(limit(&mut dice, 4).unwrap_or(12)))
        .with_tool_calls(limit(&mut dice, 5))
        .with_parallel_calls(1 + usize::try_from(dice.below(3)).unwrap())
        .with_grace(Duration::from_secs(dice.below(2)))
        .with_input_tokens(limit(&mut dice, 40).map(u64::from));
    if clock && dice.one_in(2) {
        limits = limits.with_tool_timeout(Some(Duration::from_secs(5)));
    }
    if clock && dice.one_in(4) {
        limits = limits.with_wall_time(Some(Duration::from_secs(dice.below(20))));
    }
    let rules =
        [Rule::ask("write"), Rule::deny("peek"), Rule::allow("write"), Rule::allow("*"), Rule::ask("read")];
    Plot {
        answers,
        mode: dice.pick(&[Mode::ReadOnly, Mode::Ask, Mode::AcceptKnown, Mode::Autonomous, Mode::Autonomous]),
        rules: (0..dice.below(3)).map(|_| dice.pick(&rules)).collect(),
        limits,
        clock,
        approver: dice.one_in(2).then(|| dice.roll()),
        hooks: dice.one_in(3).then(|| dice.roll()),
        waits: dice.one_in(3),
        fallback: dice.one_in(4),
        tools: dice.roll(),
        letters: (0..dice.below(3))
            .map(|_| (usize::try_from(dice.below(40)).unwrap(), dice.one_in(2)))
            .collect(),
    }
}

fn answer(dice: &mut Dice, turn: u64) -> Vec<Item> {
    let mut items = Vec::new();
    let event = Item::Event;
    if dice.one_in(3) {
        let reasoning = Reasoning::new("hm");
        let sealed = if dice.one_in(2) { reasoning.with_seal(Seal::new("x", "s")) } else { reasoning };
        items.push(event(ModelEvent::Reasoning("hm".into())));
        items.push(event(ModelEvent::BlockDone(Block::Reasoning(sealed))));
    }
    if dice.one_in(2) {
        let text = dice.pick(&["Well.", "é", "", " "]);
        items.push(event(ModelEvent::Text(text.into())));
        items.push(event(ModelEvent::BlockDone(Block::text(text))));
    }
    for index in 0..dice.below(5) {
        call(dice, turn, u32::try_from(index).unwrap(), &mut items);
    }
    if dice.one_in(2) {
        items.push(event(ModelEvent::Usage(Usage::new(1 + dice.below(20), dice.below(5)))));
    }
    let stop = |reason| Item::Event(ModelEvent::Stop { reason, raw: None });
    match dice.below(16) {
        0 => items.push(stop(StopReason::MaxTokens)),
        1 => items.push(stop(StopReason::Filtered)),
        2 => items.push(stop(dice.pick(&[
            StopReason::Pause,
            StopReason::StopSequence,
            StopReason::ContextWindow,
        ]))),
        3 => {}
        4 => items.push(Item::Hang),
        5 => items.push(Item::Panic),
        6 | 7 => {
            use ModelErrorKind as K;
            let kinds = [
                K::Overloaded,
                K::RateLimited,
                K::Auth,
                K::ContextOverflow { limit: None, used: None },
                K::Filtered,
            ];
            items.push(Item::Error(ModelError::new(dice.pick(&kinds), "told to fail")));
        }
        _ => items.push(stop(dice.pick(&[StopReason::ToolUse, StopReason::ToolUse, StopReason::EndTurn]))),
    }
    // Some answers are cut short, and all have pauses.
    if dice.one_in(8) && !items.is_empty() {
        let keep = usize::try_from(dice.below(items.len() as u64)).unwrap();
        items.truncate(keep);
    }
    for _ in 0..dice.below(3) {
        let at = usize::try_from(dice.below(items.len() as u64 + 1)).unwrap();
        items.insert(at, Item::Pending);
    }
    items
}

fn call(dice: &mut Dice, turn: u64, index: u32, items: &mut Vec<Item>) {
    // Ids that clash now and then, within an answer and between answers, and some that are missing.
    let id: CallId = match dice.below(6) {
        0 => "same".into(),
        1 => "".into(),
        _ => format!("t{turn}c{index}").into(),
    };
    let name = if dice.one_in(10) { "nowhere" } else { dice.pick(&TOOLS) };
    let arguments = match dice.below(8) {
        0 => "",
        1 => "null",
        2 => r#"{"n": 1"#,
        3 => "[1]",
        4 => r#"{"n": "wrong"}"#,
        _ => r#"{"n": 1}"#,
    };
    let call = ToolCall::from_text(id.clone(), name, arguments);
    let previewed = !dice.one_in(4);
    if previewed {
        items.push(Item::Event(ModelEvent::ToolCallStarted { index, id, name: name.into() }));
        items.push(Item::Event(ModelEvent::ToolArguments { index, delta: arguments.into() }));
    }
    // A call that was begun and never finished.
    if !previewed || !dice.one_in(12) {
        items.push(Item::Event(ModelEvent::BlockDone(call.into())));
    }
}

/// What really happened, as seen from outside of the loop.
#[derive(Default)]
struct Truth {
    /// Calls whose tool was really called, with the arguments.
    started: Mutex<Vec<(CallId, Value)>>,
    /// Tool futures that are alive.
    alive: AtomicUsize,
    /// What a person allowed, call and arguments.
    allowed: Mutex<BTreeSet<String>>,
    /// Every ask that anybody was shown.
    asked: Mutex<BTreeMap<Digest, Ask>>,
    /// Usage that the model told, attempt by attempt.
    usage: Mutex<Vec<Usage>>,
    requests: Mutex<Vec<ModelRequest>>,
    /// Polls of foreign code so far.
    ticks: AtomicUsize,
    /// The foreign poll that panics, counted from 1; 0 for none.
    bomb: AtomicUsize,
}

impl Truth {
    /// Counts a poll of foreign code, and panics when it is the one.
    fn tick(&self) {
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(ticks != self.bomb.load(Ordering::Relaxed), "this bomb always panics");
    }

    /// Forgets everything, for the next run of the same script.
    fn reset(&self, bomb: usize) {
        self.started.lock().unwrap().clear();
        self.allowed.lock().unwrap().clear();
        self.asked.lock().unwrap().clear();
        self.usage.lock().unwrap().clear();
        self.requests.lock().unwrap().clear();
        self.ticks.store(0, Ordering::Relaxed);
        self.bomb.store(bomb, Ordering::Relaxed);
    }
}

/// Answers that were not given yet.
type Answers = Arc<Mutex<std::vec::IntoIter<Vec<Item>>>>;

struct Actor {
    answers: Answers,
    truth: Arc<Truth>,
}

impl Model for Actor {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("actor", "random")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let mut kept = request.clone();
        kept.messages = request.messages.iter().cloned().collect();
        self.truth.requests.lock().unwrap().push(kept);
        let end = || {
            vec![
                Item::Event(ModelEvent::BlockDone(Block::text("(over)"))),
                Item::Event(ModelEvent::Stop { reason: StopReason::EndTurn, raw: None }),
            ]
        };
        let mut items = self.answers.lock().unwrap().next().unwrap_or_else(end).into_iter().peekable();
        let mut attempt = None;
        Box::pin(futures_util::stream::poll_fn(move |cx| {
            let _shared = &request;
            self.truth.tick();
            let attempt = *attempt.get_or_insert_with(|| {
                let mut usage = self.truth.usage.lock().unwrap();
                usage.push(Usage::default());
                usage.len() - 1
            });
            match items.next() {
                None => Poll::Ready(None),
                Some(Item::Event(event)) => {
                    if let ModelEvent::Usage(told) = &event {
                        self.truth.usage.lock().unwrap()[attempt].merge(*told);
                    }
                    Poll::Ready(Some(Ok(event)))
                }
                Some(Item::Error(error)) => Poll::Ready(Some(Err(error))),
                Some(Item::Pending) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(Item::Hang) => Poll::Pending,
                Some(Item::Panic) => panic!("this model always panics"),
            }
        }))
    }
}

struct Prop {
    spec: ToolSpec,
    kind: &'static str,
    polls: u64,
    truth: Arc<Truth>,
}

struct Alive<'a> {
    truth: &'a Truth,
    bites: bool,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.truth.alive.fetch_sub(1, Ordering::SeqCst);
        assert!(!self.bites || std::thread::panicking(), "this drop always panics");
    }
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        self.truth.started.lock().unwrap().push((context.call_id().clone(), arguments));
        self.truth.alive.fetch_add(1, Ordering::SeqCst);
        let _alive = Alive { truth: &self.truth, bites: self.kind == "bites" };
        context.progress("begun");
        for _ in 0..self.polls {
            self.truth.tick();
            crate::play::yield_once().await;
        }
        self.truth.tick();
        match self.kind {
            "fails" => Err(ToolError::failed("told to fail")),
            "crashes" => panic!("this tool always panics"),
            "stalls" => std::future::pending().await,
            _ => Ok(ToolOutput::text("x")),
        }
    }
}

struct Meddler(Arc<Mutex<Dice>>, Arc<Truth>);

#[async_trait]
impl Hooks for Meddler {
    async fn before_request(&self, _: &mut ModelRequest) -> Flow {
        let roll = self.0.lock().unwrap().below(24);
        crate::play::yield_once().await;
        self.1.tick();
        match roll {
            0 => Flow::Stop("told to".into()),
            1 => panic!("this hook always panics"),
            _ => Flow::Continue,
        }
    }

    async fn before_tool(&self, _: &PlannedCall) -> Gate {
        let roll = self.0.lock().unwrap().below(12);
        crate::play::yield_once().await;
        self.1.tick();
        match roll {
            0 => Gate::Deny("told to".into()),
            1 => Gate::Ask("told to".into()),
            2 => Gate::Rewrite(json!({"n": 7})),
            3 => Gate::Rewrite(json!({"n": "wrong"})),
            4 => Gate::Rewrite(json!([])),
            5 => panic!("this hook always panics"),
            _ => Gate::Pass,
        }
    }

    async fn after_tool(&self, _: &PlannedCall, output: &mut ToolOutput) {
        let roll = self.0.lock().unwrap().below(8);
        crate::play::yield_once().await;
        self.1.tick();
        match roll {
            0 => output.blocks.clear(),
            1 => panic!("this hook always panics"),
            _ => {}
        }
    }

    async fn on_stop(&self, _: &Ending) -> OnStop {
        let roll = self.0.lock().unwrap().below(6);
        crate::play::yield_once().await;
        self.1.tick();
        match roll {
            0 => OnStop::Continue(Message::user("hook says go on")),
            1 => panic!("this hook always panics"),
            _ => OnStop::End,
        }
    }
}

fn verdict(dice: &mut Dice, ask: &Ask, truth: &Truth) -> Verdict {
    let allow = |arguments: &Value| {
        truth.allowed.lock().unwrap().insert(format!("{} {arguments}", ask.call));
    };
    match dice.below(9) {
        0 => Verdict::deny("no"),
        1 => Verdict::Stop { reason: "enough".into() },
        2 => Verdict::Defer,
        3 => {
            let edited = json!({"n": 9});
            allow(&edited);
            Verdict::AllowEdited(edited)
        }
        4 => Verdict::AllowEdited(json!({"n": "wrong"})),
        5 => {
            allow(&ask.arguments);
            Verdict::AllowAlways(ask.suggested.clone())
        }
        _ => {
            allow(&ask.arguments);
            Verdict::Allow
        }
    }
}

struct Stage {
    agent: Agent,
    truth: Arc<Truth>,
    clock: FakeClock,
    plot: Plot,
    answers: Answers,
    hooks: Arc<Mutex<Dice>>,
    approver: Arc<Mutex<Dice>>,
}

impl Stage {
    fn new(plot: Plot) -> Self {
        let truth: Arc<Truth> = Arc::default();
        let clock = FakeClock::new();
        let answers = Answers::default();
        let [hooks, approver] = [(); 2].map(|()| Arc::new(Mutex::new(Dice::default())));
        let model = |answers: &Answers| Actor { answers: Arc::clone(answers), truth: Arc::clone(&truth) };
        let mut builder = Agent::builder(model(&answers))
            .policy(Policy::new(plot.mode).with_rules(plot.rules.clone()))
            .limits(plot.limits.clone())
            .randomness(|| 0.5);
        let mut dice = Dice(plot.tools);
        for kind in TOOLS {
            let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
            let mut spec = ToolSpec::new(kind, "A prop").with_schema(schema);
            if matches!(kind, "read" | "peek" | "crashes") {
                spec = spec.read_only();
            }
            let polls = dice.below(3);
            builder = builder.tool(Prop { spec, kind, polls, truth: Arc::clone(&truth) });
        }
        if plot.clock {
            builder = builder.clock(clock.clone());
        }
        if plot.fallback {
            builder = builder.fallback(model(&Answers::default()));
        }
        if plot.hooks.is_some() {
            builder = builder.hooks(Meddler(Arc::clone(&hooks), Arc::clone(&truth)));
        }
        if plot.approver.is_some() {
            let (dice, truth) = (Arc::clone(&approver), Arc::clone(&truth));
            builder = builder.approver(move |asks: Vec<Ask>| {
                let (dice, truth) = (Arc::clone(&dice), Arc::clone(&truth));
                async move {
                    crate::play::yield_once().await;
                    truth.tick();
                    let mut dice = dice.lock().unwrap().clone_and_move();
                    assert!(!dice.one_in(12), "this approver always panics");
                    let answers = asks.len() - usize::from(dice.one_in(8));
                    asks.iter().take(answers).map(|ask| verdict(&mut dice, ask, &truth)).collect()
                }
            });
        }
        if plot.waits {
            builder = builder.wait_for_verdicts();
        }
        Self { agent: builder.build().unwrap(), truth, clock, plot, answers, hooks, approver }
    }

    /// Everything as it was before the first run, but for the time of day.
    fn reset(&self, bomb: usize) {
        self.truth.reset(bomb);
        *self.answers.lock().unwrap() = self.plot.answers.clone().into_iter();
        *self.hooks.lock().unwrap() = Dice(self.plot.hooks.unwrap_or_default());
        *self.approver.lock().unwrap() = Dice(self.plot.approver.unwrap_or_default());
    }
}

impl Dice {
    /// The dice of this moment; the original moves on.
    fn clone_and_move(&mut self) -> Self {
        Self(self.roll())
    }
}

/// What was seen of one run.
#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    polls: usize,
    ended: bool,
    sent: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cut {
    Drop,
    Cancel,
    Panic,
}

/// Plays a run up to a poll, then cuts it. Without a cut it plays to the end.
fn play(stage: &Stage, session: &mut Session, cut: Option<(usize, Cut)>, at: &str) -> (Seen, Vec<Message>) {
    let mut run = stage.agent.start(session, "go");
    let handle = run.handle();
    let mut seen = Seen::default();
    let mut cancelled = false;
    let mut idle = 0;
    loop {
        if let Some((poll, way)) = cut
            && poll == seen.polls
            && !cancelled
        {
            if way == Cut::Drop {
                break;
            }
            handle.cancel("the test");
            cancelled = true;
        }
        for (number, (poll, steers)) in stage.plot.letters.iter().enumerate() {
            if *poll == seen.polls {
                let text = format!("letter {number}");
                let queued =
                    if *steers { handle.steer(text.as_str()) } else { handle.follow_up(text.as_str()) };
                if queued == Steered::Queued {
                    seen.sent.push(text);
                }
            }
        }
        seen.polls += 1;
        assert!(seen.polls < MANY_POLLS, "{at}: the run never ends");
        match poll(&mut run) {
            Poll::Ready(Some(event)) => {
                idle = 0;
                if let Event::ApprovalAsked { ask } = &event {
                    stage.truth.asked.lock().unwrap().insert(ask.digest, (**ask).clone());
                    if stage.plot.waits && stage.plot.approver.is_none() {
                        let mut dice = Dice(stage.plot.tools ^ seen.polls as u64);
                        let _late_or_not = handle.decide(&ask.digest, verdict(&mut dice, ask, &stage.truth));
                    }
                }
                seen.events.push(event);
            }
            Poll::Ready(None) => {
                seen.ended = true;
                break;
            }
            Poll::Pending => {
                idle += 1;
                // A few polls for whatever woke itself; then time passes; then nothing will ever happen.
                if idle > 4 && !stage.clock.advance_to_next() {
                    assert!(!cancelled, "{at}: a cancelled run has to end");
                    handle.cancel("stuck");
                    cancelled = true;
                    idle = 0;
                }
            }
        }
    }
    drop(run);
    (seen, handle.undelivered())
}

fn poll(run: &mut Run<'_>) -> Poll<Option<Event>> {
    Pin::new(run).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// Everything that has to hold behind a run, however it ended.
fn check(stage: &Stage, session: &Session, seen: &Seen, undelivered: &[Message], at: &str) {
    let truth = &stage.truth;
    assert_eq!(session.check(), [], "{at}");
    assert_eq!(truth.alive.load(Ordering::SeqCst), 0, "{at}: a tool outlived its run");
    check_results(truth, session, at);
    check_letters(session, seen, undelivered, at);
    let told = truth.usage.lock().unwrap().iter().fold(Usage::default(), |sum, u| sum.plus(*u));
    assert_eq!(session.ledger().total(), told, "{at}: the books do not balance");
    assert_eq!(session.spent().input_tokens, told.input.unwrap_or(0), "{at}");
    check_prefix(&truth.requests.lock().unwrap(), at);
    check_approvals(stage, at);
    if seen.ended {
        check_pairs(&seen.events, at);
    }
}

/// What holds of the stored bytes, and on every wire.
fn check_stored(session: &Session, at: &str) {
    let saved = serde_json::to_string(session).unwrap();
    let loaded: Session = serde_json::from_str(&saved).unwrap();
    assert_eq!(loaded, *session, "{at}");
    if !session.has_open_calls() {
        for wire in Wire::ALL {
            // A model may say nothing, or nothing but thoughts; providers leave out what their wire has no place
            // for. Ids are the model's as well.
            let is_ours = |problem: &str| {
                let theirs = ["white space", "empty", "without text and calls", "reasoning", "[A-Za-z0-9_-]"];
                !theirs.iter().any(|part| problem.contains(part))
            };
            let found: Vec<_> = wire.check_history(session.messages());
            let found: Vec<_> = found.into_iter().filter(|v| is_ours(&v.problem)).collect();
            assert_eq!(
                found,
                [],
                "{at}: {wire}\n{}",
                serde_json::to_string_pretty(session.messages()).unwrap()
            );
        }
    }
}

/// A result tells the truth about its call, and nothing runs from an answer that was cut off.
fn check_results(truth: &Truth, session: &Session, at: &str) {
    let started = truth.started.lock().unwrap();
    let ids: BTreeSet<_> = started.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids.len(), started.len(), "{at}: a call ran twice");
    for pair in session.messages().windows(2) {
        let whole = pair[0].stop.as_ref().is_some_and(StopReason::is_complete);
        for result in pair[1].tool_results() {
            let ran = ids.contains(&result.id);
            let fits = match result.status {
                ToolStatus::Ok => ran,
                // A call that was cut before its first poll has not run either, but nobody can know that.
                ToolStatus::Denied | ToolStatus::NotStarted => !ran,
                _ => true,
            };
            assert!(fits, "{at}: {} says {:?}, ran: {ran}", result.id, result.status);
            assert!(whole || !ran, "{at}: {} ran from an answer that was cut off", result.id);
        }
    }
}

/// A letter is delivered once or handed back once.
fn check_letters(session: &Session, seen: &Seen, undelivered: &[Message], at: &str) {
    let told = |letter: &str| {
        let added = |e: &&Event| matches!(e, Event::MessageAdded { content, .. } if content.text() == letter);
        seen.events.iter().filter(added).count()
    };
    let summarised = seen.events.iter().any(|e| matches!(e, Event::CompactionEnded { summarised: 1.., .. }));
    for letter in &seen.sent {
        let mut there = session.messages().iter().filter(|m| m.text() == *letter).count();
        if summarised && there == 0 {
            // Delivered, and by now part of a summary.
            there = told(letter);
        }
        let back = undelivered.iter().filter(|m| m.text() == *letter).count();
        assert_eq!(there + back, 1, "{at}: `{letter}` is {there} times in the history, {back} times back");
    }
}

/// A request begins with the request before it.
fn check_prefix(requests: &[ModelRequest], at: &str) {
    let asks_for_summary = |request: &ModelRequest| request.system.iter().any(|s| &*s.name == "summary");
    for pair in requests.windows(2).filter(|pair| !pair.iter().any(asks_for_summary)) {
        assert_eq!(pair[0].system, pair[1].system, "{at}");
        assert_eq!(pair[0].tools, pair[1].tools, "{at}");
        let longer = pair[1].messages.iter().take(pair[0].messages.len());
        assert!(longer.eq(pair[0].messages.iter()), "{at}: the prefix of a request changed");
    }
}

/// What somebody was asked about runs only as it was allowed.
fn check_approvals(stage: &Stage, at: &str) {
    let asked: BTreeSet<_> = stage.truth.asked.lock().unwrap().values().map(|a| a.call.clone()).collect();
    let allowed = stage.truth.allowed.lock().unwrap();
    for (id, arguments) in stage.truth.started.lock().unwrap().iter().filter(|(id, _)| asked.contains(id)) {
        assert!(
            allowed.contains(&format!("{id} {arguments}")),
            "{at}: {id} ran with {arguments}, unapproved"
        );
    }
}

/// What begins ends.
fn check_pairs(events: &[Event], at: &str) {
    let count = |what: fn(&Event) -> bool| events.iter().filter(|e| what(e)).count();
    let pairs: [(&str, usize, usize); 4] = [
        ("run", count(|e| matches!(e, Event::RunStarted { .. })), count(|e| matches!(e, Event::RunEnded))),
        (
            "turn",
            count(|e| matches!(e, Event::TurnStarted { .. })),
            count(|e| matches!(e, Event::TurnEnded { .. })),
        ),
        (
            "ask",
            count(|e| matches!(e, Event::ApprovalAsked { .. })),
            count(|e| matches!(e, Event::ApprovalClosed { .. })),
        ),
        (
            "attempt",
            count(|e| matches!(e, Event::MessageStarted { .. })),
            count(|e| matches!(e, Event::MessageEnded { .. } | Event::AttemptDiscarded { .. })),
        ),
    ];
    for (what, begun, ended) in pairs {
        assert!(begun >= ended, "{at}: {ended} of {begun} {what}s ended");
        if what != "attempt" {
            assert_eq!(begun, ended, "{at}: {what}\n{events:#?}");
        }
    }
    assert_eq!(events.last(), Some(&Event::RunEnded), "{at}");
}

/// A cut or paused session can be taken up again, and is valid behind that as well.
fn go_on(stage: &Stage, session: &mut Session, at: &str) {
    let before: Vec<_> = session.messages().to_vec();
    let mut run = stage.agent.resume(session);
    for _ in 0..3 {
        let _event = poll(&mut run);
    }
    drop(run);
    assert_eq!(session.check(), [], "{at}, resumed");
    assert!(session.messages().starts_with(&before), "{at}: resuming changed the history");
    assert_eq!(stage.truth.alive.load(Ordering::SeqCst), 0, "{at}, resumed");
}

/// Plays one script whole and cut everywhere. Gives the number of cuts.
fn perform(number: u64) -> usize {
    let mut session = Session::new();
    let stage = Stage::new(plot(number));
    stage.reset(0);
    let at = format!("script {number}");
    let (seen, undelivered) = play(&stage, &mut session, None, &at);
    check(&stage, &session, &seen, &undelivered, &at);
    check_stored(&session, &at);
    let ticks = stage.truth.ticks.load(Ordering::Relaxed);
    go_on(&stage, &mut session, &at);
    let ways = [(Cut::Drop, 0..seen.polls), (Cut::Cancel, 0..seen.polls), (Cut::Panic, 1..ticks + 1)];
    let mut cuts = 0;
    for (way, places) in ways {
        for place in places {
            let at = format!("script {number}, {way:?} at poll {place}");
            let (cut, bomb) = if way == Cut::Panic { (None, place) } else { (Some((place, way)), 0) };
            stage.reset(bomb);
            let mut session = Session::new();
            let (seen, undelivered) = play(&stage, &mut session, cut, &at);
            check(&stage, &session, &seen, &undelivered, &at);
            // Also a run that had paused when it was dropped: calls are open only where somebody has to answer.
            let open = session.has_open_calls();
            assert_eq!(open, !session.pending_asks().is_empty(), "{at}: calls and asks do not agree");
            if (cuts + usize::try_from(number).unwrap()) % COSTLY == 0 {
                check_stored(&session, &at);
                go_on(&stage, &mut session, &at);
            }
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn whatever_happens_and_wherever_a_run_is_cut_the_invariants_hold() {
    silence_panics();
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    if let Some(number) = number("HAVERSACK_SCRIPT") {
        perform(number);
        return;
    }
    let scripts = number("HAVERSACK_SCRIPTS").unwrap_or(SCRIPTS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let cuts: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    (0..scripts)
                        .skip(usize::try_from(first).unwrap())
                        .step_by(usize::try_from(threads).unwrap())
                        .map(perform)
                        .sum::<usize>()
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    eprintln!("{cuts} cuts");
    assert!(cuts as u64 > scripts * 20, "only {cuts} cuts");
}
