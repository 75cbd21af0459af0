use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_order_of_keys_does_not_matter_at_any_depth() {
    let a = parse(r#"{"b":[{"y":1,"x":2}],"a":{"d":null,"c":true}}"#);
    let b = parse(r#"{ "a": {"c": true, "d": null}, "b": [ {"x": 2, "y": 1} ] }"#);
    assert_eq!(Digest::of_json(&a), Digest::of_json(&b));
    assert_eq!(canonical_json(&a), r#"{"a":{"c":true,"d":null},"b":[{"x":2,"y":1}]}"#);
}

#[test]
fn the_order_of_list_items_does() {
    assert_ne!(Digest::of_json(&json!([1, 2])), Digest::of_json(&json!([2, 1])));
}

#[test]
fn numbers_of_one_value_have_one_form_and_others_have_another() {
    for (spelling, form) in [
        ("1", "1"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("10e-1", "1"),
        ("-0.0", "0"),
        ("0", "0"),
        ("-1.0", "-1"),
        ("0.1", "1e-1"),
        ("1.5e-7", "1.5e-7"),
        ("1e300", "1e300"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740992.0", "9007199254740992"),
        ("18446744073709551615", "18446744073709551615"),
        ("1e19", "10000000000000000000"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9.223372036854775808e18", "-9223372036854775808"),
    ] {
        assert_eq!(canonical_json(&parse(spelling)), form, "{spelling}");
    }
}

#[test]
fn integers_that_share_a_double_do_not_share_a_digest() {
    assert_ne!(
        Digest::of_json(&json!({"account": 9_007_199_254_740_993_u64})),
        Digest::of_json(&json!({"account": 9_007_199_254_740_992_u64})),
    );
}

#[test]
fn a_number_is_not_its_text_and_null_is_not_absent() {
    let digests: std::collections::BTreeSet<_> = [
        json!({"a": 1}),
        json!({"a": "1"}),
        json!({"a": null}),
        json!({}),
        json!([]),
        json!(null),
        json!(""),
    ]
    .iter()
    .map(Digest::of_json)
    .collect();
    assert_eq!(digests.len(), 7);
}

#[test]
fn escapes_of_one_text_are_one_text_and_unicode_is_not_normalised() {
    assert_eq!(Digest::of_json(&parse(r#""\u00e9\u0041""#)), Digest::of_json(&json!("éA")));
    assert_ne!(Digest::of_json(&json!("\u{e9}")), Digest::of_json(&json!("e\u{301}")));
}

/// Sessions are read by later versions: a changed form would turn every pending ask stale.
#[test]
fn digests_are_those_of_the_first_version() {
    let value = parse(r#"{"path":"src/é.rs","lines":[1,2.5,-3],"force":false,"note":null}"#);
    assert_eq!(
        canonical_json(&value),
        r#"{"force":false,"lines":[1,2.5e0,-3],"note":null,"path":"src/é.rs"}"#
    );
    assert_eq!(
        Digest::of_json(&value).to_string(),
        "b99bdb3659b5fcde15cf5cb0502486a74e284b9b2306201bf1b7ac1447f4e6b6"
    );
    let spec = ToolSpec::new("write", "Writes a file").with_origin("mcp:files");
    let tool = Fingerprint::of(&spec);
    assert_eq!(tool.to_string(), "8b801ae247c480f18f18f4ccd774249cb652610a233b618b83ff2b9d79f4546e");
    let ask = ask_digest(&["outer".into()], &"call_1".into(), tool, &value, 7);
    assert_eq!(ask.to_string(), "3439681190892636fb3979475c98dfab6a878956a1f655569443dc1c2cda9d5a");
}

#[test]
fn a_fingerprint_covers_origin_name_description_and_schema_and_not_effects() {
    let spec = || ToolSpec::new("a", "b").with_origin("mcp:x").with_schema(json!({"type": "object"}));
    let same = Fingerprint::of(&spec());
    assert_eq!(Fingerprint::of(&spec().read_only()), same);
    for (what, other) in [
        ("origin", spec().with_origin("mcp:y")),
        ("schema", spec().with_schema(json!({"type": "object", "required": ["p"]}))),
        ("name", ToolSpec { name: "c".into(), ..spec() }),
        ("description", ToolSpec { description: "c".into(), ..spec() }),
        // Moving a byte from one part to the next must not cancel out.
        ("border", ToolSpec { name: "ab".into(), description: "".into(), ..spec() }),
    ] {
        assert_ne!(Fingerprint::of(&other), same, "{what}");
    }
}

#[test]
fn every_part_of_an_ask_changes_its_digest() {
    let tool = Fingerprint::of(&ToolSpec::new("t", ""));
    let other = Fingerprint::of(&ToolSpec::new("u", ""));
    let args = json!({"a": 1});
    let id = |s: &str| CallId::from(s);
    let digests = [
        ask_digest(&[], &id("1"), tool, &args, 0),
        ask_digest(&[], &id("2"), tool, &args, 0),
        ask_digest(&[], &id("1"), other, &args, 0),
        ask_digest(&[], &id("1"), tool, &json!({"a": 2}), 0),
        ask_digest(&[], &id("1"), tool, &args, 1),
        ask_digest(&["1".into()], &id("1"), tool, &args, 0),
        ask_digest(&["1".into(), "1".into()], &id("1"), tool, &args, 0),
        ask_digest(&["2".into()], &id("1"), tool, &args, 0),
    ];
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn a_digest_is_read_from_its_own_spelling_only() {
    let digest = Digest::of_bytes(b"");
    let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(digest.to_string(), text);
    assert_eq!(text.parse(), Ok(digest));
    assert_eq!(serde_json::from_str::<Digest>(&serde_json::to_string(&digest).unwrap()).unwrap(), digest);
    for bad in ["", "e3", &text.to_uppercase(), &format!("{text}0"), &text.replace('e', "g")] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|entries| entries.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// The same value with all keys in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().rev().map(|(k, v)| (k.clone(), reversed(v))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(reversed).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn a_value_keeps_its_digest_through_key_order_and_through_its_own_canonical_text(value in any_json()) {
        let text = canonical_json(&value);
        prop_assert_eq!(&canonical_json(&reversed(&value)), &text);
        prop_assert_eq!(&canonical_json(&parse(&text)), &text);
        prop_assert_eq!(Digest::of_json(&value), Digest::of_bytes(text.as_bytes()));
    }
}
