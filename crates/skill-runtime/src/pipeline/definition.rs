//! A pipeline that was checked and is ready to run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::metadata::{Approval, OnError, OutputFormat};

/// Further tries of a step under `on_error: retry`, where it does not say.
pub const DEFAULT_RETRIES: u32 = 2;
/// Further tries at most: what ten do not mend needs another remedy.
pub const MAX_RETRIES: u32 = 10;
/// Pause before the second try, where the step does not say; doubled for each further one.
pub const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(500);
/// One pause at most.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Elements of a loop that run at a time at most: the tools are the host's, and so are their limits.
pub const MAX_PARALLEL: u32 = 16;

/// A compiled pipeline: plain data, kept in a store, the same bytes for the same skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Definition {
    /// Its name as a tool.
    pub name: String,
    /// The skill's name.
    pub skill_name: String,
    /// The skill's folder, as the host writes it; may be empty.
    pub skill_path: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// JSON Schema of the output.
    pub output_schema: Value,
    /// The steps.
    pub steps: Vec<DefinitionStep>,
    /// The highest approval that any step wants.
    pub max_approval: Approval,
    /// Its node in the capability tree.
    pub tree_node_id: String,
    /// When it was compiled, as the host tells the time; empty where it does not.
    #[serde(default)]
    pub compiled_at: String,
    /// SHA-256 of the skill's text, in hex digits.
    pub skill_hash: String,
}

/// One step, with everything settled that the skill left open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DefinitionStep {
    /// The name of the step in reports.
    pub action: String,
    /// What it does, for people.
    #[serde(default)]
    pub description: String,
    /// The tool to call.
    pub tool: String,
    /// The tool's node in the capability tree; empty for tools that are found at run time.
    #[serde(default)]
    pub tool_node_id: String,
    /// The arguments, with templates.
    #[serde(default)]
    pub input_map: Map<String, Value>,
    /// The variable that receives the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_as: Option<String>,
    /// What the text of the tool is.
    pub output_format: OutputFormat,
    /// What a person agrees to before the step runs.
    pub approval: Approval,
    /// What becomes of the pipeline when the step fails.
    pub on_error: OnError,
    /// Further tries, if it is to retry.
    pub retries: u32,
    /// Pause before the second try in milliseconds.
    pub retry_delay_ms: u64,
    /// How long one call may take in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// A template that gives the list to loop over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_over: Option<String>,
    /// How many elements run at a time.
    pub parallel: u32,
}

impl DefinitionStep {
    /// Tries of one call at most, the first included. Bounded here too, since a definition may come from a file.
    pub(super) fn tries(&self) -> u32 {
        if self.on_error == OnError::Retry { 1 + self.retries.min(MAX_RETRIES) } else { 1 }
    }

    /// The pause after the try of this number, counted from 1.
    pub(super) fn pause_after(&self, tried: u32) -> Duration {
        let factor = 2_u32.saturating_pow(tried.saturating_sub(1));
        Duration::from_millis(self.retry_delay_ms).saturating_mul(factor).min(MAX_RETRY_DELAY)
    }
}
