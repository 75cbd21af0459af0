//! The end of a step and of the whole run: what is reported.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::metadata::OnError;
use crate::pipeline::definition::DefinitionStep;
use crate::pipeline::machine::unit::{Phase, Unit};
use crate::pipeline::machine::{Machine, Running};
use crate::pipeline::report::{Element, Failure, Report, Status, StepReport, StepStatus};

impl Machine {
    pub(super) fn finish(&mut self, status: Status, message: &str) {
        let step = self.definition.steps.get(self.at);
        let number = if status == Status::Refused { 0 } else { self.at + 1 };
        let message = self.redactor.text(message).into_owned();
        self.end = Some((
            status,
            Some(Failure {
                step: number.min(self.definition.steps.len()),
                steps: self.definition.steps.len(),
                action: step.map(|step| step.action.clone()).unwrap_or_default(),
                message,
            }),
        ));
    }

    pub(super) fn report(&self) -> Report {
        let (status, failure) = self.end.clone().unwrap_or((Status::Done, None));
        Report {
            name: self.definition.name.clone(),
            status,
            steps: self.steps.clone(),
            failure,
            output: self.output.clone(),
        }
    }

    /// A step that fails before anything runs.
    pub(super) fn step_failed(&mut self, step: &DefinitionStep, message: &str) {
        self.steps.push(StepReport {
            number: self.at + 1,
            action: step.action.clone(),
            tool: step.tool.clone(),
            status: StepStatus::Failed,
            output: Value::Null,
            error: Some(message.to_owned()),
            tries: 0,
            elements: Vec::new(),
        });
        if step.on_error == OnError::Skip {
            self.at += 1;
        } else {
            self.finish(Status::Failed, message);
        }
    }

    /// The step is over: its output is bound, or the pipeline ends.
    pub(super) fn end_step(&mut self) {
        let definition = Arc::clone(&self.definition);
        let (Some(step), Some(running)) = (definition.steps.get(self.at), self.running.take()) else {
            return;
        };
        self.report_step(&running, None);
        if let Some(reason) = running.stopped {
            return self.finish(Status::Denied, &reason);
        }
        if running.closing {
            let message = failure_of(step, &running);
            return self.finish(Status::Failed, &message);
        }
        let output =
            self.steps.last().filter(|step| step.status == StepStatus::Done).map(|s| s.output.clone());
        if let Some(output) = output {
            if let Some(name) = &step.output_as {
                self.vars.insert(name.clone(), output.clone());
            }
            self.output = output;
        }
        self.at += 1;
    }

    pub(super) fn report_step(&mut self, running: &Running, interrupted: Option<&str>) {
        let Some(step) = self.definition.steps.get(self.at) else { return };
        let begun: Vec<&Unit> = running.units.iter().filter(|unit| unit.was_begun()).collect();
        if interrupted.is_some() && begun.iter().all(|unit| unit.tries == 0) {
            return;
        }
        let error = |unit| error_of(unit, interrupted);
        let outputs: Vec<Value> = begun
            .iter()
            .map(|unit| match (&unit.phase, error(unit)) {
                (Phase::Done(value), _) => value.clone(),
                (_, error) => json!({"error": error, "index": unit.element}),
            })
            .collect();
        let first_error = begun.iter().find_map(|unit| error(unit)).map(str::to_owned);
        let open = running.units.iter().any(Unit::is_open);
        let failed = if running.is_loop { running.closing } else { first_error.is_some() };
        let status = match (interrupted.is_some() && open, failed) {
            (true, _) => StepStatus::Interrupted,
            (false, true) => StepStatus::Failed,
            (false, false) => StepStatus::Done,
        };
        let elements = begun.iter().filter_map(|unit| {
            let error = error(unit).map(str::to_owned);
            Some(Element { index: unit.element?, error, tries: unit.tries })
        });
        let report = StepReport {
            number: self.at + 1,
            action: step.action.clone(),
            tool: step.tool.clone(),
            status,
            tries: begun.iter().map(|unit| unit.tries).sum(),
            elements: elements.collect(),
            error: if status == StepStatus::Done { None } else { first_error },
            output: match (running.is_loop, status) {
                (true, _) => Value::Array(outputs),
                (false, StepStatus::Done) => outputs.into_iter().next().unwrap_or_default(),
                (false, _) => Value::Null,
            },
        };
        self.steps.push(report);
    }
}

/// The clause of a failure, behind the name of the step.
fn failure_of(step: &DefinitionStep, running: &Running) -> String {
    let Some(unit) = running.units.iter().find(|unit| unit.error().is_some()) else {
        return "failed".to_owned();
    };
    let error = unit.error().unwrap_or_default();
    let place = unit.element.map(|n| format!("element {n}: ")).unwrap_or_default();
    if unit.tries == 0 {
        return format!("{place}{error}");
    }
    if step.on_error == OnError::Retry && unit.tries >= step.tries() {
        return format!("retry exhausted: {place}{error}");
    }
    format!("failed: {place}{error}")
}

/// What is wrong with a unit; one that has not come to its end was interrupted, or not begun.
fn error_of<'u>(unit: &'u Unit, interrupted: Option<&'u str>) -> Option<&'u str> {
    unit.error().or_else(|| unit.is_open().then(|| interrupted.unwrap_or("not begun")))
}
