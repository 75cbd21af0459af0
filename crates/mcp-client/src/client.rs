//! The handle of a connection: typed calls to one server.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::call::{RoundParams, ToolCall, ToolCallParams};
use crate::driver::{Connection, ProgressQueue, Waiter};
use crate::error::Error;
use crate::events::Events;
use crate::handlers::AskDesk;
use crate::options::ClientOptions;
use crate::process::{self, EndTimes, Exit, ServerCommand};
use crate::protocol::{
    Answer, AnswerError, ClientMachine, Completion, Era, EraChoice, InputRequired, Item, ListKind, Listing,
    LogLevel, MAX_ROUNDS, MachineCounts, Object, OpeningError, Outcome, PageSeed, Paging, Problem,
    ProblemCode, PromptInfo, PromptResult, RequestId, RequestParams, ResourceInfo, ResourceResult,
    ResourceTemplate, ServerInfo, Timing, ToolInfo, ToolResult, ToolResultSeed, input_required, next_round,
};
use crate::transport::Transport;

/// How long to wait before a call is made again when the server asked nothing but its own state back.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// A connection to one MCP server.
///
/// Clones are cheap and stand for the same connection. When the last one is dropped, the server is asked to terminate at
/// once, and killed if it does not; [`close`](Self::close) is the polite way. Two tasks on the runtime in which the
/// client was started look after the connection and the process; both end with the process, and dropping the runtime
/// kills the process.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    connection: Arc<Connection>,
    options: ClientOptions,
    label: String,
    info: ServerInfo,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connection.abandon();
    }
}

const _: () = {
    const fn is_handle<T: Clone + Send + Sync + 'static>() {}
    is_handle::<Client>();
};

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.handle.label).finish_non_exhaustive()
    }
}

/// Ends a connection that is being opened when its opening is given up.
struct Unopened<'a>(Option<&'a Arc<Connection>>);

impl Drop for Unopened<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.abandon();
        }
    }
}

