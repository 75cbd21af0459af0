//! Typed requests: tool calls, resources, prompts, completion, logging and ping.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{RoundParams, ToolCall, ToolCallParams};
use crate::client::{Client, object};
use crate::connection::now;
use crate::error::Error;
use crate::progress::ProgressQueue;
#[cfg(feature = "http")]
use crate::protocol::code;
use crate::protocol::{
    Answer, AnswerError, Completion, Era, InputRequired, LogLevel, MAX_ROUNDS, Object, PromptResult,
    RequestParams, ResourceResult, Timing, ToolResult, ToolResultSeed, input_required, next_round,
};

/// How long to wait before a call is made again when the server asked nothing but its own state back.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

impl Client {
    /// Calls a tool by the server's own name for it.
    ///
    /// # Errors
    /// If there is no answer, or it is an error of the protocol. A failure that the tool reports itself is a result.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, and tells the server so.
    pub async fn call_tool(&self, name: &str, arguments: Object) -> Result<ToolResult, Error> {
        let options = self.options();
        let timing = Timing::with_progress(options.call_timeout, options.call_limit);
        let params = ToolCallParams { name, arguments: &arguments, meta: None };
        self.called(&params, timing, None).await
    }

    /// Calls a tool, with settings of its own.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, and tells the server so.
    pub async fn call(&self, call: ToolCall) -> Result<ToolResult, Error> {
        let options = self.options();
        let timeout = call.timeout.unwrap_or(options.call_timeout);
        let timing = Timing::with_progress(timeout, call.limit.unwrap_or(options.call_limit));
        let params =
            ToolCallParams { name: &call.name, arguments: &call.arguments, meta: call.meta.as_ref() };
        let progress = call.progress.as_ref();
        let _ends = EndsProgress(progress);
        self.called(&params, timing, progress).await
    }

    /// Makes a call. Where a server misses a parameter in the headers, the list of tools that said which go there is
    /// out of date: it is asked for again, once, and then the call is made again.
    async fn called(
        &self,
        params: &ToolCallParams<'_>,
        timing: Timing,
        progress: Option<&Arc<ProgressQueue>>,
    ) -> Result<ToolResult, Error> {
        let read = |answer: &Answer| answer.read(|| ToolResultSeed);
        let result = self.in_rounds("tools/call", params, timing, progress, read).await;
        #[cfg(feature = "http")]
        if self.http().is_some()
            && matches!(&result, Err(Error::Rpc { error, .. }) if error.code == Some(code::HEADER_MISMATCH))
        {
            self.cache().forget("tools/list");
            if self.list_tools().await.is_ok() {
                return self.in_rounds("tools/call", params, timing, progress, read).await;
            }
        }
        result
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// If there is no answer, or it is an error; a resource that is not there is one.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn read_resource(&self, uri: &str) -> Result<ResourceResult, Error> {
        let params = object([("uri", uri.into())]);
        let timing = self.options().request_timing();
        self.in_rounds("resources/read", &params, timing, None, |answer| {
            answer.result().map(ResourceResult::from_object)
        })
        .await
    }

    /// Fills in a prompt.
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn get_prompt(&self, name: &str, arguments: Object) -> Result<PromptResult, Error> {
        let params = object([("name", name.into()), ("arguments", arguments.into())]);
        let timing = self.options().request_timing();
        self.in_rounds("prompts/get", &params, timing, None, |answer| {
            answer.result().map(PromptResult::from_object)
        })
        .await
    }

