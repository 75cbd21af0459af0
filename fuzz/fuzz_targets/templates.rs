//! Any text is a template, and rendering one neither panics nor takes the memory of the host; no secret that it writes
//! out in any mixture of escapes is left by the redactor, which any text may be given to.
#![no_main]

use haversack_skill_runtime::redact::{MASK, Redactor};
use haversack_skill_runtime::template::{MAX_RENDERED_BYTES, Scope, Template, variables_of};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const SECRET: &str = "t0p s3cret/%\"x";

fuzz_target!(|text: &str| {
    let vars = json!({
        "input": {"a": 1, "s": "text", "n": null, "l": [1, {"x": [true]}], "a.b": 2.5e30, "secret": SECRET},
        "item": "i",
    });
    let scope = Scope::new(vars.as_object().unwrap());
    let template = Template::parse(text);
    let redactor = Redactor::new();
    redactor.learn(SECRET);
    if let Ok(value) = template.render(&scope) {
        if let Value::String(rendered) = &value {
            assert!(rendered.len() <= MAX_RENDERED_BYTES);
            if !text.contains("{{") {
                assert_eq!(rendered, text);
            }
        }
        let masked = redactor.json(value).to_string();
        assert!(!masked.contains(json!(SECRET).to_string().trim_matches('"')), "{masked}");
    }
    let masked = redactor.text(text);
    assert!(!masked.contains(SECRET) && (masked == text || masked.contains(MASK)));
    let _ = variables_of(&json!([text, {text: text}]));
});
