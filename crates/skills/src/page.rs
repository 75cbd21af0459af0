//! Pages: a long text is handed out piece by piece, never cut.
//!
//! A page ends at a line where there is one, else at a word, else at a character; it holds at most a given number of
//! characters; and the pages of a text, put one after another, are the text.
//!
//! ```
//! use haversack_skills::page::page;
//!
//! let second = page("one\ntwo\nthree\n", 2, 9).unwrap();
//! assert_eq!((second.text, second.number, second.of), ("three\n", 2, 2));
//! assert_eq!(page("one", 2, 9), Err(1));
//! ```

/// One page of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<'a> {
    /// What is on it.
    pub text: &'a str,
    /// Its number, from 1.
    pub number: usize,
    /// How many pages the text has.
    pub of: usize,
}

/// Page `number` (from 1) of a text, each of at most `chars` characters. An empty text has one empty page.
///
/// # Errors
///
/// How many pages there are, when there is no such page.
pub fn page(text: &str, number: usize, chars: usize) -> Result<Page<'_>, usize> {
    let mut found = None;
    let mut rest = text;
    let mut count = 0;
    loop {
        let (head, tail) = cut(rest, chars.max(1));
        count += 1;
        if count == number {
            found = Some(head);
        }
        if tail.is_empty() {
            break;
        }
        rest = tail;
    }
    found.map(|text| Page { text, number, of: count }).ok_or(count)
}

/// The first page of a text and what is left.
fn cut(text: &str, chars: usize) -> (&str, &str) {
    let Some((limit, _)) = text.char_indices().nth(chars) else { return (text, "") };
    let (head, _) = text.split_at(limit);
    // A line end in the first half would make for a page that is hardly one.
    let late = |end: &usize| *end * 2 >= limit;
    let line = head.rfind('\n').map(|at| at + 1).filter(late);
    let word = || head.rfind([' ', '\t']).map(|at| at + 1).filter(late);
    text.split_at(line.or_else(word).unwrap_or(limit))
}

/// The first `chars` characters of a line of text, with an ellipsis as the last of them when something was left out.
pub(crate) fn shorten(text: &str, chars: usize) -> (String, bool) {
    if text.char_indices().nth(chars).is_none() {
        return (text.to_owned(), false);
    }
    let mut short: String = text.chars().take(chars.saturating_sub(1)).collect();
    if chars > 0 {
        short.truncate(short.trim_end().len());
        short.push('…');
    }
    (short, true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_ends_at_a_line_then_a_word_then_a_character() {
        for (text, chars, want) in [
            ("", 5, vec![""]),
            ("abc", 3, vec!["abc"]),
            ("one\ntwo\nthree\n", 9, vec!["one\ntwo\n", "three\n"]),
            ("one two three", 9, vec!["one two ", "three"]),
            ("abcdefgh", 3, vec!["abc", "def", "gh"]),
            // A line end too early is passed over for a word.
            ("a\nbcd efghij", 8, vec!["a\nbcd ", "efghij"]),
            ("äöü\nßéè", 5, vec!["äöü\n", "ßéè"]),
        ] {
            let pages: Vec<_> = (1..=want.len()).map(|n| page(text, n, chars).unwrap().text).collect();
            assert_eq!(pages, want, "{text:?}");
            assert_eq!(page(text, want.len() + 1, chars), Err(want.len()));
            assert_eq!(page(text, 0, chars), Err(want.len()));
        }
    }

    #[test]
    fn a_short_text_is_left_as_it_is_and_a_long_one_says_so() {
        assert_eq!(shorten("abc", 3), ("abc".into(), false));
        assert_eq!(shorten("abcd", 3), ("ab…".into(), true));
        assert_eq!(shorten("ab cd", 4), ("ab…".into(), true));
        assert_eq!(shorten("äöüß", 3), ("äö…".into(), true));
        assert_eq!(shorten("a", 0), (String::new(), true));
    }

    proptest! {
        #[test]
        fn the_pages_of_a_text_are_the_text(text in "(\\PC|\n| ){0,400}", chars in 1usize..50) {
            let of = page(&text, 1, chars).unwrap().of;
            let mut whole = String::new();
            for number in 1..=of {
                let page = page(&text, number, chars).unwrap();
                prop_assert!(page.text.chars().count() <= chars);
                prop_assert_eq!(page.of, of);
                whole.push_str(page.text);
            }
            prop_assert_eq!(whole, text);
        }

        #[test]
        fn a_shortened_text_has_at_most_its_characters(text in "\\PC{0,60}", chars in 0usize..40) {
            let (short, cut) = shorten(&text, chars);
            prop_assert!(short.chars().count() <= chars);
            prop_assert_eq!(cut, text.chars().count() > chars);
        }
    }
}
