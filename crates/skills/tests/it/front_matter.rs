//! Constructs of YAML 1.2 and what each comes to.

use haversack_skills::document::{Document, ParseOptions};
use haversack_skills::node::Type;
use serde_json::{Value, json};

/// The fields of a front matter that must be right.
fn fields(front: &str) -> Value {
    let file = format!("---\n{front}---\n");
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    assert!(document.is_strict(), "{front:?}: {:?}", document.diagnostics());
    Value::Object(document.fields().unwrap().to_json())
}

fn check(table: &[(&str, Value)]) {
    for (front, expected) in table {
        assert_eq!(&fields(front), expected, "{front:?}");
    }
}

#[test]
fn plain_text_folds_its_lines_and_knows_its_end() {
    check(&[
        ("a: b\n", json!({"a": "b"})),
        ("a: b c  \n", json!({"a": "b c"})),
        ("a: b\tc\n", json!({"a": "b\tc"})),
        ("a: one\n  two\n\n  three\n", json!({"a": "one two\nthree"})),
        ("a:\n  one\n\n\n  two\n", json!({"a": "one\n\ntwo"})),
        ("a: b # note\n", json!({"a": "b"})),
        ("a: b#c\n", json!({"a": "b#c"})),
        ("a: http://x:80/\n", json!({"a": "http://x:80/"})),
        ("a: -b\nc: ?d\ne: :f\n", json!({"a": "-b", "c": "?d", "e": ":f"})),
        ("a: it's \"so\"\n", json!({"a": "it's \"so\""})),
        ("a: b\n  - c\n", json!({"a": "b - c"})),
        ("a: b\n\t\nc: d\n", json!({"a": "b", "c": "d"})),
        ("a b: c\n", json!({"a b": "c"})),
        ("a:b: c\n", json!({"a:b": "c"})),
        ("a : b\n", json!({"a": "b"})),
        ("a:\tb\n", json!({"a": "b"})),
        ("a: x\u{85}y\u{2028}z\n", json!({"a": "x\u{85}y\u{2028}z"})),
    ]);
}

#[test]
fn quotes_unescape_and_fold() {
    check(&[
        ("a: 'it''s'\n", json!({"a": "it's"})),
        ("a: ''\nb: \"\"\n", json!({"a": "", "b": ""})),
        ("a: 'x # y: z'\n", json!({"a": "x # y: z"})),
        ("a: \"\\t\\x41\\u00e9\\U0001F600\\\\\\/\\\"\"\n", json!({"a": "\tAé😀\\/\""})),
        ("a: \"\\ud83d\\ude00\"\n", json!({"a": "😀"})),
        ("a: \"x\n  y\n\n  z\"\n", json!({"a": "x y\nz"})),
        ("a: \"x\\\n    y\"\n", json!({"a": "xy"})),
        ("a: \"x \\\n\n    y\"\n", json!({"a": "x \ny"})),
        ("a: 'x\n\n  y'\n", json!({"a": "x\ny"})),
        ("a: '\n  x'\n", json!({"a": " x"})),
        ("a: 'x\ny'\n", json!({"a": "x y"})),
        ("\"a\": 1\n'b': 2\n", json!({"a": 1, "b": 2})),
        ("a: \"x\" # note\n", json!({"a": "x"})),
    ]);
}

#[test]
fn block_scalars_keep_what_their_header_says() {
    check(&[
        ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
        ("a: |-\n  x\n\n", json!({"a": "x"})),
        ("a: |+\n  x\n\n", json!({"a": "x\n\n"})),
        ("a: >\n  x\n  y\n\n  z\n", json!({"a": "x y\nz\n"})),
        ("a: >-\n  x\n    y\n  z\n", json!({"a": "x\n  y\nz"})),
        ("a: |2\n    x\n", json!({"a": "  x\n"})),
        ("a: |-2\n   x\n", json!({"a": " x"})),
        ("a: |2-\n   x\n", json!({"a": " x"})),
        ("a: | # note\n  x\n", json!({"a": "x\n"})),
        ("a: |\nb: 1\n", json!({"a": "", "b": 1})),
        ("a: |+\n\n\nb: 1\n", json!({"a": "\n\n", "b": 1})),
        ("a: |\n\n  x\n", json!({"a": "\nx\n"})),
        ("a: |\n  x\n   \n  y\n", json!({"a": "x\n \ny\n"})),
        ("a:\n  - |\n    x\n  - y\n", json!({"a": ["x\n", "y"]})),
        ("a: |\n  ---\n  # no comment\n", json!({"a": "---\n# no comment\n"})),
        ("a: !!str |\n  x\n", json!({"a": "x\n"})),
    ]);
}

