//! What came of a pipeline, step by step.

use std::fmt::Write as _;

use haversack_agent_core::tool::ToolOutput;
use serde::Serialize;
use serde_json::{Value, json};

/// UTF-16 units of one step's output that the text of a report shows; the report itself holds all of it.
pub const SHOWN_UNITS: usize = 2000;

/// How a pipeline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// To its end; steps that were to be skipped when they fail may have failed.
    Done,
    /// A step failed.
    Failed,
    /// A person did not allow a step and ended it, or there was nobody to ask.
    Denied,
    /// It was cancelled, or its time was up.
    Cancelled,
    /// The input is not what it takes; no step ran.
    Refused,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepStatus {
    /// It has an output.
    Done,
    /// It failed.
    Failed,
    /// It was running when the pipeline was cancelled; what it did is not known.
    Interrupted,
}

/// One element of a loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Element {
    /// Its place in the list, from 0.
    pub index: usize,
    /// What went wrong with it; `None` if nothing did.
    pub error: Option<String>,
    /// Calls that were made for it.
    pub tries: u32,
}

/// One step that was begun.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepReport {
    /// Its number, from 1.
    pub number: usize,
    /// Its name.
    pub action: String,
    /// The tool.
    pub tool: String,
    /// How it ended.
    pub status: StepStatus,
    /// What it gave; of a loop, a list of outputs and `{error, index}` mappings.
    pub output: Value,
    /// What went wrong.
    pub error: Option<String>,
    /// Calls that were made.
    pub tries: u32,
    /// Its elements, if it is a loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
}

/// Why a pipeline did not reach its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// The step that was the last one, from 1; 0 before the first.
    pub step: usize,
    /// Of how many.
    pub steps: usize,
    /// The name of the step.
    pub action: String,
    /// What happened.
    pub message: String,
}

/// What came of a run: every step that was begun, and why it did not go on, if it did not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The pipeline's name as a tool.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// The steps that were begun, in order.
    pub steps: Vec<StepReport>,
    /// Why it did not reach its end.
    pub failure: Option<Failure>,
    /// The output of the last step that has one.
    pub output: Value,
}

impl Report {
    /// The report as text for a model: each step with its output, cut to [`SHOWN_UNITS`], and what stopped it.
    pub fn text(&self) -> String {
        let mut text = format!("## Composed tool {} result\n\n", self.name);
        for step in &self.steps {
            let (mark, body) = match (&step.status, &step.error) {
                (StepStatus::Done, _) => ("done", shown(&step.output)),
                (StepStatus::Failed, error) => ("error", error.clone().unwrap_or_default()),
                (StepStatus::Interrupted, error) => ("interrupted", error.clone().unwrap_or_default()),
            };
            // Writing to a string does not fail.
            let _ = write!(text, "### Step {}: {} [{mark}]\n{}\n\n", step.number, step.action, cut(&body));
        }
        match (&self.failure, self.status) {
            (None, _) => {}
            (Some(failure), Status::Cancelled) => {
                let _ = writeln!(text, "**Aborted**: {}", failure.message);
            }
            (Some(failure), Status::Refused) => {
                let _ = writeln!(text, "[{}]", failure.message);
            }
            (Some(Failure { step, steps, action, message }), _) => {
                let _ = writeln!(text, "[step {step}/{steps} {action} {message}]");
            }
        }
        text
    }

    /// The report as the result of a tool: the text for the model, and all of it as structured output. A pipeline that
    /// did not reach its end is an error.
    pub fn to_output(&self) -> ToolOutput {
        let text = self.text();
        let output =
            if self.status == Status::Done { ToolOutput::text(text) } else { ToolOutput::error(text) };
        output.with_structured(serde_json::to_value(self).unwrap_or_else(|_| json!({"status": self.status})))
    }
}

fn shown(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > SHOWN_UNITS
    });
    match end.and_then(|(end, _)| text.get(..end)) {
        Some(head) => format!("{head}...(truncated)"),
        None => text.to_owned(),
    }
}
