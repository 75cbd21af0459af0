use proptest::prelude::*;

use super::*;
use crate::agent::contract::{Constraints, ScopeEntry};

fn config(inherit: Inherit, allow: &[&str], deny: &[&str]) -> AgentConfig {
    let mut config = AgentConfig::new("R");
    config.inherit = inherit;
    config.allow = allow.iter().map(|s| (*s).to_owned()).collect();
    config.deny = deny.iter().map(|s| (*s).to_owned()).collect();
    config
}

#[test]
fn tools_are_inherited_added_and_denied_in_that_order() {
    for (config, parent, expected) in [
        (config(Inherit::None, &["a", "z"], &[]), &["a"] as &[&str], &["a"] as &[&str]),
        (config(Inherit::Minimal, &[], &[]), &["x", "bash", "list_dir"], &["bash", "list_dir"]),
        (config(Inherit::Full, &[], &["b"]), &["a", "b"], &["a"]),
        (config(Inherit::Full, &["forbidden"], &["a", "b"]), &["a", "b"], &[]),
        (config(Inherit::None, &["a"], &["a"]), &["a"], &[]),
        (config(Inherit::Full, &[], &[]), &["b", "a", "a"], &["a", "b"]),
        (
            config(Inherit::Minimal, &["echo", "forbidden"], &["read_file"]),
            &["echo", "read_file", "u"],
            &["echo"],
        ),
    ] {
        assert_eq!(tools_for(&config, parent.iter().copied()), expected, "{config:?}");
    }
    // No rule at all is still an explicit list.
    assert_eq!(tools_for(&AgentConfig::new("R"), ["b", "a"]), ["a", "b"]);
}

#[test]
fn every_violation_is_named() {
    let parent = CapabilitySet::nothing().with_scope(["/a"]);
    let child = CapabilitySet::everything().with_scope(["/b"]);
    assert_eq!(child.violations(&parent).len(), 5);
    assert_eq!(CapabilitySet::nothing().violations(&parent), [Violation::Unscoped]);
    assert_eq!(parent.violations(&parent), []);
    assert_eq!(parent.violations(&CapabilitySet::nothing()), []);
}

#[test]
fn a_path_is_under_a_folder_by_whole_parts() {
    for (path, folder, under) in [
        ("/a/b", "/a", true),
        ("/a", "/a", true),
        ("/a", "/a/", true),
        ("/a/b/..", "/a/", true),
        ("/ab", "/a", false),
        ("/a/../b", "/a", false),
        ("/..", "/a", false),
        ("/x", "/", true),
        ("a/b", "a", true),
        ("a/../../b", "a", false),
        ("a", "/a", false),
        ("", "/a", false),
        ("/a", "", false),
        ("..x", ".", true),
        ("C:\\Work\\src", "c:/work", true),
        ("D:\\work", "c:/work", false),
        ("C:\\..\\x", "C:\\", true),
        ("/a\\..\\..\\b", "/a", false),
        ("/a\0", "/a", false),
    ] {
        assert_eq!(is_under_any(path, &[folder]), under, "{path} under {folder}");
    }
    assert!(!is_under_any("/a", &[] as &[&str]));
}

#[test]
fn a_contract_leaves_what_its_scope_and_constraints_leave() {
    let of = |permissions: &[Permission], constraints: Constraints| {
        let scope = vec![ScopeEntry::new("/w", permissions.iter().copied())];
        let contract = Contract::new("c", "s", "t").and_then(|c| c.with_scope(scope)).unwrap();
        CapabilitySet::of(&contract.with_constraints(constraints).unwrap())
    };
    let all = [Permission::Read, Permission::Write, Permission::Execute];
    let open = of(&all, Constraints::default());
    assert_eq!(open, CapabilitySet::everything().with_scope(["/w"]));
    let sandboxed =
        of(&all, Constraints { sandbox_required: true, no_network: true, ..Constraints::default() });
    assert_eq!(sandboxed.max_security_level, SecurityLevel::Sandboxed);
    assert!(!sandboxed.allow_network);
    let alone = of(&all, Constraints { no_spawn: true, ..Constraints::default() });
    assert_eq!((alone.allow_exec, alone.max_security_level), (false, SecurityLevel::Deny));
    assert!(!of(&[Permission::Read], Constraints::default()).allow_write);
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["bash", "read_file", "a", "b", "c", "*", ""]), 0..6)
        .prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

fn configs() -> impl Strategy<Value = AgentConfig> {
    (prop::sample::select(Inherit::ALL), names(), names()).prop_map(|(inherit, allow, deny)| {
        let mut config = AgentConfig::new("R");
        (config.inherit, config.allow, config.deny) = (inherit, allow, deny);
        config
    })
}

fn sets() -> impl Strategy<Value = CapabilitySet> {
    let paths = prop::sample::select(vec!["/", "/a", "/a/b", "/ab", "/a/../c", "x", "../x", "C:\\a", ""]);
    let level = prop::sample::select(SecurityLevel::ALL);
    (any::<[bool; 3]>(), level, prop::collection::vec(paths, 0..3)).prop_map(|(flags, level, paths)| {
        let [allow_write, allow_exec, allow_network] = flags;
        let set = CapabilitySet { allow_write, allow_exec, allow_network, ..CapabilitySet::nothing() };
        CapabilitySet { max_security_level: level, ..set }.with_scope(paths)
    })
}

proptest! {
    #[test]
    fn no_chain_of_agents_ever_gains_a_tool(top in names(), chain in prop::collection::vec(configs(), 1..6)) {
        let mut above = top;
        for config in &chain {
            let own = tools_for(config, above.iter().map(String::as_str));
            prop_assert!(own.iter().all(|tool| above.contains(tool) && !config.deny.contains(tool)));
            prop_assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
            above = own;
        }
    }

    #[test]
    fn no_chain_of_agents_ever_gains_a_capability(chain in prop::collection::vec(sets(), 2..6)) {
        let mut above = chain[0].clone();
        // A scope of paths that mean nothing is a scope all the same: whatever is in it, nothing gets out of it.
        for set in &chain[1..] {
            let own = set.clone().under(&above);
            let foreign: Vec<_> =
                own.violations(&above).into_iter().filter(|v| !matches!(v, Violation::Path(p) if above.scope_paths.contains(p))).collect();
            prop_assert_eq!(foreign, []);
            above = own;
        }
    }

    #[test]
    fn no_scope_that_passes_permits_what_the_one_above_does_not(
        above in scopes(), own in scopes(), path in paths(),
    ) {
        let permits = |scope: &[ScopeEntry], wanted: Permission| {
            let entries = scope.iter().filter(|entry| entry.permissions.contains(&wanted));
            is_under_any(&path, &entries.map(|entry| entry.path.as_str()).collect::<Vec<_>>())
        };
        if scope_violations(&own, &above).is_empty() && !above.is_empty() {
            for wanted in [Permission::Read, Permission::Write, Permission::Execute] {
                prop_assert!(!permits(&own, wanted) || permits(&above, wanted), "{path} {wanted:?}");
            }
        }
    }
}

fn paths() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just(".."), Just("c")], 0..4)
        .prop_map(|parts| format!("/{}", parts.join("/")))
}

fn scopes() -> impl Strategy<Value = Vec<ScopeEntry>> {
    let permissions =
        prop::sample::subsequence(vec![Permission::Read, Permission::Write, Permission::Execute], 0..=3);
    prop::collection::vec((paths(), permissions).prop_map(|(path, p)| ScopeEntry::new(path, p)), 0..3)
}
