//! What stands around an agent's model and tools, so that its contract holds whatever the model wants.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use haversack_agent_core::clock::{Clock, Sleep};
use haversack_agent_core::hooks::{Ending, Flow, Gate, Hooks, OnStop, PlannedCall};
use haversack_agent_core::model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, TimeoutPhase,
};
use haversack_agent_core::policy::ApprovalKey;
use haversack_agent_core::tool::{Effects, ToolError, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_agent_core::usage::Usage;
use serde_json::Value;

use crate::agent::contract::{ContractState, Permission};
use crate::agent::decay::is_under_any;
use crate::agent::live::Live;

/// A model whose tokens and time are charged to a contract, and that may not fall silent.
pub(crate) struct MeteredModel {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) live: Arc<Live>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stall: Option<Duration>,
}

impl Model for MeteredModel {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream<'_> {
        Box::pin(Metered {
            inner: self.inner.stream(request),
            model: self,
            usage: Usage::default(),
            since: self.clock.now(),
            stalls: self.next_stall(),
        })
    }
}

impl MeteredModel {
    fn next_stall(&self) -> Option<Sleep> {
        self.stall.map(|stall| self.clock.sleep_until(self.clock.now().saturating_add(stall)))
    }
}

struct Metered<'m> {
    inner: ModelStream<'m>,
    model: &'m MeteredModel,
    usage: Usage,
    since: Duration,
    stalls: Option<Sleep>,
}

impl Stream for Metered<'_> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.as_mut().poll_next(cx);
        if let Poll::Ready(item) = &polled {
            if let Some(Ok(ModelEvent::Usage(usage))) = item {
                self.usage.merge(*usage);
            }
            self.stalls = self.model.next_stall();
            return polled;
        }
        if self.stalls.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready()) {
            self.stalls = None;
            let kind = ModelErrorKind::Timeout(TimeoutPhase::Idle);
            let text = "the model gave no sign for longer than the agent's stall threshold";
            return Poll::Ready(Some(Err(ModelError::new(kind, text))));
        }
        Poll::Pending
    }
}

impl Drop for Metered<'_> {
    fn drop(&mut self) {
        self.model.live.charge_tokens(self.usage.total());
        self.model.live.charge_time(self.model.clock.now().saturating_sub(self.since));
    }
}

/// A tool whose commands and time are charged to a contract.
pub(crate) struct GuardedTool {
    pub(crate) inner: Arc<dyn Tool>,
    pub(crate) live: Arc<Live>,
    pub(crate) clock: Arc<dyn Clock>,
}

struct Timed<'t>(&'t GuardedTool, Duration);

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.0.live.charge_time(self.0.clock.now().saturating_sub(self.1));
    }
}

#[async_trait]
impl Tool for GuardedTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        self.inner.approval_keys(arguments)
    }

    fn effects(&self, arguments: &Value) -> Effects {
        self.inner.effects(arguments)
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        self.inner.preview(arguments)
    }

    fn time_limit(&self) -> Option<Duration> {
        self.inner.time_limit()
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        if is_command(self.inner.as_ref(), &arguments) {
            self.live.take_command().map_err(|exhausted| ToolError::failed(exhausted.to_string()))?;
            keep(&self.live, &context);
        }
        let _timed = Timed(self, self.clock.now());
        self.inner.call(arguments, context).await
    }
}

/// Keeps the contract with the run, so that one that pauses goes on with what was left.
pub(crate) fn keep(live: &Live, context: &ToolContext) {
    let mut contract = live.contract();
    // It is read again only by a run that goes on after a pause; until then it waits.
    let suspended = contract.advance(ContractState::Suspended).is_ok();
    if let (true, Ok(note)) = (suspended, serde_json::to_value(contract)) {
        context.keep_note(note);
    }
}

/// The tool that runs commands in every host that follows the customary names.
const COMMAND_TOOL: &str = "bash";

fn commands(tool: &dyn Tool, arguments: &Value) -> Vec<String> {
    let keys = tool.approval_keys(arguments).into_iter();
    let mut found: Vec<String> = keys
        .filter_map(|key| match key {
            ApprovalKey::Command(command) => Some(command),
            _ => None,
        })
        .collect();
    if found.is_empty() && &*tool.spec().name == COMMAND_TOOL {
        found.push(arguments.get("command").and_then(Value::as_str).unwrap_or_default().to_owned());
    }
    found
}

