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
fn every_known_kind_of_key_is_masked_and_one_that_is_too_short_stays() {
    for (begins, least) in [
        ("sk-ant-", 16),
        ("sk-proj-", 16),
        ("hf_", 20),
        ("gsk_", 20),
        ("github_pat_", 20),
        ("ghp_", 20),
        ("gho_", 20),
        ("ghu_", 20),
        ("ghs_", 20),
        ("ghr_", 20),
        ("glpat-", 20),
        ("xoxb-", 20),
        ("xoxa-", 20),
        ("xoxc-", 20),
        ("xoxp-", 20),
        ("xoxr-", 20),
        ("xoxs-", 20),
        ("xapp-", 20),
        ("AIza", 35),
        ("ya29.", 20),
        ("npm_", 20),
        ("pypi-", 20),
        ("dckr_pat_", 20),
        ("dop_v1_", 20),
        ("shpat_", 20),
        ("sk_live_", 16),
        ("AKIA", 16),
        ("ASIA", 16),
    ] {
        let key = format!("{begins}{}", "A7".repeat(least).chars().take(least).collect::<String>());
        assert_eq!(of(&format!("key: {key}, and more")), "key: ***, and more", "{key}");
        let short: String = key.chars().take(begins.len() + 5).collect();
        assert_eq!(of(&short), short);
    }
    let sendgrid = format!("SG.{}.{}", "a".repeat(22), "b".repeat(43));
    assert_eq!(of(&sendgrid), "***");
    assert_eq!(of("SG.short.one"), "SG.short.one");
    assert_eq!(of("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----"), "***");
}

#[test]
fn a_token_right_behind_an_escape_is_masked() {
    let token = format!("ghp_{}", "a1".repeat(12));
    for before in [
        r"\n",
        r"\r\n",
        r"\t",
        r"\u003d",
        r"\x3d",
        r"\075",
        r"\\n",
        "%3D",
        "%3d",
        "%0A",
        "\x1b[32m",
        "\x1b[1;32m",
        "\x1b[m",
        r"\u001b[32m",
        r"\x1b[0m",
        r"\033[31m",
        r"\e[1m",
        "%1B[32m",
        "\u{9b}32m",
    ] {
        assert_eq!(of(&format!("{before}{token}")), format!("{before}***"), "{before:?}");
        let header = format!("a{before}Authorization: Bearer abc");
        assert_eq!(of(&header), format!("a{before}Authorization: Bearer ***"), "{before:?}");
    }
    for before in ["n", "3D", "32m", "[32m", "x"] {
        let text = format!("{before}{token}");
        let is_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        assert_eq!(of(&text) == text, is_word, "{before}: no escape, so the token is the end of a word");
    }
    assert_eq!(of("url?h=Authorization%3A%20Bearer%20abc&x"), "url?h=Authorization%3A%20Bearer%20***");
    assert_eq!(of(&format!("Bearer%20{}", "a1".repeat(12))), "Bearer%20***");
}

#[test]
fn a_learnt_value_is_masked_in_every_writing() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

    let secret = "pä55 w/ö?rd\"+\\&=\n\u{1f511}~x.y-z_!";
    let redactor = Redactor::new();
    assert!(redactor.learn(secret));
    let json = serde_json::to_string(secret).unwrap();
    let upper: String = secret.bytes().map(|b| format!("%{b:02X}")).collect();
    let reserved = |keep: &str, upper: bool| -> String {
        let write = |b: u8| if upper { format!("%{b:02X}") } else { format!("%{b:02x}") };
        secret
            .bytes()
            .map(|b| {
                let stays = b.is_ascii_alphanumeric() || keep.as_bytes().contains(&b);
                if stays { char::from(b).to_string() } else { write(b) }
            })
            .collect()
    };
    let ascii: String = secret
        .encode_utf16()
        .map(|unit| match u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric) {
            Some(b) => char::from(b).to_string(),
            None => format!("\\u{unit:04x}"),
        })
        .collect();
    for (writing, text) in [
        ("plain", secret.to_owned()),
        ("JSON", json.clone()),
        ("JSON in JSON", serde_json::to_string(&json).unwrap()),
        ("JSON in JSON in JSON", serde_json::to_string(&serde_json::to_string(&json).unwrap()).unwrap()),
        ("JSON with escaped slashes", json.replace('/', r"\/")),
        ("JSON in ASCII", ascii),
        ("all percent-encoded", upper.clone()),
        ("percent-encoded in lower case", upper.to_lowercase()),
        ("as in a query", reserved("-._~", true)),
        ("as in a query, lower case", reserved("-._~", false)),
        ("as in a path", reserved("-._~!$&'()*+,;=:@", true)),
        ("as a form", reserved("*-._", true).replace("%20", "+")),
        ("encoded twice", reserved("-._~", true).replace('%', "%25")),
        ("base64", STANDARD.encode(secret)),
        ("base64 without padding", STANDARD_NO_PAD.encode(secret)),
        ("base64 for addresses", URL_SAFE.encode(secret)),
        ("base64 for addresses without padding", URL_SAFE_NO_PAD.encode(secret)),
        ("base64, percent-encoded", STANDARD.encode(secret).replace('=', "%3D").replace('+', "%2b")),
    ] {
        let masked = redactor.text(&format!("[{text}]")).into_owned();
        let bare = masked.replace(['"', '\\'], "");
        assert_eq!(bare, "[***]", "{writing}: {text}");
    }
}

