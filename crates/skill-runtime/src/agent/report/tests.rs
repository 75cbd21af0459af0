use super::*;

#[test]
fn a_record_is_read_in_either_spelling_bare_or_in_a_fence() {
    let snake = r#"{"status":"needs_help","result":"r","reasoning_summary":"s","resume_hint":"h",
        "artifacts":{"files_modified":["a",1],"files_created":["b"],"commands_run":["ls"]},
        "partial_artifacts":{"files_created":["p"]},
        "auth_request":{"reason":"why","requested_scope_extension":["/x"],"requested_constraint_relaxation":["no_network"],"risk_level":"low"},
        "help_request":{"question":"q","context":"c","options":["1","2"],"urgency":"high"},"scope_violations":["/etc"]}"#;
    let camel = snake
        .replace("reasoning_summary", "reasoningSummary")
        .replace("resume_hint", "resumeHint")
        .replace("files_modified", "filesModified")
        .replace("files_created", "filesCreated")
        .replace("commands_run", "commandsRun")
        .replace("partial_artifacts", "partialArtifacts")
        .replace("auth_request", "authRequest")
        .replace("requested_scope_extension", "requestedScopeExtension")
        .replace("requested_constraint_relaxation", "requestedConstraintRelaxation")
        .replace("risk_level", "riskLevel")
        .replace("help_request", "helpRequest")
        .replace("scope_violations", "scopeViolations");
    let report = Report::parse(snake).unwrap();
    assert_eq!(report.status, ReportStatus::NeedsHelp);
    assert_eq!(report.artifacts.files_modified, ["a"]);
    assert_eq!(report.partial_artifacts.files_created, ["p"]);
    assert_eq!(report.auth_request.as_ref().unwrap().risk_level, "low");
    assert_eq!(report.help_request.as_ref().unwrap().options, ["1", "2"]);
    assert_eq!(report.scope_violations, ["/etc"]);
    for text in [camel.clone(), format!("\n```json\n{camel}\n```  "), format!("```\n{snake}\n```")] {
        assert_eq!(Report::parse(&text).as_ref(), Some(&report), "{text}");
    }
}

#[test]
fn what_is_no_record_is_none() {
    for text in [
        "",
        "text",
        "[1]",
        "{}",
        r#"{"status":""}"#,
        r#"{"status":1}"#,
        r#"{"result":"x"}"#,
        "```python\n{\"status\":\"completed\"}\n```",
        "```json\n{\"status\":\"completed\"}",
        "so: {\"status\":\"completed\"}",
    ] {
        assert_eq!(Report::parse(text), None, "{text}");
    }
    assert!(Report::parse(r#"{"status":"completed"}"#).is_some());
}

#[test]
fn an_unknown_status_is_partial_and_parts_beyond_their_limits_are_cut_and_noted() {
    let long = serde_json::json!({
        "status": "magnificent",
        "result": "é".repeat(10_001),
        "resume_hint": "h".repeat(301),
        "reasoning_summary": "s".repeat(502),
        "scope_violations": vec!["v"; 25],
    });
    let report = Report::parse(&long.to_string()).unwrap();
    assert_eq!(report.status, ReportStatus::Partial);
    assert_eq!(report.result.chars().count(), 10_000);
    assert_eq!(report.scope_violations.len(), 20);
    assert_eq!(
        report.notes,
        [
            "unknown status `magnificent` counts as partial",
            "result: 1 characters beyond 10000 were cut",
            "reasoning_summary: 2 characters beyond 500 were cut",
            "resume_hint: 1 characters beyond 300 were cut",
            "scope_violations: 5 beyond 20 were cut",
        ]
    );
}

#[test]
fn every_status_has_a_state() {
    use ContractState::{Completed, Failed, Suspended};
    for (status, state) in [
        (ReportStatus::Completed, Completed),
        (ReportStatus::Partial, Suspended),
        (ReportStatus::Blocked, Suspended),
        (ReportStatus::NeedsAuth, Suspended),
        (ReportStatus::NeedsHelp, Suspended),
        (ReportStatus::Failed, Failed),
        (ReportStatus::Timeout, Failed),
    ] {
        assert_eq!(status.contract_state(), state);
        assert_eq!(ReportStatus::from_word(status.word()), status);
    }
}

#[test]
fn the_block_has_the_layout_of_the_format() {
    let mut report = Report::new(ReportStatus::Completed, "All fine.");
    assert_eq!(
        report.to_block("rev", "c-1"),
        "[Agent Result]\nSkill: rev\nContract: c-1\nStatus: completed\n\nAll fine.\n"
    );
    report.reasoning_summary = "read it".into();
    report.artifacts.files_modified = vec!["a".into(), "b".into()];
    report.artifacts.files_created = vec!["c".into()];
    assert_eq!(
        report.to_block("rev", "c-1"),
        "[Agent Result]\nSkill: rev\nContract: c-1\nStatus: completed\n\nAll fine.\n\nReasoning: read it\n\n\
         Files modified: [\"a\",\"b\"]\n\nFiles created: [\"c\"]\n"
    );
    assert_eq!(
        block_without_record("rev", "c-1", "failed", "gone"),
        "[Agent Result]\nSkill: rev\nContract: c-1\nStatus: failed\nError: gone\n"
    );
}
