use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;

use super::*;
use crate::message::Block;
use crate::model::{Model, ModelErrorKind, ModelEvent, ModelRequest};
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Tool as _, ToolContext};
use crate::usage::StopReason;

fn is_shared(_: &(impl Send + Sync + Clone + 'static)) {}

#[test]
fn doubles_are_shared_between_threads() {
    is_shared(&Gate::new());
    is_shared(&ScriptedModel::new([]));
    is_shared(&ScriptedTool::new(ToolSpec::new("t", "")));
}

#[test]
fn a_script_ends_with_the_stop_that_fits_unless_it_says_otherwise() {
    let last = |answer: Answer| {
        let model = ScriptedModel::new([answer]);
        let events: Vec<_> = model.stream(ModelRequest::default()).collect().now_or_never().unwrap();
        events.into_iter().next_back().map(|e| e.map_err(|e| e.kind))
    };
    let stop = |reason| Some(Ok(ModelEvent::Stop { reason, raw: None }));
    assert_eq!(last(Answer::text("a")), stop(StopReason::EndTurn));
    assert_eq!(last(Answer::call("1", "t", json!({}))), stop(StopReason::ToolUse));
    assert_eq!(last(Answer::text("a").stop(StopReason::MaxTokens)), stop(StopReason::MaxTokens));
    assert_eq!(last(Answer::text("a").cut()), Some(Ok(ModelEvent::BlockDone(Block::text("a")))));
    assert_eq!(
        last(Answer::failure(ModelErrorKind::Overloaded, "busy")),
        Some(Err(ModelErrorKind::Overloaded))
    );
}

#[test]
fn a_request_beyond_the_script_fails_loudly_and_requests_are_kept_in_order() {
    let model = ScriptedModel::new([Answer::text("a")]);
    let mut request = ModelRequest::default();
    for text in ["one", "two"] {
        request.messages.push(crate::message::Message::user(text));
        let _events: Vec<_> = model.stream(request.clone()).collect().now_or_never().unwrap();
    }
    assert_eq!(model.requests().iter().map(|r| r.messages.len()).collect::<Vec<_>>(), [1, 2]);
    let error = model.stream(request).next().now_or_never().flatten().unwrap().unwrap_err();
    assert!(error.message.contains("request 3"), "{error}");
}

#[test]
fn a_call_that_is_never_polled_takes_no_answer() {
    let model = ScriptedModel::new([Answer::text("a")]);
    drop(model.stream(ModelRequest::default()));
    assert_eq!((model.remaining(), model.request_count()), (Some(1), 0));
}

#[test]
fn with_a_gate_one_release_is_one_event() {
    let gate = Gate::new();
    let model = ScriptedModel::new([Answer::text("a")]).with_gate(&gate);
    let mut stream = model.stream(ModelRequest::default());
    // Text, block, stop, end.
    for _ in 0..4 {
        assert!(stream.next().now_or_never().is_none());
        gate.release(1);
        assert!(stream.next().now_or_never().is_some());
    }
    assert_eq!((gate.arrivals(), gate.waiting()), (4, 0));
}

#[test]
fn a_gate_lets_through_in_the_order_of_arrival_and_a_dropped_wait_gives_up_its_place() {
    let gate = Gate::new();
    let mut waits: Vec<_> = (0..3).map(|_| gate.wait()).collect();
    assert!(waits.iter_mut().all(|w| w.now_or_never().is_none()));
    gate.release(1);
    assert!((&mut waits[1]).now_or_never().is_none(), "the first has come first");
    drop(waits.remove(0));
    assert!((&mut waits[1]).now_or_never().is_none());
    assert!((&mut waits[0]).now_or_never().is_some());
    gate.open();
    assert!((&mut waits[1]).now_or_never().is_some());
}

#[test]
fn a_test_can_wait_for_an_arrival() {
    let gate = Gate::new();
    let mut arrived = Box::pin(gate.arrived(1));
    assert!((&mut arrived).now_or_never().is_none());
    let mut wait = gate.wait();
    assert!((&mut wait).now_or_never().is_none());
    assert!(arrived.now_or_never().is_some());
}

#[test]
fn a_tool_does_what_it_is_told_and_its_log_tells_finished_from_dropped() {
    let gate = Gate::new();
    let failure = ToolError::failed("no");
    let fates = [Fate::Output(ToolOutput::text("a")), Fate::Error(failure.clone()), Fate::Hang];
    let tool = Arc::new(ScriptedTool::new(ToolSpec::new("t", "")).with_gate(&gate).with_fates(fates));
    let mut calls: Vec<_> =
        (0..3).map(|i| tool.call(json!({"i": i}), ToolContext::detached(i.to_string()))).collect();
    assert!(calls.iter_mut().all(|c| c.now_or_never().is_none()));
    assert_eq!((tool.running(), tool.most_running()), (3, 3));
    gate.open();
    assert_eq!((&mut calls[0]).now_or_never(), Some(Ok(ToolOutput::text("a"))));
    assert_eq!((&mut calls[1]).now_or_never(), Some(Err(failure)));
    assert_eq!((&mut calls[2]).now_or_never(), None);
    drop(calls);
    assert_eq!(tool.running(), 0);
    assert_eq!(tool.calls().iter().map(|c| c.finished).collect::<Vec<_>>(), [true, true, false]);
    let echo = tool.call(json!({"i": 3}), ToolContext::detached("3")).now_or_never();
    assert_eq!(echo, Some(Ok(ToolOutput::text(r#"{"i":3}"#))));
}

#[test]
#[should_panic(expected = "as told")]
fn a_script_can_panic() {
    let model = ScriptedModel::new([Answer::new().panic("as told")]);
    let _never = model.stream(ModelRequest::default()).next().now_or_never();
}

#[test]
fn a_fake_clock_wakes_only_whoever_has_slept_long_enough() {
    use crate::clock::Clock as _;
    use std::time::Duration;
    let clock = FakeClock::new();
    let mut early = clock.sleep_until(Duration::from_secs(1));
    let mut late = clock.sleep_until(Duration::from_secs(3));
    assert!((&mut early).now_or_never().is_none() && (&mut late).now_or_never().is_none());
    assert!(clock.advance_to_next());
    assert!(early.now_or_never().is_some());
    assert!((&mut late).now_or_never().is_none());
    assert_eq!(clock.next_deadline(), Some(Duration::from_secs(3)));
    drop(late);
    assert!(!clock.advance_to_next(), "a dropped sleep leaves nothing behind");
    assert!(clock.sleep_until(Duration::ZERO).now_or_never().is_some(), "the past is ready at once");
}

mod recording {
    use super::*;
    use crate::agent::Agent;
    use crate::model::ModelError;
    use crate::policy::{Mode, Policy};
    use crate::session::Session;
    use crate::tool_context::Tool;
    use crate::usage::Usage;

    fn spec() -> ToolSpec {
        ToolSpec::new("t", "A tool")
    }

    fn run(model: impl Model, tool: impl Tool) -> (String, Vec<String>) {
        let clock = FakeClock::new();
        let agent = Agent::builder(model)
            .tool(tool)
            .policy(Policy::new(Mode::Autonomous))
            .clock(clock.clone())
            .randomness(|| 0.5)
            .build()
            .unwrap();
        let mut session = Session::default();
        let mut run = agent.start(&mut session, "go");
        let mut events = Vec::new();
        // Nothing in these runs waits but for the clock; a run yields once in a while.
        for _ in 0..1_000 {
            match run.next().now_or_never() {
                Some(Some(event)) => events.push(format!("{event:?}")),
                Some(None) => break,
                None => {
                    clock.advance_to_next();
                }
            }
        }
        drop(run);
        (serde_json::to_string(&session).unwrap(), events)
    }

    fn recorded() -> (Recording, (String, Vec<String>)) {
        let recorder = Recorder::new();
        let answers = [
            Answer::new().with_text("partial").fail(ModelError::new(ModelErrorKind::Overloaded, "busy")),
            Answer::text("I look.")
                .with_call("1", "t", json!({"a": 1.5}))
                .with_call("2", "t", json!({"b": null}))
                .with_usage(Usage::new(10, 5)),
            Answer::call("1", "t", json!({})),
            Answer::text("Done."),
        ];
        let fates = [
            Fate::Output(ToolOutput::text("first").with_structured(json!([1]))),
            Fate::Error(ToolError::failed("second")),
        ];
        let tool = recorder.tool(ScriptedTool::new(spec()).with_fates(fates));
        let first = run(recorder.model(ScriptedModel::new(answers)), tool);
        (recorder.recording(), first)
    }

    #[test]
    fn a_recorded_run_replays_to_equal_bytes_also_from_a_file() {
        let (recording, first) = recorded();
        assert!(recording.answers.len() >= 3 && recording.outputs.len() == 3, "{recording:?}");
        let file = serde_json::to_string(&recording).unwrap();
        let read: Recording = serde_json::from_str(&file).unwrap();
        assert_eq!(read, recording);
        let replay = Replay::new(read);
        assert_eq!(run(replay.model(), replay.tool(spec())), first);
        assert_eq!(replay.remaining(), (0, 0));
    }

    #[test]
    fn a_run_that_asks_something_else_is_told_where_it_differs() {
        let (recording, _) = recorded();
        let replay = Replay::new(recording);
        let other = ToolSpec::new("t", "Another tool");
        let (_, events) = run(replay.model(), replay.tool(other));
        assert!(!events.is_empty());
        let mut request = ModelRequest::default();
        request.messages.push(crate::message::Message::user("stop"));
        let error = replay.model().stream(request).next().now_or_never().flatten().unwrap().unwrap_err();
        assert!(error.message.contains("is not the recorded one"), "{error}");
    }

    #[test]
    fn what_the_caller_dropped_is_recorded_as_far_as_it_came() {
        let recorder = Recorder::new();
        let model = recorder.model(ScriptedModel::new([Answer::text("a")]));
        let mut stream = model.stream(ModelRequest::default());
        let _first = stream.next().now_or_never();
        drop(stream);
        let recording = recorder.recording();
        assert_eq!((recording.answers[0].events.len(), recording.answers[0].ended), (1, false));
        let replay = Replay::new(recording).model();
        let mut stream = replay.stream(ModelRequest::default());
        assert!(stream.next().now_or_never().is_some());
        assert!(stream.next().now_or_never().is_none(), "nobody knows what would have come");
    }

    #[test]
    fn prints_name_the_part_that_differs() {
        let print = |request: &ModelRequest| RequestPrint::of(request);
        let base = ModelRequest::new(["a", "b"].map(crate::message::Message::user).into_iter().collect());
        let with = |change: &dyn Fn(&mut ModelRequest)| {
            let mut other = base.clone();
            change(&mut other);
            print(&base).difference(&print(&other))
        };
        use crate::model::{PromptSection, ToolChoice};
        assert_eq!(with(&|_| {}), None);
        assert_eq!(
            with(&|r| r.system = Arc::new([PromptSection::new("a", "b")])).unwrap(),
            "the system prompt"
        );
        assert_eq!(with(&|r| r.tools = Arc::new([Arc::new(spec())])).unwrap(), "the tools");
        let push = |r: &mut ModelRequest| r.messages.push(crate::message::Message::user("c"));
        assert_eq!(with(&push).unwrap(), "3 messages instead of 2");
        assert_eq!(
            with(&|r| r.messages = ["a", "c"].map(crate::message::Message::user).into_iter().collect())
                .unwrap(),
            "message 1"
        );
        assert_eq!(with(&|r| r.tool_choice = ToolChoice::None).unwrap(), "the options");
    }

    #[test]
    fn an_event_names_itself_in_a_recording() {
        let text = serde_json::to_string(&ModelEvent::Text("a".into())).unwrap();
        assert_eq!(text, r#"{"text":"a"}"#);
    }
}

mod conformance {
    use super::*;
    use crate::message::{Reasoning, ToolCall};
    use crate::model::{ModelError, ModelInfo, ModelStream};
    use crate::policy::ApprovalKey;
    use async_trait::async_trait;
    use serde_json::Value;

    struct Always(fn() -> Answer);

    impl Model for Always {
        fn info(&self) -> ModelInfo {
            ModelInfo::new("x", "y")
        }

        fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
            let model = ScriptedModel::new([self.0()]);
            let events: Vec<_> = model.stream(request).collect().now_or_never().unwrap();
            Box::pin(futures_util::stream::iter(events))
        }
    }

    fn rules(answer: fn() -> Answer) -> Vec<&'static str> {
        let model = Always(answer);
        let mut rules: Vec<_> = check_model(&model, &ModelRequest::default())
            .now_or_never()
            .unwrap()
            .into_iter()
            .map(|f| f.rule)
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    fn done(block: impl Into<Block>) -> Answer {
        Answer::new().event(ModelEvent::BlockDone(block.into()))
    }

    #[test]
    fn sound_models_pass() {
        let none: [&str; 0] = [];
        assert_eq!(rules(|| Answer::text("a")), none);
        assert_eq!(rules(|| Answer::failure(ModelErrorKind::Auth, "no key")), none);
        assert_eq!(
            rules(|| Answer::text("a")
                .with_reasoning(Reasoning::new("hm"))
                .with_call("1", "t", json!({"a": 1}))
                .with_raw_call("2", "t", "{")),
            none
        );
    }

    #[test]
    fn each_breach_of_a_models_contract_is_found() {
        for (answer, rule) in [
            ((|| Answer::text("a").cut()) as fn() -> Answer, "an answer ends with a stop or an error"),
            (|| Answer::text("a").stop(StopReason::EndTurn).with_text("b"), "the stop is the last event"),
            (
                || Answer::new().event(ModelEvent::Text("a".into())),
                "every text that is previewed is also given as a block",
            ),
            (
                || {
                    Answer::new()
                        .event(ModelEvent::Text("a".into()))
                        .event(ModelEvent::BlockDone(Block::text("b")))
                },
                "the deltas of a text are a preview of its block",
            ),
            (|| done(ToolCall::new("1", "t", json!([]))), "the arguments of a call are an object"),
            (
                || Answer::new().event(ModelEvent::ToolArguments { index: 0, delta: "{}".into() }),
                "a call begins before its arguments come",
            ),
            (
                || {
                    Answer::new()
                        .event(ModelEvent::ToolCallStarted { index: 0, id: "1".into(), name: "t".into() })
                        .event(ModelEvent::ToolArguments { index: 0, delta: r#"{"a": 1}"#.into() })
                        .event(ModelEvent::BlockDone(ToolCall::new("1", "t", json!({"a": 2})).into()))
                },
                "the deltas of arguments are a preview of the call",
            ),
        ] {
            assert!(rules(answer).contains(&rule), "{rule}: {:?}", rules(answer));
        }
        let after_error =
            [Err(ModelError::new(ModelErrorKind::Server, "")), Ok(ModelEvent::Text("a".into()))];
        assert!(check_events(&after_error).iter().any(|f| f.rule == "nothing comes after an error"));
    }

    struct Broken {
        spec: ToolSpec,
        flips: std::sync::atomic::AtomicBool,
    }

    #[async_trait]
    impl crate::tool_context::Tool for Broken {
        fn spec(&self) -> &ToolSpec {
            &self.spec
        }

        fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
            assert!(arguments.get("deep").is_none(), "too deep");
            let flip = self.flips.fetch_xor(true, std::sync::atomic::Ordering::Relaxed);
            vec![ApprovalKey::other(flip.to_string())]
        }

        async fn call(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
            assert!(arguments.get("").is_none(), "odd");
            Ok(ToolOutput::blocks(vec![ToolCall::new("1", "t", json!({})).into()]))
        }
    }

    #[test]
    fn each_breach_of_a_tools_contract_is_found_and_a_sound_tool_passes() {
        let sound = ScriptedTool::new(ToolSpec::new("t", "A tool"));
        assert_eq!(check_tool(&sound, &json!({})).now_or_never().unwrap(), []);
        let spec = ToolSpec::new("not a name", " ").with_schema(json!({"type": "array"}));
        let broken = Broken { spec, flips: false.into() };
        let mut rules: Vec<_> =
            check_tool(&broken, &json!({})).now_or_never().unwrap().into_iter().map(|f| f.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(
            rules,
            [
                "a name is 1 to 64 of [A-Za-z0-9_-]",
                "a tool does not panic over arguments",
                "a tool says what it is for",
                "an output holds text, images and documents",
                "keys and effects are the same each time",
                "keys and effects do not panic",
                "the arguments of the check fit the schema",
                "the schema is an object schema",
            ]
        );
    }
}
