//! Ten thousand random scripts, each cut at every poll by a drop, a cancel and a panic: the history stays valid.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use haversack_agent_core::agent::Agent;
use haversack_agent_core::approval::{Approver, Ask, Verdict};
use haversack_agent_core::event::Event;
use haversack_agent_core::hooks::{Gate, Hooks, PlannedCall};
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::{Block, Role, ToolCall, ToolStatus};
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream,
};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::tool::{ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::{StopReason, Usage};
use serde_json::{Value, json};

const SCRIPTS: u64 = 10_000;

/// The text of every panic that a script makes on purpose.
const BOMB: &str = "a bomb of the script";

thread_local! {
    /// Foreign polls until the bomb goes off.
    static FUSE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Counts a poll of foreign code, and panics when it is the one.
fn tick() {
    FUSE.with(|fuse| {
        let left = fuse.get();
        fuse.set(left.saturating_sub(1));
        assert!(left != 0, "{BOMB}");
    });
}

/// Deterministic, and good enough for tests: the well-known `SplitMix64`.
#[derive(Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// Answers at random, the same for the same seed and place in the conversation, and ends after two turns.
struct RandomModel {
    seed: u64,
}

impl Model for RandomModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("random", "dice")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        let turn = request.messages.iter().filter(|m| m.role == Role::Assistant).count();
        let mut items = answer(self.seed, turn).into_iter();
        Box::pin(stream::poll_fn(move |cx| {
            tick();
            let _held = &request;
            match items.next() {
                Some(None) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(Some(item)) => Poll::Ready(Some(item)),
                None => Poll::Ready(None),
            }
        }))
    }
}

type Item = Result<ModelEvent, ModelError>;

fn answer(seed: u64, turn: usize) -> Vec<Option<Item>> {
    let mut dice = Dice(seed ^ (turn as u64) << 32);
    let mut items = Vec::new();
    let calls = if turn < 2 { dice.roll(4) } else { 0 };
    if dice.roll(2) == 0 {
        items.push(Some(Ok(ModelEvent::Text("hm".into()))));
        items.push(Some(Ok(ModelEvent::BlockDone(Block::text("hm")))));
    }
    for index in 0..calls {
        let name = ["read", "write", "nowhere", "loose"][usize::try_from(dice.roll(4)).unwrap()];
        // Ids repeat across turns and within them.
        let id = format!("c{}", dice.roll(3));
        let arguments =
            ["{}", r#"{"n":1}"#, r#"{"n":"#, r#"{"n":"x"}"#][usize::try_from(dice.roll(4)).unwrap()];
        if dice.roll(2) == 0 {
            items.push(None);
        }
        if dice.roll(3) == 0 {
            let index = u32::try_from(index).unwrap();
            let started = ModelEvent::ToolCallStarted { index, id: id.as_str().into(), name: name.into() };
            items.push(Some(Ok(started)));
        }
        items.push(Some(Ok(ModelEvent::BlockDone(ToolCall::from_text(id, name, arguments).into()))));
    }
    items.push(Some(Ok(ModelEvent::Usage(Usage::new(10, 1)))));
    items.push(match dice.roll(12) {
        0 => Some(Err(ModelError::new(ModelErrorKind::InvalidToolCall, "x"))),
        1 => Some(Ok(ModelEvent::Stop { reason: StopReason::MaxTokens, raw: None })),
        2 => None,
        _ => Some(Ok(ModelEvent::Stop { reason: StopReason::ToolUse, raw: None })),
    });
    items
}

struct RandomTool {
    spec: ToolSpec,
    polls: u64,
    alive: Arc<AtomicUsize>,
}

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Tool for RandomTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.alive.fetch_add(1, Ordering::Relaxed);
        let _alive = Alive(Arc::clone(&self.alive));
        for _ in 0..self.polls {
            tick();
            crate::play::yield_once().await;
        }
        tick();
        if self.polls == 2 { Err(ToolError::failed("no")) } else { Ok("yes".into()) }
    }
}

struct RandomGate(u64);

#[async_trait]
impl Approver for RandomGate {
    async fn decide(&self, asks: Vec<Ask>) -> Vec<Verdict> {
        crate::play::yield_once().await;
        tick();
        let mut dice = Dice(self.0);
        let few = dice.roll(4) == 0;
        let verdict = |_: &Ask| match dice.roll(8) {
            0 => Verdict::Defer,
            1 => Verdict::deny("no"),
            2 => Verdict::AllowEdited(json!({"n": 2})),
            3 => Verdict::Stop { reason: "stop".into() },
            _ => Verdict::Allow,
        };
        asks.iter().skip(usize::from(few)).map(verdict).collect()
    }
}

#[async_trait]
impl Hooks for RandomGate {
    async fn before_tool(&self, call: &PlannedCall) -> Gate {
        tick();
        match Dice(self.0 ^ call.id.as_str().len() as u64).roll(6) {
            0 => Gate::Deny("hook".into()),
            1 => Gate::Ask("hook".into()),
            2 => Gate::Rewrite(json!({"n": 3})),
            _ => Gate::Pass,
        }
    }
}

