use proptest::prelude::*;
use serde_json::json;

use super::*;

fn of(text: &str) -> String {
    Redactor::new().text(text).into_owned()
}

#[test]
fn tokens_are_masked_by_their_shapes_and_other_text_stays() {
    let long = "a1".repeat(12);
    for (text, masked) in [
        ("Authorization: Bearer abc".to_owned(), "Authorization: Bearer ***".to_owned()),
        ("authorization: basic dXNlcjpwYXNz".into(), "authorization: basic ***".into()),
        (r#"{"Authorization":"Bearer a/b+c=="}"#.into(), r#"{"Authorization":"Bearer ***"}"#.into()),
        ("x-api-key: 0123456789".into(), "x-api-key: ***".into()),
        (format!("sk-{}", "a".repeat(20)), "***".into()),
        (format!("sk-{}", "a".repeat(19)), format!("sk-{}", "a".repeat(19))),
        (format!("x=ghp_{}.", "b".repeat(20)), "x=***.".into()),
        (format!("github_pat_{}", "b".repeat(30)), "***".into()),
        (format!("xoxb-{}", "1".repeat(20)), "***".into()),
        ("AKIAIOSFODNN7EXAMPLE".into(), "***".into()),
        ("AKIAIOSFODNN7EXAMPLES".into(), "AKIAIOSFODNN7EXAMPLES".into()),
        (format!("Bearer {long}"), "Bearer ***".into()),
        (format!("bearer {long}=="), "bearer ***".into()),
        ("basic internationalisation".into(), "basic internationalisation".into()),
        ("authorization: see below".into(), "authorization: see below".into()),
        ("price: $1234.56".into(), "price: $1234.56".into()),
        (format!("AIza{}", "c".repeat(35)), "***".into()),
        (format!("eyJ{long}.{long}.{long}"), "***".into()),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb".into(),
            "a ***\nb".into(),
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE".into(), "***".into()),
    ] {
        assert_eq!(of(&text), masked, "{text}");
        assert_eq!(find_token(&text).is_some(), text != masked, "{text}");
    }
}

#[test]
fn a_learnt_value_is_masked_in_each_of_its_forms() {
    let redactor = Redactor::new();
    assert!(redactor.learn("p\"w\\ 1234"));
    assert!(!redactor.learn("abc"), "too short to tell from text");
    let json = json!({"p\"w\\ 1234": ["p\"w\\ 1234", {"x": "cFwidw=="}], "n": 5});
    assert_eq!(redactor.json(json.clone()), json!({"***": ["***", {"x": "cFwidw=="}], "n": 5}));
    assert!(!redactor.text(&json.to_string()).contains("1234"));
    assert!(!redactor.text("p%22w%5C%201234").contains("1234"));
    assert_eq!(redactor.text("cCJ3XCAxMjM0"), "***");
    redactor.learn("987654");
    assert_eq!(redactor.json(json!(9_876_543)), json!("***3"));
    assert_eq!(format!("{redactor:?}"), "Redactor { known_forms: 6 }");
}

proptest! {
    #[test]
    fn no_planted_secret_is_left(
        secrets in prop::collection::vec("[ -~]{4,12}", 1..4),
        parts in prop::collection::vec(("[ -~]{0,8}", 0_usize..4), 0..8),
    ) {
        let redactor = Redactor::new();
        // The mask itself is no secret.
        let secrets: Vec<_> = secrets.into_iter().filter(|s| !s.contains('*')).collect();
        for secret in &secrets {
            redactor.learn(secret);
        }
        let text: String = parts
            .iter()
            .map(|(text, n)| format!("{text}{}", secrets.get(*n).map_or("", String::as_str)))
            .collect();
        let masked = redactor.text(&text);
        let value = redactor.json(json!([text.clone(), {&*text: 1}]));
        let key = value[1].as_object().unwrap().keys().next().unwrap().clone();
        for secret in &secrets {
            prop_assert!(!masked.contains(secret.as_str()), "{masked} still holds {secret}");
            prop_assert!(!value[0].as_str().unwrap().contains(secret.as_str()));
            prop_assert!(!key.contains(secret.as_str()));
        }
    }
}
