use super::*;
use crate::metadata::Escalation;

#[test]
fn limits_count_code_points_and_an_empty_task_is_none() {
    for letter in ["a", "🦀", "语"] {
        assert!(Contract::new("c", "s", letter.repeat(500)).is_ok());
        let error = Contract::new("c", "s", letter.repeat(501)).unwrap_err();
        assert_eq!(error.to_string(), "the task has 501 characters, and at most 500 are allowed");
    }
    for empty in ["", " \n"] {
        assert_eq!(Contract::new("c", "s", empty), Err(ContractError::Empty));
    }
    let contract = || Contract::new("c", "s", "t").unwrap();
    assert!(contract().with_success_criteria("x".repeat(300)).is_ok());
    assert!(contract().with_success_criteria("x".repeat(301)).is_err());
    let scope = |n| vec![ScopeEntry::new("/a", [Permission::Read]); n];
    assert!(contract().with_scope(scope(20)).is_ok());
    assert!(contract().with_scope(scope(21)).is_err());
    let commands = |n| Constraints { allowed_commands: Some(vec!["ls".into(); n]), ..Constraints::default() };
    assert!(contract().with_constraints(commands(50)).is_ok());
    assert!(contract().with_constraints(commands(51)).is_err());
    let agents = |n| Constraints { can_dispatch_to: vec!["a".into(); n], ..Constraints::default() };
    assert!(contract().with_constraints(agents(20)).is_ok());
    assert!(contract().with_constraints(agents(21)).is_err());
}

#[test]
fn only_these_states_follow_each_other() {
    use ContractState::*;
    let all = [Pending, Active, Suspended, Completed, Failed, Cancelled];
    let allowed = [
        (Pending, Active),
        (Active, Suspended),
        (Active, Completed),
        (Active, Failed),
        (Active, Cancelled),
        (Suspended, Active),
        (Suspended, Cancelled),
    ];
    for from in all {
        for to in all {
            let mut contract = Contract::new("c", "s", "t").unwrap();
            contract.state = from;
            let moved = contract.advance(to);
            assert_eq!(moved.is_ok(), allowed.contains(&(from, to)), "{from} to {to}");
            assert_eq!(contract.state(), if moved.is_ok() { to } else { from });
        }
    }
    let mut done = Contract::new("c", "s", "t").unwrap();
    done.state = Completed;
    assert!(done.advance(Active).unwrap_err().to_string().ends_with("allowed: no transitions"));
}

#[test]
fn an_agent_starts_only_what_is_listed() {
    let may = |no_spawn, list: &[&str]| {
        let can_dispatch_to = list.iter().map(|s| (*s).to_owned()).collect();
        let constraints = Constraints { no_spawn, can_dispatch_to, ..Constraints::default() };
        Contract::new("c", "s", "t").unwrap().with_constraints(constraints).unwrap().may_dispatch_to("a")
    };
    for (no_spawn, list, allowed) in [
        (false, &[] as &[&str], false),
        (true, &["*"], false),
        (true, &["a"], false),
        (false, &["*"], true),
        (false, &["b", "a"], true),
        (false, &["b"], false),
    ] {
        assert_eq!(may(no_spawn, list), allowed, "{no_spawn} {list:?}");
    }
}

#[test]
fn a_contract_below_has_no_more_than_is_left_above() {
    let mut above = Contract::new("top", "s", "t").unwrap().with_timeout_ms(1000);
    above.constraints.max_tokens = Some(100);
    above.constraints.no_network = true;
    above.constraints.allowed_commands = Some(vec!["ls".into(), "cat".into()]);
    above.constraints.can_dispatch_to = vec!["a".into(), "b".into()];
    above.used = Used { tokens: 70, millis: 400, ..Used::default() };
    let mut below = Contract::new("c", "s", "t").unwrap();
    below.constraints.max_tokens = Some(50);
    below.constraints.allowed_commands = Some(vec!["cat".into(), "rm".into()]);
    below.constraints.can_dispatch_to = vec!["*".into()];
    let below = below.below(&above);
    assert_eq!(below.parent_contract, "top");
    assert_eq!((below.constraints.max_tokens, below.timeout_ms), (Some(30), 600));
    assert!(below.constraints.no_network);
    assert_eq!(below.constraints.allowed_commands, Some(vec!["cat".into()]));
    assert_eq!(below.constraints.can_dispatch_to, ["a", "b"]);
}

#[test]
fn the_first_limit_reached_is_named_and_zero_is_none_at_all() {
    let mut contract = Contract::new("c", "s", "t").unwrap().with_timeout_ms(10);
    assert_eq!(contract.exhausted(), None);
    contract.constraints.max_tokens = Some(5);
    contract.used.tokens = 5;
    assert_eq!(contract.exhausted().unwrap().to_string(), "the contract's tokens are used up: 5/5");
    contract.used.millis = 11;
    assert_eq!(contract.exhausted(), Some(Exhausted::Time { used: 11, max: 10 }));
    contract.constraints.max_bash_calls = Some(0);
    assert_eq!(contract.exhausted(), Some(Exhausted::BashCalls { used: 0, max: 0 }));
}

#[test]
fn the_prompt_names_every_limit_and_shows_the_record() {
    let constraints = Constraints {
        no_network: true,
        no_spawn: true,
        sandbox_required: true,
        max_bash_calls: Some(0),
        allowed_commands: Some(vec!["git".into(), "ls".into()]),
        ..Constraints::default()
    };
    let contract = Contract::new("c-9", "s", "Look")
        .and_then(|c| c.with_success_criteria("seen"))
        .and_then(|c| c.with_scope(vec![ScopeEntry::new("/src", [Permission::Read, Permission::Write])]))
        .and_then(|c| c.with_constraints(constraints))
        .unwrap();
    let prompt = contract.to_prompt();
    for part in [
        "## Delegation Contract",
        "- Contract: c-9",
        "- Task: Look",
        "- Done when: seen",
        "- Time limit: 60000 ms",
        "- `/src` [read, write]",
        "- No network access",
        "- No sub-agents",
        "sandbox",
        "- Commands at most: 0",
        "- Commands that may run: git, ls",
        "\"reasoning_summary\"",
        "`needs_auth`",
    ] {
        assert!(prompt.contains(part), "{part} is missing in\n{prompt}");
    }
    let bare = Contract::new("c", "s", "t").unwrap().to_prompt();
    assert!(!bare.contains("### Constraints") && !bare.contains("### Allowed Scope"));
}

#[test]
fn a_contract_survives_being_saved() {
    let mut contract = Contract::new("c", "s", "t").unwrap();
    contract.advance(ContractState::Active).unwrap();
    contract.advance(ContractState::Suspended).unwrap();
    contract.constraints.escalation_chain = vec![Escalation::Own, Escalation::Human];
    let text = serde_json::to_string(&contract).unwrap();
    assert_eq!(serde_json::from_str::<Contract>(&text).unwrap(), contract);
}
