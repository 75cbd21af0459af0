//! Takes `<think>…</think>` out of the start of a text that arrives in pieces.
//!
//! Only the start counts: a model that writes about the tags later means the text. A closing tag without an opening
//! one closes a block that the server's chat template opened; what came before it was reasoning after all.

/// What a piece of text turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
    /// All the text so far was reasoning.
    WasReasoning,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The splitter of one answer.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    state: State,
    /// What may be the start of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing but white space came.
    #[default]
    Start,
    /// Text without an opening tag: a closing one may still come.
    Open,
    Thinking,
    /// Behind the closing tag, before the first letter.
    Closed,
    Text,
}

impl ThinkSplitter {
    /// Whether everything that will come is text, so that the splitter has nothing to do.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Text && self.held.is_empty()
    }

    /// Takes a piece.
    pub(crate) fn feed(&mut self, piece: &str, mut out: impl FnMut(Part<'_>)) {
        let held = std::mem::take(&mut self.held);
        let joined = if held.is_empty() { None } else { Some(held + piece) };
        let mut rest = joined.as_deref().unwrap_or(piece);
        while !rest.is_empty() {
            match self.step(rest, &mut out) {
                Some(after) => rest = after,
                None => {
                    self.held = rest.to_owned();
                    return;
                }
            }
        }
    }

    /// Gives out what was held back: the text is over.
    pub(crate) fn finish(&mut self, mut out: impl FnMut(Part<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            out(if self.state == State::Thinking { Part::Reasoning(&held) } else { Part::Text(&held) });
        }
    }

    /// Takes the start of the text and says what is left; nothing when more is needed to tell.
    fn step<'a>(&mut self, text: &'a str, out: &mut impl FnMut(Part<'_>)) -> Option<&'a str> {
        match self.state {
            State::Start => {
                let trimmed = text.trim_start();
                if let Some(after) = trimmed.strip_prefix(OPEN) {
                    self.state = State::Thinking;
                    return Some(after);
                }
                if OPEN.starts_with(trimmed) {
                    return None;
                }
                self.state = State::Open;
                Some(text)
            }
            State::Open | State::Thinking => {
                let thinking = self.state == State::Thinking;
                let mut give = |part: &str| {
                    if !part.is_empty() {
                        out(if thinking { Part::Reasoning(part) } else { Part::Text(part) });
                    }
                };
                if let Some((before, after)) = text.split_once(CLOSE) {
                    give(before);
                    if !thinking {
                        out(Part::WasReasoning);
                    }
                    self.state = State::Closed;
                    return Some(after);
                }
                let (sure, maybe) = split_before_partial(text, CLOSE);
                give(sure);
                self.held.push_str(maybe);
                Some("")
            }
            State::Closed => {
                let trimmed = text.trim_start();
                if !trimmed.is_empty() {
                    self.state = State::Text;
                }
                Some(trimmed)
            }
            State::Text => {
                out(Part::Text(text));
                Some("")
            }
        }
    }
}

/// Cuts off an end that may be the start of a tag.
fn split_before_partial<'a>(text: &'a str, tag: &str) -> (&'a str, &'a str) {
    let at = (1..tag.len().min(text.len() + 1))
        .rev()
        .filter_map(|length| Some((tag.get(..length)?, text.len() - length)))
        .find(|(start, _)| text.ends_with(start))
        .map_or(text.len(), |(_, at)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reasoning and the text of an answer that comes in pieces of this many characters.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut reasoning, mut answer) = (String::new(), String::new());
        let mut splitter = ThinkSplitter::default();
        let mut take = |part: Part<'_>| match part {
            Part::Text(text) => answer.push_str(text),
            Part::Reasoning(text) => reasoning.push_str(text),
            Part::WasReasoning => reasoning = std::mem::take(&mut answer),
        };
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            splitter.feed(&piece.iter().collect::<String>(), &mut take);
        }
        splitter.finish(&mut take);
        (reasoning, answer)
    }

    #[test]
    fn tags_at_the_start_are_taken_out_however_the_text_is_cut() {
        for (text, reasoning, answer) in [
            ("<think>a</think>b", "a", "b"),
            ("\n <think>\na\n</think>\n\nb", "\na\n", "b"),
            ("a</think>b", "a", "b"),
            ("a</thinkb", "", "a</thinkb"),
            ("a <think>b</think>", "a <think>b", ""),
            ("<think>a", "a", ""),
            ("<think>a</thi", "a</thi", ""),
            ("<thin", "", "<thin"),
            ("<think></think>b</think>c", "", "b</think>c"),
            ("grüße", "", "grüße"),
            ("", "", ""),
        ] {
            for size in 1..=text.chars().count().max(1) {
                assert_eq!(
                    split(text, size),
                    (reasoning.to_owned(), answer.to_owned()),
                    "{text:?} in {size}s"
                );
            }
        }
    }
}
