//! One skill as a tool, and one call of it: contract, agent, tries, report.

mod request;
mod tools;
mod run;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haversack_agent_core::tool::{Claim, Effects, ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::{Value, json};

use crate::agent::contract::{Constraints, Contract, ContractState, DEFAULT_TIMEOUT_MS};
use crate::agent::decay::scope_violations;
use crate::agent::desk::Permit;
use crate::agent::finish::report_of;
use crate::agent::guard::keep;
use crate::agent::live::Live;
use crate::agent::report::{Report, ReportStatus};
use crate::agent::runtime::{AgentSkills, Shared};
use crate::agent::seams::{Handoff, Spawned};
use crate::agent::skill::AgentSkill;
use request::{Request, schema};
use tools::Tools;

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
        let above = self.above.as_ref().map(|live| live.contract());
        let around = above.as_ref().map_or(&self.shared.scope, |above| &above.scope);
        let scope = if request.scope.is_empty() { around.clone() } else { request.scope.clone() };
        let beyond = scope_violations(&scope, around);
        if !beyond.is_empty() {
            let beyond: Vec<String> = beyond.iter().map(ToString::to_string).collect();
            return Err(format!("its scope goes beyond that of its caller: it {}", beyond.join("; it ")));
        }
        let contract = contract.with_scope(scope).map_err(|error| error.to_string())?;
        Ok(match &above {
            Some(above) => contract.below(above),
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

    /// What the caller is told, and where the contract stands.
    fn end(&self, work: &Work, report: &Report, tools: &Tools) -> ToolOutput {
        let mut contract = work.live.contract();
        let block = report.to_block(&self.skill.name, &contract.contract_id);
        // From active every state of a report may follow.
        let _ = contract.advance(report.status.contract_state());
        let mut forgotten = None;
        if contract.state() == ContractState::Suspended {
            contract.progress.clone_from(&block);
            forgotten = self.shared.suspend(contract.clone());
        }
        let failed = contract.state() == ContractState::Failed;
        let mut structured = json!({"contract": contract, "report": report, "withheld": tools.withheld});
        if let (Some(id), Some(fields)) = (forgotten, structured.as_object_mut()) {
            // Only the host can do something about it.
            fields.insert("forgotten".to_owned(), id.into());
        }
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
