//! Writes JSON straight into the bytes of a body.

use serde::Serialize;
use serde_json::Value;

/// Appends a value as JSON.
///
/// Writing to memory cannot fail, and every key of ours is a string; were it to fail all the same, `null` keeps the body
/// well formed and the server names the field.
pub(crate) fn push(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let len = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(len);
        out.extend_from_slice(b"null");
    }
}

/// Appends a value as the next item of a list whose items are parted by commas.
pub(crate) fn push_item(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if !out.is_empty() {
        out.push(b',');
    }
    push(out, value);
}

/// A number with the digits that the host wrote: `0.7` and not the `0.699999988079071` behind it.
pub(crate) fn float(number: f32) -> Value {
    serde_json::from_str(&number.to_string()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_no_number_is_null() {
        for (number, text) in [(0.7, "0.7"), (1.0, "1"), (0.0, "0"), (1e-7, "0.0000001"), (f32::NAN, "null")]
        {
            assert_eq!(float(number).to_string().parse::<f64>().ok(), text.parse::<f64>().ok(), "{number}");
        }
        assert_eq!(float(0.7).to_string(), "0.7");
    }
}
