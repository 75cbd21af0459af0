//! A user calls a skill by name: `/name arguments` or `$name arguments`.
//!
//! The host decides what the user typed; this turns it into the message for the model. In the skill's text
//! `$ARGUMENTS` stands for all that follows the name, `$1`, `$2`, … for its words (quotes keep words together). They
//! are put in in one pass: what a value holds is never looked at again, and a number without a word stays as written.

use haversack_agent_core::message::{Block, Message, Role};
use haversack_skills::{LoadError, Reader};

/// The longest name that a skill can have, in characters (the Agent Skills format).
const MAX_NAME_LEN: usize = 64;

/// A skill that the user calls, with what follows its name.
///
/// ```
/// use haversack_tool_adapter::invocation::Invocation;
///
/// let call = Invocation::parse("/field-note two herons").unwrap();
/// assert_eq!((call.name, call.arguments), ("field-note", "two herons"));
/// assert_eq!(Invocation::parse("/etc/passwd holds no skill"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation<'a> {
    /// The name.
    pub name: &'a str,
    /// What follows it, without blanks around it.
    pub arguments: &'a str,
}

impl<'a> Invocation<'a> {
    /// Reads what a user typed; `None` when it does not have the form of a call. Whether there is such a skill is
    /// [`expand`](Self::expand)'s to say.
    pub fn parse(text: &'a str) -> Option<Self> {
        let rest = text.trim_start().strip_prefix(['/', '$'])?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(is_name);
        fits.then(|| Self { name, arguments: arguments.trim() })
    }

    /// The message that starts a run with this skill: its text with the arguments put in, and behind it the
    /// arguments as the user wrote them, unless the text has taken them up.
    ///
    /// # Errors
    ///
    /// When there is no such skill for the user, or it cannot be read; see [`LoadError`].
    pub fn expand(&self, reader: &Reader) -> Result<Message, LoadError> {
        let loaded = reader.load_for_user(self.name, 1)?;
        if loaded.is_pointer {
            let text = format!("Use the skill {} again. {}", self.name, self.arguments);
            return Ok(Message::user(text.trim_end()));
        }
        let (text, took_up) = substitute(&loaded.text, self.arguments);
        let mut blocks = vec![Block::text(text)];
        if !self.arguments.is_empty() && !took_up {
            blocks.push(Block::text(format!("\n\n{}", self.arguments)));
        }
        Ok(Message::new(Role::User, blocks))
    }
}

/// Puts arguments into a text, and says whether there was a place for them.
fn substitute(text: &str, arguments: &str) -> (String, bool) {
    let words = words(arguments);
    let mut out = String::with_capacity(text.len() + arguments.len());
    let mut took_up = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let digits = after.chars().take_while(char::is_ascii_digit).count();
        let (number, behind) = after.split_at_checked(digits).unwrap_or((after, ""));
        let word = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).and_then(|n| words.get(n));
        if let Some(behind) = after.strip_prefix("ARGUMENTS") {
            out.push_str(arguments);
            (took_up, rest) = (true, behind);
        } else if let Some(word) = word {
            out.push_str(word);
            (took_up, rest) = (true, behind);
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    (out, took_up)
}

/// Splits at blanks; single or double quotes keep what is between them together. An open quote ends with the text.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in arguments.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_slash_or_a_dollar_and_a_legal_name() {
        for (text, call) in [
            ("/forms", Some(("forms", ""))),
            ("  $forms  a  b ", Some(("forms", "a  b"))),
            ("/forms\nsecond line", Some(("forms", "second line"))),
            ("/", None),
            ("forms", None),
            ("/usr/bin", None),
            ("$HOME is set", None),
            ("/a.b", None),
        ] {
            let read = Invocation::parse(text).map(|c| (c.name, c.arguments));
            assert_eq!(read, call, "{text:?}");
        }
        assert_eq!(Invocation::parse(&format!("/{}", "a".repeat(65))), None);
    }

    #[test]
    fn arguments_are_put_in_once_and_what_they_hold_is_not_looked_at_again() {
        for (text, arguments, result) in [
            ("Do $ARGUMENTS.", "a b", "Do a b."),
            ("$1 and $2", "a b", "a and b"),
            ("$1 and $2", "a", "a and $2"),
            ("$1", "$2 b", "$2"),
            ("$ARGUMENTS", "$ARGUMENTS", "$ARGUMENTS"),
            ("$10", "a", "$10"),
            ("$0 $ $x $", "a", "$0 $ $x $"),
            ("$1|$2", "'a b' \"c d\"", "a b|c d"),
            ("$1|$2", "'' x", "|x"),
            ("$1", "ü'ö ä", "üö ä"),
            ("cost: 5$", "a", "cost: 5$"),
        ] {
            assert_eq!(substitute(text, arguments).0, result, "{text:?} {arguments:?}");
        }
    }
}
