//! Values that become headers (MCP 2026-07-28, "Streamable HTTP", header rules).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haversack_http::HeaderValue;
use serde_json::Value;

const MARKER: &str = "=?base64?";
const MARKER_END: &str = "?=";

/// A text as the value of a header: as it is, if it is visible ASCII with blanks inside only; else in base64, with a
/// marker around it. No text can break out of its header.
pub(crate) fn header_of_text(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim_matches(' ') == text
        && !(text.starts_with(MARKER) && text.ends_with(MARKER_END));
    if is_plain {
        HeaderValue::from_str(text).ok()
    } else {
        HeaderValue::from_str(&format!("{MARKER}{}{MARKER_END}", STANDARD.encode(text))).ok()
    }
}

/// A parameter of a tool as the value of a header; `None` for what has none: null, lists, objects.
pub(crate) fn header_of_parameter(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => header_of_text(text),
        Value::Bool(value) => header_of_text(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            match (number.is_i64() || number.is_u64(), whole) {
                // 1.0 is an integer as well, and is written like one.
                (false, Some(whole)) => header_of_text(&format!("{whole:.0}")),
                _ => header_of_text(&number.to_string()),
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_written_as_it_is_where_that_is_safe_and_in_base64_elsewhere() {
        let table = [
            (json!("us-west1"), Some("us-west1")),
            (json!("a b"), Some("a b")),
            (json!(""), Some("")),
            (json!(" a"), Some("=?base64?IGE=?=")),
            (json!("a "), Some("=?base64?YSA=?=")),
            (json!("a\r\nX: y"), Some("=?base64?YQ0KWDogeQ==?=")),
            (json!("ü"), Some("=?base64?w7w=?=")),
            (json!("a\tb"), Some("=?base64?YQli?=")),
            (json!("=?base64?YQ==?="), Some("=?base64?PT9iYXNlNjQ/WVE9PT89?=")),
            (json!("=?base64?"), Some("=?base64?")),
            (json!(42), Some("42")),
            (json!(-7), Some("-7")),
            (json!(3.0), Some("3")),
            (json!(u64::MAX), Some("18446744073709551615")),
            (json!(true), Some("true")),
            (json!(false), Some("false")),
            (json!(null), None),
            (json!([1]), None),
            (json!({}), None),
        ];
        for (value, wanted) in table {
            let header = header_of_parameter(&value);
            let text = header.as_ref().map(|header| header.to_str().unwrap());
            assert_eq!(text, wanted, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_has_a_header_that_is_visible_ascii(text in "\\PC*|[\\x00-\\x7f]*") {
            let header = header_of_text(&text).unwrap();
            assert!(header.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte)));
        }
    }
}
