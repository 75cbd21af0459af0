//! Any text is a template, and rendering one neither panics nor takes the memory of the host.
#![no_main]

use haversack_skill_runtime::redact::Redactor;
use haversack_skill_runtime::template::{MAX_RENDERED_BYTES, Scope, Template, variables_of};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let vars = json!({"input": {"a": 1, "s": "text", "n": null, "l": [1, {"x": [true]}], "a.b": 2.5e30}, "item": "i"});
    let scope = Scope::new(vars.as_object().unwrap());
    let template = Template::parse(text);
    if let Ok(Value::String(rendered)) = template.render(&scope) {
        assert!(rendered.len() <= MAX_RENDERED_BYTES);
        if !text.contains("{{") {
            assert_eq!(rendered, text);
        }
        let _ = Redactor::new().text(&rendered);
    }
    let _ = variables_of(&json!([text, {text: text}]));
});
