//! What a strict reader refuses, where it says so, and what the lenient ladder still gets.

use haversack_skills::diagnostic::{Code, Severity};
use haversack_skills::document::{Document, ParseOptions, Reason, Rung};
use serde_json::{Value, json};

/// A front matter, and the code, line and column of what is wrong with it.
const FAULTS: &[(&str, Code, u32, u32)] = &[
    ("a: b: c\n", Code::UnquotedColon, 2, 5),
    ("a: b:\n", Code::UnquotedColon, 2, 5),
    ("a: b\n  c: d\n", Code::UnquotedColon, 3, 4),
    ("a: b\nc\n", Code::MissingColon, 3, 2),
    ("a: b\nc\nd: e\n", Code::MissingColon, 3, 2),
    ("a: 1\n b: 2\n", Code::UnquotedColon, 3, 3),
    ("a:\n   b: 1\n  c: 2\n", Code::BadIndentation, 4, 3),
    ("a: b # c\n  d\n", Code::BadIndentation, 3, 3),
    ("a: 1\n- b\n", Code::BadIndentation, 3, 1),
    ("a:\n  - b\n  c: d\n", Code::BadIndentation, 4, 3),
    ("a:\n\tb: c\n", Code::TabIndentation, 3, 1),
    ("a:\n  \tb: c\n", Code::TabIndentation, 3, 3),
    ("a: - b\n", Code::InlineBlock, 2, 4),
    ("a: ? b\n", Code::InlineBlock, 2, 4),
    ("a: @b\n", Code::ReservedCharacter, 2, 4),
    ("a: `b`\n", Code::ReservedCharacter, 2, 4),
    ("a: %b\n", Code::ReservedCharacter, 2, 4),
    ("a: , b\n", Code::ReservedCharacter, 2, 4),
    ("a: \"b\nc: d\n", Code::UnclosedQuote, 2, 4),
    ("a: 'b\n--- c'\n", Code::UnclosedQuote, 3, 1),
    ("a: [b\nc: d\n", Code::BadFlow, 3, 2),
    ("a: [b,\n", Code::UnclosedFlow, 2, 4),
    ("a: [b,,c]\n", Code::BadFlow, 2, 7),
    ("a: {b: c: d}\n", Code::BadFlow, 2, 9),
    ("a: [b]]\n", Code::TextAfterValue, 2, 7),
    ("a: [b] c\n", Code::TextAfterValue, 2, 8),
    ("a: 'b' c\n", Code::TextAfterValue, 2, 8),
    ("a: \"\\q\"\n", Code::BadEscape, 2, 5),
    ("a: \"\\ud83d\"\n", Code::BadEscape, 2, 5),
    ("a: \"\\UFFFFFFFF\"\n", Code::BadEscape, 2, 5),
    ("a: | b\n", Code::BadBlockHeader, 2, 6),
    ("a: |0\n  b\n", Code::BadBlockHeader, 2, 5),
    ("a: |#c\n  b\n", Code::BadBlockHeader, 2, 5),
    ("a: *b\n", Code::UnknownAlias, 2, 4),
    ("a: &b [*b]\n", Code::UnknownAlias, 2, 8),
    ("a: & b\n", Code::BadProperty, 2, 4),
    ("a: &b &c d\n", Code::BadProperty, 2, 7),
    ("a: !e!b c\n", Code::BadProperty, 2, 4),
    ("[a]: b\n", Code::KeyNotText, 2, 1),
    ("a: {[b]: c}\n", Code::KeyNotText, 2, 5),
    ("a: &x b\n*x : c\n", Code::KeyNotText, 3, 1),
    ("'a\n b': c\n", Code::KeyTooLong, 3, 4),
    ("a: b\n--- c\n", Code::SecondDocument, 3, 1),
    ("a: b\n...\nc: d\n", Code::SecondDocument, 4, 1),
    ("%YAML 1.2\na: b\n", Code::SecondDocument, 3, 1),
    ("- a\n", Code::RootNotMapping, 2, 1),
    ("hello\n", Code::RootNotMapping, 2, 1),
    ("a: b\u{1}\n", Code::ControlCharacter, 2, 5),
    ("é: '\u{9d}'\n", Code::ControlCharacter, 2, 5),
    ("a: b\u{ffff}\n", Code::ControlCharacter, 2, 5),
];

