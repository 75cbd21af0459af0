//! A pipeline as a state machine: no I/O, no clock, the same inputs give the same actions.

mod action;
mod unit;
mod ending;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haversack_agent_core::arguments::ArgumentCheck;
use haversack_agent_core::tool::{ToolError, ToolErrorKind};
use serde_json::{Map, Value};

use crate::metadata::OnError;
use crate::pipeline::definition::{Definition, DefinitionStep, MAX_PARALLEL};
use crate::pipeline::report::{Failure, Status, StepReport};
use crate::redact::Redactor;
use crate::template::{Scope, Template, render_value};
pub use action::{Action, Call, CallNumber, Reply};
use unit::{Phase, Unit};

/// Elements of a list that a loop takes at most. Each is a call of a tool.
pub const MAX_ELEMENTS: usize = 1000;

/// Bytes of one call's output at most, as JSON; a larger one fails the call. Outputs are kept until the pipeline ends.
pub const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;

/// One run of a pipeline.
///
/// The host polls it with the time and does what it says. Calls are named by numbers; an answer with a number that
/// nobody waits for is ignored.
pub struct Machine {
    definition: Arc<Definition>,
    redactor: Redactor,
    vars: Map<String, Value>,
    /// The step that runs or comes next, from 0.
    at: usize,
    running: Option<Running>,
    steps: Vec<StepReport>,
    output: Value,
    next_call: u64,
    deadline: Option<Duration>,
    call_limit: Option<Duration>,
    abandoned: Vec<CallNumber>,
    end: Option<(Status, Option<Failure>)>,
}

/// A step in motion.
struct Running {
    units: Vec<Unit>,
    is_loop: bool,
    /// An element failed that ends the pipeline: nothing more is begun.
    closing: bool,
    /// Somebody ended the pipeline.
    stopped: Option<String>,
}

impl Machine {
    /// A run of this definition. An input that does not fit its schema ends it at once.
    pub fn new(definition: Arc<Definition>, input: Value, redactor: Redactor) -> Self {
        let mut machine = Self {
            definition,
            redactor,
            vars: Map::new(),
            at: 0,
            running: None,
            steps: Vec::new(),
            output: Value::Null,
            next_call: 0,
            deadline: None,
            call_limit: None,
            abandoned: Vec::new(),
            end: None,
        };
        if let Err(message) = machine.check(&input) {
            let message = format!("{}: {message}", machine.definition.name);
            machine.finish(Status::Refused, &message);
        }
        machine.vars.insert("input".to_owned(), input);
        machine
    }

