//! The delegation contract: what one sub-agent is asked to do, within which limits, and how far it has come.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::metadata::{AgentConfig, Escalation};

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

/// Where a contract stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContractState {
    /// Written, and nothing runs yet.
    Pending,
    /// The agent works.
    Active,
    /// It waits: for a person, for more rights, for an answer.
    Suspended,
    /// Done. Final.
    Completed,
    /// Failed. Final.
    Failed,
    /// Called off. Final.
    Cancelled,
}

impl ContractState {
    /// The states that may follow.
    ///
    /// ```
    /// use haversack_skill_runtime::agent::ContractState::{Active, Completed, Pending};
    ///
    /// assert_eq!(Pending.next(), [Active]);
    /// assert!(Completed.next().is_empty());
    /// ```
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Active],
            // From active to cancelled directly: a run that is cancelled is not first suspended.
            Self::Active => &[Self::Suspended, Self::Completed, Self::Failed, Self::Cancelled],
            Self::Suspended => &[Self::Active, Self::Cancelled],
            Self::Completed | Self::Failed | Self::Cancelled => &[],
        }
    }

    /// Whether nothing follows.
    pub fn is_final(self) -> bool {
        self.next().is_empty()
    }

    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ContractState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Permission {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Executing.
    Execute,
}

/// One folder of a contract's scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScopeEntry {
    /// The folder or file.
    pub path: String,
    /// What may be done there.
    pub permissions: Vec<Permission>,
}

impl ScopeEntry {
    /// An entry of the scope.
    pub fn new(path: impl Into<String>, permissions: impl IntoIterator<Item = Permission>) -> Self {
        Self { path: path.into(), permissions: permissions.into_iter().collect() }
    }
}

/// What a sub-agent must not do, or not more than so often. `None` is no limit, and 0 is none at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Constraints {
    /// No network.
    pub no_network: bool,
    /// No sub-agents of its own.
    pub no_spawn: bool,
    /// Only in a sandbox.
    pub sandbox_required: bool,
    /// Commands it may run at most.
    #[serde(alias = "maxBashCalls", skip_serializing_if = "Option::is_none")]
    pub max_bash_calls: Option<u64>,
    /// The only commands it may run; an empty list is none.
    #[serde(alias = "allowedCommands", skip_serializing_if = "Option::is_none")]
    pub allowed_commands: Option<Vec<String>>,
    /// Agents that it may start; `*` is any, none by default.
    #[serde(alias = "canDispatchTo", skip_serializing_if = "Vec::is_empty")]
    pub can_dispatch_to: Vec<String>,
    /// Milliseconds without a sign after which it counts as stalled.
    #[serde(alias = "stallThresholdMs", skip_serializing_if = "Option::is_none")]
    pub stall_threshold_ms: Option<u64>,
    /// Tokens that it and all below it may use.
    #[serde(alias = "maxTokens", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whom it turns to when it is stuck, in order.
    #[serde(alias = "escalationChain", skip_serializing_if = "Vec::is_empty")]
    pub escalation_chain: Vec<Escalation>,
}

impl From<&AgentConfig> for Constraints {
    fn from(config: &AgentConfig) -> Self {
        Self {
            no_network: config.no_network,
            no_spawn: config.no_spawn,
            sandbox_required: config.sandbox_required,
            max_bash_calls: config.max_bash_calls,
            allowed_commands: config.allowed_commands.clone(),
            can_dispatch_to: config.can_dispatch_to.clone(),
            stall_threshold_ms: config.stall_threshold_ms,
            max_tokens: config.max_tokens_per_session,
            escalation_chain: config.escalation_chain.clone(),
        }
    }
}

impl Constraints {
    /// These constraints, and those of the contract above on top: what is forbidden there stays forbidden here.
    #[must_use]
    pub fn under(mut self, above: &Self) -> Self {
        self.no_network |= above.no_network;
        self.no_spawn |= above.no_spawn;
        self.sandbox_required |= above.sandbox_required;
        self.max_bash_calls = least(self.max_bash_calls, above.max_bash_calls);
        self.max_tokens = least(self.max_tokens, above.max_tokens);
        if let Some(allowed) = &above.allowed_commands {
            self.allowed_commands = Some(match self.allowed_commands.take() {
                Some(own) => own.into_iter().filter(|command| allowed.contains(command)).collect(),
                None => allowed.clone(),
            });
        }
        if !above.can_dispatch_to.iter().any(|id| id == "*") {
            let any = self.can_dispatch_to.iter().any(|id| id == "*");
            let own = std::mem::take(&mut self.can_dispatch_to);
            let kept = above.can_dispatch_to.iter().filter(|id| any || own.contains(id));
            self.can_dispatch_to = kept.cloned().collect();
        }
        self
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}

/// What was used under a contract so far, by the agent and by all agents below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Used {
    /// Commands that ran.
    pub bash_calls: u64,
    /// Tokens, of the prompts and of the answers.
    pub tokens: u64,
    /// Milliseconds of work.
    pub millis: u64,
    /// Tries after the first.
    pub retries: u64,
    /// Rounds of review.
    pub review_rounds: u64,
    /// Steps of the escalation chain that were taken.
    pub escalations: usize,
}

