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
