//! Plain questions on a terminal, answered by lines: no cursor control, so it works in a pipe as well.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

/// Shows text, asks questions and reads answers. Cheap to clone; questions wait for each other.
#[derive(Clone)]
pub struct Terminal {
    lines: Arc<Mutex<mpsc::Receiver<String>>>,
    assume_yes: bool,
    sink: Arc<dyn Fn(&str) + Send + Sync>,
}

/// What came as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Yes,
    /// Yes, and do not ask again in this session.
    Always,
    /// No, with a reason or without one.
    No(Option<String>),
    /// Nobody answers: the input is at its end.
    Nobody,
}

impl Terminal {
    /// Reads answers from standard input, or takes every answer to be yes.
    pub fn new(assume_yes: bool) -> Self {
        // A blocked read cannot be cancelled, so a thread of its own reads, and is left behind at the end.
        let (sender, lines) = mpsc::channel(16);
        if !assume_yes {
            std::thread::spawn(move || {
                for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                    if sender.blocking_send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self { lines: Arc::new(Mutex::new(lines)), assume_yes, sink: Arc::new(show) }
    }

    /// Takes its answers from a list and gives what it shows to a function, for tests.
    pub fn scripted(answers: &[&str], sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (sender, lines) = mpsc::channel(answers.len().max(1));
        for answer in answers {
            // The channel has room for all of them.
            let _ = sender.try_send((*answer).to_owned());
        }
        Self { lines: Arc::new(Mutex::new(lines)), assume_yes: false, sink: Arc::new(sink) }
    }

    /// Shows a text, made [`plain`]: whatever part of it came from outside, it cannot drive the terminal.
    pub fn show(&self, text: &str) {
        (self.sink)(&plain(text));
    }

    /// Shows a question and waits for its answer. `choices` is shown behind it, for example `[y/n]`.
    ///
    /// # Cancel safety
    ///
    /// A question that is dropped unanswered takes no line away from the next one.
    pub async fn ask(&self, question: &str, choices: &str) -> Answer {
        let mut lines = self.lines.lock().await;
        self.show(&format!("{question} {choices} "));
        if self.assume_yes {
            self.show("yes (--yes)\n");
            return Answer::Yes;
        }
        loop {
            let Some(line) = lines.recv().await else {
                self.show("no answer (end of input)\n");
                return Answer::Nobody;
            };
            match parse(&line) {
                Some(answer) => return answer,
                None => self.show(&format!("please answer {choices} ")),
            }
        }
    }
}

fn parse(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(rest.trim().to_owned()).filter(|r| !r.is_empty());
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "a" | "always" => Some(Answer::Always),
        "n" | "no" => Some(Answer::No(reason)),
        _ => None,
    }
}

/// Writes to standard output and flushes; a closed output is no reason to fail.
fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Replaces control characters and those that turn the direction of text, so that what a model, a server or a file's
/// name says can neither drive the terminal nor show a question in another order than it is written.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if drives(c) { '\u{fffd}' } else { c }).collect()
}

fn drives(c: char) -> bool {
    // The marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX 9), and the two
    // separators that some terminals break lines at.
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// Ctrl-C, or the signal with which supervisors end a program: without an own handler the servers would be left behind.
pub async fn asked_to_stop() {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    let interrupted = async {
        // Without a handler for the signal, Ctrl-C ends the process as usual.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_one_letter_or_a_word_and_a_no_may_have_a_reason() {
        for (line, answer) in [
            ("y", Some(Answer::Yes)),
            (" YES ", Some(Answer::Yes)),
            ("a", Some(Answer::Always)),
            ("n", Some(Answer::No(None))),
            ("n  not today ", Some(Answer::No(Some("not today".into())))),
            ("", None),
            ("maybe", None),
        ] {
            assert_eq!(parse(line), answer, "{line:?}");
        }
    }

    #[test]
    fn what_drives_the_terminal_or_turns_text_is_shown_as_replacements() {
        for (text, shown) in [
            ("a\u{1b}[2Jb\n\t", "a\u{fffd}[2Jb\n\t"),
            ("\u{9b}31m\u{7}\r\u{8}", "\u{fffd}31m\u{fffd}\u{fffd}\u{fffd}"),
            ("rm \u{202e}txt.x\u{2066}\u{200f}", "rm \u{fffd}txt.x\u{fffd}\u{fffd}"),
            ("éü 日本 \u{1f600}", "éü 日本 \u{1f600}"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[tokio::test]
    async fn nothing_reaches_the_terminal_raw_neither_text_nor_question() {
        let shown = Arc::new(std::sync::Mutex::new(String::new()));
        let sink = shown.clone();
        let terminal = Terminal::scripted(&["y"], move |text| sink.lock().unwrap().push_str(text));
        terminal.show("> tool\u{1b}[31m\n");
        terminal.ask("Start \u{202e}it?", "[y/n]").await;
        assert_eq!(*shown.lock().unwrap(), "> tool\u{fffd}[31m\nStart \u{fffd}it? [y/n] ");
    }
}