#[test]
fn collections_nest_by_indentation() {
    check(&[
        ("a:\n  b:\n    c: d\n", json!({"a": {"b": {"c": "d"}}})),
        ("a:\n- b\n- c\nd: e\n", json!({"a": ["b", "c"], "d": "e"})),
        ("a:\n  - b: 1\n    c: 2\n  - b: 3\n", json!({"a": [{"b": 1, "c": 2}, {"b": 3}]})),
        ("a:\n- - b\n  - c\n- d\n", json!({"a": [["b", "c"], "d"]})),
        ("a:\n  -\n    b: c\n  -\n", json!({"a": [{"b": "c"}, null]})),
        ("a:\nb:\n", json!({"a": null, "b": null})),
        ("a:\n  # note\n\n  b: c\n# note\n  d: e\n", json!({"a": {"b": "c", "d": "e"}})),
        ("? a\n: b\n? c\n", json!({"a": "b", "c": null})),
        ("? |\n  a\n: - b\n  - c\n", json!({"a\n": ["b", "c"]})),
        ("? a\n: b: c\n", json!({"a": {"b": "c"}})),
        ("- a: b\n".replace("- ", "k:\n - ").as_str(), json!({"k": [{"a": "b"}]})),
        ("--- {a: b}\n", json!({"a": "b"})),
        ("%YAML 1.2\n--- # note\na: b\n...\n", json!({"a": "b"})),
        ("~\n", json!({})),
        ("{a: b}\n", json!({"a": "b"})),
    ]);
}

#[test]
fn collections_between_brackets_take_json_and_more() {
    check(&[
        ("a: [b, 'c', \"d\", 1,]\n", json!({"a": ["b", "c", "d", 1]})),
        ("a: {\"b\":1,\"c\":[true,null]}\n", json!({"a": {"b": 1, "c": [true, null]}})),
        ("a: {b: c, d, e: , f: g}\n", json!({"a": {"b": "c", "d": null, "e": null, "f": "g"}})),
        ("a: [b: c, {d: e}]\n", json!({"a": [{"b": "c"}, {"d": "e"}]})),
        ("a: [\n  b, # note\n  c\n]\n", json!({"a": ["b", "c"]})),
        ("a:\n  {\n    \"b\": { \"c\": 1 }, }\n", json!({"a": {"b": {"c": 1}}})),
        ("a: {b:1}\n", json!({"a": {"b:1": null}})),
        ("a: [http://x/y, b c\n  d]\n", json!({"a": ["http://x/y", "b c d"]})),
        ("a: [? b : c, -d, x?]\n", json!({"a": [{"b": "c"}, "-d", "x?"]})),
        ("a: {? b : c, ? d}\n", json!({"a": {"b": "c", "d": null}})),
        ("a: []\nb: {}\n", json!({"a": [], "b": {}})),
        ("a: [[], [[]]]\n", json!({"a": [[], [[]]]})),
        ("a: {\"b\"\n  : 1}\n", json!({"a": {"b": 1}})),
        ("a: [!!str 1, &x 2, *x]\n", json!({"a": ["1", 2, 2]})),
    ]);
}

#[test]
fn plain_words_have_the_types_of_the_core_schema() {
    let integers = [("0", 0), ("-1", -1), ("+12", 12), ("007", 7), ("0o17", 15), ("0xfF", 255)];
    for (word, value) in integers {
        assert_eq!(fields(&format!("a: {word}\n")), json!({ "a": value }), "{word}");
    }
    let floats = [("1.0", 1.0), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("-1.5E-2", -0.015), ("+.5", 0.5)];
    for (word, value) in floats {
        assert_eq!(fields(&format!("a: {word}\n")), json!({ "a": value }), "{word}");
    }
    for word in ["", "~", "null", "Null", "NULL"] {
        assert_eq!(fields(&format!("a: {word}\n")), json!({ "a": null }), "{word}");
    }
    for (word, value) in [("true", true), ("True", true), ("TRUE", true), ("false", false), ("FALSE", false)]
    {
        assert_eq!(fields(&format!("a: {word}\n")), json!({ "a": value }), "{word}");
    }
}

#[test]
fn all_other_plain_words_are_text() {
    let texts = [
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "tRUE",
        "nULL",
        "2024-01-31",
        "2024-01-31T10:00:00Z",
        "12:30:45",
        "0b11",
        "1_000",
        "1.2.3",
        ".",
        "-",
        "+",
        "-.",
        "1e",
        "1e+",
        "0x",
        "0xG",
        "-0x1",
        "0o8",
        ".inf",
        "-.INF",
        ".nan",
        "9223372036854775808",
        "1.8e308",
        "0x8000000000000000",
        "1 000",
        "+-1",
        "1.5.",
    ];
    for word in texts {
        let word = if word == "-" { "--" } else { word };
        assert_eq!(fields(&format!("a: {word}\n")), json!({ "a": word }), "{word}");
    }
    assert_eq!(
        fields("a: 9223372036854775807\nb: -9223372036854775808\n"),
        json!({"a": i64::MAX, "b": i64::MIN})
    );
    assert_eq!(
        fields("a: '1'\nb: \"true\"\nc: !!str 1\nd: ! 1\ne: !x 1\n"),
        json!({
            "a": "1", "b": "true", "c": "1", "d": "1", "e": 1
        })
    );
}