    /// Ends the run when this time has come.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Ends a call after this time, where its step does not say another.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = Some(limit);
        self
    }

    fn check(&self, input: &Value) -> Result<(), String> {
        if !input.is_object() {
            return Err("the input is not a JSON object".to_owned());
        }
        let check = ArgumentCheck::new(self.definition.input_schema.clone());
        check.check(input).map_err(|wrong| format!("the input does not fit, and nothing was run: {wrong}"))
    }

    /// The next thing to do at this time.
    pub fn poll(&mut self, now: Duration) -> Action {
        if self.end.is_none() && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.handle_cancel("the time of the pipeline is up");
        }
        loop {
            self.expire(now);
            if let Some(number) = self.abandoned.pop() {
                return Action::Abandon(number);
            }
            if self.end.is_some() {
                return Action::Finished(self.report());
            }
            if self.running.is_none() {
                self.begin();
                continue;
            }
            if let Some(action) = self.next_of_step(now) {
                return action;
            }
            self.end_step();
        }
    }

    /// Whether the call that was asked about may run.
    pub fn handle_reply(&mut self, number: CallNumber, reply: Reply) {
        let Some(running) = &mut self.running else { return };
        let Some(unit) = running.units.iter_mut().find(|unit| unit.phase == Phase::Asked(number)) else {
            return;
        };
        match reply {
            Reply::Allow => unit.allow(number),
            Reply::AllowEdited(arguments) => {
                unit.arguments = arguments;
                unit.allow(number);
            }
            Reply::Deny(reason) => unit.phase = Phase::Failed(denied(&reason)),
            Reply::Stop(reason) => {
                unit.phase = Phase::Failed(denied(&reason));
                running.stopped = Some(denied(&reason));
            }
        }
        self.note_failures();
    }

    /// A call has ended at this time.
    pub fn handle_done(&mut self, number: CallNumber, result: Result<Value, ToolError>, now: Duration) {
        let Some(step) = self.definition.steps.get(self.at) else { return };
        let Some(running) = &mut self.running else { return };
        let Some(unit) = running.units.iter_mut().find(|unit| unit.runs(number)) else { return };
        let result = result.and_then(|value| {
            let size = value.to_string().len();
            if size <= MAX_OUTPUT_BYTES {
                return Ok(self.redactor.json(value));
            }
            Err(ToolError::failed(format!("the output has {size} bytes, more than {MAX_OUTPUT_BYTES}")))
        });
        match result {
            Ok(value) => unit.phase = Phase::Done(value),
            Err(error) => {
                let message = self.redactor.text(&error.message).into_owned();
                let message =
                    if message.is_empty() { "the tool failed and says nothing".to_owned() } else { message };
                // Arguments that do not fit will not fit a second time.
                let hopeless = error.kind == ToolErrorKind::InvalidArguments;
                unit.fail(step, message, hopeless, now);
            }
        }
        self.note_failures();
    }

    /// Ends the run; calls that are out are abandoned.
    pub fn handle_cancel(&mut self, reason: &str) {
        if self.end.is_some() {
            return;
        }
        if let Some(running) = self.running.take() {
            self.abandoned.extend(running.units.iter().filter_map(Unit::running));
            self.report_step(&running, Some("interrupted; what it did is not known"));
        }
        self.finish(Status::Cancelled, reason);
    }

    /// Sets the next step in motion.
    fn begin(&mut self) {
        let definition = Arc::clone(&self.definition);
        let Some(step) = definition.steps.get(self.at) else {
            self.end = Some((Status::Done, None));
            return;
        };
        let is_loop = step.loop_over.is_some();
        let units = match &step.loop_over {
            None => vec![self.unit(step, None, None)],
            Some(list) => match self.list(list) {
                Ok(items) => {
                    (0..).zip(&items).map(|(n, item)| self.unit(step, Some(n), Some(item))).collect()
                }
                Err(message) => return self.step_failed(step, &message),
            },
        };
        self.running = Some(Running { units, is_loop, closing: false, stopped: None });
        self.note_failures();
    }

    fn list(&self, template: &str) -> Result<Vec<Value>, String> {
        let value = Template::parse(template).render(&Scope::new(&self.vars));
        match value {
            Ok(Value::Array(items)) if items.len() > MAX_ELEMENTS => {
                Err(format!("loop_over has {} elements, more than {MAX_ELEMENTS}", items.len()))
            }
            Ok(Value::Array(items)) => Ok(items),
            Ok(other) => Err(format!("loop_over expects array, got {}", kind(&other))),
            Err(_) => Err("loop_over expects array, got undefined".to_owned()),
        }
    }

    fn unit(&self, step: &DefinitionStep, element: Option<usize>, item: Option<&Value>) -> Unit {
        let scope = Scope::new(&self.vars);
        let scope = item.map_or(scope, |item| scope.with_item(item));
        let mut arguments = Map::new();
        for (key, value) in &step.input_map {
            match render_value(value, &scope) {
                Ok(value) => {
                    arguments.insert(key.clone(), value);
                }
                Err(error) => {
                    let error = error.to_string();
                    let error = self.redactor.text(&error);
                    return Unit::failed(element, format!("input resolve failed: field \"{key}\": {error}"));
                }
            }
        }
        Unit::new(element, Value::Object(arguments))
    }

    /// Closes a step in which something failed that ends the pipeline.
    fn note_failures(&mut self) {
        let Some(step) = self.definition.steps.get(self.at) else { return };
        let Some(running) = &mut self.running else { return };
        let failed = running.units.iter().any(|unit| matches!(unit.phase, Phase::Failed(_)));
        running.closing |= running.stopped.is_some() || failed && step.on_error != OnError::Skip;
        if running.closing {
            // What was allowed and has not begun does not begin any more.
            for unit in running.units.iter_mut().filter(|unit| matches!(unit.phase, Phase::Allowed(_))) {
                unit.phase = Phase::Ready { not_before: Duration::ZERO };
            }
        }
    }

    /// Calls whose time is up have failed.
    fn expire(&mut self, now: Duration) {
        let Some(step) = self.definition.steps.get(self.at) else { return };
        let Some(running) = &mut self.running else { return };
        for unit in &mut running.units {
            if let Some(number) = unit.expired(now) {
                let limit =
                    step.timeout_ms.map(Duration::from_millis).or(self.call_limit).unwrap_or_default();
                unit.fail(step, format!("no answer within {limit:?}; what it did is not known"), false, now);
                self.abandoned.push(number);
            }
        }
        self.note_failures();
    }

    /// What the step in motion needs; `None` when it has come to its end.
    fn next_of_step(&mut self, now: Duration) -> Option<Action> {
        let step = self.definition.steps.get(self.at)?;
        let running = self.running.as_mut()?;
        let room = usize::try_from(step.parallel.clamp(1, MAX_PARALLEL)).unwrap_or(1);
        let out = running.units.iter().filter(|unit| unit.is_out()).count();
        let mut wake: Option<Duration> = None;
        let mut busy = out > 0;
        for unit in &mut running.units {
            match unit.phase {
                Phase::Allowed(number) if !running.closing => {
                    unit.tries += 1;
                    let limit = step.timeout_ms.map(Duration::from_millis).or(self.call_limit);
                    let deadline = limit.map(|limit| now.saturating_add(limit));
                    unit.phase = Phase::Running { number, deadline };
                    return Some(Action::Run(unit.call(number, self.at + 1, step)));
                }
                Phase::Ready { not_before } if !running.closing && not_before <= now && out < room => {
                    let number = CallNumber(self.next_call);
                    self.next_call += 1;
                    if unit.approved {
                        unit.phase = Phase::Allowed(number);
                        return self.next_of_step(now);
                    }
                    unit.phase = Phase::Asked(number);
                    return Some(Action::Ask(unit.call(number, self.at + 1, step)));
                }
                Phase::Ready { not_before } if !running.closing => {
                    busy = true;
                    if not_before > now {
                        wake = earlier(wake, Some(not_before));
                    }
                }
                Phase::Running { deadline, .. } => wake = earlier(wake, deadline),
                _ => {}
            }
        }
        busy.then(|| Action::Wait(earlier(wake, self.deadline)))
    }
}

fn denied(reason: &str) -> String {
    if reason.trim().is_empty() { "not approved".to_owned() } else { format!("not approved: {reason}") }
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl fmt::Debug for Machine {
    /// Variables are left out: they hold what tools gave.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("name", &self.definition.name)
            .field("step", &(self.at + 1))
            .field("ended", &self.end.as_ref().map(|(status, _)| *status))
            .finish_non_exhaustive()
    }
}
