//! A tool that does what it is told.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::message::CallId;
use crate::policy::ApprovalKey;
use crate::testing::gate::Gate;
use crate::testing::model::panic;
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Tool, ToolContext};

/// What becomes of one call of a [`ScriptedTool`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// It succeeds with this output.
    Output(ToolOutput),
    /// It fails.
    Error(ToolError),
    /// It panics.
    Panic(&'static str),
    /// It never ends, and never wakes anybody.
    Hang,
}

/// A tool that follows a script and writes down what happened. Cheap to clone; all clones are the same tool.
///
/// Without a script it answers each call with its own arguments as text.
#[derive(Clone)]
pub struct ScriptedTool {
    spec: Arc<ToolSpec>,
    gate: Option<Gate>,
    keys: KeysFn,
    time_limit: Option<Duration>,
    shared: Arc<Mutex<Shared>>,
}

/// Arguments to keys.
type KeysFn = Arc<dyn Fn(&Value) -> Vec<ApprovalKey> + Send + Sync>;

#[derive(Default)]
struct Shared {
    fates: VecDeque<Fate>,
    log: Vec<ToolLog>,
    running: usize,
    most_running: usize,
}

/// One call of a [`ScriptedTool`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolLog {
    /// The call.
    pub call: CallId,
    /// What it was called with.
    pub arguments: Value,
    /// Whether the call ran to its end; if not, it is running, panicked, or its future was dropped.
    pub finished: bool,
}

impl ScriptedTool {
    /// A tool that answers each call with its own arguments.
    pub fn new(spec: ToolSpec) -> Self {
        Self {
            spec: Arc::new(spec),
            gate: None,
            keys: Arc::new(|_| Vec::new()),
            time_limit: None,
            shared: Arc::default(),
        }
    }

    /// Makes every call wait at this gate before it does anything else.
    #[must_use]
    pub fn with_gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Sets what the next calls come to, in the order in which they start.
    #[must_use]
    pub fn with_fates(self, fates: impl IntoIterator<Item = Fate>) -> Self {
        self.shared().fates.extend(fates);
        self
    }

    /// Sets how approval keys are made from arguments.
    #[must_use]
    pub fn with_keys(mut self, keys: impl Fn(&Value) -> Vec<ApprovalKey> + Send + Sync + 'static) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// Sets how long one call may take.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// The calls so far, in the order in which they started.
    pub fn calls(&self) -> Vec<ToolLog> {
        self.shared().log.clone()
    }

    /// How many calls run now.
    pub fn running(&self) -> usize {
        self.shared().running
    }

    /// How many calls ran at the same time at most.
    pub fn most_running(&self) -> usize {
        self.shared().most_running
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        (self.keys)(arguments)
    }

    fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let (place, fate) = {
            let mut shared = self.shared();
            let call = context.call_id().clone();
            shared.log.push(ToolLog { call, arguments: arguments.clone(), finished: false });
            shared.running += 1;
            shared.most_running = shared.most_running.max(shared.running);
            (shared.log.len() - 1, shared.fates.pop_front())
        };
        let _running = Running(self);
        if let Some(gate) = &self.gate {
            gate.wait().await;
        }
        let result = match fate {
            None => Ok(ToolOutput::text(arguments.to_string())),
            Some(Fate::Output(output)) => Ok(output),
            Some(Fate::Error(error)) => Err(error),
            Some(Fate::Panic(message)) => panic(message),
            Some(Fate::Hang) => std::future::pending().await,
        };
        if let Some(log) = self.shared().log.get_mut(place) {
            log.finished = true;
        }
        result
    }
}

/// Counts a call as running until its future ends or is dropped.
struct Running<'a>(&'a ScriptedTool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared().running -= 1;
    }
}
