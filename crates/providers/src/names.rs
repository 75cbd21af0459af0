//! Tool names and call ids as wires want them, and the way back.
//!
//! Both are pure functions of the name or id: the same history always encodes to the same bytes, and a name never
//! changes because another tool was added.

use std::borrow::Cow;
use std::sync::Arc;

use haversack_agent_core::tool::ToolSpec;
use sha2::{Digest as _, Sha256};

/// The longest tool name in characters that every API takes (OpenAI and Anthropic allow 64).
pub(crate) const MAX_NAME: usize = 64;

/// Hexadecimal digits of the hash at the end of a name that had to be changed.
const HASH_DIGITS: usize = 8;

/// A tool's name on the wire: itself if it is 1 to 64 of `[A-Za-z0-9_-]`; else cleaned, cut and marked with a hash
/// of the whole name, so that two names that clean to the same text stay two.
pub(crate) fn on_wire(name: &str) -> Cow<'_, str> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(legal) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().take(MAX_NAME - HASH_DIGITS - 1);
    let mut clean: String =
        kept.map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    clean.push('_');
    clean.push_str(&hash(name, b"0123456789abcdef", HASH_DIGITS));
    Cow::Owned(clean)
}

/// The tool that a model means by a name on the wire. A name that no tool has is handed on as it is: the loop
/// answers that there is no such tool.
pub(crate) fn from_wire(name: &str, tools: &[Arc<ToolSpec>]) -> Arc<str> {
    tools
        .iter()
        .find(|tool| &*tool.name == name)
        .or_else(|| tools.iter().find(|tool| on_wire(&tool.name) == name))
        .map_or_else(|| name.into(), |tool| Arc::clone(&tool.name))
}

/// The form of tool call ids that a server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolIdFormat {
    /// As they are.
    #[default]
    Any,
    /// Exactly nine letters or digits (Mistral).
    NineAlphanumeric,
}

impl ToolIdFormat {
    /// A call's id on the wire.
    pub(crate) fn on_wire(self, id: &str) -> Cow<'_, str> {
        const LENGTH: usize = 9;
        match self {
            Self::NineAlphanumeric
                if id.len() != LENGTH || !id.bytes().all(|b| b.is_ascii_alphanumeric()) =>
            {
                let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
                Cow::Owned(hash(id, letters, LENGTH))
            }
            _ => Cow::Borrowed(id),
        }
    }
}

/// A hash of the text, written with these letters.
fn hash(text: &str, letters: &[u8], length: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(length)
        .filter_map(|byte| letters.get(usize::from(*byte) % letters.len()))
        .map(|letter| char::from(*letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_stay_and_others_get_a_hash() {
        let long = "x".repeat(64);
        for name in ["a", "get_weather", "mcp__s__t-1", &long] {
            assert_eq!(on_wire(name), name);
        }
        for name in ["", "a.b", "a b", "grüße", &format!("{long}y")] {
            let wire = on_wire(name);
            assert!((1..=MAX_NAME).contains(&wire.len()), "{wire}");
            assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{wire}");
            assert_eq!(wire, on_wire(name));
        }
        assert_ne!(on_wire("a.b"), on_wire("a/b"));
        assert_ne!(on_wire("a.b"), "a_b");
    }

    #[test]
    fn names_come_back_from_the_wire() {
        let tools: Vec<Arc<ToolSpec>> =
            ["a.b", "a/b", "plain"].into_iter().map(|name| Arc::new(ToolSpec::new(name, ""))).collect();
        for tool in &tools {
            assert_eq!(from_wire(&on_wire(&tool.name), &tools), tool.name);
        }
        assert_eq!(&*from_wire("invented", &tools), "invented");
    }

    #[test]
    fn ids_of_nine_letters_stay_and_others_map_to_nine_letters() {
        let format = ToolIdFormat::NineAlphanumeric;
        assert_eq!(format.on_wire("abcDEF123"), "abcDEF123");
        for id in ["call_1", "", "abcDEF12-"] {
            let wire = format.on_wire(id);
            assert_eq!((wire.len(), wire.bytes().all(|b| b.is_ascii_alphanumeric())), (9, true), "{wire}");
        }
        assert_ne!(format.on_wire("call_1"), format.on_wire("call_2"));
        assert_eq!(ToolIdFormat::Any.on_wire("call_1"), "call_1");
    }
}
