//! What is shown: streamed text, whole lines, and a status that moves while one waits.
//!
//! Everything goes through [`plain`] here, in one place, so that nothing which a model, a server or a file says can drive
//! the terminal. Only this module writes escape sequences.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::chat::wrap::{Wrap, clip, fold};
use crate::terminal::plain;

/// How a text looks on a terminal with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As the terminal shows text.
    Plain,
    /// What matters most in its line.
    Strong,
    /// What may be overlooked.
    Faint,
    /// Something added, or done.
    Good,
    /// Something removed, or failed.
    Bad,
    /// Something to look at.
    Notice,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\u{1b}[1m",
            Self::Faint => "\u{1b}[2m",
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[31m",
            Self::Notice => "\u{1b}[33m",
        }
    }
}

/// How the output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Look {
    /// Whether it is a terminal: lines are broken at words, and the status is shown.
    pub terminal: bool,
    /// Whether colours are used.
    pub colours: bool,
}

impl Look {
    /// For a pipe or a file.
    pub fn pipe() -> Self {
        Self { terminal: false, colours: false }
    }

    /// For a terminal.
    pub fn terminal(colours: bool) -> Self {
        Self { terminal: true, colours }
    }
}

/// The output. Clones write to the same place.
#[derive(Clone)]
pub struct Screen(Arc<Mutex<Inner>>);

struct Inner {
    out: Box<dyn Write + Send>,
    look: Look,
    columns: Box<dyn Fn() -> Option<usize> + Send>,
    wrap: Wrap,
    /// Whether a status stands behind the cursor.
    has_status: bool,
    /// Questions that are open: while somebody types, no status moves.
    held: usize,
}

/// Columns when the terminal does not say.
const USUAL_COLUMNS: usize = 80;
/// A status that would have less room than this is not shown.
const LEAST_STATUS: usize = 16;

impl Screen {
    /// Writes to `out`; `columns` is asked again for each text, since terminals are resized.
    pub fn new(
        out: impl Write + Send + 'static,
        look: Look,
        columns: impl Fn() -> Option<usize> + Send + 'static,
    ) -> Self {
        let wrap = Wrap::default();
        let (out, columns) = (Box::new(out), Box::new(columns));
        Self(Arc::new(Mutex::new(Inner { out, look, columns, wrap, has_status: false, held: 0 })))
    }

    /// Adds to the text that streams.
    pub fn text(&self, text: &str) {
        let mut inner = self.inner();
        inner.clear_status();
        let width = inner.width();
        inner.wrap.set_width(width);
        let shown = inner.wrap.push(&plain(text));
        inner.write(&shown);
    }

    /// Ends the text that streams, so that what follows begins a line.
    pub fn end_text(&self) {
        self.inner().end_text();
    }

    /// Shows a line, or several; long ones are broken at words and moved in.
    pub fn line(&self, style: Style, text: &str) {
        self.styled_lines(&[(style, text)]);
    }

    /// Shows one line of parts in several styles, broken as a whole.
    pub fn styled_lines(&self, parts: &[(Style, &str)]) {
        let blanks = parts.first().map_or(0, |(_, text)| text.len() - text.trim_start_matches(' ').len());
        self.moved_in(parts, blanks + 2);
    }

    /// The same; lines begun by a break are moved in as far as is said.
    pub fn moved_in(&self, parts: &[(Style, &str)], hanging: usize) {
        let mut inner = self.inner();
        inner.end_text();
        let whole: String = parts.iter().map(|(_, text)| plain(text)).collect();
        let width = inner.width();
        let folded: Vec<String> = whole.split('\n').map(|line| fold(line, width, hanging)).collect();
        let shown = inner.paint(&folded.join("\n"), parts);
        inner.write(&format!("{shown}\n"));
    }

    /// Shows a line that is cut at the edge of the terminal instead of broken.
    pub fn clipped(&self, style: Style, text: &str) {
        let width = self.inner().width();
        let text = plain(text).replace(['\n', '\t'], " ");
        self.line(style, &width.map_or_else(|| text.clone(), |width| clip(&text, width)));
    }

    /// Shows a status behind the cursor, or takes it away. Not in a pipe, and not while a question is open.
    pub fn status(&self, status: Option<&str>) {
        let mut inner = self.inner();
        inner.clear_status();
        let Some(width) = inner.width().filter(|_| inner.look.terminal && inner.held == 0) else { return };
        let Some(status) = status else { return };
        // The cursor stays where the text goes on; a status that broke the line could not be taken away again.
        let gap = usize::from(inner.wrap.column() > 0);
        let room = width.saturating_sub(inner.wrap.column() + gap + 1);
        if room < LEAST_STATUS {
            return;
        }
        let faint = inner.style(Style::Faint);
        let status = clip(&plain(status), room);
        let reset = if faint.is_empty() { "" } else { "\u{1b}[0m" };
        inner.write(&format!("\u{1b}7{}{faint}{status}{reset}\u{1b}8", " ".repeat(gap)));
        inner.has_status = true;
    }

