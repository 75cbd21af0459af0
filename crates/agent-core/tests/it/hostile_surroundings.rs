//! What no script of a model can do by itself: floods of calls, and panics in every piece of host code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::approval::{Ask, Verdict};
use haversack_agent_core::clock::{Clock, Sleep};
use haversack_agent_core::limits::Limits;
use haversack_agent_core::message::ToolStatus;
use haversack_agent_core::model::{Model, ModelErrorKind, ModelInfo, ModelRequest, ModelStream};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::output::{Spill, SpillSink};
use haversack_agent_core::policy::{ApprovalKey, Mode, Policy};
use haversack_agent_core::session::Session;
use haversack_agent_core::testing::{Answer, Fate, Gate, ScriptedModel, ScriptedTool, assert_valid};
use haversack_agent_core::tool::{Effects, ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::Usage;
use serde_json::{Value, json};

use crate::play::{block_on, poll_times, silence_panics};

fn statuses(session: &Session) -> Vec<ToolStatus> {
    session.messages().iter().flat_map(|m| m.tool_results()).map(|r| r.status).collect()
}

fn many_calls(count: usize) -> Answer {
    (0..count).fold(Answer::new(), |a, i| a.with_call(format!("c{i}"), "t", json!({"n": i})))
}

fn autonomous(model: ScriptedModel, tool: impl Tool) -> AgentBuilder {
    Agent::builder(model).tool(tool).policy(Policy::new(Mode::Autonomous))
}

#[test]
fn ten_thousand_calls_in_one_answer_have_ten_thousand_results_and_only_the_first_thousand_run() {
    let tool = ScriptedTool::new(ToolSpec::new("t", "A tool").read_only());
    let model = ScriptedModel::new([many_calls(10_000), Answer::text("done")]);
    let agent = autonomous(model, tool.clone()).build().unwrap();
    let mut session = Session::new();
    block_on(agent.start(&mut session, "go").outcome()).unwrap();
    let statuses = statuses(&session);
    assert_eq!(statuses.len(), 10_000);
    assert_eq!(statuses.iter().filter(|s| **s == ToolStatus::Ok).count(), 1_000);
    assert_eq!(tool.calls().len(), 1_000);
    assert!(tool.most_running() <= 8);
    assert_valid(session.messages());
}

#[test]
fn ten_thousand_calls_can_be_asked_about_and_answered_one_by_one_behind_a_restart() {
    let tool = ScriptedTool::new(ToolSpec::new("t", "A tool"));
    let model = ScriptedModel::new([many_calls(2_000), Answer::text("done")]);
    let limits = Limits::default().with_calls_per_turn(10_000).with_repeat_stop(u32::MAX);
    let agent = Agent::builder(model).tool(tool).limits(limits).build().unwrap();
    let mut session = Session::new();
    assert_eq!(block_on(agent.start(&mut session, "go").outcome()).unwrap(), Outcome::Paused);
    let mut session: Session = serde_json::from_str(&serde_json::to_string(&session).unwrap()).unwrap();
    let asks = session.pending_asks();
    assert_eq!(asks.len(), 2_000);
    // From the last to the first, every other one.
    for (place, ask) in asks.iter().enumerate().rev() {
        let verdict = if place % 2 == 0 { Verdict::Allow } else { Verdict::deny("odd") };
        session.answer(&ask.digest, verdict).unwrap();
    }
    block_on(agent.resume(&mut session).outcome()).unwrap();
    let statuses = statuses(&session);
    let expected = (0..2_000).map(|i| if i % 2 == 0 { ToolStatus::Ok } else { ToolStatus::Denied });
    assert_eq!(statuses, expected.collect::<Vec<_>>());
    assert_valid(session.messages());
}

#[test]
fn a_silent_model_without_a_clock_ends_at_the_first_poll_behind_a_cancel() {
    let agent = Agent::builder(ScriptedModel::new([Answer::text("half").hang()])).build().unwrap();
    let mut session = Session::new();
    let mut run = agent.start(&mut session, "go");
    let (_, over) = poll_times(&mut run, 100);
    assert!(!over);
    run.handle().cancel("enough");
    let (events, over) = poll_times(&mut run, 100);
    assert!(over, "{events:?}");
    drop(run);
    assert_eq!(session.messages().last().unwrap().text(), "half", "what was said is kept");
    assert_valid(session.messages());
}

/// Every piece of host code that the loop calls, each of which can be told to panic.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Keys,
    Effects,
    CallItself,
    Spec,
    ModelInfo,
    StreamItself,
    Price,
    Randomness,
    Mend,
    Sink,
    Now,
    Sleep,
    Approver,
}

impl Who {
    const ALL: [Self; 13] = [
        Self::Keys,
        Self::Effects,
        Self::CallItself,
        Self::Spec,
        Self::ModelInfo,
        Self::StreamItself,
        Self::Price,
        Self::Randomness,
        Self::Mend,
        Self::Sink,
        Self::Now,
        Self::Sleep,
        Self::Approver,
    ];
}

