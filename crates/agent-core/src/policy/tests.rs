use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::digest::Fingerprint;
use crate::tool::{Effects, ToolSpec};

fn decision_of(spec: &ToolSpec, keys: &[ApprovalKey], policy: &Policy, grants: &Grants) -> Decision {
    decide(&Proposal::new(spec, Fingerprint::of(spec), keys), policy, grants, &[], None).decision
}

fn with(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::new(Mode::Ask).with_rules(rules)
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec::new(name, "a tool")
}

fn host(read_only: Option<bool>, destructive: Option<bool>) -> Effects {
    let mut effects = Effects::claimed_by_server(read_only, destructive, None);
    effects.claimed_by = crate::tool::Claim::Host;
    effects
}

#[test]
fn each_mode_says_what_it_says() {
    use Decision::{Allow, Ask, Deny};
    let server = |read_only, destructive| Effects::claimed_by_server(read_only, destructive, None);
    for (what, effects, expected) in [
        ("unknown", Effects::default(), [Deny, Ask, Ask, Allow]),
        ("host: reads", host(Some(true), None), [Allow, Allow, Allow, Allow]),
        ("host: destroys nothing", host(None, Some(false)), [Deny, Ask, Allow, Allow]),
        ("host: destroys", host(None, Some(true)), [Deny, Ask, Ask, Allow]),
        ("host: says nothing", host(None, None), [Deny, Ask, Ask, Allow]),
        ("server: reads", server(Some(true), None), [Ask, Ask, Ask, Allow]),
        ("server: destroys nothing", server(None, Some(false)), [Deny, Ask, Ask, Allow]),
    ] {
        let modes = [Mode::ReadOnly, Mode::Ask, Mode::AcceptKnown, Mode::Autonomous];
        assert_eq!(modes.map(|mode| mode.decision(&effects)), expected, "{what}");
    }
}

#[test]
fn deny_beats_ask_beats_allow_wherever_they_stand() {
    let rules = [Rule::allow("t"), Rule::ask("t"), Rule::deny("t")];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut policy = with(order.map(|i: usize| rules[i].clone()));
        assert_eq!(decision_of(&tool("t"), &[], &policy, &Grants::default()), Decision::Deny);
        policy.rules.retain(|r| r.decision != Decision::Deny);
        assert_eq!(decision_of(&tool("t"), &[], &policy, &Grants::default()), Decision::Ask);
    }
}

#[test]
fn a_rule_that_asks_is_not_silenced_by_a_grant_nor_by_the_autonomous_mode() {
    let mut grants = Grants::default();
    grants.add(Rule::allow("t"), &tool("t")).unwrap();
    let policy = Policy::new(Mode::Autonomous).with_rule(Rule::ask("t"));
    assert_eq!(decision_of(&tool("t"), &[], &policy, &grants), Decision::Ask);
}

#[test]
fn the_read_only_mode_goes_before_every_rule_and_grant() {
    let mut grants = Grants::default();
    grants.add(Rule::allow("t"), &tool("t")).unwrap();
    let policy = Policy::new(Mode::ReadOnly).with_rule(Rule::allow("**"));
    assert_eq!(decision_of(&tool("t"), &[], &policy, &grants), Decision::Deny);
}

#[test]
fn a_grant_ends_with_the_fingerprint_of_its_tool() {
    let mut grants = Grants::default();
    grants.add(Rule::allow("t"), &tool("t")).unwrap();
    let policy = Policy::default();
    assert_eq!(decision_of(&tool("t"), &[], &policy, &grants), Decision::Allow);
    for drifted in [
        ToolSpec::new("t", "a tool, improved"),
        tool("t").with_schema(json!({"type": "object"})),
        tool("t").with_origin("mcp:elsewhere"),
    ] {
        assert_eq!(decision_of(&drifted, &[], &policy, &grants), Decision::Ask);
    }
    // Learning more about what a tool does is no drift.
    let better_known = tool("t").with_effects(host(None, Some(true)));
    assert_eq!(decision_of(&better_known, &[], &policy, &grants), Decision::Allow);
}

#[test]
fn a_grant_is_for_the_tool_that_was_asked_about_however_wide_its_glob() {
    let mut grants = Grants::default();
    grants.add(Rule::allow("*"), &tool("t")).unwrap();
    assert_eq!(decision_of(&tool("u"), &[], &Policy::default(), &grants), Decision::Ask);
    assert_eq!(grants.add(Rule::allow("u"), &tool("t")), Err(GrantRefused::OtherTool));
    assert_eq!(grants.add(Rule::deny("t"), &tool("t")), Err(GrantRefused::NotAnAllowance));
}

