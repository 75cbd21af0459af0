//! Agent skills of a host, each as a tool that runs a sub-agent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haversack_agent_core::clock::Clock;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::model::Model;
use haversack_agent_core::policy::Policy;
use haversack_agent_core::tool_context::Tool;

use crate::agent::contract::{Contract, ContractState, ScopeEntry};
use crate::agent::desk::{DayBook, Desk};
use crate::agent::seams::{Answer, HandoffBus, Review, Spawner};
use crate::agent::skill::{AgentSkill, Seam, ToolFacts, hex};
use crate::redact::Redactor;

/// Suspended contracts that are kept; the oldest goes first. A person answers a few at a time.
pub const MAX_SUSPENDED: usize = 256;

/// The agent skills of a host: immutable, cheap to clone, and each a tool for an agent of `haversack-agent-core`.
///
/// ```
/// use haversack_agent_core::model::Model;
/// use haversack_agent_core::clock::Clock;
/// use haversack_agent_core::agent::{Agent, BuildError};
/// use haversack_skill_runtime::agent::{AgentSkill, AgentSkills};
/// use haversack_skill_runtime::metadata::AgentConfig;
///
/// fn host(model: impl Model + Clone, clock: impl Clock) -> Result<Agent, BuildError> {
///     let reviewer = AgentSkill::new("reviewer", "Reviews a change", AgentConfig::new("Reviewer"));
///     let skills = AgentSkills::new(model.clone(), clock).with_skill(reviewer);
///     Agent::builder(model).tools(skills.tools()).build()
/// }
/// ```
#[derive(Clone)]
pub struct AgentSkills(pub(crate) Arc<Shared>);

#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) models: BTreeMap<String, Arc<dyn Model>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) skills: Vec<AgentSkill>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) facts: BTreeMap<String, ToolFacts>,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) scope: Vec<ScopeEntry>,
    pub(crate) review: Seam<dyn Review>,
    pub(crate) answer: Seam<dyn Answer>,
    pub(crate) bus: Seam<dyn HandoffBus>,
    pub(crate) spawner: Seam<dyn Spawner>,
    pub(crate) ids: Seam<dyn Fn() -> String + Send + Sync>,
    pub(crate) calendar: Seam<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) desk: Desk,
    pub(crate) redactor: Redactor,
    counter: Arc<AtomicU64>,
    suspended: Arc<Mutex<Vec<Contract>>>,
}

impl AgentSkills {
    /// No skills yet. The clock keeps the time limits of contracts, so there is no doing without one.
    pub fn new(model: impl Model, clock: impl Clock) -> Self {
        Self(Arc::new(Shared {
            model: Arc::new(model),
            models: BTreeMap::new(),
            clock: Arc::new(clock),
            skills: Vec::new(),
            tools: Vec::new(),
            facts: BTreeMap::new(),
            policy: Policy::default(),
            limits: Limits::default(),
            scope: Vec::new(),
            review: None,
            answer: None,
            bus: None,
            spawner: None,
            ids: None,
            calendar: None,
            desk: Desk::default(),
            redactor: Redactor::new(),
            counter: Arc::default(),
            suspended: Arc::default(),
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Adds a skill.
    #[must_use]
    pub fn with_skill(self, skill: AgentSkill) -> Self {
        self.with(|shared| shared.skills.push(skill))
    }

    /// Adds tools that agents may have; those of the host's own agent, which nothing below may exceed.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.with(|shared| shared.tools.extend(tools))
    }

    /// Says what the host knows of a tool.
    #[must_use]
    pub fn with_tool_facts(self, tool: impl Into<String>, facts: ToolFacts) -> Self {
        self.with(|shared| {
            shared.facts.insert(tool.into(), facts);
        })
    }

    /// Adds a model for skills that ask for it by this name. A skill that asks for another gets the default.
    #[must_use]
    pub fn with_model(self, name: impl Into<String>, model: impl Model) -> Self {
        self.with(|shared| {
            shared.models.insert(name.into(), Arc::new(model));
        })
    }

    /// Sets the policy of the agents. The ceiling of the agent above binds them in any case.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        self.with(|shared| shared.policy = policy)
    }

    /// Sets limits of every agent, below which its contract may set stricter ones.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        self.with(|shared| shared.limits = limits)
    }

    /// Sets where agents may work, and what they may do there; at most [`MAX_SCOPE`](crate::agent::MAX_SCOPE) entries count
    /// in a contract. A call may narrow it and never widen it. By default it is wherever their tools reach.
    #[must_use]
    pub fn with_scope(self, scope: impl IntoIterator<Item = ScopeEntry>) -> Self {
        self.with(|shared| shared.scope = scope.into_iter().collect())
    }

    /// Sets who reviews by rule and by person.
    #[must_use]
    pub fn with_review(self, review: impl Review) -> Self {
        self.with(|shared| shared.review = Some(Arc::new(review)))
    }

    /// Sets who answers where an escalation chain names a person.
    #[must_use]
    pub fn with_answer(self, answer: impl Answer) -> Self {
        self.with(|shared| shared.answer = Some(Arc::new(answer)))
    }

    /// Sets the way to agents that run already.
    #[must_use]
    pub fn with_handoff_bus(self, bus: impl HandoffBus) -> Self {
        self.with(|shared| shared.bus = Some(Arc::new(bus)))
    }

    /// Lets the host run the agents instead of our own loop.
    #[must_use]
    pub fn with_spawner(self, spawner: impl Spawner) -> Self {
        self.with(|shared| shared.spawner = Some(Arc::new(spawner)))
    }

    /// Sets where ids of contracts come from. By default they are a digest of the task, the call and a counter.
    #[must_use]
    pub fn with_ids(self, ids: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.with(|shared| shared.ids = Some(Arc::new(ids)))
    }

    /// Sets the number of today, and what was used of it so far. Skills with limits of a day need it.
    #[must_use]
    pub fn with_calendar(self, today: impl Fn() -> u64 + Send + Sync + 'static, book: DayBook) -> Self {
        self.with(|shared| {
            shared.calendar = Some(Arc::new(today));
            shared.desk = Desk::with_book(book);
        })
    }

    /// Sets what masks secrets in reports, before a reviewer, a person or the agent above reads them. By default one that
    /// knows tokens by their shapes; a host with a [`SecretProvider`](crate::secrets::SecretProvider) gives its own.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        self.with(|shared| shared.redactor = redactor)
    }

