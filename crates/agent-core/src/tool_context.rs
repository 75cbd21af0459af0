//! The seam to a tool: the trait that hosts and adapters implement, and what a running call is given.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::approval::Approver;
use crate::cancel::Cancellation;
use crate::event::Event;
use crate::inbox::Inbox;
use crate::limits::Left;
use crate::message::CallId;
use crate::policy::{ApprovalKey, Ceiling, Grants};
use crate::session::Session;
use crate::tool::{Effects, ToolError, ToolOutput, ToolSpec};

/// Something that the model can call.
///
/// The trait is dynamic: name, schema and effects are data, since tools of MCP servers are known only at run time.
/// For a tool with typed arguments write a function and wrap it, instead of implementing this trait.
///
/// # Contract
///
/// - [`spec`](Self::spec) says the same for as long as the tool lives: the loop reads it once per run.
/// - The arguments of [`call`](Self::call) are an object that was checked against the schema of the spec, and
///   byte for byte what was approved, if an approval was needed.
/// - A failure is an [`Err`] or an output with `is_error`; both are results that the model sees, and neither ends
///   the run. A panic is caught and becomes an error result.
/// - The future may be dropped at any await: on a cancel (after the grace period), on the tool's time-out, and when
///   the host drops the run. The history then says that the effects are unknown. Clean up in `Drop`.
/// - A slow tool holds up nothing but the calls behind it. One that blocks the thread holds up the whole run.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The tool as the model sees it.
    fn spec(&self) -> &ToolSpec;

    /// What a rule about this call may match beside the tool's name: the path it touches, the command it runs.
    /// More than one key means that a rule has to cover each of them. None by default.
    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        let _ = arguments;
        Vec::new()
    }

    /// What running it with these arguments may do; the spec's word by default.
    fn effects(&self, arguments: &Value) -> Effects {
        let _ = arguments;
        self.spec().effects
    }

    /// How long one call may take, where that is not [`Limits::tool_timeout`](crate::limits::Limits::tool_timeout). Needs
    /// a clock; without one nothing times out.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// What the call would change, for the person who is asked: a diff of an edit, for example. Shown and kept as
    /// [`Ask::preview`](crate::approval::Ask::preview), cut to
    /// [`MAX_PREVIEW_CHARS`](crate::approval::MAX_PREVIEW_CHARS); it decides nothing. Called only when somebody is
    /// asked, on the thread that drives the run, so it has to be quick. None by default.
    fn preview(&self, arguments: &Value) -> Option<String> {
        let _ = arguments;
        None
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// Whatever kept the tool from doing what was asked, in words for the model.
    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        (**self).approval_keys(arguments)
    }

    fn effects(&self, arguments: &Value) -> Effects {
        (**self).effects(arguments)
    }

    fn time_limit(&self) -> Option<Duration> {
        (**self).time_limit()
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        (**self).preview(arguments)
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(arguments, context).await
    }
}

/// What a running call knows of its run. Owned and cheap to clone, so that it can move into tasks.
#[derive(Clone)]
pub struct ToolContext {
    call: CallId,
    scope: Arc<Scope>,
    lease: Option<Arc<Lease>>,
}

/// The part of a run that all its calls share.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) cancellation: Cancellation,
    /// Names of the sub-agents from the top run down to this one; empty in the top run.
    pub(crate) path: Arc<[Arc<str>]>,
    /// Who is told instead of a run, where there is none.
    pub(crate) observer: Option<Observer>,
}

