//! The rules for a skill's name.
//!
//! The open Agent Skills specification wants 1 to 64 lower-case letters and digits in runs that single hyphens
//! join, the same as the name of the folder. Letters may be of any script; [`is_portable`] is the narrower rule that
//! every host accepts.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, is_nfkc};

use crate::diagnostic::Code;

/// Longest name, in characters (Agent Skills specification).
pub const MAX_NAME_CHARS: usize = 64;

/// Whether every host accepts `name`: 1 to 64 ASCII lower-case letters and digits in runs joined by single hyphens.
///
/// ```
/// use haversack_skills::name::is_portable;
///
/// assert!(is_portable("pdf-forms-2"));
/// assert!(!is_portable("PDF"));
/// assert!(!is_portable("a--b"));
/// ```
pub fn is_portable(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name
            .split('-')
            .all(|run| !run.is_empty() && run.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

/// What the open specification finds wrong with `name` itself, in its order; empty for a right name.
///
/// Blanks around the name are not looked at, and the name is judged in its [normal form](normal). The codes are [`Code::NameEmpty`], [`Code::NameTooLong`],
/// [`Code::NameNotLowercase`], [`Code::NameEdgeHyphen`], [`Code::NameDoubleHyphen`] and [`Code::NameCharacters`].
pub fn faults(name: &str) -> Vec<Code> {
    let name = name.trim();
    if is_portable(name) {
        return Vec::new();
    }
    let name = &*normal(name);
    if name.is_empty() {
        return vec![Code::NameEmpty];
    }
    let mut found = Vec::new();
    if name.chars().count() > MAX_NAME_CHARS {
        found.push(Code::NameTooLong);
    }
    if name.chars().any(char::is_uppercase) {
        found.push(Code::NameNotLowercase);
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push(Code::NameEdgeHyphen);
    }
    if name.contains("--") {
        found.push(Code::NameDoubleHyphen);
    }
    if !name.chars().all(|c| c.is_alphanumeric() || c == '-') {
        found.push(Code::NameCharacters);
    }
    found
}

/// The form in which names and folders are compared, Unicode's NFKC (UAX 15): a folder that a file system keeps as
/// letters with separate accents, or a name in full-width letters, is the same as what it looks like.
///
/// ```
/// use haversack_skills::name::normal;
///
/// assert_eq!(normal("cafe\u{301}"), "caf\u{e9}");
/// assert_eq!(normal("pdf"), "pdf");
/// ```
pub fn normal(name: &str) -> Cow<'_, str> {
    if is_nfkc(name) { Cow::Borrowed(name) } else { Cow::Owned(name.nfkc().collect()) }
}

/// A portable name made from any text: lower-cased, every other run of characters one hyphen, cut to 64.
///
/// `None` where nothing is left, as for a name in a script without ASCII.
///
/// ```
/// use haversack_skills::name::portable;
///
/// assert_eq!(portable("My  Skill: v2").as_deref(), Some("my-skill-v2"));
/// assert_eq!(portable("技能"), None);
/// ```
pub fn portable(text: &str) -> Option<String> {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() == MAX_NAME_CHARS {
            break;
        }
    }
    let cut = out.trim_end_matches('-').len();
    out.truncate(cut);
    (!out.is_empty()).then_some(out)
}
