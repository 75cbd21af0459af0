//! `.gitignore` files along a walk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

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
