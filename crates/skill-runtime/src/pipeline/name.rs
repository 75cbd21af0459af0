//! Names of pipelines as tools.

use sha2::{Digest as _, Sha256};

/// Letters of a tool's name at most, as the narrowest provider has it.
pub const MAX_NAME: usize = 64;

/// Hex digits of the hash behind a name that had to be changed.
const SUFFIX: usize = 8;

/// A name in lower case with `_` for every hyphen, blank and dot.
pub fn sanitise(name: &str) -> String {
    let letters = name.chars().flat_map(char::to_lowercase);
    letters.map(|c| if c == '-' || c == '.' || c.is_whitespace() { '_' } else { c }).collect()
}

/// The name of a skill's pipeline as a tool: `skill_` and the skill's name.
///
/// A name of lower-case letters, digits, `_` and `-` stays as it is. Any other is [sanitised](sanitise), what a tool's
/// name cannot hold becomes `_`, and the first hex digits of the SHA-256 of the name keep it apart from others.
///
/// ```
/// use haversack_skill_runtime::pipeline::tool_name;
///
/// assert_eq!(tool_name("code-review"), "skill_code-review");
/// assert_eq!(tool_name("media-cross publish.v2"), "skill_media_cross_publish_v2_e8c55b1f");
/// ```
pub fn tool_name(skill: &str) -> String {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let fits = skill.len() + "skill_".len() <= MAX_NAME;
    if fits && !skill.is_empty() && skill.bytes().all(plain) {
        return format!("skill_{skill}");
    }
    let room = MAX_NAME - "skill_".len() - 1 - SUFFIX;
    let clean = sanitise(skill);
    let clean = clean.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' });
    let clean: String = clean.take(room).collect();
    let hash: String = hex_digest(skill.as_bytes()).chars().take(SUFFIX).collect();
    format!("skill_{clean}_{hash}")
}

/// SHA-256 in hex digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