#[test]
fn grants_are_kept_once_and_bounded() {
    let mut grants = Grants::default();
    for i in 0..MAX_GRANTS {
        let rule = Rule::allow("t").for_keys([KeyPattern::exact(ApprovalKey::other(i.to_string()))]);
        grants.add(rule.clone(), &tool("t")).unwrap();
        grants.add(rule, &tool("t")).unwrap();
    }
    assert_eq!(grants.iter().count(), MAX_GRANTS);
    assert_eq!(grants.add(Rule::allow("t"), &tool("t")), Err(GrantRefused::TooMany));
    grants.retain(|g| g.rule.keys.is_empty());
    assert!(grants.is_empty());
}

#[test]
fn every_key_of_a_call_has_to_be_allowed_and_one_is_enough_to_deny() {
    let src = ApprovalKey::path("src/a.rs");
    let etc = ApprovalKey::path("/etc/passwd");
    let allow = |glob: &str| Rule::allow("move").for_keys([KeyPattern::path(glob)]);
    let none = Grants::default();
    let both = [src.clone(), etc];
    let only_src = with([allow("src/**")]);
    assert_eq!(decision_of(&tool("move"), &[src], &only_src, &none), Decision::Allow);
    assert_eq!(decision_of(&tool("move"), &both, &only_src, &none), Decision::Ask);
    assert_eq!(
        decision_of(&tool("move"), &both, &with([allow("src/**"), allow("/etc/*")]), &none),
        Decision::Allow
    );
    let denied = with([Rule::allow("move"), Rule::deny("*").for_keys([KeyPattern::path("/etc/**")])]);
    assert_eq!(decision_of(&tool("move"), &both, &denied, &none), Decision::Deny);
    // A call that names no key is not covered by a rule about keys.
    assert_eq!(decision_of(&tool("move"), &[], &only_src, &none), Decision::Ask);
}

#[test]
fn path_patterns_allow_exactly_and_deny_broadly() {
    // (pattern, path, allowed by it, denied by it)
    for (pattern, path, allowed, denied) in [
        ("src/*", "src/a.rs", true, true),
        ("src/*", "src/deep/a.rs", false, false),
        ("src/**", "src/deep/a.rs", true, true),
        ("src/**", "src/../secrets", false, true),
        ("secrets", "src/../secrets", false, true),
        ("src/**", "./src//a.rs", true, true),
        ("src/**", "src\\a.rs", true, true),
        ("src/**", "srcs/a.rs", false, false),
        ("**/.env*", ".env", true, true),
        ("**/.env*", "a/b/.env.local", true, true),
        ("**/.env*", "a/.ENV", false, true),
        ("SRC/*", "src/a", false, true),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", true, true),
        ("app/[id]/page.tsx", "app/i/page.tsx", false, false),
        ("{a,b}", "a", false, false),
        ("!a", "b", false, false),
        ("a?c", "aéc", false, false),
        ("a?c", "a?c", true, true),
        ("a*c", "aéc", true, true),
        ("*", "/etc", false, false),
        ("/**", "/etc/passwd", true, true),
        ("**", "/etc/passwd", true, true),
        ("/home/me/**", "/home/me/../you", false, true),
        ("/home/you", "/home/me/../you", false, true),
    ] {
        let key = [ApprovalKey::path(path)];
        let decision = |rule: Rule| {
            let rule = rule.for_keys([KeyPattern::path(pattern)]);
            decision_of(&tool("t"), &key, &with([rule]), &Grants::default())
        };
        assert_eq!(decision(Rule::allow("t")) == Decision::Allow, allowed, "allow {pattern} {path}");
        assert_eq!(decision(Rule::deny("t")) == Decision::Deny, denied, "deny {pattern} {path}");
    }
}

#[test]
fn a_path_longer_than_any_system_takes_is_denied_and_never_allowed_by_a_glob() {
    let key = [ApprovalKey::path("a/".repeat(MAX_GLOB_KEY_BYTES))];
    let keyed = |rule: Rule, glob: &str| with([rule.for_keys([KeyPattern::path(glob)])]);
    assert_eq!(
        decision_of(&tool("t"), &key, &keyed(Rule::allow("t"), "**"), &Grants::default()),
        Decision::Ask
    );
    assert_eq!(
        decision_of(&tool("t"), &key, &keyed(Rule::deny("t"), "b"), &Grants::default()),
        Decision::Deny
    );
}