impl Client {
    /// Starts a server and connects to it.
    ///
    /// It must be called inside a tokio runtime with time and I/O enabled. If the server dies of being asked whether it
    /// is modern, as old ones do, it is started once more without the question.
    ///
    /// # Errors
    /// [`Error::Spawn`] if the program cannot be run, [`Error::Opening`] if the connection does not open; then the
    /// process has been ended.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    pub async fn start(command: &ServerCommand, options: ClientOptions) -> Result<Self, Error> {
        let ends = Instant::now().checked_add(options.config.start_timeout);
        match Self::start_once(command, options.clone()).await {
            Err((_, true)) => {
                let mut options = options;
                options.config.era = EraChoice::Legacy;
                if let Some(ends) = ends {
                    options.config.start_timeout = ends.saturating_duration_since(Instant::now());
                }
                Self::start_once(command, options).await.map_err(|(error, _)| error)
            }
            started => started.map_err(|(error, _)| error),
        }
    }

    async fn start_once(command: &ServerCommand, options: ClientOptions) -> Result<Self, (Error, bool)> {
        let label = options.label.clone().unwrap_or_else(|| command.short_name());
        let times = EndTimes { stdin: options.close_grace, term: options.term_grace };
        let spawned = process::spawn(command, options.stderr_tail_bytes, times).map_err(|source| {
            let program = command.program().to_string_lossy().into_owned();
            (Error::Spawn { server: label.clone(), program, source }, false)
        })?;
        tokio::spawn(spawned.keeper.run());
        let transport = Transport {
            reader: Box::new(spawned.stdout),
            writer: Box::new(spawned.stdin),
            process: Some(spawned.process),
        };
        Self::open(transport, options, label).await
    }

    /// Connects to a server over any pair of streams.
    ///
    /// # Errors
    /// [`Error::Opening`] if the connection does not open.
    ///
    /// # Cancel safety
    /// Dropping the future closes the streams.
    pub async fn connect(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: ClientOptions,
    ) -> Result<Self, Error> {
        let label = options.label.clone().unwrap_or_else(|| "the server".to_owned());
        let transport = Transport { reader: Box::new(reader), writer: Box::new(writer), process: None };
        Self::open(transport, options, label).await.map_err(|(error, _)| error)
    }

    async fn open(
        transport: Transport,
        options: ClientOptions,
        label: String,
    ) -> Result<Self, (Error, bool)> {
        let machine = ClientMachine::new(options.machine_config());
        let desk = AskDesk::new(options.handlers.clone());
        let asks = Box::new(move |connection: &Arc<Connection>, ask| desk.take(connection, ask));
        let (connection, driver, opening) = Connection::new(machine, transport, options.max_line_bytes, asks);
        let mut unopened = Unopened(Some(&connection));
        tokio::spawn(driver.run());
        connection.start();
        let opened = opening.await;
        unopened.0 = None;
        drop(unopened);
        match opened {
            Ok(Ok(info)) => Ok(Self { handle: Arc::new(Handle { connection, options, label, info: *info }) }),
            failed => {
                connection.abandon();
                connection.ended().await;
                let (error, start_again) = match failed {
                    Ok(Err(failed)) => failed,
                    // The runtime is going down.
                    _ => (OpeningError::Closed { step: crate::protocol::OpeningStep::Initialize }, false),
                };
                let ending = connection.ending();
                Err((Error::Opening { server: label, error, ending }, start_again))
            }
        }
    }

    /// What the server said of itself.
    pub fn info(&self) -> &ServerInfo {
        &self.handle.info
    }

    /// What the server is called in errors.
    pub fn label(&self) -> &str {
        &self.handle.label
    }

    /// Lists the tools, all pages of them.
    ///
    /// A server that declares no tools has none, and is not asked. A bad entry or a page that cannot be had never costs
    /// the rest: see [`Listing::problems`].
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_tools(&self) -> Result<Listing<ToolInfo>, Error> {
        self.list("tools/list", ListKind::Tools, &["tools", "nextCursor"]).await
    }

    /// Lists the resources, all pages of them; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_resources(&self) -> Result<Listing<ResourceInfo>, Error> {
        self.list("resources/list", ListKind::Resources, &["resources", "nextCursor"]).await
    }

    /// Lists the templates of resource addresses; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_resource_templates(&self) -> Result<Listing<ResourceTemplate>, Error> {
        self.list("resources/templates/list", ListKind::Resources, &["resourceTemplates", "nextCursor"]).await
    }

    /// Lists the prompts, all pages of them; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_prompts(&self) -> Result<Listing<PromptInfo>, Error> {
        self.list("prompts/list", ListKind::Prompts, &["prompts", "nextCursor"]).await
    }

    /// Calls a tool by the server's own name for it.
    ///
    /// # Errors
    /// If there is no answer, or it is an error of the protocol. A failure that the tool reports itself is a result.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, and tells the server so.
    pub async fn call_tool(&self, name: &str, arguments: Object) -> Result<ToolResult, Error> {
        let options = &self.handle.options;
        let timing = Timing::with_progress(options.call_timeout, options.call_limit);
        let params = ToolCallParams { name, arguments: &arguments, meta: None };
        self.in_rounds("tools/call", &params, timing, None, |answer| answer.read(|| ToolResultSeed)).await
    }

    /// Calls a tool, with settings of its own.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, and tells the server so.
    pub async fn call(&self, call: ToolCall) -> Result<ToolResult, Error> {
        let options = &self.handle.options;
        let timeout = call.timeout.unwrap_or(options.call_timeout);
        let timing = Timing::with_progress(timeout, call.limit.unwrap_or(options.call_limit));
        let params =
            ToolCallParams { name: &call.name, arguments: &call.arguments, meta: call.meta.as_ref() };
        let progress = call.progress.as_ref();
        let _ends = EndsProgress(progress);
        self.in_rounds("tools/call", &params, timing, progress, |answer| answer.read(|| ToolResultSeed)).await
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
        let timing = self.handle.options.request_timing();
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
        let timing = self.handle.options.request_timing();
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
        let asked = Instant::now();
        if self.info().era == Era::Modern {
            let reason =
                "this revision has no ping; any other request shows as well that the server is there";
            let (server, method) = (self.label().to_owned(), "ping".to_owned());
            return Err(Error::NotSent { server, method, reason: reason.to_owned() });
        }
        self.request_object("ping", &Object::new()).await?;
        Ok(asked.elapsed())
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
        self.handle.connection.with_machine(|machine| machine.set_log_level(Some(level)));
        if self.info().era == Era::Legacy {
            self.request_object("logging/setLevel", &object([("level", level.as_str().into())])).await?;
        }
        Ok(())
    }

    /// Makes a request of any method and gives back the result as it came, as an object.
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn request_raw(&self, method: &str, params: &Object) -> Result<Object, Error> {
        let timing = self.handle.options.request_timing();
        let answer = self.request(method.to_owned().into(), params, timing, None).await?;
        answer.result().map_err(|error| self.answer_error(method, error))
    }

    /// What happens beside the calls, from the start of the connection on.
    pub fn events(&self) -> Events {
        Events::of(Arc::clone(&self.handle.connection.events))
    }

    /// The end of what the server wrote to standard error; empty if there is no process.
    pub fn stderr_tail(&self) -> String {
        self.handle.connection.ending().stderr_tail
    }

    /// How many lines of the server were no messages, and how many problems there were.
    pub fn counts(&self) -> MachineCounts {
        self.handle.connection.with_machine(|machine| machine.counts())
    }

    /// How many requests wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.handle.connection.with_machine(|machine| machine.in_flight())
    }

    /// How the connection ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.handle.connection.exit()
    }

    /// Whether requests can be made: not any more once the server has gone or the connection has ended.
    pub fn is_open(&self) -> bool {
        self.exit().is_none() && self.handle.connection.with_machine(|machine| machine.is_ready())
    }

    /// Tells the server to terminate, here and now and without a runtime; what follows is left to the tasks.
    pub(crate) fn abandon(&self) {
        self.handle.connection.abandon();
    }

    /// Waits until the connection has ended, by whomever.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ended(&self) -> Exit {
        self.handle.connection.ended().await
    }

    /// Ends the connection politely: everything that waits is settled as closed, the input of the server is closed, and
    /// if it does not end within its grace times, it is asked to terminate and then killed; with it all that it started.
    ///
    /// Any clone can close; calling it twice gives the same answer.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the closing.
    pub async fn close(&self) -> Exit {
        self.handle.connection.close();
        self.handle.connection.ended().await
    }

    // ---- parts ----

    async fn list<T: Item>(
        &self,
        method: &'static str,
        kind: ListKind,
        members: &'static [&'static str],
    ) -> Result<Listing<T>, Error> {
        let capabilities = &self.handle.info.capabilities;
        if !capabilities.as_object().contains_key(kind.as_str()) {
            let message =
                format!("{} does not declare {}, so it was not asked for any", self.label(), kind.as_str());
            let mut listing = Listing::default();
            listing.problems.push(Problem::new(ProblemCode::NotDeclared, message));
            return Ok(listing);
        }
        let mut paging = Paging::new(self.handle.options.list_limits);
        loop {
            let page = self.page(method, members, &paging).await;
            match page {
                Ok(page) => {
                    if !paging.feed(page) {
                        break;
                    }
                }
                Err(error) if paging.pages() > 0 => {
                    paging.fail(&error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(paging.finish())
    }

    async fn page<T: Item>(
        &self,
        method: &'static str,
        members: &'static [&'static str],
        paging: &Paging<T>,
    ) -> Result<crate::protocol::Page<T>, Error> {
        let timing = self.handle.options.request_timing();
        let answer = self.request(method.into(), &paging.params(), timing, None).await?;
        let read = answer.read(|| PageSeed::new(members, paging.len()));
        let (page, mut extra) = read.map_err(|error| self.answer_error(method, error))?;
        if self.info().era == Era::Modern {
            let asked = input_required(&mut extra, false);
            asked.map_err(|reason| self.answer_error(method, AnswerError::Invalid(reason)))?;
        }
        Ok(page)
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
        let handlers = &self.handle.options.handlers;
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

    async fn request_object(&self, method: &'static str, params: &Object) -> Result<Object, Error> {
        let answer = self.request(method.into(), params, self.handle.options.request_timing(), None).await?;
        answer.result().map_err(|error| self.answer_error(method, error))
    }

    /// Makes a request and waits for its answer; dropping the future cancels it.
    async fn request(
        &self,
        method: Cow<'static, str>,
        params: &(impl RequestParams + ?Sized),
        timing: Timing,
        progress: Option<&Arc<ProgressQueue>>,
    ) -> Result<Answer, Error> {
        let connection = &self.handle.connection;
        let (outcome, waiting) = oneshot::channel();
        let waiter = Waiter { outcome, progress: progress.cloned(), acknowledged: None };
        let mut guard = CancelGuard { connection, id: None };
        match connection.request(method.clone(), params, timing, waiter) {
            Ok(id) => guard.id = Some(id),
            Err(crate::protocol::Refusal::NotOpen) => return Err(self.closed()),
            Err(refusal) => {
                let (server, method) = (self.label().to_owned(), method.into_owned());
                return Err(Error::NotSent { server, method, reason: refusal.to_string() });
            }
        }
        let outcome = waiting.await;
        guard.id = None;
        match outcome {
            Ok(Outcome::Answered(answer)) => Ok(answer),
            Ok(Outcome::TimedOut { after }) => {
                Err(Error::Timeout { server: self.label().to_owned(), method: method.into_owned(), after })
            }
            Ok(Outcome::TooLong { limit }) => Err(Error::InvalidAnswer {
                server: self.label().to_owned(),
                method: method.into_owned(),
                reason: format!("it is longer than the limit of {limit} bytes"),
            }),
            Ok(Outcome::Ended | Outcome::Closed) | Err(_) => Err(self.closed()),
        }
    }

    fn closed(&self) -> Error {
        let connection = &self.handle.connection;
        Error::Closed {
            server: self.label().to_owned(),
            reason: connection.reason(),
            ending: connection.ending(),
        }
    }

    fn answer_error(&self, method: &str, error: AnswerError) -> Error {
        let (server, method) = (self.label().to_owned(), method.to_owned());
        match error {
            AnswerError::Rpc(error) => Error::Rpc { server, method, error },
            AnswerError::Invalid(reason) => Error::InvalidAnswer { server, method, reason },
        }
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

/// Cancels a request whose future is dropped.
struct CancelGuard<'a> {
    connection: &'a Arc<Connection>,
    id: Option<RequestId>,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.connection.cancel(id, "the caller does not wait any more");
        }
    }
}

fn object<const N: usize>(members: [(&str, serde_json::Value); N]) -> Object {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
