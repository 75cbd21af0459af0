//! Calls of tools: checked, begun, and driven to their end, with progress, questions and cancels on the way.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use haversack_agent_core::approval::Verdict;
use haversack_agent_core::tool::{ToolError, ToolOutput};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, InputRequest, InputRequests,
    InputRequiredResult, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::{Handler, arguments, invalid};
use crate::call::{Running, Step};
use crate::desk::{self, Question};
use crate::render;

/// How long a person may think where the call waits for them.
const ASK_LIMIT: Duration = Duration::from_secs(600);
/// The name of the question in an answer that asks for input.
const QUESTION: &str = "approval";

/// How the client of a call can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// Not at all.
    Never,
    /// While the call waits.
    Waiting,
    /// By an answer, after which the client calls again.
    ByAnswer,
}

impl Asking {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // A client that names no kind means forms.
        let forms = elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none());
        let version = context.protocol_version();
        let is_modern = version.is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        match (forms, is_modern) {
            (false, _) => Self::Never,
            (true, false) => Self::Waiting,
            (true, true) => Self::ByAnswer,
        }
    }
}

impl Handler {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = arguments(&request);
        let catalogue = self.server.catalogue();
        let Some(skill) = catalogue.by_tool(&request.name).cloned() else {
            return Err(invalid("there is no such tool; list the tools to see what there is"));
        };
        let Some(tool) = &skill.tool else { return Err(invalid("there is no such tool")) };
        if let Some(state) = &request.request_state {
            return self.go_on(&request, &arguments, state, &context).await;
        }
        if let Err(wrong) = tool.check.check(&arguments) {
            let refused = ToolError::invalid_arguments(format!("The arguments do not fit: {wrong}"));
            return Ok(self.done(Err(refused)));
        }
        let id = context.id.to_string();
        let running = Running::start(&self.server.0.host, &skill, &tool.action, arguments.clone(), &id);
        self.drive(running, &request.name, &arguments, &context).await
    }

    /// Goes on with a call that was put aside, with what the client brings.
    async fn go_on(
        &self,
        request: &CallToolRequestParams,
        arguments: &Value,
        state: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((running, question)) = self.server.0.parked.take(&request.name, arguments, state) else {
            return Err(invalid(
                "`requestState` is not one of this call that still waits; make the call again without it",
            ));
        };
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
        let Some(answer) = answer else {
            // Without the answer there is nothing to go on with: the question stands.
            return self.put_aside(running, question, &request.name, arguments);
        };
        let verdict = match serde_json::from_value::<ElicitResult>(answer.clone()) {
            Ok(answer) => desk::verdict(&answer),
            Err(_) => return self.put_aside(running, question, &request.name, arguments),
        };
        // A call that no longer waits has ended, and the drive finds its end.
        let _ = question.reply.send(verdict);
        self.drive(running, &request.name, arguments, context).await
    }

    async fn drive(
        &self,
        mut running: Running,
        tool: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asking = Asking::of(context);
        let mut progress = Progress { token: context.meta.get_progress_token(), count: 0, context };
        let mut asked: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return Ok(self.done(Err(ToolError::failed("The call was cancelled.")))),
                Some(()) = asked.next() => {}
                step = running.next() => match step {
                    Step::Note(note) => progress.tell(note).await,
                    Step::Done(output) => {
                        while let Some(note) = running.last_note() {
                            progress.tell(note).await;
                        }
                        return Ok(self.done(output));
                    }
                    Step::Asks(question) => match asking {
                        Asking::Never => {
                            let verdict = desk::nobody(&question.ask);
                            let _ = question.reply.send(verdict);
                        }
                        Asking::Waiting => asked.push(Box::pin(self.ask(running.skill.clone(), question, context))),
                        Asking::ByAnswer => return self.put_aside(running, question, tool, arguments),
                    },
                },
            }
        }
    }

    /// Asks while the call waits.
    async fn ask(&self, skill: String, question: Box<Question>, context: &RequestContext<RoleServer>) {
        let form = desk::form(&skill, &question.ask, &self.server.0.host.redactor);
        let answer = context.peer.create_elicitation_with_timeout(form, Some(ASK_LIMIT)).await;
        let verdict = match answer {
            Ok(answer) => desk::verdict(&answer),
            Err(error) => Verdict::Stop {
                reason: format!("{}, and the client could not be asked: {error}", question.ask.reason),
            },
        };
        let _ = question.reply.send(verdict);
    }

    /// Answers with the question; the client calls again with the answer.
    fn put_aside(
        &self,
        running: Running,
        question: Box<Question>,
        tool: &str,
        arguments: &Value,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = desk::form(&running.skill, &question.ask, &self.server.0.host.redactor);
        let form = InputRequest::Elicitation(ElicitRequest::new(form));
        let state = self.server.0.parked.park(tool, arguments, running, question);
        let state = state.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let asks = InputRequests::from([(QUESTION.to_owned(), form)]);
        Ok(InputRequiredResult::new(Some(asks), Some(state)).into())
    }

    fn done(&self, output: Result<ToolOutput, ToolError>) -> CallToolResponse {
        render::result(output, &self.server.0.host.redactor).into()
    }
}

/// Notes of progress on their way to a client that wants them.
struct Progress<'c> {
    token: Option<ProgressToken>,
    count: u32,
    context: &'c RequestContext<RoleServer>,
}

impl Progress<'_> {
    async fn tell(&mut self, note: String) {
        let Some(token) = &self.token else { return };
        self.count += 1;
        let note = ProgressNotificationParam::new(token.clone(), f64::from(self.count)).with_message(note);
        // A client that is gone does not hear it; the call ends by itself then.
        let _ = self.context.peer.notify_progress(note).await;
    }
}

/// The skill of a call, kept while it runs.
const _: () = {
    const fn shareable<T: Send + Sync + 'static>() {}
    shareable::<Arc<crate::served::ServedSkill>>();
};