/// A host that calls a tool itself, and what it is told.
#[derive(Clone)]
pub(crate) struct Observer(Arc<dyn Fn(ToolNote<'_>) + Send + Sync>);

impl Observer {
    pub(crate) fn tell(&self, note: ToolNote<'_>) {
        (self.0)(note);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// What a host is told of a call that it makes itself, outside of any run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ToolNote<'n> {
    /// The tool says how far it is.
    Progress(&'n str),
    /// Something happened in an agent that the tool has started.
    Agent {
        /// The agent.
        name: &'n str,
        /// What happened.
        event: &'n Event,
    },
}

/// What a sub-agent gets from the run that starts it.
#[derive(Default)]
pub(crate) struct Lease {
    /// What binds it: the ceilings of all runs above, and that of the run that starts it.
    pub(crate) ceilings: Arc<[Arc<Ceiling>]>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) wait_for_verdicts: bool,
    pub(crate) left: Left,
    pub(crate) max_depth: usize,
    pub(crate) grants: Grants,
    /// Its session, when it goes on where it paused.
    pub(crate) suspended: Mutex<Option<Box<Session>>>,
    /// What the call wants to find again when it goes on.
    pub(crate) note: Mutex<Option<Value>>,
}

impl Lease {
    pub(crate) fn take_suspended(&self) -> Option<Box<Session>> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was kept in this run, or else before the pause.
    pub(crate) fn note(&self) -> Option<Value> {
        let kept = self.note.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let suspended = || {
            let session = self.suspended.lock().unwrap_or_else(PoisonError::into_inner);
            session.as_ref().and_then(|s| s.note.clone())
        };
        kept.or_else(suspended)
    }

    pub(crate) fn keep_note(&self, note: Value) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("left", &self.left).finish_non_exhaustive()
    }
}

impl ToolContext {
    pub(crate) fn new(call: CallId, scope: Arc<Scope>, lease: Option<Arc<Lease>>) -> Self {
        Self { call, scope, lease }
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.as_ref()
    }

    /// A context without a run, for calling a tool by hand: its progress goes nowhere.
    ///
    /// ```
    /// use haversack_agent_core::tool_context::ToolContext;
    ///
    /// let context = ToolContext::detached("call-1");
    /// context.progress("half way");
    /// assert_eq!(context.call_id().as_str(), "call-1");
    /// ```
    pub fn detached(call: impl Into<CallId>) -> Self {
        Self::new(call.into(), Arc::new(Scope::default()), None)
    }

    /// The same context with another token, for calling a tool by hand.
    #[must_use]
    pub fn with_cancellation(self, cancellation: Cancellation) -> Self {
        self.scoped(|scope| scope.cancellation = cancellation)
    }

    /// Tells `observer` of progress, and of what happens in agents that the call starts. For hosts that call a tool
    /// themselves; within a run, the run is told. It is called while the call is being polled and must not block.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(ToolNote<'_>) + Send + Sync + 'static) -> Self {
        self.scoped(|scope| scope.observer = Some(Observer(Arc::new(observer))))
    }

    /// Lets the call start agents, at most `depth` levels of them, and has `approver` decide about what they ask;
    /// without one, an agent that asks is paused, which ends the call as interrupted. For hosts that call a tool
    /// themselves; within a run, the run's own limits hold. Agents share no budget with anything: their own limits bind.
    #[must_use]
    pub fn with_agents(self, approver: Option<Arc<dyn Approver>>, depth: usize) -> Self {
        let mut context = self;
        if context.scope.observer.is_none() {
            // Nobody reads a queue here, so that an agent would wait for ever for room in it.
            context = context.with_observer(|_| {});
        }
        let lease = Lease { approver, max_depth: depth, ..Lease::default() };
        context.lease = Some(Arc::new(lease));
        context
    }

    fn scoped(self, change: impl FnOnce(&mut Scope)) -> Self {
        let mut scope = Scope {
            inbox: Arc::clone(&self.scope.inbox),
            cancellation: self.scope.cancellation.clone(),
            path: Arc::clone(&self.scope.path),
            observer: self.scope.observer.clone(),
        };
        change(&mut scope);
        Self { call: self.call, scope: Arc::new(scope), lease: self.lease }
    }

    /// For tools that start a sub-agent through [`SubAgent`](crate::subagent::SubAgent): what was kept with
    /// [`keep_note`](Self::keep_note) before the sub-agent paused. `None` at the first start, and for other tools.
    pub fn note(&self) -> Option<Value> {
        self.lease.as_ref()?.note()
    }

    /// For tools that start a sub-agent: keeps data with the sub-agent's session, so that a call that goes on after
    /// a pause finds it again, in another process too. The last one counts. Other tools keep nothing.
    pub fn keep_note(&self, note: Value) {
        if let Some(lease) = &self.lease {
            lease.keep_note(note);
        }
    }

    /// The call that this is.
    pub fn call_id(&self) -> &CallId {
        &self.call
    }

    /// Cancelled when the run is: a long tool watches it and winds down within the grace period.
    pub fn cancellation(&self) -> &Cancellation {
        &self.scope.cancellation
    }

    /// Tells the host how far the call is. Never blocks: notes that nobody reads in time are dropped, oldest first,
    /// and counted in the next event (see [`MAX_PROGRESS_NOTES`](crate::inbox::MAX_PROGRESS_NOTES)).
    pub fn progress(&self, text: impl Into<String>) {
        match &self.scope.observer {
            Some(observer) => observer.tell(ToolNote::Progress(&text.into())),
            None => self.scope.inbox.push_progress(self.call.clone(), text.into()),
        }
    }

    /// The sub-agents from the top run down to the one that made the call; empty in the top run.
    pub fn path(&self) -> &[Arc<str>] {
        &self.scope.path
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("call", &self.call).field("path", &self.scope.path).finish()
    }
}
