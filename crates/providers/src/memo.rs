//! The shortcut for streams: events that differ from the last one only inside one string.
//!
//! A long answer is thousands of events that are alike but for the delta's text. The bytes before and after that
//! text are kept from the last event that was parsed in full. An event with the same bytes around a plain string
//! (no quote, no escape, no control character, good UTF-8) parses to the same event with that string in it, so it
//! need not be parsed. This is exact, not a guess: JSON is read from left to right, and the string's quotes are
//! part of the kept bytes.

/// What the last event that was parsed in full taught, and what it meant.
#[derive(Debug)]
pub(crate) struct Memo<M> {
    before: Vec<u8>,
    after: Vec<u8>,
    meaning: Option<M>,
}

impl<M> Default for Memo<M> {
    fn default() -> Self {
        Self { before: Vec::new(), after: Vec::new(), meaning: None }
    }
}

impl<M: Copy> Memo<M> {
    /// The string of an event that differs from the learnt one only in it, and what it means.
    #[inline]
    pub(crate) fn recall<'a>(&self, data: &'a [u8]) -> Option<(M, &'a str)> {
        let meaning = self.meaning?;
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // Deltas are short: one pass over the bytes is cheaper than searching for each.
        if text.iter().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            return None;
        }
        Some((meaning, std::str::from_utf8(text).ok()?))
    }

    /// Learns from an event that holds this string and means nothing else. A string that had escapes does not
    /// stand in the event as it is, and an empty one cannot be located: then nothing is learnt.
    pub(crate) fn learn(&mut self, data: &[u8], text: &str, meaning: M) {
        self.forget();
        let Some(at) = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else { return };
        let (Some(before), Some(found), Some(after)) =
            (data.get(..at), data.get(at..at + text.len()), data.get(at + text.len()..))
        else {
            return;
        };
        if text.is_empty()
            || found != text.as_bytes()
            || !before.ends_with(b"\"")
            || !after.starts_with(b"\"")
        {
            return;
        }
        self.before.extend_from_slice(before);
        self.after.extend_from_slice(after);
        self.meaning = Some(meaning);
    }

    /// Forgets, because the meaning no longer holds.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
        self.after.clear();
        self.meaning = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[derive(serde::Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        a: Cow<'a, str>,
    }

    fn learnt(json: &str) -> Memo<()> {
        let mut memo = Memo::default();
        memo.learn(json.as_bytes(), &serde_json::from_str::<Wire<'_>>(json).unwrap().a, ());
        memo
    }

    #[test]
    fn only_plain_strings_between_the_same_bytes_are_recalled() {
        let memo = learnt(r#"{"a":"x","b":1}"#);
        let recall = |json: &str| memo.recall(json.as_bytes()).map(|(_, text)| text.to_owned());
        assert_eq!(recall(r#"{"a":"","b":1}"#).as_deref(), Some(""));
        assert_eq!(recall(r#"{"a":"grüße","b":1}"#).as_deref(), Some("grüße"));
        for other in [
            r#"{"a":"x","b":2}"#,
            r#"{"a":"x" ,"b":1}"#,
            r#"{"a":"x","b":3,"a":"y","b":1}"#,
            r#"{"a":"\n","b":1}"#,
            "{\"a\":\"\u{1}\",\"b\":1}",
            r#"{"a":"#,
            r#"{"a":"x""#,
        ] {
            assert_eq!(recall(other), None, "{other}");
        }
        assert_eq!(memo.recall(b"{\"a\":\"\xff\",\"b\":1}"), None);
    }

    #[test]
    fn nothing_is_learnt_from_escapes_and_empty_strings() {
        for json in [r#"{"a":"\n"}"#, r#"{"a":""}"#] {
            assert!(learnt(json).recall(br#"{"a":"x"}"#).is_none(), "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_recalled_is_what_a_full_parse_gives(a in "\\PC{0,6}", b in "[ -~]{0,6}") {
            let write = |a: &str| serde_json::json!({"k": 1, "a": a, "z": [b.as_str()]}).to_string();
            let (first, second) = (write("plain"), write(&a));
            if let Some((_, text)) = learnt(&first).recall(second.as_bytes()) {
                proptest::prop_assert_eq!(text, &serde_json::from_str::<Wire<'_>>(&second).unwrap().a);
            }
        }
    }
}
