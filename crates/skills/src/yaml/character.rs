//! Which characters YAML allows at all.

/// The first character that YAML 1.2 does not count as printable (production 1), and its index.
pub(crate) fn first_forbidden(bytes: &[u8]) -> Option<(usize, char)> {
    /// Wide enough for any vector unit.
    const CHUNK: usize = 64;
    let mut start = 0;
    for chunk in bytes.chunks(CHUNK) {
        if chunk.iter().fold(false, |found, byte| found | is_suspect(*byte)) {
            let found =
                (start..start + chunk.len()).find_map(|index| Some((index, forbidden_at(bytes, index)?)));
            if found.is_some() {
                return found;
            }
        }
        start += chunk.len();
    }
    None
}

/// Whether a forbidden character may begin with this byte. No branches, so that whole chunks are judged at once.
const fn is_suspect(byte: u8) -> bool {
    let is_control = (byte < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r');
    is_control | (byte == 0x7F) | (byte == 0xC2) | (byte == 0xEF)
}

/// The forbidden character that begins at `index`, if one does.
fn forbidden_at(bytes: &[u8], index: usize) -> Option<char> {
    let byte = bytes.get(index).copied().filter(|byte| is_suspect(*byte))?;
    let next = |more: usize| bytes.get(index + more).copied();
    match (byte, next(1)) {
        (0xC2, Some(control @ 0x80..=0x9F)) if control != 0x85 => Some(char::from(control)),
        (0xEF, Some(0xBF)) if next(2) == Some(0xBE) => Some('\u{fffe}'),
        (0xEF, Some(0xBF)) if next(2) == Some(0xBF) => Some('\u{ffff}'),
        (0xC2 | 0xEF, _) => None,
        _ => Some(char::from(byte)),
    }
}