#[test]
fn every_fault_has_a_code_a_line_and_a_column() {
    for (front, code, line, column) in FAULTS {
        let file = format!("---\n{front}---\n");
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        assert_eq!(document.reason(), Some(Reason::Yaml), "{front:?}");
        let found = &document.diagnostics()[0];
        assert_eq!((found.code, found.line, found.column), (*code, *line, *column), "{front:?}: {found}");
        assert_eq!(found.severity, Severity::Error, "{front:?}");
        assert!(!found.message.is_empty() && !found.message.ends_with('.'), "{front:?}: {found}");
    }
}

#[test]
fn a_file_without_front_matter_says_what_is_missing() {
    for (file, reason, code, line) in [
        ("", Reason::FrontMatterEmpty, Code::FrontMatterEmpty, 1),
        (" \n\t\n", Reason::FrontMatterEmpty, Code::FrontMatterEmpty, 1),
        ("# Title\n", Reason::FrontMatterMissing, Code::FrontMatterMissing, 1),
        ("\n\n----\n", Reason::FrontMatterMissing, Code::FrontMatterMissing, 3),
        ("\u{feff}\u{feff}---\n---\n", Reason::FrontMatterMissing, Code::FrontMatterMissing, 1),
        ("---\na: b\n ---\n", Reason::FrontMatterUnclosed, Code::FrontMatterUnclosed, 1),
        ("---\na: b\n...\n", Reason::FrontMatterUnclosed, Code::FrontMatterUnclosed, 1),
    ] {
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        assert_eq!(document.reason(), Some(reason), "{file:?}");
        let found = &document.diagnostics()[0];
        assert_eq!((found.code, found.line), (code, line), "{file:?}");
        assert!(document.fields().is_none() && document.name().is_none(), "{file:?}");
    }
}

#[test]
fn bytes_that_are_no_utf8_are_refused_where_they_stand() {
    let document = Document::parse(b"---\na: \xc3\xa9\xff\n---\n", &ParseOptions::new());
    assert_eq!(document.reason(), Some(Reason::NotUtf8));
    let found = &document.diagnostics()[0];
    assert_eq!((found.code, found.line, found.column), (Code::NotUtf8, 2, 5));
    assert_eq!(document.body(), "");
}

/// A front matter, the rung that reads it, what comes of it, and the file after the edit.
type Mend = (&'static str, Rung, Value, Option<&'static str>);

fn mends() -> Vec<Mend> {
    vec![
        (
            "name: x # note\ndescription: Use when: asked # now\n",
            Rung::Quote,
            json!({"name": "x # note", "description": "Use when: asked # now"}),
            Some("name: 'x # note'\ndescription: 'Use when: asked # now'\n"),
        ),
        (
            "description: it's: so\n   and so\nname:   a\n",
            Rung::Quote,
            json!({"description": "it's: so and so", "name": "a"}),
            Some("description: 'it''s: so and so'\nname:   a\n"),
        ),
        (
            "hint: [a] [b]\nlist: [c]\n",
            Rung::Flow,
            json!({"hint": "[a] [b]", "list": ["c"]}),
            Some("hint: '[a] [b]'\nlist: [c]\n"),
        ),
        (
            "a: \"b\" c\nd: x: y\n",
            Rung::Flow,
            json!({"a": "\"b\" c", "d": "x: y"}),
            Some("a: '\"b\" c'\nd: 'x: y'\n"),
        ),
        ("a: b\u{7}c\n", Rung::Control, json!({"a": "bc"}), Some("a: bc\n")),
        // Without the control character the first line would be a fence, and another body follow.
        ("\u{7}---\na: b\n", Rung::Control, json!({"a": "b"}), None),
        ("a: b\u{7}: c\n", Rung::Quote, json!({"a": "b: c"}), Some("a: 'b: c'\n")),
        ("name: x\ndescription:y z\n", Rung::Scan, json!({"name": "x"}), Some("name: x\ndescription: y z\n")),
        ("name: x\ndescription：y\n", Rung::Scan, json!({"name": "x"}), Some("name: x\ndescription: y\n")),
        ("name: x\nm:\n\ta: 1\n", Rung::Scan, json!({"name": "x"}), Some("name: x\nm:\n  a: 1\n")),
        ("name: x\ntools: - a\n- b\n", Rung::Scan, json!({"name": "x"}), Some("name: x\ntools:\n- a\n- b\n")),
        ("%YAML 1.2\nname: x\n", Rung::Scan, json!({"name": "x"}), Some("# %YAML 1.2\nname: x\n")),
        (
            "name: x\ndescription: |\n    a\n  b\n",
            Rung::Scan,
            json!({"name": "x", "description": "a b"}),
            Some("name: x\ndescription: 'a b'\n"),
        ),
        ("name: x\n<<<<<<< ours\n", Rung::Scan, json!({"name": "x"}), None),
    ]
}

