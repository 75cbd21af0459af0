//! One run on the screen: text as it streams, a line for each call, a status while one waits, Ctrl-C.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use haversack::agent_core::message::{CallId, ToolResult, ToolStatus};
use haversack::agent_core::run::Run;
use haversack::agent_core::usage::Usage;
use haversack::prelude::*;
use tokio::sync::Notify;

use crate::chat::screen::{Screen, Style};

/// How often the status moves.
const TICK: Duration = Duration::from_millis(100);
/// What the model does while text streams.
const WRITING: &str = "writing";
/// How long text stands still before the status says so: behind text that moves it would only flicker.
const STANDSTILL: Duration = Duration::from_secs(1);
/// The pictures of the status.
const FRAMES: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How a run ended.
pub enum Ended {
    /// With its outcome.
    Outcome(Result<Outcome, RunError>),
    /// Dropped, since its end took too long for the person.
    Dropped,
}

/// What ends a run early.
pub struct Signals {
    /// Somebody pressed Ctrl-C: the turn is cancelled, and at the second time dropped.
    pub interrupt: Arc<Notify>,
    /// The program is asked to end.
    pub end: Arc<Notify>,
}

impl Signals {
    /// Signals that never come by themselves.
    pub fn silent() -> Self {
        Self { interrupt: Arc::default(), end: Arc::default() }
    }
}

/// Polls a run to its end and shows it.
pub async fn drive(mut run: Run<'_>, screen: &Screen, signals: &Signals) -> Ended {
    let handle = run.handle();
    let mut view = View::new(screen.clone());
    let mut tick = tokio::time::interval(TICK);
    // A key that was pressed before the run is not meant for it.
    let _ = futures_util::FutureExt::now_or_never(signals.interrupt.notified());
    loop {
        tokio::select! {
            event = run.next() => match event {
                Some(event) => view.event(&event),
                None => break,
            },
            () = signals.interrupt.notified() => {
                if view.stopping {
                    screen.end_text();
                    return Ended::Dropped;
                }
                view.stop();
                handle.cancel("stopped by the user");
            }
            () = signals.end.notified() => {
                // Kept for whoever looks next, so that the program ends after this.
                signals.end.notify_one();
                view.stop();
                handle.cancel("the program was asked to end");
                screen.status(None);
                return Ended::Outcome(run.outcome().await);
            }
            _ = tick.tick(), if screen.is_terminal() => view.tick(),
        }
    }
    screen.end_text();
    Ended::Outcome(run.outcome().await)
}

/// What is on the screen of a run.
struct View {
    screen: Screen,
    /// What one waits for, and since when; `None` while text streams or somebody is asked.
    waiting: Option<(String, Instant)>,
    /// The arguments of calls, as the model wrote them.
    arguments: HashMap<CallId, String>,
    /// Calls that run, oldest first.
    running: Vec<(CallId, Arc<str>)>,
    /// Whether the attempt at an answer that goes on has shown something.
    has_shown: bool,
    frame: usize,
    stopping: bool,
}

impl View {
    fn new(screen: Screen) -> Self {
        let waiting = Some(("waiting for the model".to_owned(), Instant::now()));
        let (arguments, running) = (HashMap::new(), Vec::new());
        Self { screen, waiting, arguments, running, has_shown: false, frame: 0, stopping: false }
    }

