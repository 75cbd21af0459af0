//! One call of a skill while it runs: it can be driven, it asks, it says how far it is, and it can be put aside while a
//! person thinks.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use haversack_agent_core::cancel::Cancellation;
use haversack_agent_core::event::Event;
use haversack_agent_core::tool::{ToolError, ToolOutput};
use haversack_agent_core::tool_context::{ToolContext, ToolNote};
use haversack_skill_runtime::metadata::Approval;
use haversack_skill_runtime::pipeline::Definition;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::desk::{Desk, Question};
use crate::host::Host;
use crate::render;
use crate::served::{Action, ServedSkill};

/// Levels of agents that may start agents.
const AGENT_DEPTH: usize = 3;
/// Notes of progress that wait to be sent; what comes while it is full is left out, for the next note says more.
const NOTES: usize = 64;
/// Characters of one note.
const NOTE_CHARS: usize = 300;

/// A call that runs. It does so only while it is polled, and dropping it cancels it.
pub(crate) struct Running {
    pub(crate) skill: String,
    work: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    questions: mpsc::UnboundedReceiver<Question>,
    notes: mpsc::Receiver<String>,
    cancellation: Cancellation,
}

/// What happens next in a call.
#[derive(Debug)]
pub(crate) enum Step {
    /// It says how far it is.
    Note(String),
    /// It asks, and waits for the answer.
    Asks(Box<Question>),
    /// It has ended. Nothing comes after this.
    Done(Result<ToolOutput, ToolError>),
}

impl Running {
    /// Begins a call with arguments that were checked. Nothing happens before the first [`next`](Self::next).
    pub(crate) fn start(
        host: &Host,
        skill: &Arc<ServedSkill>,
        action: &Action,
        arguments: Value,
        id: &str,
    ) -> Self {
        let (ask, questions) = mpsc::unbounded_channel();
        let (note, notes) = mpsc::channel(NOTES);
        let cancellation = Cancellation::new();
        let desk = Arc::new(Desk(ask));
        let context =
            ToolContext::detached(id).with_cancellation(cancellation.clone()).with_observer(move |told| {
                if let Some(text) = told_text(told) {
                    // Full or nobody listens: the call goes on.
                    let _ = note.try_send(text.chars().take(NOTE_CHARS).collect());
                }
            });
        let work: BoxFuture<'static, _> = match action {
            Action::Prompt => {
                let skill = Arc::clone(skill);
                Box::pin(async move { blocking(move || render::prompt_page(&skill, &arguments)).await })
            }
            Action::Pipeline(definition) => {
                let definition = Arc::new(pre_approved(definition, host.pre_approved));
                let runner = host.runner().with_approver(desk);
                Box::pin(async move { Ok(runner.run(&definition, arguments, &context).await.to_output()) })
            }
            Action::Agent(tool) => {
                let tool = Arc::clone(tool);
                let context = context.with_agents(Some(desk), AGENT_DEPTH);
                Box::pin(async move { tool.call(arguments, context).await })
            }
        };
        Self { skill: skill.name.clone(), work, questions, notes, cancellation }
    }

    /// Runs the call until something happens. Notes come before what they announce.
    ///
    /// Cancel safe: nothing is lost when the future is dropped, and the call goes on with the next.
    pub(crate) async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(note) = self.notes.recv() => Step::Note(note),
            Some(question) = self.questions.recv() => Step::Asks(Box::new(question)),
            done = &mut self.work => Step::Done(done),
        }
    }

    /// A note that came with the end of the call.
    pub(crate) fn last_note(&mut self) -> Option<String> {
        self.notes.try_recv().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("skill", &self.skill).finish_non_exhaustive()
    }
}

fn told_text(told: ToolNote<'_>) -> Option<String> {
    match told {
        ToolNote::Progress(text) => Some(text.to_owned()),
        ToolNote::Agent { name, event } => match event {
            Event::ToolStarted { name: tool, .. } => Some(format!("{name}: calls {tool}")),
            Event::ToolProgress { text, .. } => Some(format!("{name}: {text}")),
            Event::TurnStarted { turn } => Some(format!("{name}: turn {turn}")),
            _ => None,
        },
        _ => None,
    }
}

/// The pipeline with those approvals taken out that were given beforehand.
fn pre_approved(definition: &Definition, given: Approval) -> Definition {
    let mut definition = definition.clone();
    for step in definition.steps.iter_mut().filter(|step| step.approval <= given) {
        step.approval = Approval::None;
    }
    definition
}

/// Runs something that reads files where that holds up nothing else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::failed("the server is ending, or reading failed")))
}