#[test]
fn the_ladder_reads_what_is_no_yaml_and_offers_the_edit() {
    for (front, rung, fields, mended) in mends() {
        for ending in ["\n", "\r\n"] {
            let file = format!("---\n{front}---\nbody: - [\n").replace('\n', ending);
            let document = Document::parse(file.as_bytes(), &ParseOptions::new());
            assert_eq!(document.reason(), Some(Reason::Yaml), "{front:?}");
            assert_eq!(document.rung(), Some(rung), "{front:?}: {:?}", document.diagnostics());
            assert_eq!(Value::Object(document.fields().unwrap().to_json()), fields, "{front:?}");
            let edits: Vec<_> =
                document.diagnostics().iter().filter_map(|found| found.fix.as_ref()).collect();
            assert_eq!(edits.len(), usize::from(mended.is_some()), "{front:?}");
            if let (Some(mended), [edit]) = (mended, edits.as_slice()) {
                let after = String::from_utf8(edit.apply(file.as_bytes()).unwrap()).unwrap();
                assert_eq!(
                    after,
                    format!("---\n{mended}---\nbody: - [\n").replace('\n', ending),
                    "{front:?}"
                );
                assert!(Document::parse(after.as_bytes(), &ParseOptions::new()).is_strict(), "{front:?}");
            }
        }
    }
}

#[test]
fn each_step_down_says_which_value_it_means() {
    let file = "---\nname: é x: y\nok: 1\ndescription: Use when: asked\nlast: \"a\" b\n---\n";
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    let found: Vec<_> =
        document.diagnostics().iter().map(|d| (d.code, d.severity, d.line, d.column)).collect();
    assert_eq!(
        found,
        [
            (Code::UnquotedColon, Severity::Error, 2, 10),
            (Code::MendedFlow, Severity::Warning, 2, 7),
            (Code::MendedFlow, Severity::Warning, 4, 14),
            (Code::MendedFlow, Severity::Warning, 5, 7),
        ]
    );
    let edits = document.diagnostics().iter().filter(|found| found.fix.is_some()).count();
    assert_eq!(edits, 1, "one edit mends the whole file");
}

#[test]
fn values_of_a_mended_file_stand_where_they_stand_in_the_file() {
    let file = "---\ndescription: a: b\n  c\n  d\nname: x\nlist: [1, 2]\n---\n";
    let document = Document::parse(file.as_bytes(), &ParseOptions::new());
    assert_eq!(document.rung(), Some(Rung::Quote));
    let fields = document.fields().unwrap();
    let name = fields.get("name").unwrap();
    assert_eq!((name.position().line, name.position().column), (5, 7));
    assert_eq!(&file[name.span()], "x");
    let second = &fields.get("list").unwrap().as_list().unwrap()[1];
    assert_eq!(&file[second.span()], "2");
    let description = fields.get("description").unwrap();
    assert_eq!(&file[description.span()], "a: b\n  c\n  d");
}

#[test]
fn every_code_has_its_own_word() {
    let words: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(words.len(), Code::ALL.len());
    assert!(
        words
            .iter()
            .all(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'))
    );
}
