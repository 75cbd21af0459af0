//! What a sub-agent reports: the record that it ends with, read leniently, and the block that its caller reads.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::contract::ContractState;
use crate::redact::Redactor;

/// Code points of a result at most.
pub const MAX_RESULT_CHARS: usize = 10_000;
/// Code points of a hint where to go on at most.
pub const MAX_HINT_CHARS: usize = 300;
/// Code points of a summary of the reasoning at most.
pub const MAX_SUMMARY_CHARS: usize = 500;
/// Violations that are reported at most.
pub const MAX_VIOLATIONS: usize = 20;
/// Names of files or commands in one list at most; ten times what a task of 500 characters touches.
const MAX_NAMES: usize = 1000;

/// How a task ended, in the word of its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportStatus {
    /// Done.
    Completed,
    /// Done in part; also what an unknown word counts as.
    Partial,
    /// Something is in the way.
    Blocked,
    /// A right is missing.
    NeedsAuth,
    /// An answer is missing.
    NeedsHelp,
    /// It failed.
    Failed,
    /// The time was up.
    Timeout,
}

impl ReportStatus {
    /// The word of the format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Partial => "partial",
            Self::Blocked => "blocked",
            Self::NeedsAuth => "needs_auth",
            Self::NeedsHelp => "needs_help",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
        }
    }

    fn from_word(word: &str) -> Self {
        match word.trim() {
            "completed" => Self::Completed,
            "blocked" => Self::Blocked,
            "needs_auth" | "needsAuth" => Self::NeedsAuth,
            "needs_help" | "needsHelp" => Self::NeedsHelp,
            "failed" => Self::Failed,
            "timeout" => Self::Timeout,
            _ => Self::Partial,
        }
    }

    /// Where the contract stands after such a report.
    pub fn contract_state(self) -> ContractState {
        match self {
            Self::Completed => ContractState::Completed,
            // Not done, and somebody can go on with it.
            Self::Partial | Self::Blocked | Self::NeedsAuth | Self::NeedsHelp => ContractState::Suspended,
            Self::Failed | Self::Timeout => ContractState::Failed,
        }
    }
}

/// What was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Artifacts {
    /// Files that were changed.
    pub files_modified: Vec<String>,
    /// Files that were made.
    pub files_created: Vec<String>,
    /// Commands that ran.
    pub commands_run: Vec<String>,
}

/// A right that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthRequest {
    /// What for.
    pub reason: String,
    /// Folders that would have to be opened.
    pub requested_scope_extension: Vec<String>,
    /// Constraints that would have to be lifted.
    pub requested_constraint_relaxation: Vec<String>,
    /// How risky: low, medium or high; high, where the agent says something else or nothing.
    pub risk_level: String,
}

/// An answer that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HelpRequest {
    /// The question.
    pub question: String,
    /// What it is about.
    pub context: String,
    /// Answers to choose from.
    pub options: Vec<String>,
    /// How urgent, in the agent's word.
    pub urgency: String,
}

/// The record that a sub-agent ends with.
///
/// ```
/// use haversack_skill_runtime::agent::{Report, ReportStatus};
///
/// let reply = "```json\n{\"status\": \"completed\", \"result\": \"ok\", \"reasoningSummary\": \"easy\"}\n```";
/// let report = Report::parse(reply).unwrap();
/// assert_eq!(report.status, ReportStatus::Completed);
/// assert_eq!(report.reasoning_summary, "easy");
/// assert_eq!(Report::parse("just text"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How it ended.
    pub status: ReportStatus,
    /// What came of it.
    pub result: String,
    /// Why.
    pub reasoning_summary: String,
    /// Where to go on.
    pub resume_hint: String,
    /// What was touched.
    pub artifacts: Artifacts,
    /// What was touched by a task that is not done.
    pub partial_artifacts: Artifacts,
    /// The right that is missing.
    pub auth_request: Option<AuthRequest>,
    /// The answer that is missing.
    pub help_request: Option<HelpRequest>,
    /// Where the agent says that it went beyond its scope.
    pub scope_violations: Vec<String>,
    /// What was wrong with the record: parts that were cut, words that are not known.
    pub notes: Vec<String>,
}

