//! One `SKILL.md`: opened once, its head read, judged.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::{Document, ParseOptions};
use crate::fence;
use crate::folder::{Folder, Kind};
use crate::skill::{FILE_NAME, Found, Skill};

/// Bytes read at first. Of ten thousand real files fourteen have a longer front matter.
const HEAD: usize = 2 * 1024;

/// What is at a place where a skill might be.
#[derive(Debug)]
pub(crate) enum Probe {
    /// A skill, and its file relative to the root.
    Skill(Arc<Skill>, PathBuf),
    /// A folder without a `SKILL.md`.
    Empty,
    Failed(io::Error),
}

/// A place where a skill might be.
pub(crate) struct Place<'a> {
    /// Relative to the folder that the walk holds open.
    pub(crate) relative: &'a Path,
    /// The skill's folder as people know it.
    pub(crate) folder: PathBuf,
    pub(crate) found: Found,
    /// Whether the file itself may be a link.
    pub(crate) links: bool,
}

/// Looks for a skill. `buffer` is scratch space, kept between calls.
pub(crate) fn probe(root: &Folder, place: Place<'_>, file_bytes: u64, buffer: &mut Vec<u8>) -> Probe {
    let path = join(place.relative, Path::new(FILE_NAME));
    let (mut file, facts) = match root.file(&path, place.links) {
        Ok(opened) => opened,
        Err(error) if is_absence(&error) => return Probe::Empty,
        Err(error) => return Probe::Failed(error),
    };
    let Place { folder, mut found, .. } = place;
    found.stamp = facts.stamp;
    let unusable = |code, message: String| {
        let problem = Diagnostic::new(code, Severity::Error, 1, 1, message);
        Probe::Skill(Arc::new(Skill::unusable(folder.clone(), found, vec![problem])), path.clone())
    };
    if facts.kind != Kind::File {
        return unusable(
            Code::FrontMatterMissing,
            format!("{FILE_NAME} is not a file; put the skill's text there"),
        );
    }
    if facts.stamp.bytes > file_bytes {
        let message = format!(
            "{} bytes are more than the {file_bytes} a {FILE_NAME} may have; move text to other files",
            facts.stamp.bytes
        );
        return unusable(Code::TooLarge, message);
    }
    let head = match read_head(&mut file, facts.stamp.bytes, file_bytes, buffer) {
        Ok(head) => head,
        Err(error) => return Probe::Failed(error),
    };
    Probe::Skill(Arc::new(judge(folder, found, head)), path)
}

/// Judges the text of a `SKILL.md`, or of its head.
fn judge(folder: PathBuf, found: Found, bytes: &[u8]) -> Skill {
    let document = Document::parse(bytes, &ParseOptions::new().with_max_bytes(usize::MAX));
    match document.fields() {
        Some(fields) => Skill::judge(folder, found, fields, Vec::new()),
        None => Skill::unusable(folder, found, document.diagnostics().to_vec()),
    }
}

/// One path behind another, in one allocation of just that size: a scan makes three of them a skill.
pub(crate) fn join(base: &Path, below: &Path) -> PathBuf {
    let bytes = |path: &Path| path.as_os_str().len();
    let separator = usize::from(bytes(base) > 0 && bytes(below) > 0);
    let mut path = PathBuf::with_capacity(bytes(base) + separator + bytes(below));
    path.push(base);
    if bytes(below) > 0 {
        path.push(below);
    }
    path
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Reads until the front matter is whole, the file ends or the limit is reached: one call of the system for nearly
/// every file.
fn read_head<'b>(
    file: &mut impl Read,
    bytes: u64,
    limit: u64,
    buffer: &'b mut Vec<u8>,
) -> io::Result<&'b [u8]> {
    let whole = usize::try_from(bytes.min(limit)).unwrap_or(usize::MAX);
    let mut filled = 0;
    let mut want = HEAD;
    let end = loop {
        // The buffer only grows, so that it is filled with zeros once and not for every file.
        let room = want.min(whole);
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let read = match file.read(buffer.get_mut(filled..room).unwrap_or_default()) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += read;
        // A file that was cut short meanwhile ends before its size.
        let ended = read == 0 || filled >= whole;
        if let Some(end) = front_matter_end(buffer.get(..filled).unwrap_or_default(), ended) {
            break end;
        }
        if ended {
            break filled;
        }
        if filled >= want {
            want = want.saturating_mul(4);
        }
    };
    Ok(buffer.get(..end).unwrap_or_default())
}

/// Where the line that closes the front matter ends, if it is there. A last line without an end counts when the file
/// ends with it.
fn front_matter_end(bytes: &[u8], ended: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let length = memchr::memchr2(b'\n', b'\r', rest).map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or(rest);
        at += length;
        let complete = ended || line.ends_with(b"\n") || line.ends_with(b"\r");
        let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let is_fence = complete
            && text.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace));
        if !is_fence {
            // No front matter: what there is to say can be said about the head.
            return complete.then_some(at);
        }
        let start = if line.ends_with(b"\r") && bytes.get(at) == Some(&b'\n') { at + 1 } else { at };
        let end = fence::closing(bytes, start)?.end;
        // A line that ends with the buffer may go on behind it.
        let is_whole = ended || matches!(bytes.get(end - 1), Some(b'\n' | b'\r'));
        return is_whole.then_some(end);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_ends_with_the_closing_fence_however_far_that_is() {
        for padding in [0, 10, HEAD - 20, HEAD - 10, HEAD, 5 * HEAD] {
            let head = format!("---\nname: a\nx: {}\n---\n", "y".repeat(padding));
            let mut buffer = Vec::new();
            let text = format!("{head}body\n---\nmore");
            let got = read_head(&mut text.as_bytes(), text.len() as u64, 1 << 20, &mut buffer).unwrap();
            assert_eq!(std::str::from_utf8(got).unwrap(), head);
        }
    }

    #[test]
    fn a_head_that_never_ends_stops_at_the_limit_or_the_end() {
        let mut buffer = Vec::new();
        for (text, limit, want) in
            [("---\nname: a\n", 100, 12), (&*format!("---\n{}", "a".repeat(100_000)), 50_000, 50_000)]
        {
            let got = read_head(&mut text.as_bytes(), text.len() as u64, limit, &mut buffer).unwrap();
            assert_eq!(got.len(), want);
        }
    }

    #[test]
    fn carriage_returns_a_byte_order_mark_and_blank_lines_are_no_obstacle() {
        for text in
            ["\u{feff}---\r\nname: a\r\n---\r\n", "\n\n---  \nname: a\n---\t\n", "---\rname: a\r---\r"]
        {
            assert_eq!(
                front_matter_end(format!("{text}body").as_bytes(), true),
                Some(text.len()),
                "{text:?}"
            );
        }
        assert_eq!(front_matter_end(b"text\n---\n", true), Some(5));
        assert_eq!(front_matter_end(b"---\n ---\n----\n", true), None);
        assert_eq!(front_matter_end(b"---\nname: a\n---", true), Some(15));
        // Cut by the buffer: the line may go on.
        assert_eq!(front_matter_end(b"---\nname: a\n---", false), None);
    }
}