    fn wait(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.stopping && self.waiting.as_ref().is_none_or(|(before, _)| *before != what) {
            self.waiting = Some((what, Instant::now()));
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.waiting = Some(("stopping".to_owned(), Instant::now()));
    }

    fn tick(&mut self) {
        self.frame = (self.frame + 1) % FRAMES.len();
        let frame = FRAMES.get(self.frame).copied().unwrap_or('-');
        let hint = if self.stopping { "Ctrl-C again ends at once" } else { "Ctrl-C stops" };
        let waiting =
            self.waiting.as_ref().filter(|(what, since)| what != WRITING || since.elapsed() > STANDSTILL);
        let status =
            waiting.map(|(what, since)| format!("{frame} {} {what}, {hint}", seconds(since.elapsed())));
        self.screen.status(status.as_deref());
    }

    fn event(&mut self, event: &Event) {
        let screen = self.screen.clone();
        match event {
            Event::MessageStarted { .. } => {
                self.has_shown = false;
                self.wait("waiting for the model");
            }
            Event::Text { delta, .. } => {
                if !self.stopping {
                    self.waiting = Some((WRITING.to_owned(), Instant::now()));
                }
                self.has_shown = true;
                screen.text(delta);
            }
            Event::Reasoning { .. } => self.wait("thinking"),
            Event::ToolCallStarted { name, .. } => {
                screen.end_text();
                self.wait(format!("writing a call of {name}"));
            }
            Event::AttemptDiscarded { .. } if self.has_shown => {
                screen.line(Style::Notice, "(what was just shown is withdrawn)");
            }
            Event::Retrying { delay, error, .. } => {
                let delay = seconds(*delay);
                screen.line(Style::Notice, &format!("{error}; trying again in {delay}"));
                self.wait(format!("trying again in {delay}"));
            }
            Event::ModelSwitched { to, error, .. } => {
                screen.line(Style::Notice, &format!("{error}; going on with {}", to.model));
            }
            Event::MessageEnded { content, .. } => {
                screen.end_text();
                let calls = content.tool_calls();
                self.arguments.extend(calls.map(|call| (call.id.clone(), call.arguments.to_string())));
            }
            Event::ApprovalAsked { .. } => self.waiting = None,
            other => self.call_event(other),
        }
    }

    fn call_event(&mut self, event: &Event) {
        let screen = self.screen.clone();
        match event {
            Event::ToolStarted { call, name, edited } => {
                let written = self.arguments.get(call).cloned().unwrap_or_default();
                let arguments = edited.as_ref().map_or(written, ToString::to_string);
                let arguments = if arguments == "{}" { "" } else { &arguments };
                screen.clipped(Style::Plain, format!("• {name} {arguments}").trim_end());
                self.running.push((call.clone(), Arc::clone(name)));
                self.wait_for_calls();
            }
            // On a terminal a report lasts until the next one.
            Event::ToolProgress { text, .. } if screen.is_terminal() => {
                let since = self.waiting.as_ref().map_or_else(Instant::now, |(_, since)| *since);
                let name = self.running.first().map_or("", |(_, name)| name);
                if !self.stopping {
                    self.waiting = Some((format!("{name}: {text}"), since));
                }
            }
            Event::ToolProgress { text, .. } => screen.clipped(Style::Faint, &format!("  {text}")),
            Event::ToolEnded { call, result, .. } => {
                self.show_result(result);
                self.running.retain(|(running, _)| running != call);
                self.wait_for_calls();
            }
            Event::ApprovalClosed { .. } => self.wait_for_calls(),
            Event::GrantRefused { reason, .. } => screen.line(Style::Notice, &format!("not kept: {reason}")),
            Event::OutputCut { cut, .. } => {
                screen.line(
                    Style::Faint,
                    &format!("  too long for the model, {} bytes left out", thousands(cut.text_bytes as u64)),
                );
            }
            Event::RepeatNoticed { name, times } => {
                screen
                    .line(Style::Notice, &format!("{name} gave the same {times} times; the model was told"));
            }
            Event::LimitReached { limit, .. } => {
                screen.line(Style::Notice, &format!("the {limit} is reached"))
            }
            Event::Repaired { problems } => {
                let problems = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                screen.line(Style::Notice, &format!("the session was repaired: {problems}"));
            }
            Event::CompactionStarted { .. } => self.wait("summing up older messages"),
            Event::CompactionEnded { stubbed: 0, summarised: 0, problem: Some(problem), .. } => {
                screen.line(Style::Notice, &format!("no room could be made in the context: {problem}"));
            }
            Event::CompactionEnded { tokens, stubbed, summarised, problem } => {
                let problem = problem.as_ref().map(|p| format!("; {p}")).unwrap_or_default();
                screen.line(
                    Style::Faint,
                    &format!(
                        "{summarised} messages summed up, {stubbed} results shortened: about {} tokens now{problem}",
                        thousands(*tokens)
                    ),
                );
            }
            Event::SubAgent { name, event, .. } => self.sub_agent(name, event),
            _ => {}
        }
    }

    /// Of a sub-agent only its calls are shown; what it says goes to the model that asked it.
    fn sub_agent(&mut self, agent: &str, event: &Event) {
        match event {
            Event::ToolStarted { name, .. } => {
                self.screen.clipped(Style::Faint, &format!("  {agent} • {name}"));
            }
            Event::ApprovalAsked { .. } => self.waiting = None,
            Event::ApprovalClosed { .. } => self.wait_for_calls(),
            Event::SubAgent { event, name, .. } => self.sub_agent(&format!("{agent} > {name}"), event),
            _ => {}
        }
    }

    fn wait_for_calls(&mut self) {
        match &self.running[..] {
            [] => self.wait("waiting for the model"),
            [(_, name)] => self.wait(format!("{name} runs")),
            [(_, name), rest @ ..] => self.wait(format!("{name} and {} more run", rest.len())),
        }
    }

    fn show_result(&self, result: &ToolResult) {
        let (style, word) = match result.status {
            ToolStatus::Ok => (Style::Faint, ""),
            ToolStatus::Error => (Style::Bad, "failed: "),
            // What did not run, or not to its end, says so itself.
            _ => (Style::Notice, ""),
        };
        let text = result.text();
        // Tags that mark the text as data are for the model.
        let lines: Vec<_> =
            text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty() && !l.starts_with('<')).collect();
        let first = lines.first().copied().unwrap_or("(no text)").trim();
        let first = first.strip_prefix("Error: ").filter(|_| !word.is_empty()).unwrap_or(first);
        let more = match lines.len() {
            0 | 1 => String::new(),
            2 => " (1 more line)".to_owned(),
            count => format!(" ({} more lines)", count - 1),
        };
        let room =
            self.screen.width().map_or(usize::MAX, |width| width.saturating_sub(3 + word.len() + more.len()));
        let first = crate::chat::wrap::clip(&first.replace('\t', " "), room);
        self.screen.line(style, &format!("  {word}{first}{more}"));
    }
}

