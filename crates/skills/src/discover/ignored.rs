//! `.gitignore` files along a walk.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::discover::Seen;
use crate::folder::{Facts, Folder, Kind, Stamp};
use crate::jail;

/// The name of the files that hold the rules.
pub(crate) const IGNORE_FILE: &str = ".gitignore";

/// The rules of one folder, above those of the folders around it.
#[derive(Debug)]
pub(crate) struct Ignored {
    rules: Gitignore,
    /// The folder whose rules these are.
    base: PathBuf,
    outer: Option<Arc<Ignored>>,
}

impl Ignored {
    /// Reads the rules of a folder. A line that is no rule is passed over, as git does.
    pub(crate) fn read(text: &str, base: PathBuf, outer: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // A line that is no pattern concerns itself alone.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(rules) if !rules.is_empty() => Some(Arc::new(Self { rules, base, outer })),
            _ => outer,
        }
    }

    /// Whether a folder is ignored; the innermost rule that says anything counts.
    pub(crate) fn covers(&self, folder: &Path) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            if let Ok(relative) = folder.strip_prefix(&here.base) {
                match here.rules.matched(relative, true) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            rules = here.outer.as_deref();
        }
        false
    }

    /// Whether a folder or one of those around it is ignored.
    pub(crate) fn covers_any_above(&self, folder: &Path) -> bool {
        folder.ancestors().any(|above| self.covers(above))
    }
}

/// The text of a rules file, unless it is something else or larger than `limit` bytes.
pub(crate) fn text(mut file: File, facts: Facts, limit: u64) -> io::Result<String> {
    if facts.kind != Kind::File || facts.stamp.bytes > limit {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let bytes = jail::read(&mut file, limit, facts.stamp.bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rules of the folders above roots. The roots of a project lie below the same folders, and a monorepo has hundreds
/// of them, so each file is read once a scan.
#[derive(Debug, Default)]
pub(crate) struct Above {
    /// By the repository and the folder in it.
    known: HashMap<(PathBuf, PathBuf), Layer>,
}

#[derive(Debug, Clone)]
struct Layer {
    stamp: Option<Stamp>,
    /// The rules of the folder, above those of the folders around it.
    rules: Option<Arc<Ignored>>,
}

impl Above {
    /// The rules of the folders around `root` up to `repository`, and a note of every file that was asked for.
    pub(crate) fn of(
        &mut self,
        repository: &Path,
        root: &Path,
        file_bytes: u64,
        seen: &mut Vec<Seen>,
    ) -> Option<Arc<Ignored>> {
        let above: Vec<_> =
            root.ancestors().skip(1).take_while(|folder| folder.starts_with(repository)).collect();
        let mut rules = None;
        for folder in above.into_iter().rev() {
            let layer = self
                .known
                .entry((repository.to_path_buf(), folder.to_path_buf()))
                .or_insert_with(|| Layer::read(folder, file_bytes, rules));
            seen.push(Seen::file(folder.join(IGNORE_FILE), layer.stamp));
            rules = layer.rules.clone();
        }
        rules
    }
}

impl Layer {
    fn read(folder: &Path, file_bytes: u64, outer: Option<Arc<Ignored>>) -> Self {
        let opened = Folder::open(folder).and_then(|folder| folder.file(Path::new(IGNORE_FILE), true));
        let stamp = opened.as_ref().ok().map(|(_, facts)| facts.stamp);
        let rules = match opened.and_then(|(file, facts)| text(file, facts, file_bytes)) {
            Ok(text) => Ignored::read(&text, folder.to_path_buf(), outer),
            Err(_) => outer,
        };
        Self { stamp, rules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_above_many_roots_is_read_once() {
        let tree = tempfile::tempdir().unwrap();
        let base = tree.path();
        std::fs::create_dir_all(base.join("a/.agents/skills")).unwrap();
        std::fs::write(base.join(IGNORE_FILE), "drafts/\n").unwrap();
        let (mut above, mut seen) = (Above::default(), Vec::new());
        let mut of = |root: &str| above.of(base, &base.join(root), 1_000, &mut seen);
        let first = of("a/.agents/skills").unwrap();
        assert!(first.covers(&base.join("a/.agents/skills/drafts")));
        let second = of("a/.claude/skills").unwrap();
        assert!(Arc::ptr_eq(&first, &second), "the same rules, not the same text read again");
        assert_eq!(above.known.len(), 4, "the repository, `a`, and a folder of each root");
        assert_eq!(seen.len(), 6, "each root is told of all files that its rules depend on");
        assert!(seen.iter().filter(|seen| seen.stamp.is_some()).count() == 2);
    }
}
