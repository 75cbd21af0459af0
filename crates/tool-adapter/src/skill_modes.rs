//! The skills of a host, each made what its mode says: a pipeline or a sub-agent is a tool, a prompt stays a text.
//!
//! ```
//! use haversack_agent_core::prelude::*;
//! use haversack_skill_runtime::pipeline::Runner;
//! use haversack_tool_adapter::skill_modes::{ModeSkill, Made, SkillModes};
//!
//! let text = "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n";
//! let modes = SkillModes::new(|tools| Runner::new(tools));
//! let made = modes.make([ModeSkill::new("hello", "Says hello.", text)], &[]);
//! assert!(made.tools.is_empty());
//! assert_eq!(made.skills, [("hello".to_owned(), Made::Prompt)]);
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use haversack_agent_core::prelude::*;
use haversack_skill_runtime::SkillMode;
use haversack_skill_runtime::agent::{AgentSkill, AgentSkills};
use haversack_skill_runtime::metadata::Reading;
use haversack_skill_runtime::pipeline::{Origin, Runner, Store, ToolNode};
use haversack_skill_runtime::source::SkillSource;
use haversack_skill_runtime::validate::{Context, validate};

use crate::skill_pipeline::PipelineTool;

/// A skill as it was found: its name, what it is for, and the whole of its `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeSkill {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its `SKILL.md`, front matter and all.
    pub text: String,
}

impl ModeSkill {
    /// A skill of this name, description and text.
    pub fn new(name: impl Into<String>, description: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), text: text.into() }
    }
}

/// What was made of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Made {
    /// It stays a text.
    Prompt,
    /// It is the pipeline behind the tool of this name.
    Pipeline(String),
    /// It is the sub-agent behind the tool of this name.
    Agent(String),
    /// It says that it is a pipeline or an agent, and cannot be one for these reasons.
    Unusable(Vec<String>),
}

/// The tools that skills became.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct MadeTools {
    /// The tools, in the order of the skills; pipelines first.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What was made of each skill, in their order.
    pub skills: Vec<(String, Made)>,
}

impl fmt::Debug for MadeTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeTools").field("skills", &self.skills).finish_non_exhaustive()
    }
}

type MakeRunner = Arc<dyn Fn(Vec<Arc<dyn Tool>>) -> Runner + Send + Sync>;
type KnowsProfile = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How skills become tools. Cheap to clone.
#[derive(Clone)]
pub struct SkillModes {
    runner: MakeRunner,
    agents: Option<AgentSkills>,
    profiles: Option<KnowsProfile>,
}

impl fmt::Debug for SkillModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillModes").field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl SkillModes {
    /// Pipelines run as `runner` says, which is given the host's tools: it sets the approver, the policy, the clock and
    /// the redactor. Agent-mode skills cannot be used without [`with_agents`](Self::with_agents).
    pub fn new(runner: impl Fn(Vec<Arc<dyn Tool>>) -> Runner + Send + Sync + 'static) -> Self {
        Self { runner: Arc::new(runner), agents: None, profiles: None }
    }

    /// Sets what agent-mode skills run on. They get the host's tools and the pipelines, each what its skill leaves it.
    #[must_use]
    pub fn with_agents(mut self, agents: AgentSkills) -> Self {
        self.agents = Some(agents);
        self
    }

    /// Sets which secret profiles there are. Without it, `secret_refs` are not looked up.
    #[must_use]
    pub fn with_profiles(mut self, is_known: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.profiles = Some(Arc::new(is_known));
        self
    }

    /// Makes of every skill what it is, over these tools of the host. A skill that would take the name of another tool
    /// is not used.
    pub fn make(&self, skills: impl IntoIterator<Item = ModeSkill>, tools: &[Arc<dyn Tool>]) -> MadeTools {
        let mut maker = Maker {
            modes: self,
            runner: (self.runner)(tools.to_vec()),
            host: tools,
            taken: tools.iter().map(|tool| tool.spec().name.to_string()).collect(),
            store: Store::new(),
            pipelines: Vec::new(),
            agents: Vec::new(),
        };
        let mut made = MadeTools::default();
        for skill in skills {
            let what = maker.make(&skill);
            made.skills.push((skill.name, what));
        }
        let pipelines = maker.pipelines;
        if let Some(agents) = &self.agents {
            let below = tools.iter().chain(&pipelines).cloned();
            let agents =
                maker.agents.into_iter().fold(agents.clone().with_tools(below), AgentSkills::with_skill);
            made.tools = agents.tools();
        }
        made.tools.splice(0..0, pipelines);
        made
    }
}

struct Maker<'m> {
    modes: &'m SkillModes,
    runner: Runner,
    host: &'m [Arc<dyn Tool>],
    taken: BTreeSet<String>,
    store: Store,
    pipelines: Vec<Arc<dyn Tool>>,
    agents: Vec<AgentSkill>,
}

impl Maker<'_> {
    fn make(&mut self, skill: &ModeSkill) -> Made {
        let Some(source) = SkillSource::read(&skill.text) else { return Made::Prompt };
        if source.reading.metadata.mode == SkillMode::Prompt {
            // What is wrong with a text for a model does not keep it from being read.
            return Made::Prompt;
        }
        let mut context = Context::default().with_source(&skill.text);
        if let Some(known) = &self.modes.profiles {
            context = context.with_profiles(&**known);
        }
        let faults = validate(&source.reading, &context);
        if !faults.is_empty() {
            return Made::Unusable(faults.iter().map(ToString::to_string).collect());
        }
        let made = match source.reading.metadata.mode {
            SkillMode::Tool => self.pipeline(skill, &source.reading),
            _ => self.agent(skill, &source),
        };
        made.unwrap_or_else(Made::Unusable)
    }

    fn take(&mut self, name: &str) -> Result<(), Vec<String>> {
        if self.taken.insert(name.to_owned()) {
            return Ok(());
        }
        Err(vec![format!(
            "its tool would be called `{name}`, as another one is; give the skill another name"
        )])
    }

    fn pipeline(&mut self, skill: &ModeSkill, reading: &Reading) -> Result<Made, Vec<String>> {
        let Some(schema) = &reading.metadata.tool_schema else { return Ok(Made::Prompt) };
        let known =
            |name: &str| self.host.iter().any(|tool| *tool.spec().name == *name).then(|| ToolNode::new(name));
        let origin = Origin::new(&skill.name, &skill.text).with_description(&skill.description);
        let compiled = self.store.compile(&origin, schema, &known);
        compiled.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let name = haversack_skill_runtime::pipeline::tool_name(&skill.name);
        self.take(&name)?;
        let Some(definition) = self.store.get(&name) else { return Ok(Made::Prompt) };
        self.pipelines.push(Arc::new(PipelineTool::new(Arc::clone(definition), self.runner.clone())));
        Ok(Made::Pipeline(name))
    }

    fn agent(&mut self, skill: &ModeSkill, source: &SkillSource) -> Result<Made, Vec<String>> {
        if self.modes.agents.is_none() {
            return Err(vec!["the host runs no agents".to_owned()]);
        }
        let agent = AgentSkill::from_metadata(&skill.name, &skill.description, &source.reading.metadata);
        let agent = agent.ok_or_else(|| vec!["it is no agent".to_owned()])?.with_body(&source.body);
        let name = agent.tool_name.clone();
        self.take(&name)?;
        self.agents.push(agent);
        Ok(Made::Agent(name))
    }
}

#[cfg(test)]
mod tests;
