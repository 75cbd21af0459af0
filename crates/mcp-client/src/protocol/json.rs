//! Reading JSON that other people wrote: keys without allocation, text that is not quite text, and shapes that are
//! not quite what they should be.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};
use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// A key of an object.
pub(crate) enum Key {
    /// One of the keys that were asked for, by its place in the list.
    Known(usize),
    /// Any other.
    Other(String),
}

/// Reads a key and compares it with a list, allocating only for a key that is not on it.
pub(crate) struct KeyOf(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
        let known = self.0.iter().position(|known| *known == key);
        Ok(known.map_or_else(|| Key::Other(key.to_owned()), Key::Known))
    }
}

/// Takes a text out of an object; a value of another kind stays where it is, among the unknown members.
pub(crate) fn take_text(object: &mut Object, key: &str) -> Option<String> {
    match object.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Null) | None => None,
        Some(other) => {
            object.insert(key.to_owned(), other);
            None
        }
    }
}

/// Takes an object out of an object; a value of another kind stays where it is.
pub(crate) fn take_object(object: &mut Object, key: &str) -> Option<Object> {
    match object.shift_remove(key) {
        Some(Value::Object(inner)) => Some(inner),
        Some(Value::Null) | None => None,
        Some(other) => {
            object.insert(key.to_owned(), other);
            None
        }
    }
}

/// A copy of the line with what no JSON parser takes replaced by U+FFFD: bytes that are not UTF-8, and escapes of
/// lone surrogates (`\ud800` without its other half). `None` if there is nothing to replace.
///
/// Both come from servers that cut text in the middle of a character; the rest of their answer is sound.
pub(crate) fn repair(line: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(line);
    let was_cut = matches!(text, std::borrow::Cow::Owned(_));
    let mut bytes = text.into_owned().into_bytes();
    let replaced = replace_lone_surrogates(&mut bytes);
    (was_cut || replaced).then_some(bytes)
}

/// Replaces escapes of lone surrogates in place, by the escape of U+FFFD, which is as long.
fn replace_lone_surrogates(bytes: &mut [u8]) -> bool {
    let mut replaced = false;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        match surrogate_at(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(surrogate_at(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(_) => {
                if let Some(escape) = bytes.get_mut(at..at + 6) {
                    escape.copy_from_slice(b"\\ufffd");
                    replaced = true;
                }
                at += 6;
            }
            // Any other escape: its second byte may be a backslash, which begins no escape of its own.
            None => at += 2,
        }
    }
    replaced
}

/// The surrogate that the escape at that place stands for, if it is one.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let number = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_and_escaped_backslashes_are_kept() {
        let table = [
            (r#"{"a":"\ud800"}"#, Some(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":"\udc00\ud83d\ude00"}"#, Some(r#"{"a":"\ufffd\ud83d\ude00"}"#)),
            (r#"{"a":"\ud800\ud83d\ude00"}"#, Some(r#"{"a":"\ufffd\ud83d\ude00"}"#)),
            (r#"{"a":"\ud83d\ude00"}"#, None),
            (r#"{"a":"\\ud800"}"#, None),
            (r#"{"a":"\\\ud800"}"#, Some(r#"{"a":"\\\ufffd"}"#)),
            (r#"{"a":"\ud8"#, None),
        ];
        for (line, wanted) in table {
            let got = repair(line.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(got.as_deref(), wanted, "{line}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_become_replacement_characters() {
        let repaired = repair(b"{\"a\":\"\xff\xc3\"}").unwrap();
        assert_eq!(String::from_utf8(repaired).unwrap(), "{\"a\":\"\u{fffd}\u{fffd}\"}");
    }
}
