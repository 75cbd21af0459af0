//! Whether a skill can run in its mode: everything that keeps it from that, in a fixed order.
//!
//! ```
//! use haversack_skill_runtime::validate::{Code, Context, validate};
//! use haversack_skill_runtime::metadata::Metadata;
//! use haversack_skills::document::{Document, ParseOptions};
//!
//! let file = b"---\nskill_mode: agent\nagent_config: {runtime_kind: robot}\n---\n";
//! let document = Document::parse(file, &ParseOptions::new());
//! let reading = Metadata::read(document.fields().unwrap());
//! let codes: Vec<Code> = validate(&reading, &Context::default()).iter().map(|fault| fault.code).collect();
//! assert_eq!(codes, [Code::MissingRoleTitle, Code::InvalidRuntimeKind]);
//! ```

use std::fmt;

use crate::metadata::{Finding, Metadata, Reading, SkillMode};
use crate::redact::find_token;

/// What a fault is about: stable words that a host can match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The text of the skill holds what looks like a token.
    LiteralSecretRejected,
    /// A profile of `secret_refs` is not registered.
    MissingSecretProfile,
    /// An agent without `agent_config`.
    MissingAgentConfig,
    /// An agent without `role_title`.
    MissingRoleTitle,
    /// An agent with a pipeline.
    ToolSchemaWithAgent,
    /// An agent of a kind that there is not.
    InvalidRuntimeKind,
    /// A tool without a pipeline.
    MissingToolSchema,
    /// A tool with an `agent_config`.
    AgentConfigWithTool,
    /// A tool with schemas of an agent.
    AgentIoSchemaWithTool,
    /// A prompt with an `agent_config`.
    AgentConfigWithPrompt,
    /// A prompt with schemas of an agent.
    AgentIoSchemaWithPrompt,
    /// A mode that there is not.
    InvalidSkillMode,
    /// A field that says what the skill may do, and cannot be read.
    InvalidField,
}

impl Code {
    /// The word that reports use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LiteralSecretRejected => "literal_secret_rejected",
            Self::MissingSecretProfile => "missing_secret_profile",
            Self::MissingAgentConfig => "missing_agent_config",
            Self::MissingRoleTitle => "missing_role_title",
            Self::ToolSchemaWithAgent => "tool_schema_with_agent",
            Self::InvalidRuntimeKind => "invalid_runtime_kind",
            Self::MissingToolSchema => "missing_tool_schema",
            Self::AgentConfigWithTool => "agent_config_with_tool",
            Self::AgentIoSchemaWithTool => "agent_io_schema_with_tool",
            Self::AgentConfigWithPrompt => "agent_config_with_prompt",
            Self::AgentIoSchemaWithPrompt => "agent_io_schema_with_prompt",
            Self::InvalidSkillMode => "invalid_skill_mode",
            Self::InvalidField => "invalid_field",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that keeps a skill from running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What it is about.
    pub code: Code,
    /// The field, where it is one: `agent_config.role_title`, `secret_refs[1]`.
    pub field: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "`{field}`: {} [{}]", self.message, self.code),
            None => write!(f, "{} [{}]", self.message, self.code),
        }
    }
}

/// What the host knows beside the front matter.
#[derive(Clone, Copy, Default)]
pub struct Context<'c> {
    source: Option<&'c str>,
    profiles: Option<&'c dyn Fn(&str) -> bool>,
}

impl<'c> Context<'c> {
    /// Has the whole text of the skill searched for tokens.
    #[must_use]
    pub fn with_source(mut self, source: &'c str) -> Self {
        self.source = Some(source);
        self
    }