impl Report {
    /// A report with this result and nothing else.
    pub fn new(status: ReportStatus, result: impl Into<String>) -> Self {
        Self {
            status,
            result: result.into(),
            reasoning_summary: String::new(),
            resume_hint: String::new(),
            artifacts: Artifacts::default(),
            partial_artifacts: Artifacts::default(),
            auth_request: None,
            help_request: None,
            scope_violations: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads a reply that is a JSON object with a status, bare or in a fence, with names in `snake_case` or
    /// `camelCase`. `None` is any other reply. Parts beyond their limits are cut, and [`notes`](Self::notes) says so.
    pub fn parse(reply: &str) -> Option<Self> {
        let object = object_of(reply)?;
        let source = Source(&object);
        let word = source.text("status").filter(|word| !word.is_empty())?;
        let status = ReportStatus::from_word(&word);
        let mut report = Self::new(status, "");
        if status == ReportStatus::Partial && word.trim() != "partial" {
            report.notes.push(format!("unknown status `{}` counts as partial", clip(&word, 40).0));
        }
        for (name, max, place) in [
            ("result", MAX_RESULT_CHARS, &mut report.result),
            ("reasoning_summary", MAX_SUMMARY_CHARS, &mut report.reasoning_summary),
            ("resume_hint", MAX_HINT_CHARS, &mut report.resume_hint),
        ] {
            let (text, cut) = clip(&source.text(name).unwrap_or_default(), max);
            *place = text;
            if cut > 0 {
                report.notes.push(format!("{name}: {cut} characters beyond {max} were cut"));
            }
        }
        report.artifacts = source.object("artifacts", Artifacts::of).unwrap_or_default();
        report.partial_artifacts = source.object("partial_artifacts", Artifacts::of).unwrap_or_default();
        report.auth_request = source.object("auth_request", AuthRequest::of);
        report.help_request = source.object("help_request", HelpRequest::of);
        report.scope_violations = source.list("scope_violations", usize::MAX);
        let over = report.scope_violations.len().saturating_sub(MAX_VIOLATIONS);
        if over > 0 {
            report.scope_violations.truncate(MAX_VIOLATIONS);
            report.notes.push(format!("scope_violations: {over} beyond {MAX_VIOLATIONS} were cut"));
        }
        Some(report)
    }

    /// The report with every secret masked, in all its texts.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> Self {
        let mask = |text: &mut String| {
            if let Cow::Owned(masked) = redactor.text(text) {
                *text = masked;
            }
        };
        for text in [&mut self.result, &mut self.reasoning_summary, &mut self.resume_hint] {
            mask(text);
        }
        for artifacts in [&mut self.artifacts, &mut self.partial_artifacts] {
            let Artifacts { files_modified, files_created, commands_run } = artifacts;
            [files_modified, files_created, commands_run].into_iter().flatten().for_each(mask);
        }
        if let Some(auth) = &mut self.auth_request {
            mask(&mut auth.reason);
            auth.requested_scope_extension.iter_mut().for_each(mask);
            auth.requested_constraint_relaxation.iter_mut().for_each(mask);
        }
        if let Some(help) = &mut self.help_request {
            [&mut help.question, &mut help.context, &mut help.urgency].into_iter().for_each(mask);
            help.options.iter_mut().for_each(mask);
        }
        self.scope_violations.iter_mut().for_each(mask);
        self.notes.iter_mut().for_each(mask);
        self
    }

    /// The block that the caller reads.
    pub fn to_block(&self, skill: &str, contract: &str) -> String {
        let mut out = head(skill, contract, self.status.word());
        let _ = writeln!(out, "\n{}", self.result);
        let mut part = |label: &str, text: &str| {
            if !text.is_empty() {
                let _ = writeln!(out, "\n{label}: {text}");
            }
        };
        part("Reasoning", &self.reasoning_summary);
        part("Files modified", &names(&self.artifacts.files_modified));
        part("Files created", &names(&self.artifacts.files_created));
        // Beyond the classic block: what the caller needs to go on is never left out.
        part("Commands run", &names(&self.artifacts.commands_run));
        if let Some(auth) = &self.auth_request {
            part("Right asked for", &auth.to_line());
        }
        if let Some(help) = &self.help_request {
            part("Question", &help.to_line());
        }
        part("Resume hint", &self.resume_hint);
        part("Scope violations", &names(&self.scope_violations));
        part("Notes", &self.notes.join("; "));
        out
    }
}

/// The block of a task that left no record.
pub fn block_without_record(skill: &str, contract: &str, status: &str, error: &str) -> String {
    let mut out = head(skill, contract, status);
    let _ = writeln!(out, "Error: {error}");
    out
}

fn head(skill: &str, contract: &str, status: &str) -> String {
    format!("[Agent Result]\nSkill: {skill}\nContract: {contract}\nStatus: {status}\n")
}

fn names(list: &[String]) -> String {
    if list.is_empty() { String::new() } else { Value::from(list.to_vec()).to_string() }
}

fn clip(text: &str, max: usize) -> (String, usize) {
    let total = text.chars().count();
    (text.chars().take(max).collect(), total.saturating_sub(max))
}

/// The object of a reply: all of it, or all of one fence that is all of it.
fn object_of(reply: &str) -> Option<Map<String, Value>> {
    let text = reply.trim();
    let bare = match text.strip_prefix("```") {
        Some(fenced) => {
            let (language, rest) = fenced.split_once('\n')?;
            let language = language.trim();
            if !language.is_empty() && !language.eq_ignore_ascii_case("json") {
                return None;
            }
            rest.trim_end().strip_suffix("```")?.trim()
        }
        None => text,
    };
    if !bare.starts_with('{') {
        return None;
    }
    serde_json::from_str(bare).ok()
}

/// An object whose names may be in either spelling.
struct Source<'v>(&'v Map<String, Value>);