/// A limit of a contract that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exhausted {
    /// The commands.
    BashCalls {
        /// How many ran.
        used: u64,
        /// How many may.
        max: u64,
    },
    /// The time.
    Time {
        /// Milliseconds that were used.
        used: u64,
        /// Milliseconds that may be.
        max: u64,
    },
    /// The tokens.
    Tokens {
        /// How many were used.
        used: u64,
        /// How many may be.
        max: u64,
    },
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, used, max) = match self {
            Self::BashCalls { used, max } => ("commands are used up", used, max),
            Self::Time { used, max } => ("time is used up (ms)", used, max),
            Self::Tokens { used, max } => ("tokens are used up", used, max),
        };
        write!(f, "the contract's {what}: {used}/{max}")
    }
}

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

    /// The contract as its agent reads it.
    pub fn to_prompt(&self) -> String {
        let mut out = format!(
            "## Delegation Contract\n\n- Contract: {}\n- Task: {}\n",
            self.contract_id, self.task_brief
        );
        if !self.success_criteria.is_empty() {
            let _ = writeln!(out, "- Done when: {}", self.success_criteria);
        }
        if !self.parent_contract.is_empty() {
            let _ = writeln!(out, "- Contract above: {}", self.parent_contract);
        }
        let _ = writeln!(out, "- Time limit: {} ms", self.timeout_ms);
        self.write_scope(&mut out);
        self.write_constraints(&mut out);
        out.push_str(RULES);
        out
    }

    fn write_scope(&self, out: &mut String) {
        if self.scope.is_empty() {
            return;
        }
        out.push_str("\n### Allowed Scope\n\n");
        for entry in &self.scope {
            let words: Vec<&str> = entry.permissions.iter().map(|p| p.word()).collect();
            let _ = writeln!(out, "- `{}` [{}]", entry.path, words.join(", "));
        }
    }

    fn write_constraints(&self, out: &mut String) {
        let c = &self.constraints;
        let mut lines = Vec::new();
        let flags = [
            (c.no_network, "No network access"),
            (c.no_spawn, "No sub-agents"),
            (c.sandbox_required, "Everything that is executed runs in the sandbox"),
        ];
        lines.extend(flags.iter().filter(|(set, _)| *set).map(|(_, text)| (*text).to_owned()));
        lines.extend(c.max_bash_calls.map(|max| format!("Commands at most: {max}")));
        if let Some(commands) = &c.allowed_commands {
            let listed = if commands.is_empty() { "none".to_owned() } else { commands.join(", ") };
            lines.push(format!("Commands that may run: {listed}"));
        }
        lines.extend(c.max_tokens.map(|max| format!("Tokens at most: {max}")));
        if lines.is_empty() {
            return;
        }
        out.push_str("\n### Constraints\n\n");
        for line in lines {
            let _ = writeln!(out, "- {line}");
        }
    }
}

impl Permission {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        }
    }
}

/// The rules, and the shape of the report: an agent that is asked for a record has to be shown one.
const RULES: &str = "
### Rules

1. Work only inside the scope above; without one, only where your tools reach. Going beyond it ends the work.
2. Keep to the constraints; they are enforced, and trying to get around one ends the work.
3. When you lack a right, stop and report `needs_auth` with what you would need; when you need an answer, report `needs_help`.
4. End with one JSON object as your whole last message, in this shape, leaving out what does not apply:

```json
{\"status\": \"completed | partial | blocked | needs_auth | needs_help | failed\",
 \"result\": \"what came of it\",
 \"reasoning_summary\": \"why, in a few sentences\",
 \"resume_hint\": \"where to go on, if it is not done\",
 \"artifacts\": {\"files_modified\": [], \"files_created\": [], \"commands_run\": []},
 \"auth_request\": {\"reason\": \"\", \"risk_level\": \"low | medium | high\"},
 \"help_request\": {\"question\": \"\", \"context\": \"\", \"options\": []}}
```
";

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
