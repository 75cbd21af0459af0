use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn problems(schema: &Value, arguments: &Value) -> Vec<String> {
    match subset::check(schema, arguments) {
        Ok(()) => Vec::new(),
        Err(wrong) => wrong.found.iter().map(ToString::to_string).collect(),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_keyword_of_the_subset_is_checked_and_says_where_and_what() {
    let none: [&str; 0] = [];
    let of = |property: Value| json!({"type": "object", "properties": {"a": property}});
    for (schema, arguments, expected) in [
        (json!({"type": "object"}), json!({}), &none[..]),
        (json!({}), json!({"x": 1}), &none),
        (
            json!({"required": ["a", "b"]}),
            json!({"b": null}),
            &["the arguments: the required key `a` is missing"],
        ),
        (of(json!({"type": "string"})), json!({"a": 3}), &["a: expected string, got the number 3"]),
        (of(json!({"type": "string"})), json!({"a": null}), &["a: expected string, got null"]),
        (of(json!({"type": ["string", "null"]})), json!({"a": null}), &none),
        (of(json!({"type": "string", "nullable": true})), json!({"a": null}), &none),
        (
            of(json!({"type": ["integer", "null"]})),
            json!({"a": "1"}),
            &["a: expected integer or null, got the string \"1\""],
        ),
        (of(json!({"type": "integer"})), json!({"a": 1.5}), &["a: expected integer, got the number 1.5"]),
        (of(json!({"type": "integer"})), json!({"a": 2.0}), &none),
        (of(json!({"type": "unheard-of"})), json!({"a": 1}), &none),
        (
            of(json!({"enum": ["x", "y"]})),
            json!({"a": "z"}),
            &["a: expected one of \"x\", \"y\", got the string \"z\""],
        ),
        (of(json!({"enum": [1]})), json!({"a": 1.0}), &none),
        (of(json!({"const": 1})), json!({"a": 2}), &["a: expected 1, got the number 2"]),
        (of(json!({"minimum": 1})), json!({"a": 0}), &["a: expected at least 1, got 0"]),
        (of(json!({"exclusiveMaximum": 1})), json!({"a": 1}), &["a: expected less than 1, got 1"]),
        (of(json!({"minLength": 2})), json!({"a": "é"}), &["a: expected at least 2 characters, got 1"]),
        (of(json!({"maxItems": 1})), json!({"a": [1, 2]}), &["a: expected at most 1 items, got 2"]),
        (
            of(json!({"items": {"type": "string"}})),
            json!({"a": ["x", 1]}),
            &["a[1]: expected string, got the number 1"],
        ),
        (
            of(json!({"prefixItems": [{"type": "string"}], "items": false})),
            json!({"a": ["x", 1]}),
            &["a[1]: nothing is expected here"],
        ),
        (
            json!({"properties": {"a": {}, "b": {}}, "additionalProperties": false}),
            json!({"c d": 1}),
            &["[\"c d\"]: unknown key; the keys are `a`, `b`"],
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"x": 1}),
            &["x: expected string, got the number 1"],
        ),
        (json!({"patternProperties": {"^x": {}}, "additionalProperties": false}), json!({"x": 1}), &none),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "object", "required": ["k"]}}}),
            json!({"a": {}}),
            &["a: the required key `k` is missing"],
        ),
        (of(json!({"$ref": "https://example.org/schema"})), json!({"a": 1}), &none),
        (
            of(json!({"allOf": [{"type": "string"}, {"minLength": 1}]})),
            json!({"a": ""}),
            &["a: expected at least 1 characters, got 0"],
        ),
        (of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})), json!({"a": null}), &none),
        (
            of(json!({"anyOf": [{"type": "string"}, {"properties": {"k": {"type": "string"}}}]})),
            json!({"a": {"k": 1}}),
            &[
                "a: fits none of the 2 alternatives; the closest one says:",
                "a.k: expected string, got the number 1",
            ],
        ),
        (
            of(json!({"oneOf": [{"type": "number"}, {"type": "integer"}]})),
            json!({"a": 1}),
            &["a: fits 2 of the alternatives, expected exactly one"],
        ),
        (json!(false), json!({}), &["the arguments: nothing is expected here"]),
    ] {
        assert_eq!(problems(&schema, &arguments), expected, "{schema} {arguments}");
    }
}

#[test]
fn arguments_that_are_no_object_are_refused_whatever_the_schema_says() {
    for schema in [json!({}), json!(true), json!({"type": "array"})] {
        let wrong = ArgumentCheck::new(schema).check(&json!([1])).unwrap_err();
        assert_eq!(wrong.to_string(), "the arguments: expected an object, got an array");
    }
}

#[test]
fn what_is_told_is_bounded() {
    let many: Vec<_> = (0..100).map(|i| json!(i)).collect();
    let schema = json!({"properties": {"a": {"items": {"type": "string"}}}});
    let wrong = ArgumentCheck::new(schema).check(&json!({"a": many})).unwrap_err();
    assert_eq!((wrong.found.len(), wrong.more), (MAX_MISMATCHES, true));
    let schema = json!({"properties": {"a": {"type": "integer"}}});
    let wrong = ArgumentCheck::new(schema).check(&json!({"a": "ä".repeat(100_000)})).unwrap_err();
    assert!(wrong.to_string().len() < 1_000, "{}", wrong.to_string().len());
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let around =
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert!(problems(&around, &json!({})).is_empty());
    let doubling = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"});
    assert!(problems(&doubling, &json!({})).is_empty(), "beyond its budget the subset leaves it to the tool");
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["v"]});
    assert_eq!(
        problems(&tree, &json!({"v": 1, "next": {"v": 1, "next": {}}})),
        ["next.next: the required key `v` is missing"]
    );
}

