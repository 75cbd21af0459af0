//! Real files and hand-made edge cases: what we read is what two YAML parsers read.

use haversack_skills::document::{Document, ParseOptions, Reason, Rung};
use haversack_skills::node::Fields;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::corpus::{Case, cases};

/// Entries that may differ from the expectation, each with the reason. There is none.
const ALLOWED: &[(&str, &str)] = &[];

fn as_text(fields: &Fields<'_>) -> Value {
    let all = fields.iter().map(|(key, node)| (key.to_owned(), node.to_json(), node.to_json_as_written()));
    let odd = all.filter(|(_, typed, text)| typed != text).map(|(key, _, text)| (key, text));
    Value::Object(odd.collect::<Map<_, _>>())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What we make of a file, in the words of the expectation.
fn ours(document: &Document<'_>) -> Value {
    let fields = document.fields();
    let typed = fields.map(|fields| Value::Object(fields.to_json()));
    let is_text = document.reason() != Some(Reason::NotUtf8);
    json!({
        "status": if document.is_strict() { "ok" } else { "invalid" },
        "reason": document.reason().map(Reason::as_str),
        "fields": typed.as_ref().filter(|_| document.is_strict()),
        "as_text": fields.map_or_else(|| json!({}), as_text),
        "name": document.name(),
        "description": document.description(),
        "duplicate_keys": document.duplicate_keys(),
        "rung": document.rung().map(Rung::as_str),
        "lenient": typed.as_ref().filter(|_| document.rung().is_some()),
        "body_sha256": is_text.then(|| hex(&Sha256::digest(document.body().as_bytes()))),
        "body_bytes": is_text.then(|| document.body().len()),
    })
}

/// The expectation, with the ruling of the YAML 1.2 text over the two parsers where there is one.
fn theirs(case: &Case) -> Value {
    let mut expected = case.expected.clone();
    if let Some(ruling) = case.expected.get("ruling").filter(|ruling| ruling["status"] == "ok") {
        expected["status"] = json!("ok");
        expected["reason"] = Value::Null;
        expected["lenient"] = Value::Null;
        expected["name"] = ruling["fields"]["name"].clone();
        expected["description"] = ruling["fields"]["description"].clone();
        expected["fields"] = ruling["fields"].clone();
    }
    let or = |key: &str, other: Value| {
        expected.get(key).filter(|value| !value.is_null()).cloned().unwrap_or(other)
    };
    json!({
        "status": expected["status"],
        "reason": expected["reason"],
        "fields": expected["fields"],
        "as_text": or("as_text", json!({})),
        "name": expected["name"],
        "description": expected["description"],
        "duplicate_keys": or("duplicate_keys", json!([])),
        "rung": expected["lenient"]["rung"],
        "lenient": expected["lenient"]["fields"],
        "body_sha256": expected["body_sha256"],
        "body_bytes": expected["body_bytes"],
    })
}

fn field_order(value: &Value) -> Vec<&String> {
    value["fields"].as_object().map(|fields| fields.keys().collect()).unwrap_or_default()
}

#[test]
fn every_file_reads_as_two_yaml_parsers_read_it() {
    let Some(cases) = cases() else { return };
    let mut differing = Vec::new();
    for case in &cases {
        if case.expected["ruling"]["status"] == "either" {
            continue;
        }
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        let (ours, theirs) = (ours(&document), theirs(case));
        if ours != theirs || field_order(&ours) != field_order(&theirs) {
            differing.push(format!("{}:\n  ours   {ours}\n  theirs {theirs}", case.id));
        }
    }
    differing.retain(|found| !ALLOWED.iter().any(|(id, _)| found.starts_with(id)));
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), cases.len(), differing.join("\n"));
    assert!(cases.len() > 900, "the corpus has shrunk to {}", cases.len());
}

#[test]
fn every_fenced_real_file_loads_and_all_others_say_why_not() {
    let Some(cases) = cases() else { return };
    for case in cases.iter().filter(|case| !case.id.starts_with("s-")) {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        if document.front_matter_range().is_some() {
            assert!(document.fields().is_some(), "{} has a front matter and was not read", case.id);
        } else {
            assert!(
                document.reason().is_some() && !document.diagnostics().is_empty(),
                "{} says nothing",
                case.id
            );
        }
    }
}

#[test]
fn every_edit_makes_its_file_strictly_right_and_keeps_its_meaning() {
    let Some(cases) = cases() else { return };
    let mut edits = 0;
    for case in &cases {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        for edit in document.diagnostics().iter().filter_map(|found| found.fix.as_ref()) {
            edits += 1;
            let mended = edit.apply(&case.bytes).expect("the edit lies in the file");
            assert_eq!(mended[..edit.start], case.bytes[..edit.start], "{}: bytes before the edit", case.id);
            assert!(mended.ends_with(&case.bytes[edit.end..]), "{}: bytes behind the edit", case.id);
            let again = Document::parse(&mended, &ParseOptions::new());
            assert!(again.is_strict(), "{}: {:?} after {edit:?}", case.id, again.diagnostics());
            assert_eq!(again.body(), document.body(), "{}: the body", case.id);
            if document.rung() != Some(Rung::Scan) {
                assert_eq!(
                    again.fields().unwrap().to_json(),
                    document.fields().unwrap().to_json(),
                    "{}",
                    case.id
                );
            }
        }
    }
    assert!(edits > 60, "only {edits} edits were offered");
}

#[test]
fn every_gentle_step_down_offers_an_edit() {
    let Some(cases) = cases() else { return };
    for case in &cases {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        if document.rung().is_some_and(|rung| rung < Rung::Scan) {
            assert!(
                document.diagnostics().iter().any(|found| found.fix.is_some()),
                "{} offers nothing",
                case.id
            );
        }
    }
}

#[test]
fn every_value_stands_where_it_says() {
    let Some(cases) = cases() else { return };
    let mut plain = 0;
    for case in &cases {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        let Some(fields) = document.fields().filter(|_| document.rung() != Some(Rung::Control)) else {
            continue;
        };
        for (key, node) in fields.iter() {
            let text = std::str::from_utf8(&case.bytes).unwrap();
            let key_at = fields.key_position(key).unwrap();
            assert_eq!(
                (key_at.line, key_at.column),
                line_and_column(text, key_at.offset as usize),
                "{}",
                case.id
            );
            let at = node.position();
            assert_eq!((at.line, at.column), line_and_column(text, at.offset as usize), "{}: {key}", case.id);
            if let Some(written) = node.as_written().filter(|written| !written.is_empty())
                && text[at.offset as usize..].starts_with(written)
            {
                plain += 1;
                assert_eq!(&text[node.span()], written, "{}: {key}", case.id);
            }
        }
    }
    assert!(plain > 500, "only {plain} plain values were compared");
}

/// Counts from the start, as an editor would.
fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let before = &text.strip_prefix('\u{feff}').unwrap_or(text)
        [..offset - (text.starts_with('\u{feff}') as usize * 3)];
    let normal = before.replace("\r\n", "\n").replace('\r', "\n");
    let last = normal.rsplit('\n').next().unwrap();
    (normal.matches('\n').count() as u32 + 1, last.chars().count() as u32 + 1)
}
