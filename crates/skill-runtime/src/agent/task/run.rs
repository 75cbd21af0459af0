//! One run of an agent: on our own loop, or by the host's spawner.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, pin_mut};
use haversack_agent_core::agent::Agent;
use haversack_agent_core::model::Model;
use haversack_agent_core::subagent::SubAgent;
use haversack_agent_core::tool::{ToolError, ToolErrorKind};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::json;

use crate::agent::contract::Contract;
use crate::agent::finish::Judge;
use crate::agent::guard::{ContractHooks, GuardedTool, MeteredModel};
use crate::agent::live::Live;
use crate::agent::seams::{SpawnRequest, Spawned};
use crate::agent::task::tools::Tools;
use crate::agent::task::{AgentTool, Work};

impl AgentTool {
    fn model(&self, live: &Arc<Live>) -> Arc<dyn Model> {
        let asked = self.skill.config.model.as_ref().and_then(|name| self.shared.models.get(name));
        Arc::new(MeteredModel {
            inner: Arc::clone(asked.unwrap_or(&self.shared.model)),
            live: Arc::clone(live),
            clock: Arc::clone(&self.shared.clock),
            stall: live.lock().constraints.stall_threshold_ms.map(Duration::from_millis),
        })
    }

    /// One run of our own loop, as a sub-agent of the run that makes the call.
    pub(super) async fn run(
        &self,
        work: &Work,
        tools: &Tools,
        rejection: &Arc<Mutex<Option<String>>>,
        prompt: &str,
        context: &ToolContext,
    ) -> Result<Spawned, ToolError> {
        let live = &work.live;
        let model = self.model(live);
        let judge = Judge {
            shared: Arc::clone(&self.shared),
            skill: Arc::clone(&self.skill),
            live: Arc::clone(live),
            model: Arc::clone(&model),
            rejection: Arc::clone(rejection),
        };
        let hooks = ContractHooks { live: Arc::clone(live), tools: tools.given.clone(), finish: judge };
        let guarded = tools.given.values().map(|tool| {
            let tool = GuardedTool {
                inner: Arc::clone(tool),
                live: Arc::clone(live),
                clock: Arc::clone(&self.shared.clock),
            };
            Arc::new(tool) as Arc<dyn Tool>
        });
        let contract = live.contract();
        let agent = Agent::builder(model)
            .tools(guarded)
            .section("agent", self.skill.system_prompt(&contract))
            .policy(self.shared.policy.clone())
            .limits(self.limits(&contract))
            .clock(Arc::clone(&self.shared.clock))
            .hooks(hooks)
            .build()
            .map_err(|error| {
                ToolError::failed(format!("`{}` cannot be put together: {error}", self.skill.name))
            })?;
        let name = self.skill.tool_name.as_str();
        let below = SubAgent::new(name, self.skill.description.as_str(), agent);
        match below.call(json!({"prompt": prompt}), context.clone()).await {
            Ok(output) => {
                let text = output.blocks.iter().filter_map(|block| block.as_text()).collect::<String>();
                Ok(if output.is_error { Spawned::Failed(text) } else { Spawned::Said(text) })
            }
            // Paused or cancelled: that is the run's matter, and the contract stays with its session.
            Err(error) if error.kind == ToolErrorKind::Interrupted => Err(error),
            Err(error) => Ok(Spawned::Failed(error.message)),
        }
    }

    fn limits(&self, contract: &Contract) -> haversack_agent_core::limits::Limits {
        let limits = self.shared.limits.clone();
        let left = Duration::from_millis(contract.timeout_ms.saturating_sub(contract.used.millis));
        let wall = limits.wall_time.map_or(left, |wall| wall.min(left));
        let least = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
        let tokens = contract.constraints.max_tokens.map(|max| max.saturating_sub(contract.used.tokens));
        let (input, output) = (least(limits.input_tokens, tokens), least(limits.output_tokens, tokens));
        let stall = contract.constraints.stall_threshold_ms.map(Duration::from_millis);
        let per_tool = [limits.tool_timeout, stall].into_iter().flatten().min();
        limits
            .with_wall_time(Some(wall))
            .with_input_tokens(input)
            .with_output_tokens(output)
            .with_tool_timeout(per_tool)
    }

    /// One run by the host's own spawner, within the contract's time.
    pub(super) async fn spawn(
        &self,
        work: &Work,
        tools: &Tools,
        context: &ToolContext,
    ) -> Result<Spawned, ToolError> {
        let Some(spawner) = &self.shared.spawner else {
            return Ok(Spawned::Failed("no spawner is set".to_owned()));
        };
        let contract = work.live.contract();
        let timeout = Duration::from_millis(contract.timeout_ms.saturating_sub(contract.used.millis));
        let short: String = contract.contract_id.chars().take(8).collect();
        let request = SpawnRequest {
            system_prompt: self.skill.system_prompt(&contract),
            label: format!("{}-{short}", self.skill.name),
            kind: self.skill.config.runtime_kind,
            tools: tools.given.keys().cloned().collect(),
            timeout,
            model: self.skill.config.model.clone(),
            think_level: self.skill.config.think_level,
            contract,
        };
        let clock = &self.shared.clock;
        let began = clock.now();
        let run = AssertUnwindSafe(spawner.spawn(request)).catch_unwind();
        let late = clock.sleep_until(began.saturating_add(timeout));
        let cancelled = context.cancellation().cancelled();
        pin_mut!(run, cancelled);
        let ended = select(run, select(late, cancelled)).await;
        work.live.charge_time(clock.now().saturating_sub(began));
        match ended {
            Either::Left((Ok(spawned), _)) => Ok(spawned),
            Either::Left((Err(_), _)) => Ok(Spawned::Failed("the spawner panicked".to_owned())),
            Either::Right((Either::Left(_), _)) => Ok(Spawned::Failed("the time was up".to_owned())),
            Either::Right((Either::Right(_), _)) => {
                Err(ToolError::new(ToolErrorKind::Interrupted, "The agent was cancelled."))
            }
        }
    }
}
