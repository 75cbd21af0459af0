//! Names of tools: one file decides how a skill is called over MCP.

use sha2::{Digest as _, Sha256};

/// Characters of a tool's name at most: what every provider of models takes.
pub const MAX_TOOL_NAME: usize = 64;

/// Hexadecimal digits of the hash at the end of a changed name.
const HASH_DIGITS: usize = 8;

/// Names that the server's own tools have, whether or not they are offered: a skill's name must not change when they are.
pub(crate) const RESERVED: [&str; 12] = [
    "capability_manage",
    "tree_lookup_tool",
    "tree_dump",
    "tree_list_tier",
    "tree_list_bindable",
    "skill_suggest",
    "skill_generate",
    "skill_manage",
    "skill_activate",
    "skill_parse",
    "spawn_agent",
    "secret_profile_manage",
];

/// The name of a skill's tool: the skill's own where that consists of 1 to [`MAX_TOOL_NAME`] of `[A-Za-z0-9_-]` and is not
/// the name of one of the server's own tools; else a cleaned one that ends in a hash of the skill's name.
///
/// ```
/// use haversack_skill_server::tool_name;
///
/// assert_eq!(tool_name("pdf-forms"), "pdf-forms");
/// assert_eq!(tool_name("team:release"), "team_release_3ee765ac");
/// assert_ne!(tool_name("tree_dump"), "tree_dump");
/// ```
#[must_use]
pub fn tool_name(skill: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = !skill.is_empty() && skill.len() <= MAX_TOOL_NAME && skill.chars().all(is_plain);
    if fits && !RESERVED.contains(&skill) {
        return skill.to_owned();
    }
    let kept = skill.chars().map(|c| if is_plain(c) { c } else { '_' });
    let kept: String = kept.take(MAX_TOOL_NAME - HASH_DIGITS - 1).collect();
    let hash: String = hex(skill.as_bytes()).chars().take(HASH_DIGITS).collect();
    format!("{kept}_{hash}")
}

/// The SHA-256 of some bytes as 64 lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_is_one_that_every_client_takes_and_differs_where_skills_differ() {
        let long = "x".repeat(65);
        let other = format!("{long}y");
        let skills =
            ["", "a", "a b", "a.b", "a/b", "tools/demo/hello_tool", "é", "表", "skill_manage", &long, &other];
        let names: std::collections::BTreeSet<String> = skills.iter().map(|skill| tool_name(skill)).collect();
        assert_eq!(names.len(), skills.len(), "{names:?}");
        for name in names {
            assert!((1..=MAX_TOOL_NAME).contains(&name.len()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
        }
        assert_eq!(tool_name(&"x".repeat(64)), "x".repeat(64));
    }
}