impl Source<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).or_else(|| self.0.get(&camel(name)))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name)?.as_str().map(str::to_owned)
    }

    fn list(&self, name: &str, max: usize) -> Vec<String> {
        let values = self.value(name).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_str).take(max).map(str::to_owned).collect()
    }

    fn object<T>(&self, name: &str, read: impl FnOnce(&Source<'_>) -> T) -> Option<T> {
        self.value(name)?.as_object().map(|map| read(&Source(map)))
    }
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

impl Artifacts {
    fn of(source: &Source<'_>) -> Self {
        Self {
            files_modified: source.list("files_modified", MAX_NAMES),
            files_created: source.list("files_created", MAX_NAMES),
            commands_run: source.list("commands_run", MAX_NAMES),
        }
    }
}

impl AuthRequest {
    fn of(source: &Source<'_>) -> Self {
        let risk = source.text("risk_level").unwrap_or_default();
        let known = ["low", "medium", "high"].into_iter().find(|word| *word == risk);
        Self {
            reason: source.text("reason").unwrap_or_default(),
            requested_scope_extension: source.list("requested_scope_extension", MAX_NAMES),
            requested_constraint_relaxation: source.list("requested_constraint_relaxation", MAX_NAMES),
            risk_level: known.unwrap_or("high").to_owned(),
        }
    }

    /// The request on one line.
    pub(crate) fn to_line(&self) -> String {
        let mut line = format!("{} (risk: {})", self.reason, self.risk_level);
        for (label, list) in [
            ("scope", &self.requested_scope_extension),
            ("constraints", &self.requested_constraint_relaxation),
        ] {
            if !list.is_empty() {
                let _ = write!(line, "; {label}: {}", names(list));
            }
        }
        line
    }
}

impl HelpRequest {
    fn of(source: &Source<'_>) -> Self {
        Self {
            question: source.text("question").unwrap_or_default(),
            context: source.text("context").unwrap_or_default(),
            options: source.list("options", MAX_NAMES),
            urgency: source.text("urgency").unwrap_or_default(),
        }
    }

    /// The request on one line.
    pub(crate) fn to_line(&self) -> String {
        let mut line = self.question.clone();
        if !self.context.is_empty() {
            let _ = write!(line, " ({})", self.context);
        }
        if !self.options.is_empty() {
            let _ = write!(line, " {}", names(&self.options));
        }
        line
    }
}

#[cfg(test)]
mod tests;
