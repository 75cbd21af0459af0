//! What bounds an agent: the scope, the day, what its caller has left, and what may leave it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haversack_agent_core::model::ModelErrorKind;
use haversack_agent_core::usage::Usage;
use haversack_skill_runtime::agent::{
    AgentSkill, Contract, ContractState, DayBook, MAX_SUSPENDED, Permission, ScopeEntry,
};
use haversack_skill_runtime::redact::Redactor;
use serde_json::json;

use super::{House, Says, config, record};

#[test]
fn no_secret_leaves_in_a_report_however_the_agent_ends() {
    let redactor = Redactor::new();
    redactor.learn("hunter2/and more");
    let token = format!("ghp_{}", "a1".repeat(12));
    let text = format!("it is {token} or hunter2%2Fand+more");
    let full = json!({
        "status": "needs_auth", "result": text, "reasoning_summary": text, "resume_hint": text,
        "artifacts": {"files_modified": [text], "files_created": [text], "commands_run": [text]},
        "partial_artifacts": {"commands_run": [text]},
        "auth_request": {"reason": text, "requested_scope_extension": [text],
            "requested_constraint_relaxation": [text], "risk_level": text},
        "help_request": {"question": text, "context": text, "options": [text], "urgency": text},
        "scope_violations": [text],
    });
    let failing = Says::failure(ModelErrorKind::Auth, text.clone());
    for answer in [Says::text(full.to_string()), Says::text(text), failing] {
        let house = House::new(config(), vec![answer]).map(|skills| skills.with_redactor(redactor.clone()));
        let (told, structured) = house.task();
        let all = format!("{told}{}{:?}", structured.unwrap(), house.skills.suspended());
        assert!(!all.contains(&token) && !all.contains("hunter2"), "{all}");
        assert!(all.contains("***"), "{all}");
    }
}

#[test]
fn a_scope_is_narrowed_on_the_way_down_and_never_widened() {
    let house = || {
        House::new(config(), vec![record("completed", "x")])
            .map(|skills| skills.with_scope([ScopeEntry::new("/w", [Permission::Read])]))
    };
    let inside = json!([{"path": "/w/src", "permissions": ["read"]}]);
    for (arguments, scope) in [
        (json!({"task": "t"}), json!([{"path": "/w", "permissions": ["read"]}])),
        (json!({"task": "t", "scope": inside}), inside),
    ] {
        let (_, structured) = house().call(&[arguments]).remove(0);
        assert_eq!(structured.unwrap()["contract"]["scope"], scope);
    }
    for scope in [
        json!([{"path": "/", "permissions": ["read"]}]),
        json!([{"path": "/w/../x", "permissions": ["read"]}]),
        json!([{"path": "/w", "permissions": ["read", "write"]}]),
    ] {
        let house = house();
        let (text, _) = house.call(&[json!({"task": "t", "scope": scope})]).remove(0);
        assert!(text.contains("goes beyond that of its caller"), "{text}");
        assert_eq!(house.child.request_count(), 0, "nothing was started");
    }
}

#[test]
fn of_too_many_contracts_that_wait_the_oldest_is_named_when_it_goes() {
    let waiting = (0..MAX_SUSPENDED).map(|n| {
        let mut contract = Contract::new(format!("old-{n}"), "rev", "t").unwrap();
        contract.advance(ContractState::Active).unwrap();
        contract.advance(ContractState::Suspended).unwrap();
        contract
    });
    let house =
        House::new(config(), vec![record("needs_help", "q")]).map(|skills| skills.with_suspended(waiting));
    let (_, structured) = house.task();
    assert_eq!(structured.unwrap()["forgotten"], "old-0");
    assert_eq!(house.skills.suspended().len(), MAX_SUSPENDED);
}

#[test]
fn the_limits_of_a_day_hold_over_calls_and_over_a_restart_and_end_with_it() {
    let day = Arc::new(AtomicUsize::new(7));
    let house = |book: DayBook| {
        let mut limited = config();
        limited.max_sessions_per_day = Some(1);
        let today = Arc::clone(&day);
        House::new(limited, vec![record("completed", "one"), record("completed", "two")]).map(|skills| {
            skills.with_calendar(move || u64::try_from(today.load(Ordering::Relaxed)).unwrap(), book)
        })
    };
    let first = house(DayBook::default());
    let task = || json!({"task": "t"});
    let told = first.call(&[task(), task()]);
    assert!(told[0].0.contains("one") && told[1].0.contains("1 sessions a day"), "{told:?}");
    let stored = serde_json::to_string(&first.skills.day_book()).unwrap();
    let restarted = house(serde_json::from_str(&stored).unwrap());
    assert!(restarted.task().0.contains("1 sessions a day"), "the day is not over");
    assert_eq!(restarted.child.request_count(), 0);
    day.store(8, Ordering::Relaxed);
    assert!(restarted.task().0.contains("Status: completed\n\none"));
    // Without a calendar nobody knows what a day is.
    let mut limited = config();
    limited.max_tokens_per_day = Some(1);
    assert!(House::new(limited, vec![]).task().0.contains("no calendar"));
}

#[test]
fn what_a_helper_uses_up_is_not_there_for_its_leader_any_more() {
    let mut leader = config();
    leader.can_dispatch_to = vec!["helper".to_owned()];
    leader.max_tokens_per_session = Some(100);
    let mut helper = config();
    helper.max_tokens_per_session = Some(1000);
    let answers = vec![
        Says::call("h", "helper", json!({"task": "sub"})).with_usage(Usage::new(30, 5)),
        record("completed", "helped").with_usage(Usage::new(60, 15)),
        record("completed", "must not be reached"),
    ];
    let house = House::new(leader, answers)
        .map(|skills| skills.with_skill(AgentSkill::new("helper", "Helps", helper)));
    let (text, structured) = house.task();
    assert!(!text.contains("must not be reached"), "{text}");
    let contract = &structured.unwrap()["contract"];
    assert_eq!((&contract["state"], &contract["used"]["tokens"]), (&json!("failed"), &json!(110)));
    let system = house.child.requests()[1].system_text();
    assert!(system.contains("Tokens at most: 65"), "the helper was told what is left: {system}");
}

#[test]
fn a_parent_that_may_start_nothing_has_no_agents() {
    let mut alone = config();
    (alone.no_spawn, alone.can_dispatch_to) = (true, vec!["*".to_owned()]);
    let house = House::new(alone, vec![record("completed", "x")])
        .map(|skills| skills.with_skill(AgentSkill::new("helper", "Helps", config())));
    let (_, structured) = house.task();
    assert!(house.offered(0).is_empty());
    let withheld = structured.unwrap()["withheld"].clone();
    assert!(withheld["helper"].is_string() && withheld["rev"].is_string(), "{withheld}");
}