    /// Keeps the status away until the guard is dropped: somebody types.
    pub fn hold(&self) -> Held {
        let mut inner = self.inner();
        inner.end_text();
        inner.held += 1;
        Held(self.clone())
    }

    /// The columns of the terminal; `None` for a pipe.
    pub fn width(&self) -> Option<usize> {
        self.inner().width()
    }

    /// Whether a person looks at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.inner().look.terminal
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, no status is shown.
pub struct Held(Screen);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.inner().held -= 1;
    }
}

impl Inner {
    fn width(&self) -> Option<usize> {
        self.look.terminal.then(|| (self.columns)().filter(|width| *width > 0).unwrap_or(USUAL_COLUMNS))
    }

    fn end_text(&mut self) {
        self.clear_status();
        let rest = self.wrap.finish();
        self.write(&rest);
        if self.wrap.column() > 0 {
            self.write("\n");
        }
        self.wrap = Wrap::default();
    }

    fn clear_status(&mut self) {
        if std::mem::take(&mut self.has_status) {
            self.write("\u{1b}[K");
        }
    }

    fn style(&self, style: Style) -> &'static str {
        if self.look.colours { style.code() } else { "" }
    }

    /// Puts the styles back into a text that was broken: the breaks changed nothing but blanks.
    fn paint(&self, folded: &str, parts: &[(Style, &str)]) -> String {
        if !self.look.colours {
            return folded.to_owned();
        }
        let mut shown = String::new();
        let mut rest = folded.chars().peekable();
        for (style, text) in parts {
            let mut left = text.chars().filter(|c| !c.is_whitespace()).count();
            shown.push_str(style.code());
            while left > 0 {
                let Some(c) = rest.next() else { break };
                left -= usize::from(!c.is_whitespace());
                shown.push(c);
            }
            if *style != Style::Plain {
                shown.push_str("\u{1b}[0m");
            }
        }
        shown.extend(rest);
        shown
    }

    /// A closed output is no reason to fail: the run goes on, and the session is saved.
    fn write(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn screen(look: Look) -> (Screen, impl Fn() -> String) {
        let shown = Shown::default();
        let read = shown.clone();
        let take = move || String::from_utf8(std::mem::take(&mut *read.0.lock().unwrap())).unwrap();
        (Screen::new(shown, look, || Some(30)), take)
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_raw_whichever_way_it_is_shown() {
        for show in [
            |s: &Screen, t: &str| s.text(t),
            |s: &Screen, t: &str| s.line(Style::Plain, t),
            |s: &Screen, t: &str| s.clipped(Style::Bad, t),
            |s: &Screen, t: &str| s.status(Some(t)),
        ] {
            let (screen, shown) = screen(Look::terminal(false));
            show(&screen, "a\u{1b}]0;x\u{7}b\u{202e}");
            screen.end_text();
            let shown = shown().replace("\u{1b}7", "").replace("\u{1b}8", "").replace("\u{1b}[K", "");
            assert!(
                !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']) && shown.contains('\u{fffd}'),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn a_status_stands_behind_the_cursor_and_is_gone_before_text_goes_on() {
        let (screen, shown) = screen(Look::terminal(false));
        screen.text("half a ");
        screen.status(Some("waiting 1 s"));
        screen.status(Some("waiting 2 s"));
        screen.text("line\n");
        screen.status(None);
        let moved =
            ["waiting 1 s", "waiting 2 s"].map(|status| format!("\u{1b}7 {status}\u{1b}8\u{1b}[K")).concat();
        assert_eq!(shown(), format!("half a{moved} line\n"));
    }

    #[test]
    fn no_status_is_shown_in_a_pipe_in_a_narrow_rest_or_while_somebody_types() {
        let (piped, shown) = screen(Look::pipe());
        piped.status(Some("waiting"));
        assert_eq!(shown(), "");
        let (narrow, shown) = screen(Look::terminal(false));
        narrow.text("twenty characters it is ");
        narrow.status(Some("waiting"));
        assert!(!shown().contains("waiting"));
        let (asked, shown) = screen(Look::terminal(false));
        let held = asked.hold();
        asked.status(Some("waiting"));
        assert!(!shown().contains("waiting"));
        drop(held);
        asked.status(Some("waiting"));
        assert!(shown().contains("waiting"));
    }

    #[test]
    fn styles_stand_around_their_part_of_a_line_that_is_broken() {
        let (screen, shown) = screen(Look::terminal(true));
        screen.styled_lines(&[(Style::Strong, "name"), (Style::Plain, " and words that need a second line")]);
        assert_eq!(shown(), "\u{1b}[1mname\u{1b}[0m and words that need a\n  second line\n");
    }
}