#[test]
fn anchors_are_written_out() {
    check(&[
        ("a: &x b\nc: *x\n", json!({"a": "b", "c": "b"})),
        ("a: &x\n  b: 1\nc: *x\n", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ("a: &x [1, 2]\nb: {c: *x }\n", json!({"a": [1, 2], "b": {"c": [1, 2]}})),
        ("a: &x 1\nb: &x 2\nc: *x\n", json!({"a": 1, "b": 2, "c": 2})),
        ("a: &x\nb: *x\n", json!({"a": null, "b": null})),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", json!({"a": {"b": 1}, "c": {"<<": {"b": 1}}})),
    ]);
}

#[test]
fn a_key_that_comes_again_counts_once_and_is_reported() {
    let file = b"---\nname: one\nx: 1\nname: two\nm: {k: 1, k: 2, k: 3}\n---\n";
    let document = Document::parse(file, &ParseOptions::new());
    let fields = document.fields().unwrap();
    assert_eq!(Value::Object(fields.to_json()), json!({"x": 1, "name": "two", "m": {"k": 3}}));
    assert_eq!(fields.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["x", "name", "m"]);
    assert_eq!(document.duplicate_keys(), ["name", "k", "k"]);
    let places: Vec<_> = document.diagnostics().iter().map(|d| (d.code.as_str(), d.line, d.column)).collect();
    assert_eq!(places, [("duplicate-key", 4, 1), ("duplicate-key", 5, 11), ("duplicate-key", 5, 17)]);
}

#[test]
fn values_are_had_typed_and_as_written() {
    let file = "---\nname: 3000\nversion: 1.10\nok: True\nnone:\nlist: [1.0, x]\n---\n";
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    let fields = document.fields().unwrap();
    assert_eq!(document.name(), Some("3000"));
    assert_eq!(fields.get("version").unwrap().scalar_type(), Some(Type::Float(1.1)));
    assert_eq!(fields.text("version"), Some("1.10"));
    assert_eq!(fields.text("ok"), Some("True"));
    assert_eq!(fields.text("none"), None);
    assert!(fields.get("none").unwrap().is_null());
    assert_eq!(fields.get("list").unwrap().to_json_as_written(), json!(["1.0", "x"]));
    assert_eq!(fields.get("list").unwrap().as_list().unwrap().len(), 2);
    assert_eq!(fields.text("list"), None);
    assert!(fields.get("Name").is_none());
}

#[test]
fn words_that_people_take_for_booleans_are_booleans_where_asked_for() {
    let file = "---\na: yes\nb: 'OFF'\nc: 1\nd: true\ne: maybe\nf: 2\ng: [true]\n---\n";
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    let fields = document.fields().unwrap();
    let read: Vec<_> = fields.iter().map(|(_, node)| node.as_bool()).collect();
    assert_eq!(read, [Some(true), Some(false), Some(true), Some(true), None, None, None]);
}

#[test]
fn line_ends_and_marks_do_not_change_what_is_read() {
    let plain = "---\nname: demo\ndescription: |\n  one\n  two\nlist:\n- a\n- b\n---\n";
    let expected =
        Value::Object(Document::parse(plain.as_bytes(), &ParseOptions::new()).fields().unwrap().to_json());
    for file in [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replacen('\n', "\r\n", 3),
        format!("\u{feff}{plain}"),
        format!("\n \t\n{plain}"),
        plain.replace("---\n", "--- \t\n"),
        plain.trim_end().to_owned(),
    ] {
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        assert!(document.is_strict(), "{file:?}: {:?}", document.diagnostics());
        assert_eq!(Value::Object(document.fields().unwrap().to_json()), expected, "{file:?}");
    }
}

#[test]
fn the_body_is_all_that_follows_the_closing_fence() {
    for (file, body) in [
        ("---\na: b\n---\nbody\n", "body\n"),
        ("---\na: b\n---", ""),
        ("---\na: b\n---\n\n---\nmore\n---\n", "\n---\nmore\n---\n"),
        ("---\r\na: b\r\n---\r\nbody\r\n", "body\r\n"),
        ("---\na: |\n  ---\n---\nbody", "body"),
        ("no front matter\n", "no front matter\n"),
        ("\u{feff}no front matter\n", "no front matter\n"),
        ("---\nnever closed\n", "never closed\n"),
        ("---\n---\nbody", "body"),
    ] {
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        assert_eq!(document.body(), body, "{file:?}");
        assert_eq!(&file[document.body_range().clone()], body, "{file:?}");
    }
}

#[test]
fn positions_count_lines_of_the_file_and_characters_of_the_line() {
    let file = "\u{feff}\n---\nname: démo\nmap: {ключ: [a, значение]}\n---\n";
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    let fields = document.fields().unwrap();
    let at = |line, column| (line, column);
    let place = |position: haversack_skills::node::Position| (position.line, position.column);
    assert_eq!(place(fields.get("name").unwrap().position()), at(3, 7));
    let map = fields.get("map").unwrap().as_map().unwrap();
    assert_eq!(place(map.key_position("ключ").unwrap()), at(4, 7));
    let list = map.get("ключ").unwrap();
    assert_eq!(place(list.position()), at(4, 13));
    assert_eq!(place(list.as_list().unwrap()[1].position()), at(4, 17));
    assert_eq!(&file[list.as_list().unwrap()[1].span()], "значение");
}