#[test]
fn command_patterns_allow_exactly_and_deny_broadly() {
    for (prefix, command, allowed, denied) in [
        ("git status", "git status", true, true),
        ("git status", "git  status --short", true, true),
        ("git status", "git statuses", false, false),
        ("git", "gitk", false, false),
        ("git status", "git status; rm -rf /", false, true),
        ("git status", "git status && rm x", false, true),
        ("git status", "git status | sh", false, true),
        ("git status", "git status > .bashrc", false, true),
        ("git status", "git status $(rm x)", false, true),
        ("git status", "git status `rm x`", false, true),
        ("git status", "git status\nrm x", false, true),
        ("git status", "git status %PATH%", false, true),
        ("git status", "git status \u{202e}x", false, true),
        ("git status", "git status \u{200b}", false, true),
        ("git status", "git status \u{7}", false, true),
        ("rm", "ls; rm -rf /", false, true),
        ("rm", "echo $(rm x)", false, true),
        ("rm", "/bin/rm x", false, true),
        ("rm", "\"rm\" x", false, true),
        ("rm", "RM x", false, true),
        ("rm", "perform x", false, false),
        ("rm", "echo rm", false, false),
        ("", "anything", false, true),
    ] {
        let key = [ApprovalKey::command(command)];
        let decision = |rule: Rule| {
            let rule = rule.for_keys([KeyPattern::command(prefix)]);
            decision_of(&tool("sh"), &key, &with([rule]), &Grants::default())
        };
        assert_eq!(decision(Rule::allow("sh")) == Decision::Allow, allowed, "allow {prefix:?} {command:?}");
        assert_eq!(decision(Rule::deny("sh")) == Decision::Deny, denied, "deny {prefix:?} {command:?}");
    }
}

#[test]
fn a_pattern_of_one_kind_says_nothing_about_keys_of_another() {
    for key in [ApprovalKey::command("x"), ApprovalKey::other("x")] {
        for decision in [Decision::Allow, Decision::Deny] {
            let rule = Rule::new(decision, "t").for_keys([KeyPattern::path("**")]);
            assert_eq!(
                decision_of(&tool("t"), std::slice::from_ref(&key), &with([rule]), &Grants::default()),
                Decision::Ask
            );
        }
    }
}

fn suggested(spec: &ToolSpec, keys: &[ApprovalKey], policy: &Policy) -> Vec<String> {
    let proposal = Proposal::new(spec, Fingerprint::of(spec), keys);
    let ruling = decide(&proposal, policy, &Grants::default(), &[], None);
    suggest(&proposal, &ruling).iter().map(ToString::to_string).collect()
}

#[test]
fn suggestions_go_from_narrow_to_wide_and_stop_before_a_blank_cheque() {
    let command = |c: &str| suggested(&tool("sh"), &[ApprovalKey::command(c)], &Policy::default());
    let exactly = |c: &str| format!("allow `sh` for exactly `{c}`");
    for (line, prefix) in [
        ("git log -3 --oneline", Some("git log")),
        ("npm run test -- --watch", Some("npm run test")),
        ("npm test", Some("npm test")),
        ("npm run", None),
        ("git", None),
        ("ls -la", None),
        ("cargo test", None),
        ("bash script", None),
        ("./tool sub", None),
        ("curl example", None),
        ("npm exec sh", None),
        ("pnpm dlx x.y", None),
    ] {
        let mut expected = vec![exactly(line)];
        expected.extend(prefix.map(|p| format!("allow `sh` for commands that begin with `{p}`")));
        assert_eq!(command(line), expected, "{line}");
    }
    assert!(command("git log | sh").is_empty(), "shell syntax cannot be judged in advance");
    assert_eq!(
        suggested(&tool("edit"), &[ApprovalKey::path("src/a/b.rs")], &Policy::default()),
        ["allow `edit` for exactly `src/a/b.rs`", "allow `edit` for paths like `src/a/**`", "allow `edit`"]
    );
    assert_eq!(suggested(&tool("t"), &[], &Policy::default()), ["allow `t`"]);
    let destroys = tool("drop").with_effects(host(None, Some(true)));
    assert_eq!(
        suggested(&destroys, &[ApprovalKey::other("db")], &Policy::default()),
        ["allow `drop` for exactly `db`"]
    );
    assert!(suggested(&destroys, &[], &Policy::default()).is_empty());
}

