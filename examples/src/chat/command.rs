//! What a line means: a command of the chat, or something for the model.

use std::path::PathBuf;

use haversack::agent_core::policy::Mode;

/// A command of the chat itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// What can be typed.
    Help,
    /// The skills that were found.
    Skills,
    /// The servers that are configured.
    Servers,
    /// The tools on offer.
    Tools,
    /// What the conversation cost so far.
    Tokens,
    /// Make room in the context.
    Compact,
    /// Show or change what is asked about.
    Mode(Option<Mode>),
    /// Keep the session in a file, the last one where none is named.
    Save(Option<PathBuf>),
    /// Go on with a saved session.
    Resume(Option<PathBuf>),
    /// Begin an empty session.
    New,
    /// Read skills and servers anew.
    Reload,
    /// The end.
    Quit,
}

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// Nothing but blanks.
    Nothing,
    /// A command.
    Command(Command),
    /// Words for the model; `/name` and `$name` may call a skill.
    Message(String),
    /// A command that is not used like this.
    Wrong(String),
}

/// Each command: its name, its argument, what it does.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("/help", "", "this list"),
    ("/skills", "", "the skills, where they come from, and why one is not used"),
    ("/servers", "", "the MCP servers and how they are"),
    ("/tools", "", "the tools that the model may call"),
    ("/tokens", "", "what the conversation cost so far"),
    ("/compact", "", "sum up older messages, so that there is room in the context"),
    ("/mode", "[MODE]", "what is asked about: read-only, ask, accept-known or autonomous"),
    ("/save", "[FILE]", "keep the session in a file, from now on after each turn"),
    ("/resume", "[FILE]", "go on with a saved session, or after a pause"),
    ("/new", "", "begin an empty session"),
    ("/reload", "", "look for skills and servers anew"),
    ("/quit", "", "end (or Ctrl-D)"),
];

/// Reads what was typed.
pub fn parse(line: &str) -> Entered {
    let text = line.trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let file = || Some(PathBuf::from(rest)).filter(|_| !rest.is_empty());
    let command = match name {
        "" => return Entered::Nothing,
        "/help" | "/?" => Command::Help,
        "/skills" => Command::Skills,
        "/servers" => Command::Servers,
        "/tools" => Command::Tools,
        "/tokens" => Command::Tokens,
        "/compact" => Command::Compact,
        "/new" => Command::New,
        "/reload" => Command::Reload,
        "/quit" | "/exit" => Command::Quit,
        "/save" => return Entered::Command(Command::Save(file())),
        "/resume" => return Entered::Command(Command::Resume(file())),
        "/mode" if rest.is_empty() => Command::Mode(None),
        "/mode" => {
            return match mode(rest) {
                Some(mode) => Entered::Command(Command::Mode(Some(mode))),
                None => Entered::Wrong(format!(
                    "there is no mode {rest:?}: read-only, ask, accept-known or autonomous"
                )),
            };
        }
        // A skill by its name, a path, or a slip of the fingers: whoever knows the skills tells them apart.
        _ => return Entered::Message(text.to_owned()),
    };
    if rest.is_empty() || matches!(command, Command::Mode(_)) {
        Entered::Command(command)
    } else {
        Entered::Wrong(format!("{name} takes nothing behind it"))
    }
}

/// A mode by its name.
pub fn mode(name: &str) -> Option<Mode> {
    [Mode::ReadOnly, Mode::Ask, Mode::AcceptKnown, Mode::Autonomous]
        .into_iter()
        .find(|mode| mode.to_string() == name)
}

/// Whether a message looks like a command that does not exist: one word with a slash before it, and none in it.
pub fn unknown_command(message: &str) -> Option<&str> {
    let name = message.split_whitespace().next()?;
    let word = name.strip_prefix('/')?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    is_word.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_a_message_or_a_command_used_wrongly() {
        let message = |text: &str| Entered::Message(text.to_owned());
        for (line, entered) in [
            ("  ", Entered::Nothing),
            ("/skills", Entered::Command(Command::Skills)),
            (" /exit ", Entered::Command(Command::Quit)),
            ("/mode", Entered::Command(Command::Mode(None))),
            ("/mode read-only", Entered::Command(Command::Mode(Some(Mode::ReadOnly)))),
            ("/save my notes.json", Entered::Command(Command::Save(Some("my notes.json".into())))),
            ("/resume", Entered::Command(Command::Resume(None))),
            ("/field-note a heron", message("/field-note a heron")),
            ("/usr/bin is empty", message("/usr/bin is empty")),
            ("what is /skills?", message("what is /skills?")),
        ] {
            assert_eq!(parse(line), entered, "{line:?}");
        }
        for line in ["/mode silly", "/skills all", "/quit now"] {
            assert!(matches!(parse(line), Entered::Wrong(_)), "{line:?}");
        }
    }

    #[test]
    fn every_command_that_the_help_names_is_one() {
        for (name, ..) in COMMANDS {
            assert!(matches!(parse(name), Entered::Command(_)), "{name}");
        }
    }

    #[test]
    fn only_a_single_word_with_a_slash_is_taken_for_a_mistyped_command() {
        for (message, name) in
            [("/skils", Some("/skils")), ("/usr/bin is empty", None), ("/", None), ("a /b", None)]
        {
            assert_eq!(unknown_command(message), name);
        }
    }
}
