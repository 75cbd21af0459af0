//! What the repository publishes of the format is what the code says. `UPDATE=1` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};

use haversack_agent_core::arguments::ArgumentCheck;
use haversack_skill_runtime::format::{json_schema, table};
use haversack_skill_runtime::metadata::Group;
use haversack_skills::document::{Document, ParseOptions};
use serde_json::{Value, json};

const TABLES: [(&str, Group); 13] = [
    ("placement", Group::Placement),
    ("section", Group::Section),
    ("keywords", Group::Keywords),
    ("escalation_hints", Group::EscalationHints),
    ("tool_schema", Group::ToolSchema),
    ("step", Group::Step),
    ("agent", Group::Agent),
    ("triggers", Group::Triggers),
    ("cron", Group::Cron),
    ("event", Group::Event),
    ("message_match", Group::MessageMatch),
    ("sop", Group::Sop),
    ("review_gate", Group::ReviewGate),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn check(path: &Path, wanted: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, wanted).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    assert!(there == wanted, "{} is out of date: run this test with UPDATE=1", path.display());
}

#[test]
fn the_published_schema_is_the_one_of_the_code() {
    check(&docs().join("skill-format.schema.json"), &format!("{:#}\n", json_schema()));
}

#[test]
fn the_tables_of_the_guide_are_those_of_the_code() {
    let path = docs().join("skill-format.md");
    let guide = fs::read_to_string(&path).unwrap();
    let mut wanted = guide;
    for (name, group) in TABLES {
        let (start, end) = (format!("<!-- fields: {name} -->\n"), "<!-- end -->".to_owned());
        let (head, rest) =
            wanted.split_once(&start).unwrap_or_else(|| panic!("the guide has no table `{name}`"));
        let (_, tail) = rest.split_once(&end).unwrap();
        wanted = format!("{head}{start}{}{end}{tail}", table(group));
    }
    check(&path, &wanted);
}

#[test]
fn the_examples_of_the_guide_fit_the_schema() {
    let guide = fs::read_to_string(docs().join("skill-format.md")).unwrap();
    let check = ArgumentCheck::new(json_schema());
    let examples: Vec<&str> =
        guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let document = Document::parse(example.as_bytes(), &ParseOptions::new());
        assert!(document.is_strict(), "{example}: {:?}", document.diagnostics());
        let value = Value::Object(document.fields().unwrap().to_json());
        assert!(check.check(&value).is_ok(), "{example}: {:?}", check.check(&value));
    }
    assert!(check.check(&json!({"agent_config": {"no_network": "true"}})).is_err());
}
