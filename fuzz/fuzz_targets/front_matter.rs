//! Any bytes as a skill file: no panic, ranges within the file, edits that make the file strictly right, and JSON out that
//! says what the fields say. Time that grows faster than the file shows as a timeout: run with `-timeout=2`.
//!
//! The first byte chooses whether the rest is a whole file or a front matter between fences, so that the fuzzer need not
//! find the fences itself.
#![no_main]

use haversack_skills::document::{Document, ParseOptions};
use haversack_skills::lint::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let file = match choice % 3 {
        0 => rest.to_vec(),
        1 => [b"---\n", rest, b"\n---\nbody\n"].concat(),
        _ => [b"---\nname: demo\ndescription: ", rest, b"\n---\nbody\n"].concat(),
    };
    let options = ParseOptions::new();
    let document = Document::parse(&file, &options);
    assert!(file.get(document.body_range().clone()).is_some());
    assert_eq!(document.is_strict(), document.reason().is_none());
    if let Some(fields) = document.fields() {
        assert!(fields.iter().all(|(_, node)| file.get(node.span()).is_some()));
        let json = serde_json::to_string(&fields.to_json()).expect("any tree is JSON");
        if json.len() < 4096 {
            json_is_yaml(&json);
        }
    }
    for found in check(&document, Some("demo")) {
        assert!(found.line >= 1 && found.column >= 1);
        if let Some(edit) = found.fix {
            let mended = edit.apply(&file).expect("the edit lies in the file");
            let again = Document::parse(&mended, &options.with_max_bytes(usize::MAX));
            assert!(again.is_strict(), "{:?}", again.diagnostics());
            assert_eq!(again.body(), document.body());
        }
    }
});

/// What we wrote as JSON reads back as itself, but for the control characters that JSON leaves bare and YAML forbids.
fn json_is_yaml(json: &str) {
    let file = format!("---\nkey: {json}\n---\n");
    let document = Document::parse(file.as_bytes(), &ParseOptions::new().with_max_depth(64));
    let Some(fields) = document.fields().filter(|_| document.is_strict()) else { return };
    let read =
        serde_json::to_string(&fields.get("key").expect("the key").to_json()).expect("any tree is JSON");
    assert_eq!(read, json);
}
