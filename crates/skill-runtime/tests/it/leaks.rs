//! A secret that a tool or an agent gives away is in nothing that leaves, however it is written and wherever it stands.

use std::sync::Arc;

use base64::Engine as _;
use futures_util::FutureExt as _;
use haversack_agent_core::prelude::*;
use haversack_agent_core::tool_fn::tool_fn;
use haversack_skill_runtime::agent::Report as AgentReport;
use haversack_skill_runtime::metadata::{OnError, Step, ToolSchema};
use haversack_skill_runtime::pipeline::{Origin, Runner, ToolNode, compile};
use haversack_skill_runtime::redact::Redactor;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The secret in one of its writings.
fn written(secret: &str, way: usize) -> String {
    match way {
        0 => secret.to_owned(),
        1 => json!([secret]).to_string(),
        2 => json!([json!([secret]).to_string()]).to_string(),
        3 => secret.bytes().map(|b| format!("%{b:02X}")).collect(),
        4 => secret.bytes().map(|b| format!("%{b:02x}")).collect(),
        5 => base64::engine::general_purpose::STANDARD.encode(format!("user:{secret}")),
        6 => base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secret),
        _ => format!("\u{1b}[32m{secret}\u{1b}[0m"),
    }
}

/// All that must not be found: the value, and what each writing shows of it.
fn shows(text: &str, secret: &str) -> bool {
    let core = base64::engine::general_purpose::STANDARD_NO_PAD.encode(secret);
    // The last letters of base64 depend on what follows.
    let core: String = core.chars().take(core.len().saturating_sub(2)).collect();
    let escaped = json!(secret).to_string();
    let escaped = escaped.trim_matches('"');
    let percent: String = secret.bytes().map(|b| format!("%{b:02x}")).collect();
    text.contains(secret)
        || text.contains(escaped)
        || text.contains(&core)
        || text.to_lowercase().contains(&percent)
}

fn text(arguments: &Value) -> String {
    arguments["text"].as_str().unwrap_or_default().to_owned()
}

/// Gives the text that it is told to, in one of the ways of a tool.
fn tools() -> Vec<Arc<dyn Tool>> {
    let spec = |name: &str| ToolSpec::new(name, "").read_only();
    vec![
        Arc::new(tool_fn(spec("says"), async |a: Value, _| Ok(text(&a)))),
        Arc::new(tool_fn(spec("gives"), async |a: Value, _| {
            Ok(ToolOutput::text("").with_structured(json!({"deep": [{text(&a): text(&a)}]})))
        })),
        Arc::new(tool_fn(spec("fails"), async |a: Value, _| Err::<String, _>(ToolError::failed(text(&a))))),
    ]
}

fn steps() -> impl Strategy<Value = (Step, usize)> {
    let tool = prop_oneof![Just("says"), Just("gives"), Just("fails")];
    let policy =
        prop_oneof![Just(OnError::Skip), Just(OnError::Skip), Just(OnError::Retry), Just(OnError::Abort)];
    (tool, policy, any::<bool>(), 0_usize..8, any::<bool>()).prop_map(
        |(tool, policy, looped, way, fails_early)| {
            let mut step = Step::new("s", tool).with_on_error(policy).with_output_as("out");
            step.retry_delay_ms = Some(0);
            if looped {
                step = step.with_loop("{{ input.l }}");
            }
            // A path that leads nowhere, into a value that holds the secret.
            let path = if fails_early { "{{ input.s.x }}" } else { "{{ input.s }}" };
            (step.with_input(json!({"text": path}).as_object().unwrap().clone()), way)
        },
    )
}

proptest! {
    #[test]
    fn no_pipeline_gives_a_planted_secret_away(
        steps in prop::collection::vec(steps(), 1..5),
        secret in "[a-zA-Z0-9 \"/+?=&-]{9,20}",
    ) {
        let redactor = Redactor::new();
        redactor.learn(&secret);
        let way = steps[0].1;
        let schema = ToolSchema::new(steps.into_iter().map(|(step, _)| step).collect());
        let known = |_: &str| Some(ToolNode::new("n"));
        let definition = Arc::new(compile(&Origin::new("t", ""), &schema, &known).unwrap());
        let input = json!({"s": written(&secret, way), "l": [1, 2]});
        let runner = Runner::new(tools()).with_redactor(redactor);
        let report = runner.run(&definition, input, &ToolContext::detached("1")).now_or_never().unwrap();
        let output = report.to_output();
        let told = format!("{}{}{}", report.text(), serde_json::to_string(&report).unwrap(), output.structured.unwrap());
        prop_assert!(!shows(&told, &secret), "{told}");
        let blocks: String = output.blocks.iter().filter_map(Block::as_text).collect();
        prop_assert!(!shows(&blocks, &secret), "{blocks}");
    }

    #[test]
    fn no_report_of_an_agent_gives_a_planted_secret_away(
        secret in "[a-zA-Z0-9 \"/+?=&-]{9,20}",
        ways in prop::collection::vec(0_usize..8, 6),
        status in prop_oneof![Just("completed"), Just("needs_auth"), Just("odd")],
    ) {
        let redactor = Redactor::new();
        redactor.learn(&secret);
        let text: Vec<String> = ways.iter().map(|way| format!("x {} y", written(&secret, *way))).collect();
        let record = json!({
            "status": status, "result": text[0], "reasoningSummary": text[1], "resume_hint": text[2],
            "artifacts": {"files_created": [text[3]]}, "scope_violations": [text[4]],
            "help_request": {"question": text[5], "options": [text[0]]},
        });
        let report = AgentReport::parse(&record.to_string()).unwrap().redacted(&redactor);
        let told = format!("{}{}", report.to_block("s", "c"), serde_json::to_string(&report).unwrap());
        prop_assert!(!shows(&told, &secret), "{told}");
    }
}