fn is_command(tool: &dyn Tool, arguments: &Value) -> bool {
    !commands(tool, arguments).is_empty()
}

/// Whether a command line is one of those allowed: word for word, or beginning with all words of an entry and then
/// only plain arguments. A line that a shell would read as more than one command is never the latter.
pub(crate) fn is_allowed(line: &str, allowed: &[String]) -> bool {
    let line = line.trim();
    if allowed.iter().any(|entry| entry == line && !entry.is_empty()) {
        return true;
    }
    if line.chars().any(|c| c.is_control() || ";&|<>$`(){}\\!*?~\"'#".contains(c)) {
        return false;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    allowed.iter().any(|entry| {
        let entry: Vec<&str> = entry.split_whitespace().collect();
        !entry.is_empty() && words.starts_with(&entry)
    })
}

/// What judges the end of an agent's run.
#[async_trait]
pub(crate) trait Finish: Send + Sync + 'static {
    /// What the agent is told to go on with, or `None`: it may end.
    async fn go_on(&self, last_words: &str) -> Option<String>;
}

/// The contract at the joints of the run.
pub(crate) struct ContractHooks<F> {
    pub(crate) live: Arc<Live>,
    pub(crate) tools: BTreeMap<String, Arc<dyn Tool>>,
    pub(crate) finish: F,
}

impl<F> ContractHooks<F> {
    fn objection(&self, call: &PlannedCall) -> Option<String> {
        let tool = self.tools.get(&*call.tool)?;
        let contract = self.live.contract();
        let commands = commands(tool.as_ref(), &call.arguments);
        if !commands.is_empty() {
            if let Some(exhausted) = contract.commands_exhausted() {
                return Some(exhausted.to_string());
            }
            let refused = contract
                .constraints
                .allowed_commands
                .as_ref()
                .and_then(|allowed| commands.iter().find(|line| !is_allowed(line, allowed)));
            if let Some(line) = refused {
                return Some(format!("the contract does not allow the command `{line}`"));
            }
        }
        if contract.scope.is_empty() {
            return None;
        }
        let wanted = if call.effects.is_trusted_read_only() { Permission::Read } else { Permission::Write };
        let entries = contract.scope.iter().filter(|entry| entry.permissions.contains(&wanted));
        let folders: Vec<&str> = entries.map(|entry| entry.path.as_str()).collect();
        let outside = tool.approval_keys(&call.arguments).into_iter().find_map(|key| match key {
            ApprovalKey::Path(path) if !is_under_any(&path, &folders) => Some(path),
            _ => None,
        });
        outside.map(|path| format!("`{path}` is outside the contract's scope"))
    }
}

#[async_trait]
impl<F: Finish> Hooks for ContractHooks<F> {
    async fn before_request(&self, _: &mut ModelRequest) -> Flow {
        self.live.work_exhausted().map_or(Flow::Continue, |exhausted| Flow::Stop(exhausted.to_string()))
    }

    async fn before_tool(&self, call: &PlannedCall) -> Gate {
        self.objection(call).map_or(Gate::Pass, Gate::Deny)
    }

    async fn on_stop(&self, ending: &Ending) -> OnStop {
        match self.finish.go_on(&ending.text).await {
            Some(message) => OnStop::Continue(message.into()),
            None => OnStop::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_allowed_by_its_first_words_and_never_hides_another() {
        let allowed: Vec<String> = ["git status", "ls", "make; make test"].map(str::to_owned).into();
        for (line, ok) in [
            ("ls", true),
            ("ls -l src", true),
            (" git  status --short", true),
            ("make; make test", true),
            ("git push", false),
            ("lsof", false),
            ("ls; rm x", false),
            ("ls && rm x", false),
            ("ls $(rm x)", false),
            ("ls `rm x`", false),
            ("ls\nrm x", false),
            ("ls > x", false),
            ("LS=1 rm", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(line, &allowed), ok, "{line}");
        }
        assert!(!is_allowed("ls", &[]) && !is_allowed("", &[String::new()]));
    }
}