#[test]
fn a_learnt_value_is_masked_inside_something_that_was_encoded_as_a_whole() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    let secret = "pä55 w/ö?rd";
    let redactor = Redactor::new();
    redactor.learn(secret);
    for inside in ["u:", "us:", "use:"] {
        for engine in [&STANDARD, &URL_SAFE] {
            let encoded = engine.encode(format!("{inside}{secret}:behind"));
            let masked = redactor.text(&encoded).into_owned();
            assert!(masked.contains("***") && masked.len() < 24, "{inside} {masked}");
        }
    }
    redactor.learn("50%aa off");
    for text in ["50%25aa%20off", "%35%30%2525%61a+off"] {
        assert_eq!(redactor.text(text), "***", "a percent sign of the value's own");
    }
    let html = "&lt;t0p&amp;s3cret&#39;&#x22;&gt;";
    redactor.learn("<t0p&s3cret'\">");
    assert_eq!(redactor.text(html), "***");
}

#[test]
fn short_values_are_not_learnt_and_numbers_and_keys_are_masked_too() {
    let redactor = Redactor::new();
    assert!(!redactor.learn("abc"), "too short to tell from text");
    assert!(redactor.learn("p\"w\\ 1234"));
    let json = json!({"p\"w\\ 1234": ["p\"w\\ 1234", {"x": "cFwidw=="}], "n": 5});
    assert_eq!(redactor.json(json), json!({"***": ["***", {"x": "cFwidw=="}], "n": 5}));
    redactor.learn("987654");
    redactor.learn("987654");
    assert_eq!(redactor.json(json!(9_876_543)), json!("***3"));
    assert_eq!(format!("{redactor:?}"), "Redactor { known_values: 2 }");
}

#[test]
fn a_text_that_is_made_to_take_long_does_not() {
    for piece in ["eyJ-", "eyJaaaaaaaaaaa.", "sk-", "\\", "%25", "authorization: ", "-----BEGIN ", "\x1b[1;"]
    {
        let text = piece.repeat(400_000 / piece.len());
        let redactor = Redactor::new();
        redactor.learn("\\%25&% se");
        let _ = redactor.text(&text);
    }
}

/// One way to write a character; all of them are read back the same.
fn written(c: char, way: usize) -> String {
    let mut buffer = [0; 4];
    let plain = c.encode_utf8(&mut buffer);
    match way {
        0 => plain.bytes().map(|b| format!("%{b:02X}")).collect(),
        1 => plain.bytes().map(|b| format!("%{b:02x}")).collect(),
        2 => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        3 => serde_json::to_string(plain).unwrap().trim_matches('"').to_owned(),
        _ => plain.to_owned(),
    }
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

    #[test]
    fn a_secret_is_found_however_its_characters_are_written(
        secret in "[a-zäß\u{1f511} /+%]{4,10}",
        ways in prop::collection::vec(0_usize..6, 10),
        around in "[ .,:]{0,3}",
    ) {
        let redactor = Redactor::new();
        redactor.learn(&secret);
        let text: String = secret.chars().zip(ways.iter().cycle()).map(|(c, way)| written(c, *way)).collect();
        let text = format!("{around}{text}{around}");
        prop_assert_eq!(redactor.text(&text), format!("{around}***{around}"));
    }
}
