//! One skill as it is served, and what keeps a skill from being served.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_agent_core::arguments::ArgumentCheck;
use haversack_agent_core::tool_context::Tool;
use haversack_skill_runtime::metadata::Metadata;
use haversack_skill_runtime::pipeline::Definition;
use serde_json::{Map, Value};

/// What a call of a skill's tool does.
#[derive(Clone)]
pub(crate) enum Action {
    /// Gives the text.
    Prompt,
    /// Runs the pipeline.
    Pipeline(Arc<Definition>),
    /// Runs the agent.
    Agent(Arc<dyn Tool>),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompt => "Prompt",
            Self::Pipeline(_) => "Pipeline",
            Self::Agent(_) => "Agent",
        })
    }
}

/// A skill's tool.
#[derive(Debug)]
pub(crate) struct SkillTool {
    pub(crate) name: String,
    pub(crate) schema: Arc<Map<String, Value>>,
    pub(crate) check: ArgumentCheck,
    pub(crate) action: Action,
}

/// A skill as it is served.
#[derive(Debug)]
pub struct ServedSkill {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) folder: PathBuf,
    pub(crate) metadata: Metadata,
    pub(crate) front_matter: Map<String, Value>,
    /// The text of the skill, without the front matter.
    pub(crate) body: Arc<str>,
    /// The tool, if the skill can run here and may be called by a model.
    pub(crate) tool: Option<SkillTool>,
    /// Whether it is offered as a prompt.
    pub(crate) is_prompt: bool,
    /// Whether it is listed by the skills extension, whose rules for names are stricter than ours.
    pub(crate) is_listed: bool,
}

impl ServedSkill {
    /// The skill's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What its front matter says of modes.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The name of its tool. `None` when it has none: it is kept from models, or it cannot run here, and then
    /// [`Catalogue::problems`](crate::Catalogue::problems) says why.
    #[must_use]
    pub fn tool_name(&self) -> Option<&str> {
        self.tool.as_ref().map(|tool| tool.name.as_str())
    }

    /// Its pipeline, if it is one and was compiled.
    #[must_use]
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        match &self.tool.as_ref()?.action {
            Action::Pipeline(definition) => Some(definition),
            Action::Prompt | Action::Agent(_) => None,
        }
    }

    /// What the seed of the format calls its id: the place in the capability tree, else the name.
    pub(crate) fn id(&self) -> &str {
        self.metadata.tree_id.as_deref().unwrap_or(&self.name)
    }
}

/// Something that keeps a skill, or a part of what it could be, from being served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The skill, by its name or else by its folder's.
    pub skill: String,
    /// Its `SKILL.md`.
    pub file: PathBuf,
    /// What is the matter and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: skill `{}`: {}", self.file.display(), self.skill, self.message)
    }
}
