//! What a host brings: tools for pipelines and agents, a model, and what needs no asking.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haversack_agent_core::clock::TokioClock;
use haversack_agent_core::model::Model;
use haversack_agent_core::policy::{Mode, Policy, Rule};
use haversack_agent_core::tool_context::Tool;
use haversack_skill_runtime::agent::AgentSkills;
use haversack_skill_runtime::metadata::Approval;
use haversack_skill_runtime::pipeline::{Runner, ToolNode};
use haversack_skill_runtime::redact::Redactor;

/// How long a pipeline may take unless the host says otherwise; answers of people are waited for within it.
pub const DEFAULT_PIPELINE_LIMIT: Duration = Duration::from_secs(600);

/// What a host brings to the skills that it serves. Without anything, prompt skills run, and pipelines and agents are
/// reported as what cannot.
#[derive(Clone)]
pub struct Host {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) agents: Option<AgentSkills>,
    pub(crate) pre_approved: Approval,
    pub(crate) allowed: Vec<String>,
    pub(crate) pipeline_limit: Duration,
    pub(crate) redactor: Redactor,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            agents: None,
            pre_approved: Approval::None,
            allowed: Vec::new(),
            pipeline_limit: DEFAULT_PIPELINE_LIMIT,
            redactor: Redactor::new(),
        }
    }
}

impl Host {
    /// A host that brings nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds tools that pipelines may call and agents may have.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the model that agents run on.
    #[must_use]
    pub fn with_model(mut self, model: impl Model) -> Self {
        self.agents = Some(AgentSkills::new(model, TokioClock::new()));
        self
    }

    /// Sets how far steps of pipelines run without anybody being asked: steps that want this or less. With
    /// `exec_escalation`, agents ask nothing either.
    #[must_use]
    pub fn with_pre_approved(mut self, approval: Approval) -> Self {
        self.pre_approved = approval;
        self
    }

    /// Lets agents call a tool without anybody being asked; a pattern with `*`.
    #[must_use]
    pub fn with_allowed_tool(mut self, pattern: impl Into<String>) -> Self {
        self.allowed.push(pattern.into());
        self
    }

    /// Sets how long a pipeline may take; [`DEFAULT_PIPELINE_LIMIT`] by default.
    #[must_use]
    pub fn with_pipeline_limit(mut self, limit: Duration) -> Self {
        self.pipeline_limit = limit;
        self
    }

    /// Sets what masks secrets in everything that pipelines, agents and the server's own tools give back.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// What compiles and runs pipelines. The operator chose the tools, so that only steps ask which say so.
    pub(crate) fn runner(&self) -> Runner {
        Runner::new(self.tools.iter().cloned())
            .with_policy(Policy::new(Mode::Autonomous))
            .with_clock(TokioClock::new())
            .with_time_limit(self.pipeline_limit)
            .with_redactor(self.redactor.clone())
    }

    /// What pipelines are compiled against.
    pub(crate) fn node(&self, tool: &str) -> Option<ToolNode> {
        self.tools.iter().any(|known| &*known.spec().name == tool).then(|| ToolNode::new(tool))
    }

    /// Agents, with the tools and what they may do unasked.
    pub(crate) fn agents(&self) -> Option<AgentSkills> {
        let mode = if self.pre_approved == Approval::ExecEscalation { Mode::Autonomous } else { Mode::Ask };
        let rules = self.allowed.iter().map(|pattern| Rule::allow(pattern.as_str()));
        let policy = Policy::new(mode).with_rules(rules);
        Some(self.agents.clone()?.with_tools(self.tools.iter().cloned()).with_policy(policy))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.spec().name).collect();
        f.debug_struct("Host")
            .field("tools", &tools)
            .field("runs_agents", &self.agents.is_some())
            .field("pre_approved", &self.pre_approved)
            .finish_non_exhaustive()
    }
}