#[test]
fn nothing_is_suggested_where_it_could_not_help() {
    let insists = with([Rule::ask("t")]);
    assert!(suggested(&tool("t"), &[], &insists).is_empty());
    let hook = Tightening::Ask("the freeze".into());
    let spec = tool("t");
    let proposal = Proposal::new(&spec, Fingerprint::of(&spec), &[]);
    let policy = Policy::new(Mode::Autonomous);
    let ruling = decide(&proposal, &policy, &Grants::default(), &[], Some(&hook));
    assert_eq!((ruling.decision, ruling.reason.to_string().as_str()), (Decision::Ask, "the freeze"));
    assert!(suggest(&proposal, &ruling).is_empty());
}

#[test]
fn policies_and_grants_are_plain_data() {
    let policy = Policy::new(Mode::AcceptKnown)
        .with_rule(Rule::allow("sh").for_keys([KeyPattern::command("git log"), KeyPattern::path("a/**")]))
        .with_rule(Rule::deny("mcp__*").for_keys([KeyPattern::exact(ApprovalKey::other("x"))]));
    let json = json!({"mode": "accept_known", "rules": [
        {"decision": "allow", "tool": "sh", "keys": [{"command": "git log"}, {"path": "a/**"}]},
        {"decision": "deny", "tool": "mcp__*", "keys": [{"exact": {"other": "x"}}]},
    ]});
    assert_eq!(serde_json::to_value(&policy).unwrap(), json);
    assert_eq!(serde_json::from_value::<Policy>(json).unwrap(), policy);
    assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), Policy::default());
}

// Properties over small alphabets, so that rules, grants and calls meet often.

fn any_key() -> impl Strategy<Value = ApprovalKey> {
    prop_oneof![
        prop::sample::select(vec!["a", "a/b", "b/c", "a/../b", ".env", "/etc"]).prop_map(ApprovalKey::path),
        prop::sample::select(vec!["git log", "git log; rm x", "rm x", "git"]).prop_map(ApprovalKey::command),
        prop::sample::select(vec!["x", "y.z"]).prop_map(ApprovalKey::other),
    ]
}

fn any_pattern() -> impl Strategy<Value = KeyPattern> {
    prop_oneof![
        any_key().prop_map(KeyPattern::Exact),
        prop::sample::select(vec!["a", "a/*", "**", "*", "**/.env"]).prop_map(KeyPattern::path),
        prop::sample::select(vec!["git", "git log", "rm"]).prop_map(KeyPattern::command),
        prop::sample::select(vec!["*", "y.*"]).prop_map(KeyPattern::other),
    ]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let decision = prop::sample::select(vec![Decision::Allow, Decision::Ask, Decision::Deny]);
    let glob = prop::sample::select(vec!["t", "u", "*", "v"]);
    (decision, glob, prop::collection::vec(any_pattern(), 0..3))
        .prop_map(|(decision, glob, keys)| Rule::new(decision, glob).for_keys(keys))
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::ReadOnly, Mode::Ask, Mode::AcceptKnown, Mode::Autonomous])
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (any_mode(), prop::collection::vec(any_rule(), 0..5))
        .prop_map(|(mode, rules)| Policy::new(mode).with_rules(rules))
}

fn any_tool() -> impl Strategy<Value = ToolSpec> {
    let flag = || prop::sample::select(vec![None, Some(true), Some(false)]);
    let name = prop::sample::select(vec!["t", "u"]);
    (name, flag(), flag(), any::<bool>()).prop_map(|(name, read_only, destructive, by_host)| {
        let effects = if by_host {
            host(read_only, destructive)
        } else {
            Effects::claimed_by_server(read_only, destructive, None)
        };
        tool(name).with_effects(effects)
    })
}

fn any_grants() -> impl Strategy<Value = Grants> {
    prop::collection::vec((any_rule(), any_tool()), 0..4).prop_map(|grants| {
        let mut all = Grants::default();
        for (rule, tool) in grants {
            // Refusals are part of the play.
            let _refused = all.add(rule, &tool);
        }
        all
    })
}

fn any_ceiling() -> impl Strategy<Value = Arc<Ceiling>> {
    (any_policy(), prop::option::of(prop::collection::vec(any_tool(), 0..3))).prop_map(|(policy, tools)| {
        let ceiling = Ceiling::new(policy);
        Arc::new(match tools {
            Some(tools) => ceiling.with_tools(tools.iter().map(Fingerprint::of)),
            None => ceiling,
        })
    })
}

