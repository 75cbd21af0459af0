//! One skill as a tool, and one call of it: contract, agent, tries, report.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, pin_mut};
use haversack_agent_core::agent::Agent;
use haversack_agent_core::model::Model;
use haversack_agent_core::subagent::SubAgent;
use haversack_agent_core::tool::{Claim, Effects, ToolError, ToolErrorKind, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::{Value, json};

use crate::agent::contract::{
    Constraints, Contract, ContractState, DEFAULT_TIMEOUT_MS, MAX_CRITERIA_CHARS, MAX_TASK_CHARS,
};
use crate::agent::decay::tools_for;
use crate::agent::desk::Permit;
use crate::agent::finish::{Judge, report_of};
use crate::agent::guard::{ContractHooks, GuardedTool, MeteredModel, keep};
use crate::agent::live::Live;
use crate::agent::report::{Report, ReportStatus};
use crate::agent::runtime::{AgentSkills, Shared};
use crate::agent::seams::{Handoff, SpawnRequest, Spawned};
use crate::agent::skill::AgentSkill;

/// Tries after the first at most, whatever a skill asks for: each is a whole run.
const MAX_RETRIES: u64 = 5;

impl AgentSkills {
    /// The skills as tools, one each. What such a tool gives back is the text of the report for the model, and for
    /// the host the contract, the report, and which tools were withheld and why.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let shared = &self.0;
        let tools = shared.tools.iter().map(|tool| tool.spec().name.to_string());
        let all: Arc<[String]> =
            tools.chain(shared.skills.iter().map(|skill| skill.tool_name.clone())).collect();
        let tool = |skill: &AgentSkill| {
            let tool = AgentTool::new(shared, skill, None, Arc::clone(&all));
            Arc::new(tool) as Arc<dyn Tool>
        };
        shared.skills.iter().map(tool).collect()
    }
}

struct AgentTool {
    spec: ToolSpec,
    shared: Arc<Shared>,
    skill: Arc<AgentSkill>,
    above: Option<Arc<Live>>,
    parent_tools: Arc<[String]>,
}

/// The arguments of a call.
struct Request {
    task: String,
    timeout_ms: Option<u64>,
    success_criteria: String,
    resume: Option<String>,
    handoff_reason: Option<String>,
    handoff_context: Option<Value>,
}

impl Request {
    fn read(arguments: &Value) -> Result<Self, ToolError> {
        let text = |name| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let task = text("task").filter(|task| !task.trim().is_empty());
        let timeout_ms = arguments.get("timeout_ms").map(|v| v.as_u64().filter(|ms| *ms > 0));
        if timeout_ms == Some(None) {
            return Err(ToolError::invalid_arguments("`timeout_ms` has to be a whole number above 0"));
        }
        Ok(Self {
            task: task.ok_or_else(|| ToolError::invalid_arguments("`task` is required"))?,
            timeout_ms: timeout_ms.flatten(),
            success_criteria: text("success_criteria").unwrap_or_default(),
            resume: text("resume"),
            handoff_reason: text("handoff_reason").filter(|reason| !reason.trim().is_empty()),
            handoff_context: arguments.get("handoff_context").cloned(),
        })
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TASK_CHARS,
                "description": "The whole task. The agent sees nothing else of this conversation.",
            },
            "success_criteria": {
                "type": "string",
                "maxLength": MAX_CRITERIA_CHARS,
                "description": "When the task is done.",
            },
            "timeout_ms": {"type": "integer", "minimum": 1, "description": "60000 by default."},
            "resume": {
                "type": "string",
                "description": "The id of a suspended contract to go on with; `task` is then the answer to it.",
            },
            "handoff_reason": {
                "type": "string",
                "description": "Hands the task to an agent of this kind that runs already, if there is one.",
            },
            "handoff_context": {"description": "Anything that goes with a handoff."},
        },
        "required": ["task"],
        "additionalProperties": false,
    })
}

/// What one call has while it runs; the day's tokens are booked however it ends.
struct Work {
    live: Arc<Live>,
    before: u64,
    shared: Arc<Shared>,
    skill: String,
    _permit: Permit,
}

impl Drop for Work {
    fn drop(&mut self) {
        let used = self.live.lock().used.tokens.saturating_sub(self.before);
        self.shared.desk.book_tokens(&self.skill, used);
    }
}

