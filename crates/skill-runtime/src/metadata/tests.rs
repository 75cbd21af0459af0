use std::collections::BTreeSet;

use haversack_skills::Document;
use haversack_skills::diagnostic::Severity;
use haversack_skills::document::ParseOptions;
use serde_json::json;

use super::*;

fn read(front_matter: &str) -> Reading {
    let text = format!("---\n{front_matter}\n---\nbody\n");
    let document = Document::parse(text.as_bytes(), &ParseOptions::default());
    Metadata::read(
        document.fields().unwrap_or_else(|| panic!("{front_matter}: {:?}", document.diagnostics())),
    )
}

fn findings(front_matter: &str) -> Vec<(FindingCode, Severity, String)> {
    read(front_matter).findings.into_iter().map(|f| (f.code, f.severity, f.field)).collect()
}

#[test]
fn fields_are_read_from_the_top_and_from_every_section_alike() {
    let fields = "tree_id: a/b\ncategory: tools\nmin_tier: task_light\napproval_type: data_export\n\
        secret_refs: [s]\nsummary: S\nemoji: e\ntools: [x, y]\nintent_keywords: {zh: [你], en: [you]}\n\
        tool_schema: {steps: [{tool: t}]}\nagent_config: {role_title: R, max_retry: 2, sop: [{step: s}]}";
    let flat = read(fields);
    assert_eq!(flat.findings, []);
    assert_eq!(flat.metadata.tree_id.as_deref(), Some("a/b"));
    assert_eq!(flat.metadata.agent_config.as_ref().unwrap().max_retry, Some(2));
    for section in SECTIONS {
        let indented: Vec<String> = fields.lines().map(|line| format!("  {}", line.trim_start())).collect();
        let nested = read(&format!("{section}:\n{}", indented.join("\n")));
        assert_eq!(nested.metadata, flat.metadata, "{section}");
        assert_eq!(nested.findings, [], "{section}");
    }
}

#[test]
fn the_top_says_where_a_skill_stands_and_a_section_everything_else() {
    let reading = read("crabclaw: {summary: nested, emoji: e, tree_id: ignored}\ntree_id: a/b\nsummary: top");
    let metadata = reading.metadata;
    assert_eq!(metadata.tree_id.as_deref(), Some("a/b"));
    assert_eq!((metadata.summary.as_deref(), metadata.emoji.as_deref()), (Some("nested"), Some("e")));
    let shadowed: Vec<_> = reading.findings.iter().map(|f| (f.code, &*f.field)).collect();
    let code = FindingCode::ShadowedField;
    assert_eq!(shadowed, [(code, "tree_id"), (code, "summary")]);
}

#[test]
fn lists_take_commas_and_drop_what_is_blank_with_a_word() {
    assert_eq!(read("tools: 'x, y'").metadata.tools, ["x", "y"]);
    assert_eq!(read("tree_id: g/last").metadata.tool_names(), ["last"]);
    let reading = read("intent_keywords: {zh: [你, '', 5], en: []}");
    assert_eq!(
        (reading.metadata.intent_keywords.zh, reading.metadata.intent_keywords.en),
        (vec!["你".to_owned()], vec![])
    );
    assert_eq!(reading.findings[0].field, "intent_keywords.zh[2]");
    let reading = read("related_tools: [a, b, c, d, e, f]");
    assert_eq!(reading.metadata.related_tools, ["a", "b", "c", "d", "e"]);
    assert_eq!(reading.findings[0].code, FindingCode::TooMany);
}

#[test]
fn escalation_hints_have_defaults() {
    let hints =
        read("escalation_hints: {default_ttl_minutes: 5, needs_originator: true}").metadata.escalation_hints;
    let hints = hints.unwrap();
    assert_eq!((&*hints.default_requested_level, hints.default_ttl_minutes), ("", 5));
    assert_eq!(
        (&*hints.default_mount_mode, hints.needs_originator, hints.needs_run_session),
        ("", true, false)
    );
}

