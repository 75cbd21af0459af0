//! Asking the person: before a call runs, and before something of the project is used.

use std::path::PathBuf;
use std::sync::Arc;

use haversack::prelude::*;
use haversack::{ConsentQuestion, ConsentSubject};
use serde_json::Value;
use tokio::sync::Notify;

use crate::chat::diff::{self, Change};
use crate::chat::input::{Input, Line, Purpose};
use crate::chat::screen::{Screen, Style};

/// Lines of one argument or diff that are shown at first; the rest is counted, and shown when it is asked for.
const LINES_AT_FIRST: usize = 30;

/// The person at the terminal, who decides.
#[derive(Clone)]
pub struct Person {
    /// What is shown.
    pub screen: Screen,
    /// What is answered.
    pub input: Input,
    /// Told when somebody presses Ctrl-C at a question: the whole turn ends then.
    pub interrupt: Arc<Notify>,
    /// The project, whose files are read for diffs.
    pub root: PathBuf,
    /// Whether every answer is yes.
    pub assume_yes: bool,
}

impl Person {
    /// Asks whether skills or servers of the project may be used. `None` when nobody answers.
    pub async fn consent(self, question: ConsentQuestion) -> Option<bool> {
        let _held = self.screen.hold();
        self.screen.line(Style::Plain, "");
        let mut lines = question.text.trim_end().lines();
        self.screen.line(Style::Strong, lines.next().unwrap_or_default());
        lines.for_each(|line| self.screen.line(Style::Plain, line));
        let prompt = match question.subject {
            ConsentSubject::Servers => "Start? [y/n] ",
            _ => "Use? [y/n] ",
        };
        loop {
            match self.answer(prompt).await {
                Some(word) if is(&word, "y", "yes") => return Some(true),
                Some(word) if is(&word, "n", "no") => return Some(false),
                Some(_) => self.screen.line(Style::Faint, "y or n, please"),
                None => return None,
            }
        }
    }

    /// Asks about calls, one after the other.
    pub async fn decide(self, asks: Vec<Ask>) -> Vec<Verdict> {
        let _held = self.screen.hold();
        let mut verdicts = Vec::with_capacity(asks.len());
        for ask in &asks {
            verdicts.push(self.decide_one(ask).await);
        }
        verdicts
    }

    async fn decide_one(&self, ask: &Ask) -> Verdict {
        let cut = self.show(ask, LINES_AT_FIRST);
        let prompt = prompt(ask, cut);
        loop {
            let Some(line) = self.answer(&prompt).await else { return Verdict::Defer };
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            if cut && is(word, "v", "view") {
                self.show(ask, usize::MAX);
                continue;
            }
            if let Some(verdict) = verdict(ask, word, rest.trim()) {
                return verdict;
            }
            self.screen.line(Style::Faint, "please answer with one of these");
        }
    }

    /// Shows what would run. Says whether something was left out.
    fn show(&self, ask: &Ask, most: usize) -> bool {
        let from = if ask.origin.is_empty() { String::new() } else { format!(" ({})", ask.origin) };
        let path: String = ask.path.iter().map(|agent| format!("{agent} > ")).collect();
        self.screen.line(Style::Plain, "");
        let head = [(Style::Plain, &*path), (Style::Strong, &*ask.tool), (Style::Faint, &*from)];
        self.screen.styled_lines(&[&head[..], &[(Style::Plain, " wants to run")]].concat());
        let mut cut = match diff::of_ask(ask, &self.root) {
            Some(changes) => self.show_diff(&changes, most),
            None => self.show_arguments(&ask.arguments, most),
        };
        if let Some(proposed) = &ask.proposed {
            self.screen.line(Style::Notice, "  changed by this program; the model proposed:");
            cut |= self.show_arguments(proposed, most);
        }
        if ask.effects.destructive == Some(true) {
            self.screen.line(Style::Notice, "  may destroy what cannot be brought back");
        }
        cut
    }