    /// Asks whether the server is there. The modern revisions have no such question, so it is not asked there.
    ///
    /// # Errors
    /// If there is no answer, and in the modern revisions always.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let asked = now();
        if self.info().era == Era::Modern {
            let reason =
                "this revision has no ping; any other request shows as well that the server is there";
            let (server, method) = (self.label().to_owned(), "ping".to_owned());
            return Err(Error::NotSent { server, method, reason: reason.to_owned() });
        }
        self.request_object("ping", &Object::new()).await?;
        Ok(now().saturating_duration_since(asked))
    }

    /// Asks for ways to go on with a value that is being typed: of an argument of a prompt (`{"type": "ref/prompt",
    /// "name": …}`) or of a resource template (`{"type": "ref/resource", "uri": …}`).
    ///
    /// `context` holds the arguments that are filled in already; it may be empty.
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn complete(
        &self,
        reference: Object,
        argument: &str,
        value: &str,
        context: Object,
    ) -> Result<Completion, Error> {
        let argument = object([("name", argument.into()), ("value", value.into())]);
        let mut params = object([("ref", reference.into()), ("argument", argument.into())]);
        if !context.is_empty() {
            params.insert("context".to_owned(), object([("arguments", context.into())]).into());
        }
        let result = self.request_object("completion/complete", &params).await?;
        let reason = || AnswerError::Invalid("it holds no list of completions".to_owned());
        Completion::from_object(result).ok_or_else(|| self.answer_error("completion/complete", reason()))
    }

    /// Sets how much the server should log: by a request of its own in the legacy revisions, from the next request on in
    /// the modern ones.
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        self.connection().with_machine(|machine| machine.set_log_level(Some(level)));
        if self.info().era == Era::Legacy {
            self.request_object("logging/setLevel", &object([("level", level.as_str().into())])).await?;
        }
        Ok(())
    }

    /// Makes a request, answers what the server asks before it goes on, and makes it again.
    async fn in_rounds<T: RoundResult>(
        &self,
        method: &'static str,
        params: &impl RequestParams,
        timing: Timing,
        progress: Option<&Arc<ProgressQueue>>,
        read: impl Fn(&Answer) -> Result<T, AnswerError>,
    ) -> Result<T, Error> {
        let mut round = Object::new();
        for _ in 0..=MAX_ROUNDS {
            let params = RoundParams { params, round: &round };
            let answer = self.request(method.into(), &params, timing, progress).await?;
            let mut result = read(&answer).map_err(|error| self.answer_error(method, error))?;
            if self.info().era == Era::Legacy {
                return Ok(result);
            }
            let asked = input_required(result.extra(), true);
            match asked.map_err(|reason| self.answer_error(method, AnswerError::Invalid(reason)))? {
                None => return Ok(result),
                Some(required) => round = self.answer_questions(method, required).await?,
            }
        }
        let reason = format!("the server still asks for input after {MAX_ROUNDS} rounds");
        Err(self.answer_error(method, AnswerError::Invalid(reason)))
    }

    /// Has the host answer what a server needs, all questions side by side.
    async fn answer_questions(&self, method: &str, required: InputRequired) -> Result<Object, Error> {
        let handlers = &self.options().handlers;
        if let Some((_, needed, _)) = required.questions.iter().find(|(_, asked, _)| !handlers.serves(asked))
        {
            let (server, method, needed) = (self.label().to_owned(), method.to_owned(), needed.clone());
            return Err(Error::InputNeeded { server, method, needed });
        }
        if required.questions.is_empty() {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        let mut running = tokio::task::JoinSet::new();
        for (key, asked, params) in required.questions {
            let handlers = handlers.clone();
            running.spawn(async move { (key, handlers.serve_safely(asked, params).await) });
        }
        let mut answers = Object::new();
        while let Some(Ok((key, answer))) = running.join_next().await {
            match answer {
                Ok(answer) => answers.insert(key, answer),
                Err(error) => {
                    let (server, method) = (self.label().to_owned(), method.to_owned());
                    let reason = format!("the host did not answer what the server asked: {error}");
                    return Err(Error::NotSent { server, method, reason });
                }
            };
        }
        Ok(next_round(answers, required.state))
    }
}

/// Ends the progress reports of a call, however it ends.
struct EndsProgress<'a>(Option<&'a Arc<ProgressQueue>>);

impl Drop for EndsProgress<'_> {
    fn drop(&mut self) {
        if let Some(progress) = self.0 {
            progress.end();
        }
    }
}

/// A result that may come in several rounds.
trait RoundResult {
    /// The members beside its content.
    fn extra(&mut self) -> &mut Object;
}

impl RoundResult for ToolResult {
    fn extra(&mut self) -> &mut Object {
        &mut self.extra
    }
}

impl RoundResult for ResourceResult {
    fn extra(&mut self) -> &mut Object {
        &mut self.extra
    }
}

impl RoundResult for PromptResult {
    fn extra(&mut self) -> &mut Object {
        &mut self.extra
    }
}
