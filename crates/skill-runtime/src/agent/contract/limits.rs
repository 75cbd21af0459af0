//! What a contract limits, and what was used of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metadata::{AgentConfig, Escalation};

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
