//! Text from elsewhere made safe to show: what the eye cannot see is written out.
//!
//! A configuration file of a repository is somebody else's text. A right-to-left override can make `rm -rf` look
//! like a file name ([Trojan Source](https://trojansource.codes), CVE-2021-42574), a zero-width character can hide
//! a second argument, an escape sequence can move the cursor of a terminal. A question that a person answers must
//! therefore never contain such characters as they are.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character has no picture of its own, or changes how its neighbours are shown.
///
/// Controls, invisible and bidirectional formatting characters, variation selectors, tags, and blanks other than
/// the plain one.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    // The ranges follow Unicode's `Default_Ignorable_Code_Point`, `Cc`, `Zs`, `Zl` and `Zp`.
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E000}'..='\u{F8FF}' | '\u{13430}'..='\u{1345F}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
            | '\u{F0000}'..='\u{10FFFF}')
}

/// The text with every invisible character written as `\u{…}`.
///
/// Text without such characters comes back unchanged and uncopied. A backslash is *not* doubled; use
/// [`quoted`] where a written-out `\u{…}` must not be mistaken for an escaped one.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push_visible(&mut shown, c);
    }
    Cow::Owned(shown)
}

/// One word of a command line for a person to read: as it is when it is plain, else in double quotes with `"` and
/// `\` escaped by a backslash and invisible characters as `\u{…}`. Two different words never look the same.
///
/// This is for reading, not for a shell.
///
/// ```
/// use haversack_mcp_client::visible::quoted;
///
/// assert_eq!(quoted("--port=80"), "--port=80");
/// assert_eq!(quoted("two words"), r#""two words""#);
/// assert_eq!(quoted("a\u{202e}b"), r#""a\u{202e}b""#);
/// ```
#[must_use]
pub fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| !(c == ' ' || c == '"' || c == '\'' || is_invisible(c));
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    let mut shown = String::with_capacity(word.len() + 2);
    shown.push('"');
    for c in word.chars() {
        if matches!(c, '"' | '\\') {
            shown.push('\\');
        }
        push_visible(&mut shown, c);
    }
    shown.push('"');
    Cow::Owned(shown)
}

/// The text made visible and cut to `max_chars` characters, for messages.
pub(crate) fn short(text: &str, max_chars: usize) -> String {
    let mut shown = String::new();
    let mut rest = text.chars();
    for c in rest.by_ref().take(max_chars) {
        push_visible(&mut shown, c);
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

fn push_visible(shown: &mut String, c: char) {
    if is_invisible(c) {
        // Writing to a `String` cannot fail.
        let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
    } else {
        shown.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out_and_the_rest_is_left_alone() {
        let cases = [
            ("npx -y pkg", "npx -y pkg"),
            ("naïve — 日本 🎒", "naïve — 日本 🎒"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("\u{feff}x", "\\u{feff}x"),
            ("a\tb\nc", "a\\u{9}b\\u{a}c"),
            ("\u{1b}[2K", "\\u{1b}[2K"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("no\u{a0}break", "no\\u{a0}break"),
            ("sep\u{2028}", "sep\\u{2028}"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_quoted_word_cannot_pretend_to_be_another() {
        let words =
            ["a\u{202e}b", "a\\u{202e}b", "\"a\\u{202e}b\"", "a b", "\"a b\"", "", "\"\"", "a\\ b", "a\\"];
        let shown: Vec<_> = words.iter().map(|word| quoted(word).into_owned()).collect();
        let distinct: std::collections::BTreeSet<_> = shown.iter().collect();
        assert_eq!(distinct.len(), words.len(), "{shown:?}");
    }

    #[test]
    fn a_long_text_is_cut_with_a_mark() {
        assert_eq!(short("abcdef", 3), "abc…");
        assert_eq!(short("abc", 3), "abc");
    }
}