#[test]
fn a_mistake_in_a_limit_of_an_agent_is_an_error_and_closes() {
    let config = |text: &str| {
        let reading = read(&format!("agent_config: {{role_title: R, {text}}}"));
        assert!(reading.has_errors(), "{text}: {:?}", reading.findings);
        reading.metadata.agent_config.unwrap()
    };
    assert!(config("no_network: 'true'").no_network);
    assert!(config("no_network: 1").no_network);
    assert!(config("no_spawn:").no_spawn);
    assert_eq!(config("deny: x").inherit, Inherit::None);
    assert_eq!(config("allow: x").allow, [] as [&str; 0]);
    assert_eq!(config("inherit: bogus").inherit, Inherit::None);
    assert_eq!(config("inherit: [full]").inherit, Inherit::None);
    assert_eq!(config("allowed_commands: ls").allowed_commands, Some(vec![]));
    assert_eq!(config("max_bash_calls: -1").max_bash_calls, Some(0));
    assert_eq!(config("max_tokens_per_session: '9'").max_tokens_per_session, Some(0));
    assert_eq!(config("max_concurrent: 1.5").max_concurrent, Some(0));
    assert_eq!(config("runtime_kind: bogus").runtime_kind, RuntimeKind::Skill);
    assert_eq!(config("escalation_chain: [nobody]").escalation_chain, [Escalation::Human]);
    assert_eq!(
        config("review_gate: {reviewer: nobody}").review_gate.unwrap().reviewer,
        Some(Reviewer::Human)
    );
    let _ = config("no_netwrok: true");
    assert_eq!(
        read("agent_config: {role_title: R, max_bash_calls: 0}")
            .metadata
            .agent_config
            .unwrap()
            .max_bash_calls,
        Some(0)
    );
}

#[test]
fn words_that_say_what_a_skill_may_do_fail_closed() {
    for (text, field) in [
        ("min_tier: bogus", "min_tier"),
        ("approval_type: bogus", "approval_type"),
        ("approval: bogus", "approval"),
        ("file_access: bogus", "file_access"),
        ("scope_check: bogus", "scope_check"),
        ("tool_schema: {steps: [{tool: t, approval: bogus}]}", "tool_schema.steps[0].approval"),
    ] {
        assert_eq!(findings(text), [(FindingCode::UnknownWord, Severity::Error, field.to_owned())], "{text}");
    }
    let metadata = read("approval_type: bogus\nmin_tier: bogus\nsecurity_level: standard").metadata;
    assert_eq!(metadata.approval_type, Some(Approval::ExecEscalation));
    assert_eq!(metadata.min_tier, Some(Tier::TaskMultimodal));
    assert_eq!(metadata.security_level, Some(SecurityLevel::Deny));
    assert!(!read("security_level: standard").has_errors(), "a customary word");
    assert_eq!(read("approval: plan_confirm").metadata.approval_type, Some(Approval::PlanConfirm));
}

#[test]
fn every_step_field_is_read_and_arguments_keep_their_types() {
    let schema = read(
        "tool_schema:\n  input: {type: object}\n  steps:\n  - action: A\n    tool: t\n    input_map: {a: 5, c: [1, '{{ input.q }}'], d: {e: null}}\n    output_as: out\n    output_format: json\n    approval: data_export\n    on_error: retry\n    retries: 1\n    retry_delay_ms: 5\n    timeout_ms: 9\n    loop_over: '{{ input.l }}'\n    parallel: 3\n",
    );
    assert_eq!(schema.findings, []);
    let schema = schema.metadata.tool_schema.unwrap();
    assert_eq!((schema.input, schema.output), (json!({"type": "object"}), json!({})));
    let step = &schema.steps[0];
    assert_eq!(json!(step.input_map), json!({"a": 5, "c": [1, "{{ input.q }}"], "d": {"e": null}}));
    assert_eq!((step.on_error, step.retries, step.retry_delay_ms), (Some(OnError::Retry), Some(1), Some(5)));
    assert_eq!((step.timeout_ms, step.parallel), (Some(9), Some(3)));
    assert_eq!((step.output_as.as_deref(), step.loop_over.as_deref()), (Some("out"), Some("{{ input.l }}")));
}

#[test]
fn a_template_without_quotes_is_never_lost_silently() {
    for step in [
        "input_map:\n      q: {{ input.q }}",
        "input_map:\n      q: [{{ input.q }}]",
        "loop_over: {{ input.q }}",
    ] {
        let text = format!("---\ntool_schema:\n  steps:\n  - tool: t\n    {step}\n---\n");
        let document = Document::parse(text.as_bytes(), &ParseOptions::default());
        let found = document.fields().map(Metadata::read);
        let noted = found.is_some_and(|r| r.findings.iter().any(|f| f.code == FindingCode::UnquotedTemplate));
        assert!(noted || !document.diagnostics().is_empty(), "{step}");
    }
}

