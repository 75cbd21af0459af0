//! Skills that are more than text: pipelines of tools and sub-agents, each a tool of its own.

use std::fmt;
use std::sync::Arc;

use haversack_agent_core::clock::TokioClock;
use haversack_agent_core::tool_context::Tool;
use haversack_skill_runtime::agent::AgentSkills;
use haversack_skill_runtime::pipeline::Runner;
use haversack_skill_runtime::redact::Redactor;
use haversack_skills::{Reader, Scope, Snapshot};
use haversack_tool_adapter::skill_modes::{Made, MadeTools, ModeSkill};

use crate::builder::HaversackBuilder;
use crate::report::{Note, Report, SkillState};

type Change<T> = Arc<dyn Fn(T) -> T + Send + Sync>;
type KnowsProfile = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How skills in tool and agent mode run; for [`HaversackBuilder::skill_modes`](crate::HaversackBuilder::skill_modes).
///
/// Pipelines and agents ask the host's approver and keep to its policy. Agents run on the host's model, and get what its
/// own agent has: its tools, those of servers, and the pipelines, each what the skill leaves it.
///
/// ```no_run
/// use haversack::{Haversack, SkillModes};
/// # async fn host(model: impl haversack::prelude::Model) -> Result<(), haversack::Error> {
/// let haversack = Haversack::builder(model).project(".").skill_modes(SkillModes::new()).build()?;
/// for skill in &haversack.prepare().await?.report().skills {
///     println!("{}: {}", skill.name, skill.state); // "survey: the tool skill_survey, a pipeline"
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct SkillModes {
    redactor: Redactor,
    agents: Option<Change<AgentSkills>>,
    pipelines: Option<Change<Runner>>,
    profiles: Option<KnowsProfile>,
}

impl fmt::Debug for SkillModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillModes").field("redactor", &self.redactor).finish_non_exhaustive()
    }
}

impl SkillModes {
    /// As the host's own agent, without anything of their own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what masks secrets in what pipelines and agents give back. By default it knows tokens by their shapes; a host
    /// with secret profiles gives the redactor of its provider.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Sets which secret profiles there are: a skill that refers to another is not used. Without it they are not looked
    /// up.
    #[must_use]
    pub fn profiles(mut self, is_known: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.profiles = Some(Arc::new(is_known));
        self
    }

    /// Changes what agents run on, once, while it is built: other models, reviewers, who answers, a calendar, what is
    /// left of an earlier process.
    #[must_use]
    pub fn agents(mut self, change: impl Fn(AgentSkills) -> AgentSkills + Send + Sync + 'static) -> Self {
        self.agents = Some(Arc::new(change));
        self
    }

    /// Changes what pipelines run on, for each run: time limits, another policy.
    #[must_use]
    pub fn pipelines(mut self, change: impl Fn(Runner) -> Runner + Send + Sync + 'static) -> Self {
        self.pipelines = Some(Arc::new(change));
        self
    }
}

/// The modes of one host, kept between runs: contracts that wait and the day's books live here.
pub(crate) struct ModeSide {
    pub(crate) agents: AgentSkills,
    modes: haversack_tool_adapter::skill_modes::SkillModes,
}

impl ModeSide {
    pub(crate) fn of(host: &mut HaversackBuilder) -> Option<Self> {
        let SkillModes { redactor, agents: change, pipelines, profiles } = host.skill_modes.take()?;
        let agents = AgentSkills::new(Arc::clone(&host.model), TokioClock::new())
            .with_policy(host.policy.clone())
            .with_limits(host.limits.clone())
            .with_redactor(redactor.clone());
        let agents = change.map_or_else(|| agents.clone(), |change| change(agents.clone()));
        let (approver, policy) = (host.approver.clone(), host.policy.clone());
        let runner = move |tools: Vec<Arc<dyn Tool>>| {
            let runner = Runner::new(tools)
                .with_policy(policy.clone())
                .with_clock(TokioClock::new())
                .with_redactor(redactor.clone());
            let runner = match &approver {
                Some(approver) => runner.with_approver(Arc::clone(approver)),
                None => runner,
            };
            match &pipelines {
                Some(change) => change(runner),
                None => runner,
            }
        };
        let mut modes =
            haversack_tool_adapter::skill_modes::SkillModes::new(runner).with_agents(agents.clone());
        if let Some(known) = profiles {
            modes = modes.with_profiles(move |name| known(name));
        }
        Some(Self { agents, modes })
    }

    /// Makes tools of the skills that are no texts, and gives back the skills that are left.
    pub(crate) fn make(
        &self,
        snapshot: &Snapshot,
        tools: &[Arc<dyn Tool>],
        report: &mut Report,
    ) -> (Snapshot, MadeTools) {
        let reader = Reader::new(snapshot.clone());
        let mut skills = Vec::new();
        for skill in snapshot.skills().filter(|skill| skill.is_for_model()) {
            match reader.source(skill.name()) {
                Ok(text) => skills.push(ModeSkill::new(skill.name(), skill.description(), text)),
                // The `skill` tool says the same to the model, should it ask.
                Err(error) => {
                    report.notes.push(Note::new(skill.file().display().to_string(), error.to_string()));
                }
            }
        }
        let made = self.modes.make(skills, tools);
        let others =
            made.skills.iter().filter(|(_, made)| *made != Made::Prompt).map(|(name, _)| name.as_str());
        let snapshot = snapshot.narrowed(&Scope::everything().with_denied(others));
        (snapshot, made)
    }
}

/// Says in the report what became of the skills.
pub(crate) fn describe(made: &MadeTools, report: &mut Report) {
    for (name, made) in &made.skills {
        let state = match made {
            Made::Pipeline(tool) => SkillState::Pipeline(tool.as_str().into()),
            Made::Agent(tool) => SkillState::Agent(tool.as_str().into()),
            Made::Unusable(reasons) => {
                let why = reasons.join("; ");
                report.notes.push(Note::new(format!("skill {name}"), why.clone()));
                SkillState::Withheld(why)
            }
            _ => continue,
        };
        // Of several skills with one name, the one that is not shadowed.
        let is_shadowed = |state: &SkillState| matches!(state, SkillState::Shadowed | SkillState::Invalid(_));
        let line = report.skills.iter_mut().find(|skill| skill.name == *name && !is_shadowed(&skill.state));
        if let Some(line) = line {
            line.state = state;
        }
    }
}
