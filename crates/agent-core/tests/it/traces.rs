//! Spans: the attribute names of the OpenTelemetry conventions, one inside the other, and no contents unless asked for.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};

use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::model::{ModelErrorKind, ModelEvent};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::retry::RetryPolicy;
use haversack_agent_core::session::Session;
use haversack_agent_core::subagent::SubAgent;
use haversack_agent_core::testing::{Answer, Fate, ScriptedModel, ScriptedTool};
use haversack_agent_core::tool::{ToolError, ToolSpec};
use haversack_agent_core::usage::Usage;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use crate::play::block_on;

/// One span as it was recorded.
#[derive(Clone, Debug, Default)]
struct Captured {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    closed: bool,
}

/// Keeps every span.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: Vec<Captured>,
    entered: Vec<u64>,
    handles: BTreeMap<u64, usize>,
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("haversack_agent_core")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        let parent = state.entered.last().copied();
        let mut span = Captured { name: attributes.metadata().name(), parent, ..Captured::default() };
        attributes.record(&mut Fields(&mut span.fields));
        state.spans.push(span);
        let id = state.spans.len() as u64;
        state.handles.insert(id, 1);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut state = self.0.lock().unwrap();
        let place = usize::try_from(id.into_u64()).unwrap() - 1;
        values.record(&mut Fields(&mut state.spans[place].fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let left = self.0.lock().unwrap().entered.pop();
        assert_eq!(left, Some(id.into_u64()), "spans are left in the order in which they were entered");
    }

    fn clone_span(&self, id: &Id) -> Id {
        *self.0.lock().unwrap().handles.get_mut(&id.into_u64()).unwrap() += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut state = self.0.lock().unwrap();
        let handles = state.handles.get_mut(&id.into_u64()).unwrap();
        *handles -= 1;
        let last = *handles == 0;
        if last {
            let place = usize::try_from(id.into_u64()).unwrap() - 1;
            state.spans[place].closed = true;
        }
        last
    }
}

/// Plays a run and gives its spans.
fn spans(builder: AgentBuilder) -> Vec<Captured> {
    /// With one subscriber in the process, tracing asks the thread that first comes by whether a span is of interest,
    /// which may be that of a test without one. With two it asks them.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(Capture::default()));
    let capture = Capture::default();
    tracing::subscriber::with_default(capture.clone(), || {
        let agent = builder.build().unwrap();
        let mut session = Session::new();
        let _outcome = block_on(agent.start(&mut session, "a secret question").outcome());
    });
    let state = capture.0.lock().unwrap();
    assert!(state.entered.is_empty());
    assert!(state.spans.iter().all(|s| s.closed), "every span ends with its run");
    state.spans.clone()
}

fn field<'a>(span: &'a Captured, name: &str) -> Option<&'a str> {
    span.fields.get(name).map(String::as_str)
}

fn agent() -> AgentBuilder {
    let started = ModelEvent::Started { response_id: Some("r-1".into()), model: Some("script-2".into()) };
    let answers = [
        Answer::new().event(started).with_usage(Usage::new(10, 5)).with_call(
            "c",
            "t",
            json!({"n": "secret"}),
        ),
        Answer::failure(ModelErrorKind::InvalidToolCall, "unreadable"),
        Answer::text("a secret answer").with_usage(Usage::new(20, 2)),
    ];
    Agent::builder(ScriptedModel::new(answers))
        .section("role", "a secret prompt")
        .tool(ScriptedTool::new(ToolSpec::new("t", "A tool")))
        .policy(Policy::new(Mode::Autonomous))
        .retry(RetryPolicy::default())
}

