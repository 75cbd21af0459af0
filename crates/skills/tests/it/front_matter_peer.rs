//! A second opinion: `saphyr`, a maintained YAML 1.2 library that shares no code with ours.
//!
//! It reads events into a tree of its own; scalars are compared as they are written, since it types them its own way.

use haversack_skills::document::{Document, ParseOptions};
use saphyr::{Yaml, YamlLoader};
use saphyr_parser::{BufferedInput, Parser};
use serde_json::{Map, Value};

use crate::corpus::cases;

/// The tree that the peer makes, every scalar as it is written; `None` where it refuses the text.
fn peer(front: &str) -> Option<Value> {
    let mut parser = Parser::new(BufferedInput::new(front.chars()));
    let mut loader = YamlLoader::<Yaml<'_>>::default();
    loader.early_parse(false);
    parser.load(&mut loader, true).ok()?;
    let documents = loader.into_documents();
    match documents.as_slice() {
        [] => Some(Value::Object(Map::new())),
        [root] => value(root),
        _ => None,
    }
}

fn value(node: &Yaml<'_>) -> Option<Value> {
    match node {
        Yaml::Representation(text, _, _) => Some(Value::String(text.to_string())),
        Yaml::Sequence(items) => items.iter().map(value).collect::<Option<Vec<_>>>().map(Value::Array),
        Yaml::Mapping(pairs) => {
            let mut map = Map::new();
            for (key, item) in pairs {
                let Value::String(key) = value(key)? else { return None };
                map.insert(key, value(item)?);
            }
            Some(Value::Object(map))
        }
        Yaml::Tagged(_, inner) => value(inner),
        other => other.as_str().map(|text| Value::String(text.to_owned())),
    }
}

#[test]
fn a_peer_reads_every_real_front_matter_alike() {
    let Some(cases) = cases() else { return };
    let mut compared = 0;
    let mut refused = Vec::new();
    for case in cases.iter().filter(|case| !case.id.starts_with("s-")) {
        let document = Document::parse(&case.bytes, &ParseOptions::new());
        let Some(front) = document.front_matter() else { continue };
        let theirs = peer(&front.replace("\r\n", "\n").replace('\r', "\n"));
        match (document.is_strict(), theirs) {
            (true, Some(theirs)) => {
                let ours = document.fields().unwrap().iter();
                let ours: Map<_, _> =
                    ours.map(|(key, node)| (key.to_owned(), node.to_json_as_written())).collect();
                assert_eq!(Value::Object(ours), theirs, "{}", case.id);
                compared += 1;
            }
            (true, None) => refused.push(case.id.as_str()),
            (false, Some(theirs)) if theirs.is_object() => refused.push(case.id.as_str()),
            (false, _) => {}
        }
    }
    assert!(compared > 650, "only {compared} were compared");
    assert!(refused.len() <= 3, "the two disagree on whether these are YAML: {refused:?}");
}