#[test]
fn near_names_are_few_and_in_a_fixed_order() {
    let known = ["read_file", "read_files", "reads_file", "read_fil", "write_file"];
    assert_eq!(near_names("readfile", known), ["read_file", "read_fil", "read_files"]);
    assert_eq!(near_names("readfile", known.into_iter().rev()), ["read_file", "read_fil", "read_files"]);
    assert!(near_names("", known).is_empty());
    assert_eq!(near_names(&"x".repeat(1_000_000), known), [""; 0]);
}

#[test]
fn an_unknown_tool_is_answered_with_near_names_or_with_what_there_is() {
    assert_eq!(unknown_tool("gerp", ["grep"]), "There is no tool `gerp`. The tools are `grep`.");
    assert_eq!(unknown_tool("grepp", ["grep"]), "There is no tool `grepp`. Did you mean `grep`?");
    assert_eq!(unknown_tool("a\nb", []), "There is no tool `ab`. There are no tools; answer in text.");
    let many: Vec<String> = (0..30).map(|i| format!("tool{i:02}")).collect();
    let text = unknown_tool("zzzz", many.iter().map(String::as_str));
    assert!(text.ends_with("`tool19` and 10 more."), "{text}");
}

#[cfg(feature = "jsonschema")]
mod with_the_full_validator {
    use super::*;

    #[test]
    fn keywords_beyond_the_subset_are_checked() {
        let schema =
            json!({"properties": {"a": {"items": {"pattern": "^x$"}}}, "dependentRequired": {"b": ["c"]}});
        let check = ArgumentCheck::new(schema);
        let wrong = check.check(&json!({"a": ["x", "y"], "b": 1})).unwrap_err();
        let places: Vec<_> = wrong.found.iter().map(|m| m.at.as_str()).collect();
        assert!(places.contains(&"a[1]"), "{wrong}");
        assert_eq!(wrong.found.len(), 2, "{wrong}");
        assert!(check.check(&json!({"a": ["x"]})).is_ok());
    }

    /// Each of these would keep a validator busy for ages, or overflow its stack.
    #[test]
    fn a_hostile_schema_ends_and_leaves_it_to_the_subset_and_the_tool() {
        let twice = |next: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{next}")}, {"$ref": format!("#/$defs/d{next}")}]});
        let mut doubling: Map<_, _> = (0..60).map(|n| (format!("d{n}"), twice(n + 1))).collect();
        doubling.insert("d60".into(), json!({"type": "object"}));
        let branching =
            json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let deep = (0..500).fold(json!({}), |inner, _| json!({"not": inner}));
        let nested = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
        let slow = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let looks_back = json!({"properties": {"a": {"type": "string", "pattern": r"^(?=(a+)+$)\1"}}});
        let endless = json!({"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]});
        let large = json!({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}});
        for (schema, arguments) in [
            (json!({"$ref": "#/$defs/d0", "$defs": doubling}), json!({})),
            (branching, nested),
            (deep, json!({})),
            (slow, json!({"a": format!("{}!", "a".repeat(100_000))})),
            (looks_back, json!({"a": format!("{}!", "a".repeat(100_000))})),
            (endless, json!({})),
            (large, json!({"a": "b"})),
        ] {
            let check = ArgumentCheck::new(schema);
            let _whatever = check.check(&arguments);
        }
    }

    #[test]
    fn what_is_counted_is_never_less_than_what_is_there() {
        let tree = json!({
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
            "additionalProperties": {"type": "integer"},
        });
        let mut value = json!({"n": 1});
        for _ in 0..10 {
            value = json!({"left": value, "right": value, "n": 1});
        }
        let check = ArgumentCheck::new(tree);
        assert!(check.check(&value).is_ok(), "a large honest tree is within the bound");
        value["left"]["right"]["n"] = json!("wrong");
        let wrong = check.check(&value).unwrap_err();
        assert_eq!(wrong.found[0].at, "left.right.n");
    }

    #[test]
    fn a_schema_that_refers_elsewhere_falls_back_to_the_subset_and_fetches_nothing() {
        let schema = json!({
            "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}, "b": {"type": "string"}},
        });
        let check = ArgumentCheck::new(schema);
        assert!(check.check(&json!({"a": 1, "b": "x"})).is_ok());
        assert!(check.check(&json!({"b": 1})).is_err());
    }
}

proptest! {
    /// A schema made from a value accepts that value: the subset never refuses what fits.
    #[test]
    fn a_value_fits_the_schema_made_from_it_and_no_pair_panics(
        value in crate::digest::tests::any_json(),
        other in crate::digest::tests::any_json(),
    ) {
        prop_assert_eq!(subset::check(&schema_of(&value), &value), Ok(()));
        let _whatever = subset::check(&schema_of(&other), &value);
        let _whatever = subset::check(&other, &value);
    }
}

fn schema_of(value: &Value) -> Value {
    match value {
        Value::Null => json!({"type": "null"}),
        Value::Bool(_) => json!({"type": "boolean", "enum": [value]}),
        Value::Number(_) => json!({"type": "number", "const": value}),
        Value::String(text) => json!({"type": "string", "maxLength": text.chars().count()}),
        Value::Array(items) => {
            let prefix: Vec<_> = items.iter().map(schema_of).collect();
            json!({"type": "array", "prefixItems": prefix, "minItems": items.len(), "items": false})
        }
        Value::Object(map) => {
            let properties: Map<_, _> = map.iter().map(|(k, v)| (k.clone(), schema_of(v))).collect();
            let required: Vec<_> = map.keys().collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
    }
}
