//! Lines from a person: through a line editor on a terminal, as they come from a pipe, or from a list in tests.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};

use rustyline::completion::Completer;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use tokio::sync::{mpsc, oneshot};

use crate::chat::tty::Tty;

/// Messages that the arrow keys bring back.
const MAX_HISTORY: usize = 500;
/// Bytes of one line of a pipe that are taken; a longer line ends the input.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// The end of the input, or Ctrl-D.
    End,
}

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A message: kept for the arrow keys, and names are completed.
    Message,
    /// The answer to a question, which keys pressed before it was shown do not answer.
    Answer,
}

/// Where lines come from. Clones read from the same place, one at a time.
#[derive(Clone)]
pub struct Input {
    requests: mpsc::Sender<Request>,
    words: Words,
    is_terminal: bool,
}

/// Words that the tabulator key completes, those of the skills among them.
type Words = Arc<Mutex<Vec<String>>>;

struct Request {
    prompt: String,
    purpose: Purpose,
    answer: oneshot::Sender<Line>,
}

impl Input {
    /// From a line editor. `tty` is the terminal that it edits on.
    pub fn editor(tty: Option<Arc<Tty>>) -> Result<Self, String> {
        let words = Words::default();
        let mut editor: Editor<Edit, MemHistory> =
            Editor::with_history(rustyline::Config::default(), MemHistory::new())
                .map_err(|e| format!("no line editor: {e}"))?;
        editor.set_helper(Some(Edit(Arc::clone(&words))));
        editor.set_max_history_size(MAX_HISTORY).map_err(|e| format!("no line editor: {e}"))?;
        let read = move |prompt: &str, purpose| {
            if purpose == Purpose::Message {
                return edited(&mut editor, prompt);
            }
            // What was typed ahead waits in the editor of messages and in the terminal; neither may answer.
            let asked = rustyline::DefaultEditor::new();
            if let Some(tty) = &tty {
                tty.forget_typed();
            }
            asked.map_or(Line::End, |mut editor| line_of(editor.readline(prompt)))
        };
        Ok(Self::reading(words, true, read))
    }

    /// From standard input, a line each.
    pub fn pipe() -> Self {
        Self::reading(Words::default(), false, |_, _| piped_line())
    }

    /// From a list.
    pub fn scripted<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut lines: VecDeque<String> = lines.into_iter().map(str::to_owned).collect();
        Self::reading(Words::default(), false, move |_, _| lines.pop_front().map_or(Line::End, Line::Text))
    }

    /// A blocked read cannot be cancelled, so a thread of its own reads. It is left behind at the end.
    fn reading(
        words: Words,
        is_terminal: bool,
        mut read: impl FnMut(&str, Purpose) -> Line + Send + 'static,
    ) -> Self {
        let (requests, mut inbox) = mpsc::channel::<Request>(1);
        std::thread::spawn(move || {
            let mut kept = None;
            while let Some(request) = inbox.blocking_recv() {
                let line = kept.take().unwrap_or_else(|| read(&request.prompt, request.purpose));
                if let Err(line) = request.answer.send(line) {
                    // Whoever asked is gone. On a terminal the line belonged to a question that no longer stands; in
                    // a pipe it is simply the next one.
                    kept = Some(line).filter(|_| !is_terminal);
                }
            }
        });
        Self { requests, words, is_terminal }
    }

    /// Sets the words that are completed.
    pub fn complete(&self, words: Vec<String>) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Whether a person types at a terminal, who sees the prompt there.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Reads the next line.
    ///
    /// # Cancel safety
    ///
    /// No line of a pipe is lost. On a terminal the prompt stays until a line is typed, which then counts for nothing.
    pub async fn read(&self, prompt: &str, purpose: Purpose) -> Line {
        let (answer, line) = oneshot::channel();
        let request = Request { prompt: prompt.to_owned(), purpose, answer };
        if self.requests.send(request).await.is_err() {
            return Line::End;
        }
        line.await.unwrap_or(Line::End)
    }
}

fn edited(editor: &mut Editor<Edit, MemHistory>, prompt: &str) -> Line {
    let read = editor.readline(prompt);
    if let Some(line) = read.as_ref().ok().filter(|line| !line.trim().is_empty()) {
        // Without it the arrow keys do not find the line, and nothing else is lost.
        let _ = editor.add_history_entry(line);
    }
    line_of(read)
}

fn line_of(read: rustyline::Result<String>) -> Line {
    match read {
        Ok(line) => Line::Text(line.replace("\\\n", "\n")),
        Err(ReadlineError::Interrupted) => Line::Interrupted,
        // A terminal that cannot be read any more is at its end.
        Err(_) => Line::End,
    }
}

fn piped_line() -> Line {
    use std::io::Read as _;
    let mut line = Vec::new();
    match std::io::stdin().lock().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
        Ok(length) if length > 0 && (length as u64) < MAX_LINE_BYTES => {
            let text = String::from_utf8_lossy(&line);
            Line::Text(text.trim_end_matches(['\n', '\r']).to_owned())
        }
        _ => Line::End,
    }
}

/// What the line editor knows of chats: words to complete, and that a line with a backslash at its end goes on.
struct Edit(Words);

impl Completer for Edit {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..position).unwrap_or(line);
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = words.iter().filter(|word| !begun.is_empty() && word.starts_with(begun));
        Ok((0, fitting.map(|word| format!("{word} ")).collect()))
    }
}

impl Validator for Edit {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl rustyline::hint::Hinter for Edit {
    type Hint = String;
}

impl rustyline::highlight::Highlighter for Edit {}

impl Helper for Edit {}