    /// Has the names of `secret_refs` looked up.
    #[must_use]
    pub fn with_profiles(mut self, is_known: &'c dyn Fn(&str) -> bool) -> Self {
        self.profiles = Some(is_known);
        self
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// Everything that keeps a skill from running: secrets first, then what its mode needs and what it excludes, then the
/// fields that could not be read. Empty for a skill that can run.
pub fn validate(reading: &Reading, context: &Context<'_>) -> Vec<Fault> {
    let mut faults = Faults(Vec::new());
    faults.secrets(&reading.metadata, context);
    let metadata = &reading.metadata;
    match &metadata.mode {
        SkillMode::Agent => faults.agent(reading),
        SkillMode::Tool => faults.tool(metadata),
        SkillMode::Prompt => faults.prompt(metadata),
        SkillMode::Unknown(word) => {
            let shown: String = word.chars().take(60).collect();
            faults.add(Code::InvalidSkillMode, None, format!("`{shown}` is none of prompt, tool, agent"));
        }
    }
    for finding in reading.findings.iter().filter(|finding| finding.is_error() && !is_kind(finding)) {
        let message = format!("line {}: {}", finding.line, finding.message);
        faults.add(Code::InvalidField, Some(&finding.field), message);
    }
    faults.0
}

fn is_kind(finding: &Finding) -> bool {
    finding.field == "agent_config.runtime_kind"
}

struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, code: Code, field: Option<&str>, message: impl Into<String>) {
        self.0.push(Fault { code, field: field.map(str::to_owned), message: message.into() });
    }

    fn secrets(&mut self, metadata: &Metadata, context: &Context<'_>) {
        if let Some(shape) = context.source.and_then(find_token) {
            let message =
                format!("the text holds what looks like a {}; refer to a secret profile", shape.as_str());
            self.add(Code::LiteralSecretRejected, None, message);
        }
        let Some(is_known) = context.profiles else { return };
        for (index, name) in metadata.secret_refs.iter().enumerate().filter(|(_, name)| !is_known(name)) {
            let field = format!("secret_refs[{index}]");
            self.add(
                Code::MissingSecretProfile,
                Some(&field),
                format!("there is no secret profile `{name}`"),
            );
        }
    }

    fn agent(&mut self, reading: &Reading) {
        let metadata = &reading.metadata;
        match &metadata.agent_config {
            None => {
                self.add(Code::MissingAgentConfig, Some("agent_config"), "an agent needs an `agent_config`");
            }
            Some(config) if config.role_title.trim().is_empty() => {
                self.add(
                    Code::MissingRoleTitle,
                    Some("agent_config.role_title"),
                    "an agent needs a `role_title`",
                );
            }
            Some(_) => {}
        }
        if metadata.tool_schema.is_some() {
            self.add(Code::ToolSchemaWithAgent, Some("tool_schema"), "an agent has no pipeline");
        }
        if let Some(finding) = reading.findings.iter().find(|finding| is_kind(finding)) {
            self.add(Code::InvalidRuntimeKind, Some("agent_config.runtime_kind"), finding.message.clone());
        }
    }

    fn tool(&mut self, metadata: &Metadata) {
        if metadata.tool_schema.is_none() {
            let message = "a tool needs a `tool_schema` with at least one step";
            self.add(Code::MissingToolSchema, Some("tool_schema"), message);
        }
        if metadata.agent_config.is_some() {
            self.add(Code::AgentConfigWithTool, Some("agent_config"), "a tool has no `agent_config`");
        }
        if let Some(field) = agent_schema(metadata) {
            self.add(Code::AgentIoSchemaWithTool, Some(field), "a tool has no schemas of an agent");
        }
    }

    fn prompt(&mut self, metadata: &Metadata) {
        if metadata.agent_config.is_some() {
            let message = "a prompt has no `agent_config`; `skill_mode: agent` makes it an agent";
            self.add(Code::AgentConfigWithPrompt, Some("agent_config"), message);
        }
        if let Some(field) = agent_schema(metadata) {
            self.add(Code::AgentIoSchemaWithPrompt, Some(field), "a prompt has no schemas of an agent");
        }
    }
}

fn agent_schema(metadata: &Metadata) -> Option<&'static str> {
    let input = metadata.agent_input_schema.as_ref().map(|_| "agent_input_schema");
    input.or(metadata.agent_output_schema.as_ref().map(|_| "agent_output_schema"))
}

#[cfg(test)]
mod tests;