    /// Gives back contracts that were suspended when the host ended. Others are left out.
    #[must_use]
    pub fn with_suspended(self, contracts: impl IntoIterator<Item = Contract>) -> Self {
        for contract in contracts {
            self.0.suspend(contract);
        }
        self
    }

    /// Contracts that wait to be resumed, oldest first, to be stored beside the session. Those of agents that are
    /// paused at an ask are not here: they are in the session itself.
    pub fn suspended(&self) -> Vec<Contract> {
        self.0.suspensions().clone()
    }

    /// What was used today, to be stored by hosts with limits of a day.
    pub fn day_book(&self) -> DayBook {
        self.0.desk.book()
    }
}

impl Shared {
    fn suspensions(&self) -> MutexGuard<'_, Vec<Contract>> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a contract that waits, and gives back the id of the one that had to make room.
    pub(crate) fn suspend(&self, contract: Contract) -> Option<String> {
        if contract.state() != ContractState::Suspended {
            return None;
        }
        let mut kept = self.suspensions();
        kept.retain(|other| other.contract_id != contract.contract_id);
        let gone = (kept.len() >= MAX_SUSPENDED).then(|| kept.remove(0).contract_id);
        kept.push(contract);
        gone
    }

    /// Takes a suspended contract of this skill.
    pub(crate) fn take_suspended(&self, id: &str, skill: &str) -> Option<Contract> {
        let mut kept = self.suspensions();
        let at = kept.iter().position(|c| c.contract_id == id && c.skill == skill)?;
        Some(kept.remove(at))
    }

    pub(crate) fn next_id(&self, parts: [&str; 3]) -> String {
        if let Some(ids) = &self.ids {
            return ids();
        }
        let count = self.counter.fetch_add(1, Ordering::Relaxed).to_string();
        let named = parts.into_iter().chain([count.as_str()]).collect::<Vec<_>>().join("\0");
        hex(named.as_bytes()).chars().take(16).collect()
    }

    pub(crate) fn facts(&self, tool: &str) -> ToolFacts {
        self.facts.get(tool).copied().unwrap_or_else(|| ToolFacts::customary(tool))
    }
}

impl fmt::Debug for AgentSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.skills.iter().map(|s| s.name.as_str()).collect();
        f.debug_struct("AgentSkills").field("skills", &names).finish_non_exhaustive()
    }
}

const _: () = {
    const fn shareable<T: Clone + Send + Sync + 'static>() {}
    shareable::<AgentSkills>();
};
