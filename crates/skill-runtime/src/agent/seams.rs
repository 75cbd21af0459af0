//! What a host may bring to agents: who reviews, who is asked, who listens, and what runs in place of our own loop.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::agent::contract::Contract;
use crate::agent::report::Report;
use crate::metadata::{Reviewer, RuntimeKind, ThinkLevel};

/// What a reviewer says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReviewVerdict {
    /// The result counts.
    Pass,
    /// It does not: what has to be better, which the agent is told.
    Reject(String),
}

/// Reviews results by rules, or asks a person. A model as reviewer needs none of this.
///
/// # Contract
///
/// A panic counts as a rejection. The future is dropped when the agent's run is cancelled.
#[async_trait]
pub trait Review: Send + Sync + 'static {
    /// Looks at a result.
    async fn review(&self, by: Reviewer, contract: &Contract, report: &Report) -> ReviewVerdict;
}

/// Answers agents that are stuck, where their escalation chain names a person.
#[async_trait]
pub trait Answer: Send + Sync + 'static {
    /// The answer to what the report asks, or `None`: nobody answers.
    async fn answer(&self, contract: &Contract, report: &Report) -> Option<String>;
}

/// A task that is handed over with a reason.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Handoff {
    /// The skill of the agent that hands over; empty at the top.
    pub from: String,
    /// The skill that is meant.
    pub to: String,
    /// What to do.
    pub task: String,
    /// Why.
    pub reason: String,
    /// Anything that goes with it.
    pub context: Option<Value>,
}

/// The way between agents that run already.
pub trait HandoffBus: Send + Sync + 'static {
    /// Whether somebody listens for this skill; then nothing is started.
    fn has_subscriber(&self, skill: &str) -> bool;

    /// Delivers a handoff, or keeps it for the record where nobody listens. Called once for each.
    fn publish(&self, handoff: Handoff);
}

/// Everything that a host needs to run an agent itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpawnRequest {
    /// The contract, active.
    pub contract: Contract,
    /// The system prompt, contract included.
    pub system_prompt: String,
    /// `<skill>-<first eight of the contract's id>`.
    pub label: String,
    /// What kind of agent.
    pub kind: RuntimeKind,
    /// The only tools that it may have.
    pub tools: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// The model that it asks for.
    pub model: Option<String>,
    /// How long the model thinks.
    pub think_level: Option<ThinkLevel>,
}

/// What came of an agent that a host ran.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Spawned {
    /// Its last words, read as a [`Report`] where they are one.
    Said(String),
    /// It failed.
    Failed(String),
}

/// Runs agents in place of our own loop.
///
/// # Contract
///
/// The future is dropped at the contract's time limit and on a cancel. A panic is a failure. What the request
/// forbids is the spawner's to enforce: only time and the agent's tools can be seen from here.
#[async_trait]
pub trait Spawner: Send + Sync + 'static {
    /// Runs one agent to its end.
    async fn spawn(&self, request: SpawnRequest) -> Spawned;
}
