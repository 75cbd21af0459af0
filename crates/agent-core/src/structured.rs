//! A final answer that is data: checked against a schema, with a few rounds to get it right.

use std::sync::Arc;

use serde_json::Value;

use crate::arguments::ArgumentCheck;
use crate::model::ResponseFormat;
use crate::tool::ToolSpec;

/// What the final answer has to be.
///
/// In the tool mode, which every model with tools understands, the model gives its answer by calling a tool that the
/// loop itself provides. In the native mode the provider is told the schema, and the text of the answer is checked.
/// An answer that does not fit is sent back with what is wrong, a few times; then the run stops.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StructuredOutput {
    /// The name of the tool, or of the schema in the native mode: 1 to 64 of `[A-Za-z0-9_-]`.
    pub name: Arc<str>,
    /// The schema of the answer; in the tool mode an object schema.
    pub schema: Arc<Value>,
    /// How the model is asked for it.
    pub mode: StructuredMode,
    /// How often in a row an answer that does not fit is sent back. 2 by default.
    pub repairs: u32,
}

/// How a model is asked for structured output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StructuredMode {
    /// By a tool that the model calls when it is done.
    #[default]
    Tool,
    /// By the provider's own means.
    Native,
}

impl StructuredOutput {
    /// An answer by a tool of this name.
    pub fn new(name: impl Into<Arc<str>>, schema: impl Into<Arc<Value>>) -> Self {
        Self { name: name.into(), schema: schema.into(), mode: StructuredMode::Tool, repairs: 2 }
    }

    /// Sets how the model is asked for it.
    #[must_use]
    pub fn with_mode(mut self, mode: StructuredMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how often in a row an answer that does not fit is sent back.
    #[must_use]
    pub fn with_repairs(mut self, repairs: u32) -> Self {
        self.repairs = repairs;
        self
    }
}

/// A wanted answer, ready for use.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) output: StructuredOutput,
    check: ArgumentCheck,
}

impl Wanted {
    pub(crate) fn new(output: StructuredOutput) -> Self {
        let check = ArgumentCheck::new(Arc::clone(&output.schema));
        Self { output, check }
    }

    /// The tool that takes the answer, in the tool mode.
    pub(crate) fn tool(&self) -> Option<ToolSpec> {
        let text = "Call this once, when you are done, to give your final answer.";
        (self.output.mode == StructuredMode::Tool).then(|| {
            ToolSpec::new(Arc::clone(&self.output.name), text)
                .with_schema(Arc::clone(&self.output.schema))
                .read_only()
        })
    }

    /// Whether a call is the answer.
    pub(crate) fn is_answer(&self, tool: &str) -> bool {
        self.output.mode == StructuredMode::Tool && *self.output.name == *tool
    }

    pub(crate) fn format(&self) -> Option<ResponseFormat> {
        (self.output.mode == StructuredMode::Native)
            .then(|| ResponseFormat::new(Arc::clone(&self.output.name), Arc::clone(&self.output.schema)))
    }

    /// What is wrong with an answer.
    pub(crate) fn problem(&self, answer: &Value) -> Option<String> {
        self.check.check(answer).err().map(|wrong| wrong.to_string())
    }

    /// The answer in a text, which some models wrap in a code fence.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let inner = text
            .strip_prefix("```json")
            .or_else(|| text.strip_prefix("```"))
            .and_then(|t| t.strip_suffix("```"))
            .unwrap_or(text);
        let answer: Value = serde_json::from_str(inner).map_err(|error| format!("it is no JSON: {error}"))?;
        match self.problem(&answer) {
            None => Ok(answer),
            Some(problem) => Err(problem),
        }
    }
}
