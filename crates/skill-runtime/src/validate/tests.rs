use haversack_skills::document::{Document, ParseOptions};

use super::*;

fn faults(front_matter: &str, context: &Context<'_>) -> Vec<(&'static str, Option<String>)> {
    let text = format!("---\n{front_matter}\n---\n");
    let document = Document::parse(text.as_bytes(), &ParseOptions::new());
    let reading = Metadata::read(document.fields().unwrap());
    validate(&reading, context).into_iter().map(|fault| (fault.code.as_str(), fault.field)).collect()
}

#[test]
fn every_fault_is_found_in_the_order_of_the_modes() {
    let step = "tool_schema: {steps: [{tool: t}]}";
    for (front_matter, expected) in [
        ("skill_mode: agent".to_owned(), vec![("missing_agent_config", "agent_config")]),
        (
            "skill_mode: agent\nagent_config: {role_goal: x}".into(),
            vec![("missing_role_title", "agent_config.role_title")],
        ),
        (
            format!("skill_mode: agent\nagent_config: {{role_title: R, runtime_kind: bogus}}\n{step}"),
            vec![
                ("tool_schema_with_agent", "tool_schema"),
                ("invalid_runtime_kind", "agent_config.runtime_kind"),
            ],
        ),
        ("skill_mode: agent\nagent_config: {role_title: R, runtime_kind: media}".into(), vec![]),
        ("skill_mode: tool".into(), vec![("missing_tool_schema", "tool_schema")]),
        ("skill_mode: tool\ntool_schema: {steps: []}".into(), vec![("missing_tool_schema", "tool_schema")]),
        (
            format!("{step}\nagent_config: {{role_title: R}}"),
            vec![("agent_config_with_tool", "agent_config")],
        ),
        (
            format!("{step}\nagent_input_schema: {{}}\nagent_output_schema: {{}}"),
            vec![("agent_io_schema_with_tool", "agent_input_schema")],
        ),
        (
            format!("{step}\nagent_output_schema: {{}}"),
            vec![("agent_io_schema_with_tool", "agent_output_schema")],
        ),
        (format!("{step}\nagent_output_schema: null"), vec![]),
        ("agent_config: {role_title: R}".into(), vec![("agent_config_with_prompt", "agent_config")]),
        (
            "skill_mode: prompt\nagent_output_schema: {}".into(),
            vec![("agent_io_schema_with_prompt", "agent_output_schema")],
        ),
        (format!("skill_mode: ' tool '\n{step}"), vec![]),
        (format!("skill_mode: prompt\n{step}"), vec![]),
        (
            "skill_mode: agent\nagent_config: {role_title: R, no_network: 'true', deny: x, inherit: bogus}"
                .into(),
            vec![
                ("invalid_field", "agent_config.inherit"),
                ("invalid_field", "agent_config.deny"),
                ("invalid_field", "agent_config.no_network"),
            ],
        ),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(code, field)| (code, Some(field.to_owned()))).collect();
        assert_eq!(faults(&front_matter, &Context::default()), expected, "{front_matter}");
    }
    assert_eq!(faults("skill_mode: weird", &Context::default()), [("invalid_skill_mode", None)]);
}

#[test]
fn secrets_come_before_everything_else() {
    let source = format!("token: ghp_{}", "a".repeat(20));
    let is_known = |name: &str| name == "a";
    let context = Context::default().with_source(&source).with_profiles(&is_known);
    let found = faults("skill_mode: agent\nsecret_refs: [a, b]", &context);
    let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["literal_secret_rejected", "missing_secret_profile", "missing_agent_config"]);
    assert_eq!(found[1].1.as_deref(), Some("secret_refs[1]"));
}
