//! Media types of the files that skills bring along, by the ends of their names.

const TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type of a file of this name; that of unknown bytes where the name says nothing.
pub(super) fn mime_type(path: &str) -> &'static str {
    let end = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let at = TYPES.binary_search_by(|(known, _)| (*known).cmp(end.as_str()));
    at.ok().and_then(|at| TYPES.get(at)).map_or("application/octet-stream", |(_, mime)| mime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_the_search_and_the_end_of_a_name_decides() {
        assert!(TYPES.is_sorted());
        for (path, mime) in [
            ("SKILL.md", "text/markdown"),
            ("a/b.PNG", "image/png"),
            ("Makefile", "application/octet-stream"),
            ("x.unknown", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(mime_type(path), mime, "{path}");
        }
    }
}