#[test]
fn a_pipeline_is_there_only_with_a_step() {
    for text in [
        "tool_schema: {steps: []}",
        "tool_schema: {steps: [a, 1]}",
        "tool_schema: {steps: {tool: a}}",
        "tool_schema: x",
    ] {
        assert_eq!(read(text).metadata.tool_schema, None, "{text}");
    }
    let many = vec!["{tool: t}"; MAX_STEPS + 1].join(", ");
    let reading = read(&format!("tool_schema: {{steps: [{many}]}}"));
    assert_eq!(reading.findings[0].code, FindingCode::TooMany);
    assert!(reading.has_errors(), "a pipeline that was cut does not run");
}

/// A value that a field of this kind does not take.
fn wrong_for(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Integer | Kind::Whole | Kind::Flag => "{a: 1}",
        Kind::StrictList => "x",
        Kind::List | Kind::WordList(_) | Kind::TextMap | Kind::AnyMap => "[[1]]",
        Kind::Word(_) | Kind::Customary(_) => "[x]",
        Kind::Mapping(_) | Kind::Mappings(_) | Kind::Schema => "5",
    }
}

/// The front matter in which `inner` is a mapping of `group`.
fn place(group: Group, inner: &str) -> String {
    match group {
        Group::Placement | Group::Section => inner.to_owned(),
        Group::Keywords => format!("intent_keywords: {{{inner}}}"),
        Group::EscalationHints => format!("escalation_hints: {{{inner}}}"),
        Group::ToolSchema => format!("tool_schema: {{{inner}}}"),
        Group::Step => format!("tool_schema: {{steps: [{{{inner}}}]}}"),
        Group::Agent => format!("agent_config: {{{inner}}}"),
        Group::Triggers => format!("agent_config: {{triggers: {{{inner}}}}}"),
        Group::Cron => format!("agent_config: {{triggers: {{cron: [{{{inner}}}]}}}}"),
        Group::Event => format!("agent_config: {{triggers: {{event: [{{{inner}}}]}}}}"),
        Group::MessageMatch => format!("agent_config: {{triggers: {{message_match: [{{{inner}}}]}}}}"),
        Group::Sop => format!("agent_config: {{sop: [{{{inner}}}]}}"),
        Group::ReviewGate => format!("agent_config: {{review_gate: {{{inner}}}}}"),
    }
}

#[test]
fn the_table_of_fields_and_the_reader_agree() {
    let mut seen = BTreeSet::new();
    for FieldRule { name, group, kind, about } in FIELDS {
        assert!(seen.insert((format!("{group:?}"), name)), "{name} is twice in the table");
        assert!(about.len() < 160 && !about.ends_with('.'), "{name}: {about}");
        // Any value is a schema to describe a tool with; only those of a pipeline are used.
        let any = *kind == Kind::Schema && *group == Group::Section;
        let mode = *name == "skill_mode";
        if any || mode {
            continue;
        }
        // What an entry cannot do without, so that its other fields are read.
        let others = fields_of(*group).filter(|f| f.about.ends_with("; required") && f.name != *name);
        let others: String = others.map(|f| format!(", {}: x", f.name)).collect();
        let found = findings(&place(*group, &format!("{name}: {}{others}", wrong_for(*kind))));
        let told =
            found.iter().any(|(code, _, field)| *code != FindingCode::UnknownField && field.contains(name));
        assert!(told, "{name} of {group:?} takes a wrong value without a word: {found:?}");
    }
    assert_eq!(fields_of(Group::Agent).count(), 33);
}

#[test]
fn a_field_that_nobody_reads_is_reported() {
    assert_eq!(findings("name: a\ndescription: b\nlicense: c"), []);
    assert_eq!(findings("foo: 1"), [(FindingCode::UnknownField, Severity::Hint, "foo".to_owned())]);
    assert_eq!(
        findings("pi: {foo: 1}"),
        [(FindingCode::UnknownField, Severity::Warning, "pi.foo".to_owned())]
    );
    assert_eq!(
        findings("metadata: {author: me}"),
        [(FindingCode::UnknownField, Severity::Hint, "metadata.author".to_owned())]
    );
}

#[test]
fn findings_are_bounded_and_an_error_among_many_is_kept() {
    let mut text: String = (0..MAX_FINDINGS + 50).map(|n| format!("  x{n}: 1\n")).collect();
    text.insert_str(0, "pi:\n");
    let reading = read(&text);
    assert_eq!((reading.findings.len(), reading.omitted), (MAX_FINDINGS, 50));
}
