use proptest::prelude::*;
use serde_json::json;

use super::*;

fn vars() -> Value {
    json!({"input": {
        "a": 1, "s": "str", "n": null, "o": {"k": "v"}, "arr": [1, {"x": 2}], "f": 1.0, "big": 1e21, "small": 1e-7,
        "a.b": {"c": 5}, "t": true
    }})
}

fn render(text: &str) -> Result<Value, String> {
    let vars = vars();
    Template::parse(text).render(&Scope::new(vars.as_object().unwrap())).map_err(|error| error.to_string())
}

#[test]
fn a_reference_alone_keeps_its_type_and_in_a_text_it_becomes_text() {
    for (text, value) in [
        ("{{ input.a }}", json!(1)),
        (" {{input.arr}} ", json!([1, {"x": 2}])),
        ("{{input.n}}", json!(null)),
        ("x{{input.a}}", json!("x1")),
        ("{{input.a}}{{input.s}}", json!("1str")),
        ("x{{input.n}}", json!("x")),
        ("x {{input.o}}", json!("x {\"k\":\"v\"}")),
        ("x{{input.f}} {{input.big}} {{input.small}} {{input.t}}", json!("x1 1e+21 1e-7 true")),
        ("plain", json!("plain")),
        ("", json!("")),
        ("a {{}} b", json!("a {{}} b")),
        ("a {{input.a", json!("a {{input.a")),
        ("{{\n{{input.a}}", json!("{{\n1")),
    ] {
        assert_eq!(render(text), Ok(value), "{text}");
    }
}

#[test]
fn a_path_that_leads_nowhere_says_where_it_ends() {
    for (text, error) in [
        ("{{input.missing}}", "path \"input.missing\": key \"missing\" not found"),
        ("{{input.s.length}}", "path \"input.s.length\": cannot index into string with \"length\""),
        ("{{input.n.x}}", "path \"input.n.x\": cannot index into null with \"x\""),
        ("{{input.arr.length}}", "path \"input.arr.length\": key \"length\" not found"),
        ("{{input.arr.7}}", "path \"input.arr.7\": key \"7\" not found"),
        ("{{input.arr.00}}", "path \"input.arr.00\": key \"00\" not found"),
        ("{{}}", "path \"\": key \"\" not found"),
        ("{{constructor}}", "path \"constructor\": key \"constructor\" not found"),
        ("x{{input.q}}{{input.r}}", "path \"input.r\": key \"r\" not found"),
    ] {
        assert_eq!(render(text), Err(error.to_owned()), "{text}");
    }
    assert!(render("{{input.a}}}}").is_err(), "a key with braces at its end");
    assert!(render("{{{input.a}}}").is_err());
}

#[test]
fn what_was_added_works_where_nothing_worked_before() {
    for (text, value) in [
        ("{{input.arr.0}}", json!(1)),
        ("{{input.arr[1].x}}", json!(2)),
        ("{{ input[\"a.b\"].c }}", json!(5)),
        ("{{ input[\"a.b\"][\"c\"] }}", json!(5)),
        ("{{ input.missing ?? 3 }}", json!(3)),
        ("{{ input.n ?? [1] }}", json!([1])),
        ("{{ input.a ?? 3 }}", json!(1)),
        ("{{ ghost.x ?? \"d\" }}", json!("d")),
        ("{{ \"{{\" }}", json!("{{")),
        ("a {{ \"{{\" }}x}} {{input.a}}", json!("a {{x}} 1")),
        ("{{ \"text\" }}", json!("text")),
    ] {
        assert_eq!(render(text), Ok(value), "{text}");
    }
    assert!(render("{{ input.arr[9] }}").is_err());
    assert!(render("{{ input.arr[x] }}").is_err());
    // A key that only looks like the new forms is found as it always was.
    let odd = json!({"a[0]": 1, "b ?? 2": 3, "\"q\"": 4});
    let scope = Scope::new(odd.as_object().unwrap());
    for (text, value) in [("{{a[0]}}", 1), ("{{b ?? 2}}", 3), ("{{\"q\"}}", 4)] {
        assert_eq!(Template::parse(text).render(&scope), Ok(json!(value)), "{text}");
    }
}

#[test]
fn values_are_rendered_in_depth_and_item_goes_first() {
    let vars = json!({"input": {"a": 1}, "item": "var"});
    let (vars, item) = (vars.as_object().unwrap(), json!({"x": [2]}));
    let scope = Scope::new(vars).with_item(&item);
    let value = json!({"k {{input.a}}": ["{{ item.x.0 }}", 5, {"d": "{{input.a}}!"}], "n": null});
    let rendered = json!({"k {{input.a}}": [2, 5, {"d": "1!"}], "n": null});
    assert_eq!(render_value(&value, &scope), Ok(rendered));
    assert_eq!(variables_of(&value), ["input", "item"]);
    assert_eq!(variables_of(&json!("{{ a ?? 1 }} {{ \"b\" }} {{ c[0] }} {{d.e}}")), ["c", "d"]);
}

#[test]
fn a_template_cannot_take_the_memory_of_the_host() {
    let vars = json!({"input": "x".repeat(1 << 20)});
    let text = "{{input}} ".repeat(10);
    let rendered = Template::parse(&text).render(&Scope::new(vars.as_object().unwrap()));
    assert_eq!(rendered, Err(TemplateError::TooLarge));
}

proptest! {
    #[test]
    fn any_text_can_be_parsed_and_rendered(text in "([a-z.{}\" \\[\\]?0-9\n]|input|é){0,40}") {
        let vars = vars();
        let scope = Scope::new(vars.as_object().unwrap());
        let rendered = Template::parse(&text).render(&scope);
        if !text.contains("{{") {
            prop_assert_eq!(rendered, Ok(Value::String(text)));
        }
    }
}
