//! Agent mode: a skill as a sub-agent, with a contract that says what it may do and what it may spend.
//!
//! [`AgentSkills`] makes a tool of every agent-mode skill. A call of such a tool writes a [`Contract`], gives the agent
//! the tools that [`tools_for`] leaves it, runs it on the loop of `haversack-agent-core` below the run that made the
//! call, and gives back its [`Report`]. The contract holds by what stands around the agent's model and tools, not by
//! what its prompt says: tokens, time, commands, folders, network, agents of its own, silence.

mod contract;
mod decay;
mod report;
mod seams;
mod live;
mod desk;
mod guard;
mod skill;
mod runtime;
mod finish;
mod task;

pub use contract::{
    CONTRACT_VERSION, Constraints, Contract, ContractError, ContractState, DEFAULT_TIMEOUT_MS, Exhausted,
    MAX_COMMANDS, MAX_CRITERIA_CHARS, MAX_DISPATCH, MAX_SCOPE, MAX_TASK_CHARS, Permission, ScopeEntry, Used,
};
pub use decay::{CapabilitySet, MINIMAL_TOOLS, Violation, is_under_any, scope_violations, tools_for};
pub use desk::DayBook;
pub use report::{
    Artifacts, AuthRequest, HelpRequest, MAX_HINT_CHARS, MAX_RESULT_CHARS, MAX_SUMMARY_CHARS, MAX_VIOLATIONS,
    Report, ReportStatus, block_without_record,
};
pub use runtime::{AgentSkills, MAX_SUSPENDED};
pub use seams::{Answer, Handoff, HandoffBus, Review, ReviewVerdict, SpawnRequest, Spawned, Spawner};
pub use skill::{AgentSkill, ToolFacts};
