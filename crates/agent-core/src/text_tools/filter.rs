//! Keeping markup out of the preview of an answer.

use crate::text_tools::parse::OPEN;

/// Holds back whatever may be the beginning of a call.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// What was not shown yet.
    held: String,
    /// Whether the opening tag, or the beginning of bare JSON, is held: everything after it is, too.
    closed: bool,
    /// Whether anything but white space was shown.
    shown: bool,
}

impl Filter {
    /// Takes more text, gives back what can be shown now. `bare` also holds back an answer that begins like JSON.
    pub(super) fn push(&mut self, delta: &str, bare: bool) -> String {
        self.held.push_str(delta);
        if self.closed {
            return String::new();
        }
        if bare && !self.shown && may_be_bare(&self.held) {
            return String::new();
        }
        let show = match self.held.find(OPEN) {
            Some(start) => {
                self.closed = true;
                start
            }
            None => self.held.len() - partial_tag(&self.held),
        };
        let rest = self.held.split_off(show);
        let visible = std::mem::replace(&mut self.held, rest);
        self.shown |= !visible.trim().is_empty();
        visible
    }

    /// Ends a block: gives back all that was held.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(self).held
    }
}

/// How many bytes at the end may be the beginning of the tag.
fn partial_tag(text: &str) -> usize {
    (1..OPEN.len()).rev().find(|n| OPEN.get(..*n).is_some_and(|start| text.ends_with(start))).unwrap_or(0)
}

/// Whether a text that begins like this may be nothing but JSON, in a fence or not.
fn may_be_bare(text: &str) -> bool {
    let text = text.trim_start();
    let Some(fenced) = text.strip_prefix("```") else {
        return text.is_empty() || text.starts_with(['{', '[']) || "```".starts_with(text);
    };
    let language = fenced.lines().next().unwrap_or_default();
    let json = fenced.get(language.len()..).unwrap_or_default().trim_start();
    let fits = if json.is_empty() && !fenced.contains('\n') {
        "json".starts_with(language.trim_end())
    } else {
        matches!(language.trim_end(), "" | "json")
    };
    fits && (json.is_empty() || json.starts_with(['{', '[']))
}
