//! Breaking text at words while it streams.

use unicode_width::UnicodeWidthChar as _;

/// Columns of a tab; tabs become blanks, so that columns can be counted.
const TAB: usize = 4;

/// Breaks text at words as it comes in pieces. A word is held back until its end is known.
#[derive(Clone, Debug, Default)]
pub struct Wrap {
    /// Columns that the terminal has; `None` breaks nothing and holds nothing back.
    width: Option<usize>,
    /// Blanks at the start of a line that was begun by a break.
    hanging: usize,
    /// The column of the next character.
    column: usize,
    gap: usize,
    word: String,
    word_width: usize,
    /// Whether the start of the word is out already, since it is longer than a line.
    overlong: bool,
}

impl Wrap {
    /// For a terminal of this many columns.
    pub fn new(width: Option<usize>) -> Self {
        Self { width, ..Self::default() }
    }

    /// Sets how far lines are moved in that were begun by a break.
    pub fn with_hanging(mut self, blanks: usize) -> Self {
        self.hanging = blanks;
        self
    }

    /// Sets the width anew: terminals are resized.
    pub fn set_width(&mut self, width: Option<usize>) {
        self.width = width;
    }

    /// The column of the next character, counted from 0.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Takes a piece, and gives what can be shown by now.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.flush(&mut out);
                    out.push('\n');
                    (self.column, self.gap) = (0, 0);
                }
                ' ' | '\t' => {
                    self.flush(&mut out);
                    self.gap += if c == '\t' { TAB } else { 1 };
                }
                _ => self.add(c, &mut out),
            }
        }
        if self.width.is_none() {
            self.flush(&mut out);
            self.blanks(&mut out);
        }
        out
    }

    /// Gives what was held back. Blanks at the end of a text are dropped.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.flush(&mut out);
        self.gap = 0;
        out
    }

    fn add(&mut self, c: char, out: &mut String) {
        let columns = c.width().unwrap_or(0);
        self.word.push(c);
        self.word_width += columns;
        let usable = self.width.map_or(usize::MAX, |width| width.saturating_sub(self.hanging).max(1));
        if self.overlong || self.word_width > usable {
            // The terminal breaks it where it likes, so that an address stays in one piece for a click or a copy.
            self.flush(out);
            self.overlong = true;
        } else if columns > 1 {
            // Wide characters have no blanks between words, and may be broken anywhere.
            self.flush(out);
        }
    }

    fn flush(&mut self, out: &mut String) {
        let continues = std::mem::take(&mut self.overlong);
        if self.word.is_empty() {
            return;
        }
        let end = self.column + self.gap + self.word_width;
        let breaks = !continues && self.column > 0 && self.width.is_some_and(|width| end > width);
        if breaks {
            out.push('\n');
            (self.column, self.gap) = (0, self.hanging);
        }
        self.blanks(out);
        out.push_str(&self.word);
        self.column += self.word_width;
        if let Some(width) = self.width.filter(|width| self.column > *width) {
            self.column %= width;
        }
        self.word.clear();
        self.word_width = 0;
    }

    fn blanks(&mut self, out: &mut String) {
        out.extend(std::iter::repeat_n(' ', self.gap));
        self.column += self.gap;
        self.gap = 0;
    }
}

/// A whole text, broken for this many columns; lines begun by a break are moved in.
pub fn fold(text: &str, width: Option<usize>, hanging: usize) -> String {
    let mut wrap = Wrap::new(width).with_hanging(hanging);
    let mut out = wrap.push(text);
    out.push_str(&wrap.finish());
    out
}

/// The start of a text that fits into this many columns, with a mark where something is left out.
pub fn clip(text: &str, columns: usize) -> String {
    let total: usize = text.chars().map(|c| c.width().unwrap_or(0)).sum();
    if total <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let mut start: String = text.chars().take_while(fits).collect();
    start.push('…');
    start
}

/// The columns that a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_words_wherever_the_pieces_are_cut() {
        for (text, width, lines) in [
            ("one two three four", 9, "one two\nthree\nfour"),
            ("one two\n  three four", 9, "one two\n  three\nfour"),
            ("exact fit here", 9, "exact fit\nhere"),
            ("a https://example.org/a/long/path b", 10, "a\nhttps://example.org/a/long/path b"),
            ("日本語の文章です", 6, "日本語\nの文章\nです"),
            ("ends with blanks   ", 40, "ends with blanks"),
            ("", 10, ""),
            ("\n\n", 10, "\n\n"),
        ] {
            assert_eq!(fold(text, Some(width), 0), lines, "{text:?}");
            let mut wrap = Wrap::new(Some(width));
            let mut by_char: String = text.chars().map(|c| wrap.push(c.encode_utf8(&mut [0; 4]))).collect();
            by_char.push_str(&wrap.finish());
            assert_eq!(by_char, lines, "{text:?} in single characters");
        }
    }

    #[test]
    fn without_a_width_everything_goes_through_at_once_and_unchanged() {
        let mut wrap = Wrap::new(None);
        assert_eq!(wrap.push("half a wo"), "half a wo");
        assert_eq!(wrap.push("rd, and blanks  "), "rd, and blanks  ");
        assert_eq!(wrap.finish(), "");
    }

    #[test]
    fn lines_begun_by_a_break_are_moved_in() {
        assert_eq!(fold("- one two three", Some(9), 2), "- one two\n  three");
    }

    #[test]
    fn no_line_of_ordinary_words_is_wider_than_the_terminal() {
        let text = "the quick brown fox jumps über den trägen Hund and 狐 goes on ".repeat(8);
        for width in 8..60 {
            let folded = fold(&text, Some(width), 2);
            assert!(folded.lines().all(|line| columns(line) <= width), "{width}: {folded}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&folded), words(&text));
        }
    }

    #[test]
    fn clipping_counts_columns_and_shows_that_it_clipped() {
        for (text, columns, clipped) in
            [("short", 5, "short"), ("longer", 5, "long…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…")]
        {
            assert_eq!(clip(text, columns), clipped);
        }
    }
}
