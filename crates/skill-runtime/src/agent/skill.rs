//! An agent-mode skill, ready to be run.

use std::fmt::Write as _;
use std::sync::Arc;

use haversack_agent_core::digest::Digest;

use crate::agent::contract::Contract;
use crate::metadata::{AgentConfig, Metadata, SkillMode, Tier};

/// Characters of a tool's name at most, as all providers take them.
const MAX_NAME: usize = 64;

/// An agent-mode skill.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentSkill {
    /// The skill's name.
    pub name: String,
    /// What it is for, in the words that the model above reads.
    pub description: String,
    /// The agent.
    pub config: AgentConfig,
    /// The skill's text, for the agent's system prompt.
    pub body: String,
    /// The tier of what it does, for review gates that let tiers pass.
    pub tier: Option<Tier>,
    /// The name of its tool.
    pub tool_name: String,
}

impl AgentSkill {
    /// An agent. Its tool has the skill's name where that is a name for tools; else a cleaned one that ends in a hash,
    /// so that two skills never share one.
    pub fn new(name: impl Into<String>, description: impl Into<String>, config: AgentConfig) -> Self {
        let name = name.into();
        let tool_name = tool_name(&name);
        Self { name, description: description.into(), config, body: String::new(), tier: None, tool_name }
    }

    /// The agent of a skill, if it is in agent mode and has an agent.
    pub fn from_metadata(
        name: impl Into<String>,
        description: impl Into<String>,
        metadata: &Metadata,
    ) -> Option<Self> {
        let config = metadata.agent_config.clone().filter(|_| metadata.mode == SkillMode::Agent)?;
        let mut skill = Self::new(name, description, config);
        skill.tier = metadata.min_tier;
        Some(skill)
    }

    /// Sets the skill's text.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the name of its tool: 1 to 64 of `[A-Za-z0-9_-]`.
    #[must_use]
    pub fn with_tool_name(mut self, name: impl Into<String>) -> Self {
        self.tool_name = name.into();
        self
    }

    /// The system prompt of a task: who the agent is, the skill's text, its procedure, and the contract.
    pub fn system_prompt(&self, contract: &Contract) -> String {
        let config = &self.config;
        let mut who = format!("# Role: {}\n", config.role_title);
        if !config.role_goal.is_empty() {
            let _ = writeln!(who, "Goal: {}", config.role_goal);
        }
        if !config.role_backstory.is_empty() {
            let _ = writeln!(who, "\n{}", config.role_backstory);
        }
        let parts = [who, self.body.trim().to_owned(), config.sop_section(), contract.to_prompt()];
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n---\n\n")
    }
}

fn tool_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if clean == name && !clean.is_empty() && clean.len() <= MAX_NAME {
        return clean;
    }
    let hash: String = hex(name.as_bytes()).chars().take(8).collect();
    let kept: String = clean.chars().take(MAX_NAME - 9).collect();
    format!("{kept}_{hash}")
}

/// The digest of some bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in Digest::of_bytes(bytes).as_bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// What a host knows of one of its tools, beyond what the tool says of itself. Without the host's word a tool counts
/// as one that may use the network, unless it is one of the customary file tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFacts {
    /// It never uses the network.
    pub offline: bool,
    /// What it executes runs in a sandbox, or it executes nothing.
    pub sandboxed: bool,
}

impl ToolFacts {
    /// A tool that never uses the network.
    pub fn offline() -> Self {
        Self { offline: true, sandboxed: false }
    }

    /// The same, and what it executes runs in a sandbox, or it executes nothing.
    #[must_use]
    pub fn sandboxed(mut self) -> Self {
        self.sandboxed = true;
        self
    }

    pub(crate) fn customary(name: &str) -> Self {
        let file_tool = ["read_file", "write_file", "list_dir"].contains(&name);
        Self { offline: file_tool, sandboxed: file_tool }
    }
}

/// A handle that many threads share; a type for seams that are optional.
pub(crate) type Seam<T> = Option<Arc<T>>;
