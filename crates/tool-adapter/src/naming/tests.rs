use proptest::prelude::*;

use super::*;

fn named(tools: &[(&str, &str)]) -> NameTable {
    let mut names = NameTable::new();
    names.assign(tools.iter().map(|(s, t)| Original::new(*s, *t)));
    names
}

fn public<'a>(names: &'a NameTable, server: &str, tool: &str) -> &'a str {
    names.public(&Original::new(server, tool)).unwrap()
}

#[test]
fn plain_names_are_cleaned_and_nothing_else() {
    for (server, tool, name) in [
        ("docs", "search", "mcp__docs__search"),
        ("my server", "get.component", "mcp__my_server__get_component"),
        ("größe", "名前", "mcp__gr__e____"),
        ("", "", "mcp____"),
        ("a__b", "c", "mcp__a__b__c"),
        ("kebab-case", "A_b-9", "mcp__kebab-case__A_b-9"),
    ] {
        assert_eq!(public(&named(&[(server, tool)]), server, tool), name);
    }
}

#[test]
fn a_long_name_keeps_55_characters_and_gets_8_digits() {
    let tool = "t".repeat(100);
    let names = named(&[("server", &tool)]);
    let name = public(&names, "server", &tool);
    assert_eq!(name.len(), 64);
    assert!(name.starts_with(&format!("mcp__server__{}_", "t".repeat(42))), "{name}");
    // Fixed for ever: SHA-256 over "server", NUL and a hundred "t".
    assert_eq!(name, format!("mcp__server__{}_a97dc457", "t".repeat(42)));
    let exact = "t".repeat(64 - "mcp__server__".len());
    assert_eq!(public(&named(&[("server", &exact)]), "server", &exact), format!("mcp__server__{exact}"));
}

#[test]
fn every_member_of_a_clash_gets_a_suffix_in_whatever_order_they_come() {
    let one = named(&[("s", "a b"), ("s", "a.b"), ("s", "c")]);
    let other = named(&[("s", "c"), ("s", "a.b"), ("s", "a b")]);
    for tool in ["a b", "a.b"] {
        let name = public(&one, "s", tool);
        assert!(name.starts_with("mcp__s__a_b_") && name.len() == "mcp__s__a_b_".len() + 8, "{name}");
        assert_eq!(name, public(&other, "s", tool));
    }
    assert_eq!(public(&one, "s", "c"), "mcp__s__c");
}

#[test]
fn servers_with_double_underscores_clash_across_servers_and_stay_apart() {
    let names = named(&[("a", "b__c"), ("a__b", "c")]);
    let (x, y) = (public(&names, "a", "b__c"), public(&names, "a__b", "c"));
    assert_ne!(x, y);
    assert_eq!(names.original(x), Some(&Original::new("a", "b__c")));
    assert_eq!(names.original(y), Some(&Original::new("a__b", "c")));
}

#[test]
fn a_name_that_was_given_stays_when_a_clashing_server_comes_and_is_not_reused() {
    let mut names = named(&[("a", "b__c")]);
    names.assign([Original::new("a__b", "c"), Original::new("a", "b__c")]);
    assert_eq!(public(&names, "a", "b__c"), "mcp__a__b__c");
    assert!(public(&names, "a__b", "c").starts_with("mcp__a__b__c_"));
}

#[test]
fn a_reserved_name_of_the_host_is_not_given_away() {
    let mut names = NameTable::new();
    names.reserve("mcp__a__b");
    names.assign([Original::new("a", "b")]);
    assert!(public(&names, "a", "b").starts_with("mcp__a__b_"));
}

#[test]
fn a_tool_that_is_called_like_a_suffixed_name_does_not_get_it_twice() {
    let taken = public(&named(&[("s", "a b"), ("s", "a.b")]), "s", "a b").to_owned();
    let tool = taken.strip_prefix("mcp__s__").unwrap().to_owned();
    let names = named(&[("s", "a b"), ("s", "a.b"), ("s", &tool)]);
    assert_eq!(names.iter().count(), 3);
}

proptest! {
    #[test]
    fn names_are_legal_distinct_independent_of_order_and_lead_back(
        pairs in prop::collection::btree_set(("[a_. é]{0,6}|\\PC{0,70}", "[a_. é]{0,6}|\\PC{0,70}"), 0..24),
        late in prop::collection::btree_set(("[a_. é]{0,6}", "[a_. é]{0,6}"), 0..8),
    ) {
        let originals: Vec<_> = pairs.iter().map(|(s, t)| Original::new(s.as_str(), t.as_str())).collect();
        let mut names = NameTable::new();
        names.assign(originals.iter().cloned());
        let mut reversed = NameTable::new();
        reversed.assign(originals.iter().rev().cloned());
        let first: Vec<_> = originals.iter().map(|o| names.public(o).unwrap().to_owned()).collect();
        for (original, name) in originals.iter().zip(&first) {
            prop_assert!(!name.is_empty() && name.len() <= MAX_NAME_LEN);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            prop_assert_eq!(names.original(name), Some(original));
            prop_assert_eq!(reversed.public(original), Some(name.as_str()));
        }
        names.assign(late.iter().map(|(s, t)| Original::new(s.as_str(), t.as_str())));
        for (original, name) in originals.iter().zip(&first) {
            prop_assert_eq!(names.public(original), Some(name.as_str()), "a given name never changes");
        }
        let all: BTreeSet<_> = names.iter().map(|(name, _)| name.to_owned()).collect();
        let tools: BTreeSet<_> = names.iter().map(|(_, original)| original.clone()).collect();
        prop_assert_eq!(all.len(), tools.len());
    }
}
