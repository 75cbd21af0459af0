//! Leaves of wire structs that take what comes: a field of a kind that nobody expected is as good as absent.
//!
//! Servers that imitate an API send `null`, numbers, lists and objects where the original has strings. A struct
//! that refuses one of them loses the whole event, so each leaf here accepts every JSON value and keeps what it
//! can use. Strings are borrowed from the input where they hold no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The visitor methods for kinds of values that a leaf does not use.
macro_rules! nothing_for {
    ($nothing:expr; $($kind:ident)*) => { $(nothing_for!(@ $nothing; $kind);)* };
    (@ $nothing:expr; null) => {
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> { Ok($nothing) }
        fn visit_none<E: Error>(self) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ $nothing:expr; bool) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ $nothing:expr; number) => {
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> { Ok($nothing) }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> { Ok($nothing) }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ $nothing:expr; string) => {
        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ $nothing:expr; list) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
    (@ $nothing:expr; object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}

fn anything(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("any value")
}

/// A string, or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The string, if there is one and it is not empty.
    pub(crate) fn filled(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }

    /// The string, if there is one and it is not empty.
    pub(crate) fn as_filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Leaf;
        impl<'de> Visitor<'de> for Leaf {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                anything(f)
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
            nothing_for!(Text(None); null bool number list object);
        }
        d.deserialize_any(Leaf)
    }
}

/// A whole number that is not negative, or nothing. Numbers with a fraction of zero count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Leaf;
        impl<'de> Visitor<'de> for Leaf {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                anything(f)
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Count, E> {
                Ok(Count(Some(n)))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(n).ok()))
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be in range"
            )]
            fn visit_f64<E: Error>(self, n: f64) -> Result<Count, E> {
                const EXACT: f64 = 9_007_199_254_740_992.0;
                Ok(Count((n.fract() == 0.0 && (0.0..EXACT).contains(&n)).then_some(n as u64)))
            }
            nothing_for!(Count(None); null bool string list object);
        }
        d.deserialize_any(Leaf)
    }
}

/// An object, or nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Leaf<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Leaf<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                anything(f)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|object| Object(Some(object)))
            }
            nothing_for!(Object(None); null bool number string list);
        }
        d.deserialize_any(Leaf(PhantomData))
    }
}

/// A list, or an empty one. Its items have to be lenient themselves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Leaf<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Leaf<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                anything(f)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(List)
            }
            nothing_for!(List(Vec::new()); null bool number string object);
        }
        d.deserialize_any(Leaf(PhantomData))
    }
}

/// A string, or a whole JSON value of another kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum TextOr<'a> {
    /// Absent or `null`.
    #[default]
    Nothing,
    /// A string.
    Text(Cow<'a, str>),
    /// Anything else.
    Value(Value),
}

impl<'de: 'a, 'a> Deserialize<'de> for TextOr<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Leaf;
        impl<'de> Visitor<'de> for Leaf {
            type Value = TextOr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                anything(f)
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(TextOr::Value(value.into()))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
                Ok(TextOr::Value(value.into()))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
                Ok(TextOr::Value(value.into()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
                Ok(TextOr::Value(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(list)).map(TextOr::Value)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Value)
            }
            nothing_for!(TextOr::Nothing; null);
        }
        d.deserialize_any(Leaf)
    }
}

/// The same JSON in plainer form, for data that a wire struct refused: of a key given twice the last one stays
/// (which is legal, and what other readers do), bad UTF-8 and halves of surrogate pairs become replacement
/// characters.
///
/// # Errors
///
/// When it is no JSON.
pub(crate) fn plainer(data: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let text = String::from_utf8_lossy(data);
    let value = match serde_json::from_str::<Value>(&text) {
        Ok(value) => value,
        Err(error) => serde_json::from_str(&without_lone_surrogates(&text)).map_err(|_| error)?,
    };
    serde_json::to_vec(&value)
}

/// Replaces escapes of lone surrogates by the escape of the replacement character.
fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let (taken, written) = match (surrogate(from), from.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
            (Some(_), _) => (6, Some("\\ufffd")),
            // Any other escape: two characters, so that an escaped backslash does not begin another one.
            (None, _) => (1 + from.chars().nth(1).map_or(0, char::len_utf8), None),
        };
        let (escape, after) = from.split_at_checked(taken).unwrap_or((from, ""));
        out.push_str(written.unwrap_or(escape));
        rest = after;
    }
    out + rest
}

/// The surrogate that an escape at the start of the text stands for.
fn surrogate(text: &str) -> Option<u16> {
    let code = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xd800..=0xdfff).contains(&code).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Wire<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        #[serde(borrow)]
        either: TextOr<'a>,
        inner: Object<Box<Inner>>,
        list: List<Object<Inner>>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        count: Count,
    }

    #[test]
    fn every_leaf_takes_every_value() {
        for value in
            ["null", "true", "1", "-1", "1.5", "\"a\"", "\"\\n\"", "[]", "[1,{}]", "{}", "{\"x\":[]}"]
        {
            for field in ["text", "count", "either", "inner", "list", "unknown"] {
                let json = format!("{{\"{field}\":{value}}}");
                serde_json::from_str::<Wire<'_>>(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
            }
        }
        let json =
            r#"{"text":"a","count":2.0,"either":{"x":1},"inner":{"count":3},"list":[{"count":4},null]}"#;
        let wire: Wire<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(wire.text, Text(Some(Cow::Borrowed("a"))));
        assert_eq!(wire.count, Count(Some(2)));
        assert_eq!(wire.either, TextOr::Value(serde_json::json!({"x": 1})));
        assert_eq!(wire.inner.0.unwrap().count, Count(Some(3)));
        assert_eq!(wire.list.0.len(), 2);
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let wire: Wire<'_> = serde_json::from_str(r#"{"text":"a","either":"b"}"#).unwrap();
        assert!(matches!(wire.text.0, Some(Cow::Borrowed("a"))));
        assert!(matches!(wire.either, TextOr::Text(Cow::Borrowed("b"))));
    }

    #[test]
    fn the_plainer_form_reads_what_a_struct_refuses() {
        for (json, plain) in [
            (&br#"{"a":1,"a":2}"#[..], r#"{"a":2}"#),
            (
                br#"{"a":"\ud83c","b":"\ud83c\udf27\\ud83c"}"#,
                "{\"a\":\"\u{fffd}\",\"b\":\"\u{1f327}\\\\ud83c\"}",
            ),
            (br#"{"a":"\udf27x"}"#, "{\"a\":\"\u{fffd}x\"}"),
            (b"{\"a\":\"\xff\"}", "{\"a\":\"\u{fffd}\"}"),
        ] {
            assert_eq!(String::from_utf8(plainer(json).unwrap()).unwrap(), plain);
        }
        assert!(plainer(b"{").is_err() && plainer(br#"{"a":"\ud83"#).is_err());
    }
}
