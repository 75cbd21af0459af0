use super::TemplateKind::{Agent, Internal, Operations, Subsystem, Tool};
use super::*;

fn of(request: &str, capabilities: &[&str]) -> (TemplateKind, Vec<TemplateKind>) {
    let found = suggest(request, capabilities).unwrap();
    (found.recommended_template, found.alternative_templates)
}

#[test]
fn a_template_is_found_by_the_words_of_the_request() {
    for (request, template, alternatives) in [
        ("spawn a sub-agent that researches a topic", Agent, vec![]),
        ("qqqzzz xyz", Tool, vec![]),
        ("deterministic step pipeline composing two tools", Tool, vec![]),
        ("deploy runbook with rollback checklist", Operations, vec![]),
        ("step-by-step", Operations, vec![Tool]),
        ("please steps and agent", Tool, vec![Agent]),
        ("manual media", Agent, vec![Operations]),
        ("walk through the system prompt fragment", Internal, vec![Operations]),
        ("Reference documentation overview of the module package", Subsystem, vec![]),
        // Only whole words count.
        ("do it immediately", Tool, vec![]),
        ("a stepmother's querying mailchain", Tool, vec![]),
    ] {
        assert_eq!(of(request, &[]), (template, alternatives), "{request}");
    }
    assert!(suggest("qqqzzz xyz", &[]).unwrap().rationale.contains("fall back"));
    assert!(suggest("do it immediately", &[]).unwrap().rationale.contains("fall back"));
    assert!(suggest(" \n", &[]).is_none());
}

#[test]
fn capabilities_count_and_are_named_in_a_hint() {
    assert_eq!(of("zzz", &["fetch_url", "Agent-X", "plain"]), (Agent, vec![Tool]));
    let found = suggest("zzz", &["fetch_url", "Agent-X", "plain"]).unwrap();
    let hint = found.customization_hints.last().unwrap();
    assert!(["fetch_url", "Agent-X", "plain"].iter().all(|name| hint.contains(name)), "{hint}");
    assert!(found.rationale.contains("cap:agent-x"), "{}", found.rationale);
    assert_eq!(found.customization_hints.len(), 4);
}

#[test]
fn at_most_five_words_are_quoted() {
    let found = suggest("pipeline chain compose sequence transform convert fetch query", &[]).unwrap();
    assert_eq!(found.rationale.matches('`').count(), 10, "{}", found.rationale);
}
