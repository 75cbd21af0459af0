//! Compiling and running pipelines: the observed behaviour of the format, and what it has to do better.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use haversack_agent_core::approval::{Ask, Verdict};
use haversack_agent_core::cancel::Cancellation;
use haversack_agent_core::prelude::*;
use haversack_agent_core::testing::{FakeClock, Fate, Gate, ScriptedTool};
use haversack_agent_core::tool_fn::tool_fn;
use haversack_skill_runtime::metadata::{Approval, Metadata, OnError, Step};
use haversack_skill_runtime::pipeline::{
    Action, CompileFault, Definition, Machine, Origin, Reply, Report, Runner, Status, StepStatus, ToolNode,
    compile,
};
use haversack_skill_runtime::redact::Redactor;
use haversack_skills::document::{Document, ParseOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The pipeline of this `tool_schema`, without its first line.
fn compiled(schema: &str) -> Result<Arc<Definition>, Vec<CompileFault>> {
    let indented: String = schema.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("---\nname: t\ndescription: d\ntool_schema:\n{indented}---\n");
    let document = Document::parse(text.as_bytes(), &ParseOptions::new());
    let reading =
        Metadata::read(document.fields().unwrap_or_else(|| panic!("{text}: {:?}", document.diagnostics())));
    let errors: Vec<_> = reading.findings.iter().filter(|f| f.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let tools = |name: &str| match name {
        "exporter" => Some(ToolNode::new("n/exporter").with_approval(Approval::DataExport)),
        "planned" => Some(ToolNode::new("n/planned").with_approval(Approval::PlanConfirm)),
        "echo" | "uppercase" | "fail" | "jsonout" | "jsontext" | "writer" => {
            Some(ToolNode::new(format!("n/{name}")))
        }
        _ => None,
    };
    compile(&Origin::new("t", text.as_str()), &reading.metadata.tool_schema.unwrap(), &tools).map(Arc::new)
}

fn text(arguments: &Value) -> String {
    arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn reads(name: &str) -> ToolSpec {
    ToolSpec::new(name, "").read_only()
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let fails = |a: Value, _| async move {
        let why = text(&a);
        Err::<String, _>(ToolError::failed(if why.is_empty() { "boom".to_owned() } else { why }))
    };
    vec![
        Arc::new(tool_fn(reads("echo"), async |a: Value, _| Ok(text(&a)))),
        Arc::new(tool_fn(reads("uppercase"), async |a: Value, _| Ok(text(&a).to_uppercase()))),
        Arc::new(tool_fn(reads("fail"), fails)),
        Arc::new(tool_fn(reads("jsonout"), async |_: Value, _| {
            Ok(ToolOutput::text("").with_structured(json!({"list": [{"n": 1}, {"n": 2}], "k": "v"})))
        })),
        Arc::new(tool_fn(reads("jsontext"), async |_: Value, _| Ok(r#"{"k": [1, 2]}"#))),
    ]
}

fn run_with(runner: &Runner, schema: &str, input: Value) -> Report {
    let definition = compiled(schema).unwrap_or_else(|faults| panic!("{faults:?}"));
    runner.run(&definition, input, &ToolContext::detached("1")).now_or_never().unwrap()
}

fn run(schema: &str, input: Value) -> Report {
    run_with(&Runner::new(tools()), schema, input)
}

const HELLO: &str = "steps:\n- {action: repeat, tool: echo, input_map: {text: '{{ input.message }}'}, output_as: said}\n\
    - {action: shout, tool: uppercase, input_map: {text: '{{ said }}'}}";

#[test]
fn steps_run_in_order_and_hand_on_what_they_give() {
    let report = run(HELLO, json!({"message": "yo"}));
    assert_eq!((report.status, &report.output), (Status::Done, &json!("YO")));
    assert_eq!(
        report.text(),
        "## Composed tool skill_t result\n\n### Step 1: repeat [done]\nyo\n\n### Step 2: shout [done]\nYO\n\n"
    );
    assert!(!report.to_output().is_error);
}

/// What stops a pipeline: the schema, the line at the end, and how the steps ended.
#[test]
fn a_failing_step_stops_the_pipeline_and_what_was_done_is_kept() {
    use StepStatus::{Done, Failed};
    let three = |on_error: &str| {
        format!(
            "steps:\n- {{action: a, tool: echo, input_map: {{text: one}}}}\n\
             - {{action: b, tool: fail, on_error: {on_error}, retry_delay_ms: 0}}\n\
             - {{action: c, tool: echo, input_map: {{text: three}}}}"
        )
    };
    for (schema, line, steps) in [
        (HELLO.to_owned(), "[step 1/2 repeat input resolve failed: field \"text\": path \"input.message\": key \"message\" not found]", vec![Failed]),
        (three("abort"), "[step 2/3 b failed: boom]", vec![Done, Failed]),
        (three("retry"), "[step 2/3 b retry exhausted: boom]", vec![Done, Failed]),
        (three("skip"), "", vec![Done, Failed, Done]),
        ("steps:\n- {action: b, tool: fail, on_error: skip, output_as: x}\n- {action: c, tool: echo, input_map: {text: '{{x}}'}}".into(),
            "[step 2/2 c input resolve failed: field \"text\": path \"x\": key \"x\" not found]", vec![Failed, Failed]),
        ("steps:\n- {action: l, tool: echo, loop_over: '{{input.s}}'}".into(), "[step 1/1 l loop_over expects array, got string]", vec![Failed]),
        ("steps:\n- {action: l, tool: echo, loop_over: '{{input.ghost}}'}".into(), "[step 1/1 l loop_over expects array, got undefined]", vec![Failed]),
        ("steps:\n- {action: l, tool: echo, on_error: skip, loop_over: '{{input.s}}'}".into(), "", vec![Failed]),
        ("steps:\n- {action: l, tool: fail, on_error: skip, loop_over: '{{input.l}}'}".into(), "", vec![Done]),
        ("steps:\n- {action: l, tool: fail, loop_over: '{{input.l}}'}\n- {tool: echo}".into(), "[step 1/2 l failed: element 0: boom]", vec![Failed]),
        ("steps:\n- {action: l, tool: fail, on_error: retry, retry_delay_ms: 0, loop_over: '{{input.l}}'}".into(), "[step 1/1 l retry exhausted: element 0: boom]", vec![Failed]),
    ] {
        let report = run(&schema, json!({"s": "x", "l": [1, 2]}));
        let statuses: Vec<_> = report.steps.iter().map(|s| s.status).collect();
        assert_eq!(statuses, steps, "{schema}");
        let text = report.text();
        assert_eq!(report.status, if line.is_empty() { Status::Done } else { Status::Failed }, "{schema}");
        assert!(text.ends_with(&format!("{line}\n")), "{schema}: {text}");
        assert_eq!(report.to_output().is_error, !line.is_empty());
    }
}

#[test]
fn a_call_is_tried_again_after_a_pause_that_doubles_also_in_loops() {
    let clock = FakeClock::new();
    let tool = ScriptedTool::new(reads("fail")).with_fates([
        Fate::Error(ToolError::failed("one")),
        Fate::Error(ToolError::failed("two")),
        Fate::Output(ToolOutput::text("three")),
    ]);
    let runner = Runner::new([Arc::new(tool.clone()) as Arc<dyn Tool>]).with_clock(clock.clone());
    let schema = "steps:\n- {tool: fail, on_error: retry, retry_delay_ms: 100, loop_over: '{{ input.l }}'}";
    let definition = compiled(schema).unwrap();
    let context = ToolContext::detached("1");
    let mut running = Box::pin(runner.run(&definition, json!({"l": [0]}), &context));
    for (millis, calls) in [(0, 1), (99, 1), (1, 2), (199, 2)] {
        clock.advance(Duration::from_millis(millis));
        assert!((&mut running).now_or_never().is_none());
        assert_eq!(tool.calls().len(), calls);
    }
    clock.advance(Duration::from_millis(1));
    let report = running.now_or_never().unwrap();
    assert_eq!((report.status, report.output), (Status::Done, json!(["three"])));
    assert_eq!((report.steps[0].tries, report.steps[0].elements[0].tries), (3, 3));
}

#[test]
fn outputs_are_values_that_later_steps_take_apart() {
    let report = run(
        "steps:\n- {tool: jsonout, output_as: j}\n- {tool: echo, loop_over: '{{ j.list }}', input_map: {text: '{{ item.n }} {{ j.k }}'}, output_as: l}\n\
         - {tool: echo, input_map: {text: '{{ l.1 }}'}}\n- {tool: jsontext, output_format: json, output_as: p}\n- {tool: echo, input_map: {text: 'x{{ p.k[1] }}'}}",
        json!({}),
    );
    assert_eq!(report.steps[1].output, json!(["1 v", "2 v"]));
    assert_eq!((&report.steps[2].output, &report.output), (&json!("2 v"), &json!("x2")));
    let report = run("steps:\n- {tool: echo, output_format: json, input_map: {text: no}}", json!({}));
    assert!(report.failure.unwrap().message.contains("the output is not JSON"));
}

#[test]
fn arguments_keep_their_types_on_the_way_to_the_tool() {
    let tool = ScriptedTool::new(reads("echo"));
    let runner = Runner::new([Arc::new(tool.clone()) as Arc<dyn Tool>]);
    let map = "{o: '{{input.o}}', l: '{{input.l}}', f: '{{input.f}}', b: '{{input.b}}', n: '{{input.n}}', a: 5, c: [1, 'x{{input.f}}']}";
    let input = json!({"o": {"k": 1}, "l": [1], "f": 1.5, "b": false, "n": null});
    run_with(&runner, &format!("steps:\n- {{tool: echo, input_map: {map}}}"), input);
    let expected =
        json!({"o": {"k": 1}, "l": [1], "f": 1.5, "b": false, "n": null, "a": 5, "c": [1, "x1.5"]});
    assert_eq!(tool.calls()[0].arguments, expected);
}

#[test]
fn input_that_does_not_fit_is_refused_before_anything_runs() {
    let schema = format!(
        "input: {{type: object, required: [message], properties: {{message: {{type: string}}}}}}\n{HELLO}"
    );
    for input in [json!([1]), json!("x"), json!({}), json!({"message": 5})] {
        let report = run(&schema, input.clone());
        assert_eq!((report.status, report.steps.len()), (Status::Refused, 0), "{input}");
        assert!(report.to_output().is_error && report.text().contains('['), "{input}");
    }
}

#[test]
fn long_outputs_are_cut_in_the_text_and_whole_in_the_report() {
    let long = "é".repeat(2001);
    let report = run(HELLO, json!({"message": long}));
    assert!(report.text().contains(&format!("\n{}...(truncated)\n", "é".repeat(2000))));
    assert_eq!(report.steps[0].output, json!(long));
    let report = run(HELLO, json!({"message": "é".repeat(2000)}));
    assert!(!report.text().contains("truncated"));
}

#[test]
fn no_secret_leaves_a_pipeline_on_any_path() {
    let redactor = Redactor::new();
    redactor.learn("hunter2hunter2");
    let runner = Runner::new(tools()).with_redactor(redactor);
    for on_error in ["abort", "skip", "retry"] {
        for input in ["Authorization: Bearer abcdefghijklmnopqrstuvwx", "hunter2hunter2"] {
            let schema = format!(
                "steps:\n- {{tool: echo, input_map: {{text: '{{{{ input.t }}}}'}}, output_as: e}}\n\
                 - {{tool: uppercase, loop_over: '{{{{ input.l }}}}', input_map: {{text: '{{{{ item }}}}'}}}}\n\
                 - {{tool: fail, on_error: {on_error}, retry_delay_ms: 0, input_map: {{text: '{{{{ input.t }}}}'}}}}"
            );
            let report = run_with(&runner, &schema, json!({"t": input, "l": [input]}));
            let all = format!("{}{report:?}{:?}", report.text(), report.to_output());
            assert!(!all.contains("abcdefghijklmnop") && !all.contains("hunter2"), "{all}");
            assert!(all.contains("***"));
        }
    }
}

#[test]
fn what_is_wrong_with_a_pipeline_is_told_at_once_and_whole() {
    let faults = compiled(
        "steps:\n- {action: no tool}\n- {tool: ghost}\n- {tool: echo, output_as: input}\n- {tool: echo, input_map: {text: '{{ later }}', d: '{{ item }}'}}\n\
         - {tool: echo, loop_over: text}\n- {tool: echo, retries: 99, parallel: 0}",
    )
    .unwrap_err();
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    for (step, part) in [
        (1, "no `tool`"),
        (2, "`ghost` is not known"),
        (3, "`output_as: input` would hide"),
        (4, "uses \"later\""),
        (4, "uses \"item\""),
        (5, "no `{{ path }}`"),
        (6, "`retries` is 99"),
        (6, "begin at 1"),
    ] {
        let found =
            told.iter().any(|t| t.starts_with(&format!("skill `t`, step {step}: ")) && t.contains(part));
        assert!(found, "{step} {part}: {told:#?}");
    }
    assert_eq!(told.len(), 8);
    assert_eq!(compiled("steps:\n- {tool: remote_q}").unwrap().steps[0].tool_node_id, "");
}

#[test]
fn approvals_are_the_steps_own_or_the_tools_and_the_highest_counts() {
    for (steps, approvals, highest) in [
        ("[{tool: echo}, {tool: planned}]", [Approval::None, Approval::PlanConfirm], Approval::PlanConfirm),
        (
            "[{tool: echo, approval: data_export}, {tool: planned}]",
            [Approval::DataExport, Approval::PlanConfirm],
            Approval::DataExport,
        ),
        (
            "[{tool: exporter, approval: none}, {tool: exporter}]",
            [Approval::None, Approval::DataExport],
            Approval::DataExport,
        ),
    ] {
        let definition = compiled(&format!("steps: {steps}")).unwrap();
        assert_eq!(definition.steps.iter().map(|s| s.approval).collect::<Vec<_>>(), approvals, "{steps}");
        assert_eq!(definition.max_approval, highest, "{steps}");
    }
    assert_eq!(
        Origin::new("a", "abc").hash(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn a_person_decides_about_each_call_that_needs_it() {
    let writer = ScriptedTool::new(ToolSpec::new("writer", "Writes"));
    let steps = "steps:\n- {tool: writer, input_map: {text: '{{ input.t }}'}, on_error: skip}\n- {tool: echo, approval: exec_escalation}";
    type Case = (&'static str, Option<fn(&Ask) -> Verdict>, usize, Status);
    let cases: [Case; 6] = [
        ("nobody to ask", None, 0, Status::Denied),
        ("allowed", Some(|_| Verdict::Allow), 1, Status::Done),
        ("denied", Some(|_| Verdict::deny("no")), 0, Status::Failed),
        ("stopped", Some(|_| Verdict::Stop { reason: "no".into() }), 0, Status::Denied),
        ("put off", Some(|_| Verdict::Defer), 0, Status::Denied),
        ("edited", Some(|_| Verdict::AllowEdited(json!({"text": "other"}))), 1, Status::Done),
    ];
    for (case, verdict, calls, status) in cases {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut all = tools();
        all.push(Arc::new(writer.clone()));
        let before = writer.calls().len();
        let mut runner = Runner::new(all);
        if let Some(verdict) = verdict {
            let asked = Arc::clone(&asked);
            runner = runner.with_approver(move |asks: Vec<Ask>| {
                let verdicts: Vec<_> = asks.iter().map(verdict).collect();
                asked.lock().unwrap().extend(asks);
                async move { verdicts }
            });
        }
        let report = run_with(&runner, steps, json!({"t": "x"}));
        assert_eq!((report.status, writer.calls().len() - before), (status, calls), "{case}: {report:?}");
        for ask in asked.lock().unwrap().iter() {
            assert!(ask.is_genuine(), "{case}");
        }
        if case == "edited" {
            assert_eq!(writer.calls().last().unwrap().arguments, json!({"text": "other"}));
            assert!(asked.lock().unwrap()[1].reason.contains("exec_escalation"));
        }
    }
}

#[test]
fn a_cancel_reaches_the_running_call_and_the_report_says_what_was_done() {
    let slow = ScriptedTool::new(reads("writer")).with_fates([Fate::Hang]);
    let mut all = tools();
    all.push(Arc::new(slow.clone()));
    let (runner, cancel) = (Runner::new(all), Cancellation::new());
    let definition = compiled("steps:\n- {action: a, tool: echo, input_map: {text: x}}\n- {action: b, tool: writer}\n- {tool: echo}").unwrap();
    let context = ToolContext::detached("1").with_cancellation(cancel.clone());
    let mut running = Box::pin(runner.run(&definition, json!({}), &context));
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(slow.running(), 1);
    cancel.cancel();
    let report = running.now_or_never().unwrap();
    assert_eq!(slow.running(), 0);
    let statuses: Vec<_> = report.steps.iter().map(|s| s.status).collect();
    assert_eq!(
        (report.status, statuses),
        (Status::Cancelled, vec![StepStatus::Done, StepStatus::Interrupted])
    );
    assert!(report.text().ends_with("**Aborted**: cancelled\n"), "{}", report.text());
}

#[test]
fn a_call_and_a_pipeline_have_their_time() {
    for (step, call_limit, whole, status, words) in [
        ("timeout_ms: 100", None, None, Status::Failed, "no answer within 100ms"),
        ("action: w", Some(100), None, Status::Failed, "no answer within 100ms"),
        ("action: w", None, Some(100), Status::Cancelled, "the time of the pipeline is up"),
    ] {
        let clock = FakeClock::new();
        let slow = ScriptedTool::new(reads("writer")).with_fates([Fate::Hang]);
        let mut runner = Runner::new([Arc::new(slow.clone()) as Arc<dyn Tool>]).with_clock(clock.clone());
        if let Some(millis) = call_limit {
            runner = runner.with_call_limit(Duration::from_millis(millis));
        }
        if let Some(millis) = whole {
            runner = runner.with_time_limit(Duration::from_millis(millis));
        }
        let definition = compiled(&format!("steps:\n- {{tool: writer, {step}}}")).unwrap();
        let context = ToolContext::detached("1");
        let mut running = Box::pin(runner.run(&definition, json!({}), &context));
        clock.advance(Duration::from_millis(99));
        assert!((&mut running).now_or_never().is_none());
        clock.advance(Duration::from_millis(100));
        let report = running.now_or_never().unwrap();
        assert_eq!((report.status, slow.running()), (status, 0));
        assert!(report.failure.unwrap().message.contains(words), "{words}");
    }
}

#[test]
fn elements_run_side_by_side_up_to_the_bound_and_stay_in_order() {
    let gate = Gate::new();
    let tool = ScriptedTool::new(reads("echo")).with_gate(&gate);
    let runner = Runner::new([Arc::new(tool.clone()) as Arc<dyn Tool>]);
    let definition = compiled(
        "steps:\n- {tool: echo, parallel: 2, loop_over: '{{ input.l }}', input_map: {n: '{{ item }}'}}",
    )
    .unwrap();
    let context = ToolContext::detached("1");
    let mut running = Box::pin(runner.run(&definition, json!({"l": [1, 2, 3]}), &context));
    assert!((&mut running).now_or_never().is_none());
    assert_eq!(tool.running(), 2);
    gate.open();
    let report = running.now_or_never().unwrap();
    assert_eq!(report.output, json!(["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]));
    assert_eq!(tool.most_running(), 2);
}

#[test]
fn a_panic_of_a_tool_or_an_approver_is_a_failure_of_the_step() {
    let tool = ScriptedTool::new(reads("echo")).with_fates([Fate::Panic("ouch")]);
    let report =
        run_with(&Runner::new([Arc::new(tool) as Arc<dyn Tool>]), "steps:\n- {tool: echo}", json!({}));
    assert_eq!(report.failure.unwrap().message, "failed: the tool panicked");
    let runner = Runner::new(tools()).with_approver(|_: Vec<Ask>| async { panic!("ouch") });
    let report = run_with(&runner, "steps:\n- {tool: echo, approval: plan_confirm}", json!({}));
    assert_eq!((report.status, report.steps[0].tries), (Status::Denied, 0));
}

fn any_step() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![Just(OnError::Abort), Just(OnError::Skip), Just(OnError::Retry)];
    (policy, any::<bool>(), 1_u64..4, 0_u64..3).prop_map(|(on_error, looped, parallel, retries)| {
        let mut step = Step::new("s", "echo").with_on_error(on_error);
        if looped {
            step = step.with_loop("{{ input.l }}");
        }
        step.parallel = Some(parallel);
        step.retries = Some(retries);
        step
    })
}

proptest! {
    /// Whatever is asked, answered, failed and cancelled in whatever order: what runs was allowed before, with the
    /// arguments that were asked about, and the machine comes to its end.
    #[test]
    fn nothing_runs_that_was_not_allowed(
        steps in prop::collection::vec(any_step(), 1..4),
        answers in prop::collection::vec(0_u8..10, 1..40),
    ) {
        let schema = haversack_skill_runtime::metadata::ToolSchema::new(steps);
        let tools = |_: &str| Some(ToolNode::new("n"));
        let definition = Arc::new(compile(&Origin::new("t", ""), &schema, &tools).unwrap());
        let mut machine = Machine::new(definition, json!({"l": [1, 2, 3]}), Redactor::new());
        let mut answers = answers.iter().copied().cycle();
        let (mut asked, mut allowed, mut out) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = Duration::ZERO;
        for turn in 0.. {
            prop_assert!(turn < 10_000, "the machine does not end");
            match machine.poll(now) {
                Action::Ask(call) => asked.push(call),
                Action::Run(call) => {
                    let key = (call.step, call.element, call.arguments.clone());
                    prop_assert!(allowed.contains(&key), "{key:?} ran unasked");
                    out.push(call.number);
                }
                Action::Abandon(number) => out.retain(|n| *n != number),
                Action::Finished(_) => break,
                _ if !asked.is_empty() => {
                    let call = asked.swap_remove(usize::from(answers.next().unwrap()) % asked.len());
                    let reply = match answers.next().unwrap() {
                        0 => Reply::Stop(String::new()),
                        1 | 2 => Reply::Deny(String::new()),
                        _ => {
                            allowed.push((call.step, call.element, call.arguments.clone()));
                            Reply::Allow
                        }
                    };
                    machine.handle_reply(call.number, reply);
                }
                _ if !out.is_empty() => {
                    let number = out.swap_remove(usize::from(answers.next().unwrap()) % out.len());
                    match answers.next().unwrap() {
                        0 => machine.handle_cancel("enough"),
                        1..4 => machine.handle_done(number, Err(ToolError::failed("no")), now),
                        _ => machine.handle_done(number, Ok(json!("yes")), now),
                    }
                }
                Action::Wait(Some(until)) => now = until,
                other => prop_assert!(false, "nothing is out, and the machine wants {other:?}"),
            }
        }
    }
}

#[test]
fn a_store_compiles_what_has_changed_and_outlives_the_process() {
    use haversack_skill_runtime::metadata::ToolSchema;
    use haversack_skill_runtime::pipeline::{Compiled, Store};

    let folder = tempfile::tempdir().unwrap();
    let file = Store::file(folder.path());
    let schema = ToolSchema::new(vec![Step::new("s", "echo")]);
    let tools = |name: &str| (name == "echo").then(|| ToolNode::new("n"));
    let (mut store, problems) = Store::load(&file).unwrap();
    assert!(problems.is_empty());
    let compiled = |store: &mut Store, text: &str| store.compile(&Origin::new("t", text), &schema, &tools);
    assert!(matches!(compiled(&mut store, "a"), Ok(Compiled::New(_))));
    assert!(matches!(compiled(&mut store, "a"), Ok(Compiled::Unchanged(_))));
    assert!(matches!(compiled(&mut store, "b"), Ok(Compiled::New(_))));
    store.save(&file, "now").unwrap();
    let (again, problems) = Store::load(&file).unwrap();
    assert_eq!((again, problems), (store.clone(), vec![]));
    let nothing = |_: &str| None;
    assert!(store.compile(&Origin::new("t", "c"), &schema, &nothing).is_err());
    assert!(store.get("skill_t").is_none(), "what is stored is never another text's");
}
