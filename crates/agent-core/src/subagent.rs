//! Sub-agents: a tool that starts a run of its own.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream as _;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::event::Event;
use crate::inbox::{Inbox, MAX_CHILD_EVENTS};
use crate::message::{CallId, Message};
use crate::outcome::{Outcome, RunError};
use crate::run::Run;
use crate::session::Session;
use crate::state::{Ancestry, Start};
use crate::tool::{Claim, Effects, ToolError, ToolErrorKind, ToolOutput, ToolSpec};
use crate::tool_context::{Lease, Scope, Tool, ToolContext, ToolNote};
use crate::toolset::AGENT_ORIGIN;

/// A tool that hands a task to another agent, which works on it in a session of its own and reports back.
///
/// - **Ceiling.** What the child does is judged by its own policy and by the ceiling of every run above, at every
///   call. The ceiling of a run is what its own agent may do, unless the host states another with
///   [`AgentBuilder::ceiling`](crate::agent::AgentBuilder::ceiling): delegation adds nothing by itself.
/// - **Budget.** The child gets a share of what is left of tokens, cost and tool calls, and what it spends counts
///   against the run above and stands in its ledger. Depth, width and number are limited by
///   [`Limits`](crate::limits::Limits).
/// - **Questions** go to whoever answers for the top run, with the path of names that leads to the child. A question
///   that is deferred pauses the child, then the run above; all of it is in the saved session.
/// - **Events** of the child come as [`Event::SubAgent`].
/// - **Cancel** reaches the child first, and its outcome is the status of the tool's result.
///
/// ```
/// # use haversack_agent_core::{agent::Agent, model::*, subagent::SubAgent};
/// # fn put_together(small: impl Model, large: impl Model) -> Result<Agent, haversack_agent_core::agent::BuildError> {
/// let explorer = Agent::builder(small).section("task", "Look things up and report.").build()?;
/// let agent = Agent::builder(large)
///     .tool(SubAgent::new("explore", "Looks things up in the project", explorer).read_only())
///     .build()?;
/// # Ok(agent)
/// # }
/// ```
#[derive(Debug)]
pub struct SubAgent {
    spec: ToolSpec,
    name: Arc<str>,
    agent: Agent,
    share_percent: u8,
}

/// The share of the budget that is left which one sub-agent may spend, in percent.
const SHARE: u8 = 50;

impl SubAgent {
    /// A tool of this name that hands tasks to this agent.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>, agent: Agent) -> Self {
        let name = name.into();
        let schema = json!({
            "type": "object",
            "properties": {
                "prompt": {
                    "type": "string",
                    "description": "The whole task. The agent sees nothing else of this conversation.",
                },
            },
            "required": ["prompt"],
        });
        let effects = Effects { destructive: Some(false), claimed_by: Claim::Host, ..Effects::default() };
        let spec = ToolSpec::new(Arc::clone(&name), description)
            .with_schema(schema)
            .with_effects(effects)
            .with_origin(format!("{AGENT_ORIGIN}{name}"));
        Self { spec, name, agent, share_percent: SHARE }
    }

    /// Declares that the agent only reads: several run at the same time, and starting one needs no approval.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec = self.spec.read_only();
        self
    }

    /// Sets the share of the budget that is left which one task may spend, in percent. 50 by default.
    #[must_use]
    pub fn with_share_percent(mut self, percent: u8) -> Self {
        self.share_percent = percent;
        self
    }

    fn ancestry(&self, context: &ToolContext, lease: &Lease) -> Ancestry {
        let own = &self.agent.setup().limits;
        let path = context.path().iter().cloned().chain([Arc::clone(&self.name)]).collect();
        Ancestry {
            path,
            ceilings: Arc::clone(&lease.ceilings),
            // The person in charge of the top run is in charge of all of it.
            approver: lease.approver.clone(),
            wait_for_verdicts: lease.wait_for_verdicts,
            limits: own.clone().within(&lease.left, self.share_percent).with_agent_depth(lease.max_depth),
        }
    }
}

#[async_trait]
impl Tool for SubAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(lease) = context.lease().cloned() else {
            let text = "A sub-agent can only be started by the run's own driver.";
            return Err(ToolError::new(ToolErrorKind::Unavailable, text));
        };
        if context.path().len() >= lease.max_depth {
            return Err(ToolError::failed("Sub-agents may not be nested any deeper. Do it yourself."));
        }
        let ancestry = self.ancestry(&context, &lease);
        let mut child = Child::new(&context, &lease, Arc::clone(&self.name));
        let scope = Scope {
            inbox: Arc::clone(&child.inbox),
            cancellation: context.cancellation().child(),
            path: Arc::clone(&ancestry.path),
            observer: None,
        };
        let start = if child.goes_on {
            Start::Again
        } else {
            let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
            Start::With(Message::user(prompt))
        };
        let outcome = {
            let mut run = self.agent.run_below(&mut child.session, start, ancestry, scope);
            std::future::poll_fn(|cx| child.link.poll(&mut run, cx)).await;
            run.outcome().await
        };
        child.report(outcome)
    }
}