struct Touchy(Who, ToolSpec);

#[async_trait]
impl Tool for Touchy {
    fn spec(&self) -> &ToolSpec {
        assert!(self.0 != Who::Spec, "this spec always panics");
        &self.1
    }

    fn approval_keys(&self, _: &Value) -> Vec<ApprovalKey> {
        assert!(self.0 != Who::Keys, "these keys always panics");
        Vec::new()
    }

    fn effects(&self, _: &Value) -> Effects {
        assert!(self.0 != Who::Effects, "these effects always panics");
        self.1.effects
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        assert!(self.0 != Who::CallItself, "this call always panics");
        Ok(ToolOutput::text("x".repeat(100_000)))
    }
}

struct TouchyModel(Who, ScriptedModel);

impl Model for TouchyModel {
    fn info(&self) -> ModelInfo {
        assert!(self.0 != Who::ModelInfo, "this info always panics");
        self.1.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        assert!(self.0 != Who::StreamItself, "this stream always panics");
        self.1.stream(request)
    }
}

struct TouchyClock(Who, AtomicUsize);

impl Clock for TouchyClock {
    fn now(&self) -> Duration {
        // Panics in the middle, not while the run is being made.
        let reads = self.1.fetch_add(1, Ordering::SeqCst);
        assert!(self.0 != Who::Now || reads < 5, "this clock always panics");
        Duration::from_secs(reads as u64)
    }

    fn sleep_until(&self, _: Duration) -> Sleep {
        assert!(self.0 != Who::Sleep, "this sleep always panics");
        Box::pin(std::future::ready(()))
    }
}

struct TouchySink(Who);

#[async_trait]
impl SpillSink for TouchySink {
    async fn spill(&self, _: Spill) -> Result<String, ToolError> {
        assert!(self.0 != Who::Sink, "this sink always panics");
        Ok("kept".into())
    }
}

#[test]
fn a_panic_in_any_host_code_never_reaches_the_host_and_leaves_a_valid_session() {
    silence_panics();
    for who in Who::ALL {
        let caught = std::panic::catch_unwind(|| {
            let answers = [
                Answer::failure(ModelErrorKind::Overloaded, "busy"),
                Answer::call("1", "t", json!({})).with_usage(Usage::new(1, 1)),
                Answer::new().with_raw_call("2", "t", "{").with_usage(Usage::new(1, 1)),
                Answer::text("done"),
            ];
            let schema = json!({"type": "object", "properties": {}});
            let tool = Touchy(who, ToolSpec::new("t", "A tool").with_schema(schema));
            let agent = Agent::builder(TouchyModel(who, ScriptedModel::new(answers)))
                .tool(tool)
                .clock(TouchyClock(who, AtomicUsize::new(0)))
                .randomness(move || {
                    assert!(who != Who::Randomness, "this randomness always panics");
                    0.5
                })
                .prices(move |_, _| {
                    assert!(who != Who::Price, "this price always panics");
                    Some(1)
                })
                .mend_arguments(move |_, _| {
                    assert!(who != Who::Mend, "this mending always panics");
                    None
                })
                .spill_sink(TouchySink(who))
                .approver(move |asks: Vec<Ask>| async move {
                    assert!(who != Who::Approver, "this approver always panics");
                    vec![Verdict::Allow; asks.len()]
                })
                .build();
            let Ok(agent) = agent else { return };
            let mut session = Session::new();
            let mut run = agent.start(&mut session, "go");
            let (events, over) = poll_times(&mut run, 10_000);
            drop(run);
            assert!(over, "{who:?}: {events:#?}");
            assert_eq!(session.check(), [], "{who:?}");
            assert_valid(session.messages());
        });
        assert!(caught.is_ok(), "a panic in {who:?} came through");
    }
}

#[test]
fn a_message_sent_at_any_moment_is_delivered_once_or_handed_back_once() {
    for moment in 0..60 {
        for steers in [true, false] {
            let gate = Gate::new();
            gate.open();
            let tool = ScriptedTool::new(ToolSpec::new("t", "A tool").read_only()).with_gate(&gate);
            let model =
                ScriptedModel::new([Answer::text("a").with_call("1", "t", json!({})), Answer::text("b")]);
            let agent = autonomous(model, tool.with_fates([Fate::Output("x".into())])).build().unwrap();
            let mut session = Session::new();
            let mut run = agent.start(&mut session, "go");
            let handle = run.handle();
            let (_, _) = poll_times(&mut run, moment);
            let back = match if steers { handle.steer("letter") } else { handle.follow_up("letter") } {
                haversack_agent_core::handle::Steered::Queued => None,
                other => Some(other),
            };
            let (_, over) = poll_times(&mut run, 10_000);
            assert!(over);
            drop(run);
            let inside = session.messages().iter().filter(|m| m.text() == "letter").count();
            let handed_back = handle.undelivered().len() + usize::from(back.is_some());
            assert_eq!(inside + handed_back, 1, "moment {moment}, steers {steers}");
            assert_valid(session.messages());
        }
    }
}
