//! Addresses of skills and of their files: `skill://NAME/SKILL.md`, `skill://NAME/references/fields.md`.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const SCHEME: &str = "skill://";

/// Everything but the unreserved characters of RFC 3986: a part of a path that reads the same to every parser.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a file of a skill, or of the skill's folder where the path is empty.
pub(crate) fn of(skill: &str, path: &str) -> String {
    let mut uri = format!("{SCHEME}{}", utf8_percent_encode(skill, PART));
    for part in path.split('/').filter(|part| !part.is_empty()) {
        uri.push('/');
        uri.extend(utf8_percent_encode(part, PART));
    }
    uri
}

/// The skill and the path that an address names; an empty path is the skill's folder. `None` for anything that is not
/// exactly as [`of`] writes it: no other spelling of an address reaches a file.
pub(crate) fn parse(uri: &str) -> Option<(String, String)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let mut parts = rest.split('/').map(|part| percent_decode_str(part).decode_utf8().map(Cow::into_owned));
    let skill = parts.next()?.ok()?;
    let path = parts.collect::<Result<Vec<_>, _>>().ok()?;
    if path.iter().any(|part| part.is_empty() || part == "." || part == ".." || part.contains('/')) {
        return None;
    }
    let path = path.join("/");
    (of(&skill, &path) == uri).then_some((skill, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_and_no_other_spelling_reaches_a_file() {
        for (skill, path, uri) in [
            ("forms", "SKILL.md", "skill://forms/SKILL.md"),
            ("forms", "", "skill://forms"),
            ("forms", "a b/ü.md", "skill://forms/a%20b/%C3%BC.md"),
            ("team:x", "a#b?c", "skill://team%3Ax/a%23b%3Fc"),
        ] {
            assert_eq!(of(skill, path), uri);
            assert_eq!(parse(uri), Some((skill.to_owned(), path.to_owned())));
        }
        for uri in [
            "skill://forms/",
            "skill://forms/../other/SKILL.md",
            "skill://forms/%2e%2e/x",
            "skill://forms/a%2Fb",
            "skill://forms/a//b",
            "skill://forms/./a",
            "skill://forms/%53KILL.md",
            "skill://forms/%ff",
            "Skill://forms/SKILL.md",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(parse(uri), None, "{uri}");
        }
    }
}
