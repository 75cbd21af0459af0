//! The corpus of real and hand-made SKILL.md files that lies beside the workspace, where there is one.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A file of the corpus and what two YAML parsers make of it.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Value,
}

/// The cases of the two sets, `skills` and `synthetic`; `None`, said loudly, where there is no shared folder.
pub(crate) fn cases() -> Option<Vec<Case>> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.exists() {
        eprintln!("SKIPPED: no ../shared beside the workspace, so the SKILL.md corpus was not read");
        return None;
    }
    let folder = shared.join("corpus/skills");
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name))
            .unwrap_or_else(|fault| panic!("{name} of the corpus: {fault}"))
    };
    let mut cases = Vec::new();
    for (files, expected) in
        [("skills.jsonl", "expected.jsonl"), ("synthetic.jsonl", "synthetic.expected.jsonl")]
    {
        let (files, expected) = (read(files), read(expected));
        assert_eq!(files.lines().count(), expected.lines().count(), "one expectation a file");
        cases.extend(files.lines().zip(expected.lines()).map(|(file, expected)| case(file, expected)));
    }
    Some(cases)
}

fn case(file: &str, expected: &str) -> Case {
    let file: Value = serde_json::from_str(file).unwrap();
    let expected: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(file["id"], expected["id"]);
    let bytes = match file["text_b64"].as_str() {
        Some(text) => STANDARD.decode(text).unwrap(),
        None => file["text"].as_str().unwrap().as_bytes().to_vec(),
    };
    Case { id: file["id"].as_str().unwrap().to_owned(), bytes, expected }
}