fn agent(seed: u64, alive: &Arc<AtomicUsize>) -> Agent {
    let mut dice = Dice(seed);
    let schema = Arc::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
    let polls = [(); 3].map(|()| dice.roll(4));
    let tool = |name: &str, reads: bool, polls: u64| {
        let spec = ToolSpec::new(name, name).with_schema(Arc::clone(&schema));
        let spec = if reads { spec.read_only() } else { spec };
        RandomTool { spec, polls, alive: Arc::clone(alive) }
    };
    let (read, write, loose) =
        (tool("read", true, polls[0]), tool("write", false, polls[1]), tool("loose", false, polls[2]));
    let mode = if dice.roll(2) == 0 { Mode::Ask } else { Mode::Autonomous };
    let limits = Limits::default().with_parallel_calls(1 + usize::try_from(dice.roll(3)).unwrap());
    let mut builder = Agent::builder(RandomModel { seed })
        .tool(read)
        .tool(write)
        .tool(loose)
        .policy(Policy::new(mode))
        .limits(limits.with_turns(Some(6)));
    if dice.roll(3) > 0 {
        builder = builder.approver(RandomGate(seed));
    }
    if dice.roll(3) == 0 {
        builder = builder.hooks(RandomGate(seed));
    }
    builder.build().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Drop,
    Cancel,
    Panic,
}

/// Runs a script up to a cut. Whether it ended before.
fn cut(agent: &Agent, alive: &AtomicUsize, seed: u64, way: Way, at: usize) -> bool {
    let mut session = Session::new();
    let mut cx = Context::from_waker(Waker::noop());
    FUSE.set(if way == Way::Panic { at } else { usize::MAX });
    let (mut started, mut ended, mut over) = (Vec::new(), Vec::new(), false);
    let mut run = agent.start(&mut session, "go");
    let polls = if way == Way::Panic { usize::MAX } else { at };
    let mut polled = 0;
    let mut cancelled = false;
    while !over && (polled < polls || cancelled) {
        polled += 1;
        match run.poll_next_unpin(&mut cx) {
            Poll::Ready(Some(Event::ToolStarted { call, .. })) => started.push(call),
            Poll::Ready(Some(Event::ToolEnded { result, .. })) => {
                ended.push((result.id.clone(), result.status));
            }
            Poll::Ready(Some(_)) | Poll::Pending => {}
            Poll::Ready(None) => over = true,
        }
        if polled == polls && way == Way::Cancel {
            run.handle().cancel("cut");
            cancelled = true;
        }
        assert!(polled < 100_000, "seed {seed} {way:?} at {at}: no end");
    }
    let whole = over && !cancelled && FUSE.get() > 0;
    let paused = if over {
        matches!(run.outcome().now_or_never(), Some(Ok(Outcome::Paused)))
    } else {
        drop(run);
        false
    };
    let name = format!("seed {seed}, {way:?} at {at}");
    assert_eq!(session.check(), [], "{name}");
    assert_eq!(alive.load(Ordering::Relaxed), 0, "{name}: a future outlived its run");
    // A run that has paused, and whose last events nobody read, is paused all the same.
    let may_be_open = paused || (!over && !session.pending_asks().is_empty());
    assert!(!session.has_open_calls() || may_be_open, "{name}");
    assert!(!paused || session.has_open_calls(), "{name}");
    for result in session.messages().iter().flat_map(|m| m.tool_results()) {
        let told = ended.iter().find(|(id, _)| *id == result.id).map(|(_, status)| *status);
        let ran = started.contains(&result.id);
        match told {
            Some(status) => assert_eq!(status, result.status, "{name}"),
            None if !ran => assert_ne!(result.status, ToolStatus::Ok, "{name}: nobody saw it start"),
            None => {}
        }
        assert!(ran || !matches!(result.status, ToolStatus::Ok | ToolStatus::Interrupted), "{name}");
    }
    let total = session.ledger().total();
    assert_eq!(session.spent().input_tokens, total.input.unwrap_or(0), "{name}");
    whole
}

fn silence_bombs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
            if !text.contains(BOMB) {
                usual(info);
            }
        }));
    });
}

#[test]
fn ten_thousand_scripts_survive_a_drop_a_cancel_and_a_panic_at_every_poll() {
    silence_bombs();
    let cuts = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get() as u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let cuts = &cuts;
            scope.spawn(move || {
                for seed in (thread..SCRIPTS).step_by(usize::try_from(threads).unwrap()) {
                    let alive = Arc::default();
                    let agent = agent(seed, &alive);
                    for way in [Way::Drop, Way::Cancel, Way::Panic] {
                        let mut at = 0;
                        while !cut(&agent, &alive, seed, way, at) {
                            at += 1;
                        }
                        cuts.fetch_add(at, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let cuts = cuts.load(Ordering::Relaxed);
    assert!(cuts > 10 * 3 * 10_000, "only {cuts} cut points");
    eprintln!("{cuts} cut points");
}