/// The tools of one agent, and those that it does not get although it would inherit them.
struct Tools {
    given: BTreeMap<String, Arc<dyn Tool>>,
    withheld: BTreeMap<String, &'static str>,
}

#[async_trait]
impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let request = Request::read(&arguments)?;
        let paused: Option<Contract> = context.note().and_then(|note| serde_json::from_value(note).ok());
        let goes_on = paused.is_some();
        if let Some(delivered) = self.hand_over(&request).filter(|_| !goes_on) {
            return Ok(delivered);
        }
        let failed =
            |why: String| ToolError::failed(format!("`{}` was not started: {why}.", self.skill.name));
        if let Some(above) = self.above.as_ref().map(|live| live.contract())
            && !above.may_dispatch_to(&self.skill.name)
        {
            return Err(failed(format!("contract `{}` does not allow it", above.contract_id)));
        }
        let today = self.shared.calendar.as_ref().map(|today| today());
        let goes_on = goes_on || request.resume.is_some();
        let permit = self.shared.desk.admit(&self.skill.name, &self.skill.config, today, goes_on);
        let permit = permit.map_err(&failed)?;
        let mut contract = match paused {
            Some(contract) => contract,
            None => self.contract(&request, &context).map_err(&failed)?,
        };
        contract.advance(ContractState::Active).map_err(|error| failed(error.to_string()))?;
        let before = contract.used.tokens;
        let live = Arc::new(Live::new(contract, self.above.clone()));
        keep(&live, &context);
        let work = Work {
            live,
            before,
            shared: Arc::clone(&self.shared),
            skill: self.skill.name.clone(),
            _permit: permit,
        };
        self.work(&work, &request, &context).await
    }
}

impl AgentTool {
    fn new(
        shared: &Arc<Shared>,
        skill: &AgentSkill,
        above: Option<Arc<Live>>,
        parent_tools: Arc<[String]>,
    ) -> Self {
        let mut effects = Effects::default();
        (effects.destructive, effects.claimed_by) = (Some(false), Claim::Host);
        let spec = ToolSpec::new(skill.tool_name.as_str(), skill.description.as_str())
            .with_schema(schema())
            .with_effects(effects)
            .with_origin(format!("agent:{}", skill.name));
        Self { spec, shared: Arc::clone(shared), skill: Arc::new(skill.clone()), above, parent_tools }
    }

    /// Publishes a handoff; the answer, where somebody took it.
    fn hand_over(&self, request: &Request) -> Option<ToolOutput> {
        let (bus, reason) = (self.shared.bus.as_ref()?, request.handoff_reason.clone()?);
        let taken = bus.has_subscriber(&self.skill.name);
        bus.publish(Handoff {
            from: self.above.as_ref().map(|live| live.lock().skill.clone()).unwrap_or_default(),
            to: self.skill.name.clone(),
            task: request.task.clone(),
            reason,
            context: request.handoff_context.clone(),
        });
        taken.then(|| {
            ToolOutput::text(format!("The task was handed to `{}`, which runs already.", self.skill.name))
        })
    }