fn any_hook() -> impl Strategy<Value = Option<Tightening>> {
    prop::sample::select(vec![
        None,
        Some(Tightening::Ask("hook".into())),
        Some(Tightening::Deny("hook".into())),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_hook_and_a_ceiling_only_tighten_and_every_ceiling_binds(
        spec in any_tool(),
        keys in prop::collection::vec(any_key(), 0..3),
        policy in any_policy(),
        grants in any_grants(),
        ceilings in prop::collection::vec(any_ceiling(), 0..4),
        hook in any_hook(),
    ) {
        let proposal = Proposal::new(&spec, Fingerprint::of(&spec), &keys);
        let all = decide(&proposal, &policy, &grants, &ceilings, hook.as_ref()).decision;
        let alone = decide(&proposal, &policy, &grants, &[], None).decision;
        prop_assert!(all >= alone);
        for index in 0..ceilings.len() {
            // As if the ceiling were the run's own policy: whatever it says, the outcome is at least as strict.
            let above = decide(&proposal, &ceilings[index].policy, &grants, &[], None).decision;
            prop_assert!(all >= above);
            let mut fewer = ceilings.clone();
            fewer.remove(index);
            prop_assert!(all >= decide(&proposal, &policy, &grants, &fewer, hook.as_ref()).decision);
            if ceilings[index].tools.as_ref().is_some_and(|t| !t.contains(&Fingerprint::of(&spec))) {
                prop_assert_eq!(all, Decision::Deny);
            }
        }
        let mut reversed = ceilings;
        reversed.reverse();
        prop_assert_eq!(decide(&proposal, &policy, &grants, &reversed, hook.as_ref()).decision, all);
    }

    #[test]
    fn a_rule_more_moves_the_decision_only_in_its_own_direction(
        spec in any_tool(),
        keys in prop::collection::vec(any_key(), 0..3),
        policy in any_policy(),
        grants in any_grants(),
        rule in any_rule(),
    ) {
        let before = decision_of(&spec, &keys, &policy, &grants);
        let after = decision_of(&spec, &keys, &policy.with_rule(rule.clone()), &grants);
        match rule.decision {
            Decision::Allow => {
                prop_assert!(after <= before);
                // What a rule or the mode forbids, no allowance brings back.
                prop_assert!(before != Decision::Deny || after == Decision::Deny);
            }
            stricter => prop_assert!(after >= before || (before == Decision::Allow && after == stricter)),
        }
    }

    #[test]
    fn a_grant_more_never_tightens_and_never_lifts_a_denial(
        spec in any_tool(),
        keys in prop::collection::vec(any_key(), 0..3),
        policy in any_policy(),
        grants in any_grants(),
        rule in any_rule(),
    ) {
        let before = decision_of(&spec, &keys, &policy, &grants);
        let mut more = grants;
        let _refused = more.add(rule, &spec);
        let after = decision_of(&spec, &keys, &policy, &more);
        prop_assert!(after <= before);
        prop_assert!(before != Decision::Deny || after == Decision::Deny);
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        spec in any_tool(),
        keys in prop::collection::vec(any_key(), 0..3),
        policy in any_policy(),
    ) {
        let mut reversed = policy.clone();
        reversed.rules.reverse();
        let none = Grants::default();
        prop_assert_eq!(decision_of(&spec, &keys, &policy, &none), decision_of(&spec, &keys, &reversed, &none));
    }

    #[test]
    fn each_suggestion_alone_makes_the_ask_needless_and_covers_no_other_tool(
        spec in any_tool(),
        keys in prop::collection::vec(any_key(), 0..3),
        policy in any_policy(),
    ) {
        let proposal = Proposal::new(&spec, Fingerprint::of(&spec), &keys);
        let ruling = decide(&proposal, &policy, &Grants::default(), &[], None);
        if ruling.decision == Decision::Ask {
            for rule in suggest(&proposal, &ruling) {
                let mut grants = Grants::default();
                grants.add(rule, &spec).unwrap();
                prop_assert_eq!(decision_of(&spec, &keys, &policy, &grants), Decision::Allow);
                let other = tool("other").with_effects(spec.effects);
                prop_assert_eq!(
                    decision_of(&other, &keys, &policy, &grants),
                    decision_of(&other, &keys, &policy, &Grants::default())
                );
            }
        }
    }

    #[test]
    fn no_pattern_and_no_key_can_make_matching_panic(pattern in ".{0,24}", text in ".{0,24}") {
        let _matched = Glob::new(pattern.as_str()).matches_in_any_case(&text);
        let key = ApprovalKey::path(&text);
        prop_assert!(KeyPattern::exact(key.clone()).covers(&key));
        let literal: String = text.chars().filter(|c| *c != '*').collect();
        prop_assert!(Glob::new(literal.as_str()).matches(&literal));
    }
}