    fn show_diff(&self, changes: &[Change], most: usize) -> bool {
        for change in changes.iter().take(most) {
            let (style, line) = match change {
                Change::Place(place) => (Style::Faint, format!("  {place}")),
                Change::Same(line) => (Style::Plain, format!("    {line}")),
                Change::Removed(line) => (Style::Bad, format!("  - {line}")),
                Change::Added(line) => (Style::Good, format!("  + {line}")),
            };
            self.screen.line(style, &line);
        }
        self.say_cut(changes.len().saturating_sub(most))
    }

    /// An argument a line; texts of several lines stand below their name.
    fn show_arguments(&self, arguments: &Value, most: usize) -> bool {
        let mut cut = false;
        let Some(object) = arguments.as_object().filter(|object| !object.is_empty()) else {
            let text =
                if arguments.is_object() { "without arguments".to_owned() } else { arguments.to_string() };
            self.screen.line(Style::Faint, &format!("  {text}"));
            return cut;
        };
        for (name, value) in object {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if !text.contains('\n') {
                self.screen.styled_lines(&[(Style::Faint, &format!("  {name}: ")), (Style::Plain, &text)]);
                continue;
            }
            self.screen.line(Style::Faint, &format!("  {name}:"));
            text.lines().take(most).for_each(|line| self.screen.line(Style::Plain, &format!("    {line}")));
            cut |= self.say_cut(text.lines().count().saturating_sub(most));
        }
        cut
    }

    fn say_cut(&self, left_out: usize) -> bool {
        if left_out > 0 {
            self.screen.line(Style::Notice, &format!("  … {left_out} more lines, not shown yet"));
        }
        left_out > 0
    }

    /// One line, or `None` when nobody answers. Ctrl-C ends the turn: this never comes back then, and is dropped.
    async fn answer(&self, prompt: &str) -> Option<String> {
        if self.assume_yes {
            self.screen.line(Style::Plain, &format!("{prompt}yes (--yes)"));
            return Some("yes".to_owned());
        }
        match self.input.read(prompt, Purpose::Answer).await {
            Line::Text(line) => {
                if !self.input.is_terminal() {
                    self.screen.line(Style::Plain, &format!("{prompt}{line}"));
                }
                Some(line.trim().to_owned())
            }
            Line::End => {
                let prompt = if self.input.is_terminal() { "" } else { prompt };
                self.screen.line(Style::Plain, &format!("{prompt}nobody answers (end of input)"));
                None
            }
            Line::Interrupted => {
                self.interrupt.notify_one();
                std::future::pending().await
            }
        }
    }
}

fn prompt(ask: &Ask, cut: bool) -> String {
    let mut choices = vec!["y once".to_owned(), "n REASON".to_owned()];
    for (place, rule) in ask.suggested.iter().enumerate() {
        // The rule in its own words: `allow `tool` for path docs/**`.
        choices.push(format!("{} always {rule}", always(place)));
    }
    if cut {
        choices.push("v view all".to_owned());
    }
    format!("Allow? ({}) ", crate::terminal::plain(&choices.join(", ")).replace('\n', " "))
}

/// `a` for the narrowest rule, `a2` and so on for wider ones.
fn always(place: usize) -> String {
    if place == 0 { "a".to_owned() } else { format!("a{}", place + 1) }
}

fn verdict(ask: &Ask, word: &str, rest: &str) -> Option<Verdict> {
    if is(word, "y", "yes") {
        return Some(Verdict::Allow);
    }
    if is(word, "n", "no") {
        return Some(Verdict::deny(rest));
    }
    let rule = ask.suggested.iter().enumerate().find(|(place, _)| word.eq_ignore_ascii_case(&always(*place)));
    rule.map(|(_, rule)| Verdict::AllowAlways(vec![rule.clone()]))
}

fn is(word: &str, short: &str, long: &str) -> bool {
    word.eq_ignore_ascii_case(short) || word.eq_ignore_ascii_case(long)
}
