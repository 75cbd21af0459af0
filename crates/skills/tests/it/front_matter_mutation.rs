//! Files that somebody or something has damaged.

use haversack_skills::document::{Document, ParseOptions};
use proptest::prelude::*;

use crate::corpus::cases;

/// What must hold for any bytes: the reader ends, ranges lie in the file, places are places, edits make the file right.
pub(crate) fn check(file: &[u8]) {
    let document = Document::parse(file, &ParseOptions::new());
    assert!(file.get(document.body_range().clone()).is_some());
    assert_eq!(document.is_strict(), document.reason().is_none());
    assert!(document.is_strict() || !document.diagnostics().is_empty());
    assert!(document.is_strict() <= document.fields().is_some());
    if let Some(fields) = document.fields() {
        for (key, node) in fields.iter() {
            assert!(file.get(node.span()).is_some(), "{key} at {:?}", node.span());
            assert!(node.position().line >= 1 && node.position().column >= 1, "{key}");
        }
        let _ = fields.to_json();
    }
    for found in document.diagnostics() {
        assert!(found.line >= 1 && found.column >= 1, "{found}");
        if let Some(edit) = &found.fix {
            let mended = edit.apply(file).expect("the edit lies in the file");
            let again = Document::parse(&mended, &ParseOptions::new().with_max_bytes(usize::MAX));
            assert!(
                again.is_strict(),
                "{:?} after {edit:?} of {:?}",
                again.diagnostics(),
                String::from_utf8_lossy(file)
            );
            assert_eq!(again.body(), document.body());
        }
    }
}

/// Pieces that mean something to a YAML reader.
const PIECES: &[&str] = &[
    "a",
    "name",
    "description",
    ": ",
    ":",
    "- ",
    "-",
    "? ",
    "\n",
    "\n  ",
    "\n ",
    "\n\t",
    "\r\n",
    "\r",
    " ",
    "#",
    " #",
    "'",
    "\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    "|",
    ">-",
    "|2",
    "&a ",
    "*a",
    "!!str ",
    "!x",
    "\\",
    "\\u00e9",
    "é",
    "\u{1}",
    "\u{feff}",
    "---\n",
    "...",
    "%",
    "@",
    "key: value\n",
    "  - item\n",
    "~",
    "1.0",
    "\u{85}",
    "😀",
];

fn front() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    #[test]
    fn any_front_matter_is_read_or_refused(front in front()) {
        check(format!("---\n{front}\n---\nbody\n").as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
        check(&[b"---\n", bytes.as_slice(), b"\n---\n"].concat());
    }

    #[test]
    fn text_in_single_quotes_is_itself(text in "[ -~éж😀]{0,60}") {
        let file = format!("---\nname: '{}'\n---\n", text.replace('\'', "''"));
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        prop_assert_eq!(document.name(), Some(text.as_str()));
    }

    #[test]
    fn json_is_yaml(value in json(4)) {
        for shape in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let file = format!("---\nkey: {}\n---\n", shape.replace('\n', "\n  "));
            let document = Document::parse(file.as_bytes(), &ParseOptions::new());
            prop_assert!(document.is_strict(), "{}: {:?}", file, document.diagnostics());
            prop_assert_eq!(document.fields().unwrap().get("key").unwrap().to_json(), value.clone());
        }
    }
}

fn json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-1e9..1e9f64).prop_map(|value| json!(value)),
        "[ -~\u{a1}-\u{2000}\n\t]{0,20}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(depth, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::btree_map("[a-z \"':,#]{0,8}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn a_file_cut_at_any_byte_is_read_or_refused() {
    let file = "\u{feff}---\r\nname: 'it''s'\r\ndescription: >-\n  é: 😀\n\n  more\nlist: [a, {b: \"c\\u00e9\"}]\nmap:\n  - x: |\n     y\n---\nbody\n";
    for end in 0..=file.len() {
        check(&file.as_bytes()[..end]);
        check(&[&file.as_bytes()[..end], b"\n---\n".as_slice()].concat());
        check(&file.as_bytes()[end..]);
    }
}

/// Every file of the corpus, with a byte changed, dropped or put in at places spread over its front matter.
#[test]
fn real_files_with_a_byte_changed_are_read_or_refused() {
    let Some(cases) = cases() else { return };
    let bytes = b":'\"[{,-#&*!|>\n\r\t \\x\x01\xff%@?";
    for (number, case) in cases.iter().enumerate() {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        let end =
            document.front_matter_range().map_or(case.bytes.len().min(400), |front| front.end.min(4096));
        let head = &case.bytes[..case.bytes.len().min(end + 40)];
        for step in 0..48 {
            let at = (step * 977 + number * 31) % head.len().max(1);
            let byte = bytes[(step + number) % bytes.len()];
            let mut changed = head.to_vec();
            match step % 3 {
                0 if at < changed.len() => changed[at] = byte,
                1 if at < changed.len() => drop(changed.remove(at)),
                _ => changed.insert(at.min(changed.len()), byte),
            }
            check(&changed);
        }
    }
}
