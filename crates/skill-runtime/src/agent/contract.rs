//! The delegation contract: what one sub-agent is asked to do, within which limits, and how far it has come.

mod state;
mod limits;
mod prompt;

use serde::{Deserialize, Serialize};

pub use limits::{Constraints, Exhausted, Permission, ScopeEntry, Used};
pub use state::ContractState;

/// Code points of a task at most.
pub const MAX_TASK_CHARS: usize = 500;
/// Code points of the success criteria at most.
pub const MAX_CRITERIA_CHARS: usize = 300;
/// Entries of the scope at most.
pub const MAX_SCOPE: usize = 20;
/// Allowed commands at most.
pub const MAX_COMMANDS: usize = 50;
/// Agents that may be dispatched to at most.
pub const MAX_DISPATCH: usize = 20;
/// Milliseconds that a task may take unless its caller says otherwise.
pub const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// The version of the record.
pub const CONTRACT_VERSION: &str = "1.0";

/// A task handed to a sub-agent, with its limits and its state. Plain data: ids come from whoever issues it.
///
/// ```
/// use haversack_skill_runtime::agent::{Constraints, Contract, ContractState};
///
/// let mut contract = Contract::new("c-1", "reviewer", "Review the change")?;
/// contract.advance(ContractState::Active)?;
/// assert_eq!(
///     contract.advance(ContractState::Pending).unwrap_err().to_string(),
///     "contract `c-1` cannot go from active to pending; allowed: suspended, completed, failed, cancelled"
/// );
/// # Ok::<(), haversack_skill_runtime::agent::ContractError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Contract {
    /// Its id.
    pub contract_id: String,
    /// The version of the record.
    pub schema_version: String,
    /// The contract above; empty at the top.
    #[serde(default)]
    pub parent_contract: String,
    /// The skill.
    pub skill: String,
    /// What to do.
    pub task_brief: String,
    /// When it is done.
    #[serde(default)]
    pub success_criteria: String,
    /// Where it may work; empty is wherever its tools reach.
    #[serde(default)]
    pub scope: Vec<ScopeEntry>,
    /// What it must not do.
    #[serde(default)]
    pub constraints: Constraints,
    /// Milliseconds that it may take.
    pub timeout_ms: u64,
    /// What was used.
    #[serde(default)]
    pub used: Used,
    /// What the agent reported when it was suspended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress: String,
    state: ContractState,
}