/// A run below, and what has to be handed up when it ends, however it ends.
struct Child {
    session: Session,
    inbox: Arc<Inbox>,
    lease: Arc<Lease>,
    link: Link,
    goes_on: bool,
}

/// The way from a child to the run above.
struct Link {
    call: CallId,
    name: Arc<str>,
    above: Arc<Scope>,
    told: bool,
}

impl Child {
    fn new(context: &ToolContext, lease: &Arc<Lease>, name: Arc<str>) -> Self {
        if let Some(note) = lease.note() {
            lease.keep_note(note);
        }
        let suspended = lease.take_suspended();
        let goes_on = suspended.is_some();
        let mut session = suspended.map(|s| *s).unwrap_or_default();
        session.grants.merge(&lease.grants);
        let inbox = Arc::new(Inbox::default());
        let above = Arc::clone(context.scope());
        let call = context.call_id().clone();
        above.inbox.lock().children.push((call.clone(), Arc::clone(&inbox)));
        let lease = Arc::clone(lease);
        Self { session, inbox, lease, link: Link { call, name, above, told: false }, goes_on }
    }

    /// What the run above is told of the end.
    fn report(&mut self, outcome: Result<Outcome, RunError>) -> Result<ToolOutput, ToolError> {
        let last = || {
            let text = self.session.messages.iter().rev().map(|m| m.text()).find(|t| !t.trim().is_empty());
            text.map(|t| format!("\nIts last words were: {t}")).unwrap_or_default()
        };
        match outcome {
            Ok(Outcome::Done { text, structured }) => {
                let text = if text.trim().is_empty() {
                    "(The agent is done and reports nothing.)".into()
                } else {
                    text
                };
                let output = ToolOutput::text(text);
                Ok(match structured {
                    Some(value) => output.with_structured(value),
                    None => output,
                })
            }
            Ok(Outcome::Paused) => {
                self.hand_up_books();
                self.session.note = self.lease.note();
                let session = Box::new(std::mem::take(&mut self.session));
                self.link.above.inbox.lock().suspended.push((self.link.call.clone(), session));
                Err(interrupted("The agent is paused."))
            }
            Ok(Outcome::Stopped { why }) => {
                Ok(ToolOutput::error(format!("The agent stopped before it was done: {why}.{}", last())))
            }
            Ok(Outcome::Cancelled { .. }) => Err(interrupted(&format!(
                "The agent was cancelled. What it did until then is done.{}",
                last()
            ))),
            Err(error) => Err(ToolError::failed(format!("The agent failed: {error}.{}", last()))),
        }
    }

    fn hand_up_books(&mut self) {
        let books = std::mem::take(&mut self.session.ledger).into_entries();
        let mut mail = self.link.above.inbox.lock();
        mail.books.extend(books);
        if !self.session.grants.is_empty() {
            mail.grants.push(self.session.grants.clone());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.hand_up_books();
        {
            let mut mail = self.link.above.inbox.lock();
            mail.children.retain(|(call, _)| *call != self.link.call);
        }
        self.link.above.inbox.wake();
    }
}

impl Link {
    /// Polls the child to its end, and hands its events up. A host that does not read holds up the child.
    fn poll(&mut self, run: &mut Run<'_>, cx: &mut Context<'_>) -> Poll<()> {
        if self.above.cancellation.is_cancelled() && !std::mem::replace(&mut self.told, true) {
            run.handle().cancel("the run above was cancelled");
        }
        loop {
            // The run above empties the queue before it polls its tools again.
            if self.above.inbox.lock().children_events.len() >= MAX_CHILD_EVENTS {
                return Poll::Pending;
            }
            match Pin::new(&mut *run).poll_next(cx) {
                Poll::Ready(Some(event)) => self.tell(event),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn tell(&self, event: Event) {
        if let Some(observer) = &self.above.observer {
            observer.tell(ToolNote::Agent { name: &self.name, event: &event });
            return;
        }
        let entry = (self.call.clone(), Arc::clone(&self.name), event);
        self.above.inbox.lock().children_events.push_back(entry);
        self.above.inbox.wake();
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("name", &self.link.name).finish_non_exhaustive()
    }
}

fn interrupted(text: &str) -> ToolError {
    ToolError::new(ToolErrorKind::Interrupted, text)
}