    fn contract(&self, request: &Request, context: &ToolContext) -> Result<Contract, String> {
        if let Some(id) = &request.resume {
            let found = self.shared.take_suspended(id, &self.skill.name);
            return found.ok_or_else(|| format!("it has no suspended contract `{id}`"));
        }
        let id = self.shared.next_id([&self.skill.name, &request.task, context.call_id().as_str()]);
        let contract = Contract::new(id, self.skill.name.as_str(), request.task.as_str())
            .and_then(|c| c.with_success_criteria(request.success_criteria.as_str()))
            .and_then(|c| c.with_constraints(Constraints::from(&self.skill.config)))
            .map_err(|error| error.to_string())?;
        let contract = contract.with_timeout_ms(request.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
        Ok(match &self.above {
            Some(above) => contract.below(&above.contract()),
            None => contract,
        })
    }

    async fn work(
        &self,
        work: &Work,
        request: &Request,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let tools = self.tools_of(&work.live);
        let rejection = Arc::default();
        let mut prompt = self.prompt(&work.live, request);
        loop {
            let said = if self.shared.spawner.is_some() {
                self.spawn(work, &tools, context).await?
            } else {
                self.run(work, &tools, &rejection, &prompt, context).await?
            };
            let failure = match said {
                Spawned::Said(text) => {
                    let report = reviewed(report_of(&text), &rejection).redacted(&self.shared.redactor);
                    if report.status != ReportStatus::Failed || !self.may_retry(&work.live) {
                        return Ok(self.end(work, &report, &tools));
                    }
                    report.result
                }
                Spawned::Failed(why) => {
                    let why = self.shared.redactor.text(&why).into_owned();
                    if !self.may_retry(&work.live) {
                        let late = work.live.work_exhausted().is_some();
                        let status = if late { ReportStatus::Timeout } else { ReportStatus::Failed };
                        return Ok(self.end(work, &Report::new(status, why), &tools));
                    }
                    why
                }
            };
            prompt = format!("{}\n\nAn earlier try failed: {failure}", work.live.lock().task_brief);
        }
    }

    fn prompt(&self, live: &Live, request: &Request) -> String {
        let contract = live.lock();
        if request.resume.is_none() {
            return contract.task_brief.clone();
        }
        format!(
            "{}\n\nYou reported:\n{}\nGo on. The answer is: {}",
            contract.task_brief, contract.progress, request.task
        )
    }

    /// Takes one more try, if there is one and something to spend on it.
    fn may_retry(&self, live: &Live) -> bool {
        if live.work_exhausted().is_some() {
            return false;
        }
        let max = self.skill.config.max_retry.unwrap_or(0).min(MAX_RETRIES);
        let used = &mut live.lock().used.retries;
        let more = *used < max;
        *used += u64::from(more);
        more
    }

    fn tools_of(&self, live: &Arc<Live>) -> Tools {
        let contract = live.contract();
        let names = tools_for(&self.skill.config, self.parent_tools.iter().map(String::as_str));
        let whitelist: Arc<[String]> = names.into();
        let mut tools = Tools { given: BTreeMap::new(), withheld: BTreeMap::new() };
        for tool in &self.shared.tools {
            let name = tool.spec().name.to_string();
            if !whitelist.contains(&name) {
                continue;
            }
            let facts = self.shared.facts(&name);
            let agent = tool.spec().origin.starts_with("agent:");
            let why = if contract.constraints.no_network && !facts.offline {
                Some("the contract allows no network, and the host does not say that the tool needs none")
            } else if contract.constraints.sandbox_required && !facts.sandboxed {
                Some("the contract requires a sandbox, and the host does not say that the tool runs in one")
            } else if agent && (contract.constraints.no_spawn || !contract.may_dispatch_to(&name)) {
                Some("the contract does not allow starting it")
            } else {
                None
            };
            match why {
                Some(why) => drop(tools.withheld.insert(name, why)),
                None => drop(tools.given.insert(name, Arc::clone(tool))),
            }
        }
        for skill in &self.shared.skills {
            let name = &skill.tool_name;
            if !whitelist.contains(name) {
                continue;
            }
            if contract.may_dispatch_to(&skill.name) {
                let below = Self::new(&self.shared, skill, Some(Arc::clone(live)), Arc::clone(&whitelist));
                tools.given.insert(name.clone(), Arc::new(below));
            } else {
                tools.withheld.insert(name.clone(), "the contract does not allow starting it");
            }
        }
        tools
    }

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
    async fn run(
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
    async fn spawn(&self, work: &Work, tools: &Tools, context: &ToolContext) -> Result<Spawned, ToolError> {
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

    /// What the caller is told, and where the contract stands.
    fn end(&self, work: &Work, report: &Report, tools: &Tools) -> ToolOutput {
        let mut contract = work.live.contract();
        let block = report.to_block(&self.skill.name, &contract.contract_id);
        // From active every state of a report may follow.
        let _ = contract.advance(report.status.contract_state());
        if contract.state() == ContractState::Suspended {
            contract.progress.clone_from(&block);
            self.shared.suspend(contract.clone());
        }
        let failed = contract.state() == ContractState::Failed;
        let structured = json!({"contract": contract, "report": report, "withheld": tools.withheld});
        let output = if failed { ToolOutput::error(block) } else { ToolOutput::text(block) };
        output.with_structured(structured)
    }
}

/// A result that its last review rejected is not done: somebody has to look at it.
fn reviewed(mut report: Report, rejection: &Mutex<Option<String>>) -> Report {
    let rejection = rejection.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(missing) = rejection {
        report.status = ReportStatus::NeedsHelp;
        report.notes.push(format!("the review did not pass: {missing}"));
    }
    report
}