#[test]
fn a_run_holds_its_model_calls_and_tool_calls_under_the_names_of_the_convention() {
    let spans = spans(agent());
    let names: Vec<_> = spans.iter().map(|s| (s.name, s.parent)).collect();
    let inside = Some(1);
    assert_eq!(
        names,
        [
            ("invoke_agent", None),
            ("chat", inside),
            ("execute_tool", inside),
            ("chat", inside),
            ("chat", inside)
        ]
    );
    for (place, name, value) in [
        (0, "gen_ai.operation.name", "invoke_agent"),
        (0, "gen_ai.provider.name", "scripted"),
        (0, "gen_ai.response.finish_reasons", r#"["stop"]"#),
        (1, "gen_ai.operation.name", "chat"),
        (1, "otel.name", "chat script"),
        (1, "otel.kind", "client"),
        (1, "gen_ai.request.model", "script"),
        (1, "gen_ai.response.id", "r-1"),
        (1, "gen_ai.response.model", "script-2"),
        (1, "gen_ai.usage.input_tokens", "10"),
        (1, "gen_ai.usage.output_tokens", "5"),
        (1, "gen_ai.response.finish_reasons", r#"["tool_call"]"#),
        (2, "gen_ai.operation.name", "execute_tool"),
        (2, "otel.name", "execute_tool t"),
        (2, "gen_ai.tool.name", "t"),
        (2, "gen_ai.tool.call.id", "c"),
        (3, "error.type", "invalid_tool_call"),
        (4, "gen_ai.response.finish_reasons", r#"["stop"]"#),
    ] {
        assert_eq!(field(&spans[place], name), Some(value), "{name} of {:?}", spans[place]);
    }
    assert!(spans.iter().all(|s| s.name != "execute_tool" || field(s, "error.type").is_none()));
}

#[test]
fn contents_are_in_no_span_unless_the_host_asks_for_them() {
    let all = |spans: &[Captured]| format!("{spans:?}");
    assert!(!all(&spans(agent())).contains("secret"));
    let spans = spans(agent().trace_contents());
    for (place, name, part) in [
        (1, "gen_ai.input.messages", "a secret question"),
        (1, "gen_ai.system_instructions", "a secret prompt"),
        (1, "gen_ai.output.messages", "secret"),
        (2, "gen_ai.tool.call.arguments", "secret"),
        (2, "gen_ai.tool.call.result", "secret"),
        (4, "gen_ai.output.messages", "a secret answer"),
    ] {
        let held = field(&spans[place], name).unwrap_or_default();
        assert!(held.contains(part), "{name}: {held}");
        assert!(serde_json::from_str::<serde_json::Value>(held).is_ok(), "{name} is JSON: {held}");
    }
}

#[test]
fn a_tool_that_fails_says_so_in_its_span() {
    let fates = [
        (Fate::Error(ToolError::failed("no")), "tool_error"),
        (Fate::Panic("this tool always panics"), "tool_error"),
        (Fate::Output(haversack_agent_core::tool::ToolOutput::error("no")), "tool_error"),
        (Fate::Error(ToolError::invalid_arguments("no")), "invalid_arguments"),
    ];
    crate::play::silence_panics();
    for (fate, kind) in fates {
        let model = ScriptedModel::new([Answer::call("c", "t", json!({})), Answer::text("done")]);
        let tool = ScriptedTool::new(ToolSpec::new("t", "A tool")).with_fates([fate]);
        let spans = spans(Agent::builder(model).tool(tool).policy(Policy::new(Mode::Autonomous)));
        assert_eq!(field(&spans[2], "error.type"), Some(kind));
    }
}

#[test]
fn the_run_of_a_sub_agent_lies_in_the_span_of_its_call_and_has_its_name() {
    let child = Agent::builder(ScriptedModel::new([Answer::text("looked")])).build().unwrap();
    let model =
        ScriptedModel::new([Answer::call("c", "scout", json!({"prompt": "look"})), Answer::text("done")]);
    let top = Agent::builder(model)
        .tool(SubAgent::new("scout", "Looks", child))
        .policy(Policy::new(Mode::Autonomous));
    let spans = spans(top);
    let names: Vec<_> = spans.iter().map(|s| (s.name, s.parent)).collect();
    assert_eq!(
        names,
        [
            ("invoke_agent", None),
            ("chat", Some(1)),
            ("execute_tool", Some(1)),
            ("invoke_agent", Some(3)),
            ("chat", Some(4)),
            ("chat", Some(1))
        ]
    );
    assert_eq!(field(&spans[3], "gen_ai.agent.name"), Some("scout"));
}