/// What a turn took, for its last line.
pub struct Meter {
    /// From the message to the end, without waiting for the person.
    pub elapsed: Duration,
    /// Answers of the model.
    pub steps: usize,
    /// Calls that ran.
    pub calls: u32,
    /// Tokens of this turn.
    pub usage: Usage,
    /// Tokens of the whole session.
    pub session: u64,
    /// How full the context is, in percent, where the model says how much it takes.
    pub context: Option<u64>,
}

impl std::fmt::Display for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        write!(f, "{} · {} step{}", seconds(self.elapsed), self.steps, plural(self.steps))?;
        if self.calls > 0 {
            write!(f, ", {} call{}", self.calls, plural(self.calls as usize))?;
        }
        let counted = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), thousands);
        write!(f, " · {} tokens in", counted(self.usage.input))?;
        if let Some(cached) = self.usage.cached.filter(|cached| *cached > 0) {
            write!(f, " ({} cached)", thousands(cached))?;
        }
        write!(f, ", {} out · session {}", counted(self.usage.output), thousands(self.session))?;
        self.context.map_or(Ok(()), |percent| write!(f, " · context {percent} %"))
    }
}

/// Whole seconds, or tenths below ten.
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f32()),
        whole @ 10..120 => format!("{whole} s"),
        whole => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

/// A number with a mark at each thousand.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_read_well() {
        for (millis, text) in [(0, "0.0 s"), (1_240, "1.2 s"), (59_900, "59 s"), (125_000, "2 min 05 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