impl Contract {
    /// A pending contract with the default time limit and no constraints.
    ///
    /// # Errors
    ///
    /// [`ContractError::Empty`] and [`ContractError::TooLong`] for a task that is no task.
    pub fn new(
        id: impl Into<String>,
        skill: impl Into<String>,
        task: impl Into<String>,
    ) -> Result<Self, ContractError> {
        let task_brief = task.into();
        if task_brief.trim().is_empty() {
            return Err(ContractError::Empty);
        }
        bounded("task", "characters", task_brief.chars().count(), MAX_TASK_CHARS)?;
        Ok(Self {
            contract_id: id.into(),
            schema_version: CONTRACT_VERSION.to_owned(),
            parent_contract: String::new(),
            skill: skill.into(),
            task_brief,
            success_criteria: String::new(),
            scope: Vec::new(),
            constraints: Constraints::default(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            used: Used::default(),
            progress: String::new(),
            state: ContractState::Pending,
        })
    }

    /// Sets when the task is done.
    ///
    /// # Errors
    ///
    /// [`ContractError::TooLong`] beyond [`MAX_CRITERIA_CHARS`].
    pub fn with_success_criteria(mut self, criteria: impl Into<String>) -> Result<Self, ContractError> {
        let criteria = criteria.into();
        bounded("success criteria", "characters", criteria.chars().count(), MAX_CRITERIA_CHARS)?;
        self.success_criteria = criteria;
        Ok(self)
    }

    /// Sets where it may work.
    ///
    /// # Errors
    ///
    /// [`ContractError::TooLong`] beyond [`MAX_SCOPE`] entries.
    pub fn with_scope(mut self, scope: Vec<ScopeEntry>) -> Result<Self, ContractError> {
        bounded("scope", "entries", scope.len(), MAX_SCOPE)?;
        self.scope = scope;
        Ok(self)
    }

    /// Sets what it must not do.
    ///
    /// # Errors
    ///
    /// [`ContractError::TooLong`] beyond [`MAX_COMMANDS`] commands or [`MAX_DISPATCH`] agents.
    pub fn with_constraints(mut self, constraints: Constraints) -> Result<Self, ContractError> {
        let commands = constraints.allowed_commands.as_ref().map_or(0, Vec::len);
        bounded("allowed commands", "entries", commands, MAX_COMMANDS)?;
        bounded("agents to dispatch to", "entries", constraints.can_dispatch_to.len(), MAX_DISPATCH)?;
        self.constraints = constraints;
        Ok(self)
    }

    /// Sets how long it may take, in milliseconds.
    #[must_use]
    pub fn with_timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    /// Puts the contract below another one: it records that one, takes over its constraints, and may not use more
    /// than is left there.
    #[must_use]
    pub fn below(mut self, above: &Self) -> Self {
        let mut constraints = above.constraints.clone();
        let left = |max: Option<u64>, used: u64| max.map(|max| max.saturating_sub(used));
        constraints.max_bash_calls = left(constraints.max_bash_calls, above.used.bash_calls);
        constraints.max_tokens = left(constraints.max_tokens, above.used.tokens);
        self.constraints = self.constraints.under(&constraints);
        self.timeout_ms = self.timeout_ms.min(above.timeout_ms.saturating_sub(above.used.millis));
        if self.scope.is_empty() {
            self.scope.clone_from(&above.scope);
        }
        self.parent_contract.clone_from(&above.contract_id);
        self
    }

    /// Where it stands.
    pub fn state(&self) -> ContractState {
        self.state
    }

    /// Goes to the next state.
    ///
    /// # Errors
    ///
    /// [`ContractError::Transition`] where that state may not follow; nothing is changed then.
    pub fn advance(&mut self, to: ContractState) -> Result<(), ContractError> {
        if !self.state.next().contains(&to) {
            return Err(ContractError::Transition { id: self.contract_id.clone(), from: self.state, to });
        }
        self.state = to;
        Ok(())
    }

    /// Whether the agent may start this one: never with `no_spawn`, else if it is listed or `*` is.
    pub fn may_dispatch_to(&self, agent: &str) -> bool {
        let listed = &self.constraints.can_dispatch_to;
        !self.constraints.no_spawn && listed.iter().any(|id| id == "*" || id == agent)
    }

    /// The first limit that is reached: commands, time, tokens.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.commands_exhausted().or_else(|| self.work_exhausted())
    }

    pub(crate) fn commands_exhausted(&self) -> Option<Exhausted> {
        let (used, max) = (self.used.bash_calls, self.constraints.max_bash_calls?);
        (used >= max).then_some(Exhausted::BashCalls { used, max })
    }

    /// The limits beyond which nothing goes on at all.
    pub(crate) fn work_exhausted(&self) -> Option<Exhausted> {
        if self.used.millis >= self.timeout_ms {
            return Some(Exhausted::Time { used: self.used.millis, max: self.timeout_ms });
        }
        let (used, max) = (self.used.tokens, self.constraints.max_tokens?);
        (used >= max).then_some(Exhausted::Tokens { used, max })
    }
}

fn bounded(what: &'static str, unit: &'static str, found: usize, max: usize) -> Result<(), ContractError> {
    if found > max {
        return Err(ContractError::TooLong { what, unit, found, max });
    }
    Ok(())
}

/// Why a contract cannot be written, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// There is no task.
    #[error("the task is empty")]
    Empty,
    /// A part is too long.
    #[error("the {what} has {found} {unit}, and at most {max} are allowed")]
    #[expect(missing_docs, reason = "the fields are those of the message")]
    TooLong { what: &'static str, unit: &'static str, found: usize, max: usize },
    /// That state may not follow.
    #[error("contract `{id}` cannot go from {from} to {to}; allowed: {}", allowed(*.from))]
    #[expect(missing_docs, reason = "the fields are those of the message")]
    Transition { id: String, from: ContractState, to: ContractState },
}

fn allowed(from: ContractState) -> String {
    if from.is_final() {
        return "no transitions".to_owned();
    }
    from.next().iter().map(|s| s.word()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
