//! The handle of a connection: typed calls to one server.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::cache::ListCache;
use crate::connection::{AskSink, Connection, Opening, Waiter, now};
use crate::driver::Driver;
use crate::error::Error;
use crate::events::Events;
use crate::handlers::AskDesk;
use crate::options::ClientOptions;
use crate::process::{self, EndTimes, Exit, Keeper, ServerCommand};
use crate::progress::ProgressQueue;
use crate::protocol::{
    Answer, AnswerError, ClientMachine, EraChoice, Failure, MachineCounts, Object, OpeningError, OpeningStep,
    Outcome, Refusal, RequestId, RequestParams, ServerInfo, Timing,
};
use crate::transport::Transport;

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
    cache: ListCache,
    /// The HTTP beneath it, if it is HTTP.
    #[cfg(feature = "http")]
    http: Option<Arc<crate::http::HttpLink>>,
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
        let ends = now().checked_add(options.config.start_timeout);
        match Self::start_once(command, options.clone()).await {
            Err((_, true)) => {
                let mut options = options;
                options.config.era = EraChoice::Legacy;
                if let Some(ends) = ends {
                    options.config.start_timeout = ends.saturating_duration_since(now());
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
        let transport = Transport {
            reader: Box::new(spawned.stdout),
            writer: Box::new(spawned.stdin),
            process: Some(spawned.process),
        };
        Self::open(transport, Some(spawned.keeper), options, label).await
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
        Self::open(transport, None, options, label).await.map_err(|(error, _)| error)
    }

    async fn open(
        transport: Transport,
        keeper: Option<Keeper>,
        options: ClientOptions,
        label: String,
    ) -> Result<Self, (Error, bool)> {
        let machine = ClientMachine::new(options.machine_config());
        let asks = Self::asks(&options);
        let (connection, driver, opening) = Driver::new(machine, transport, options.max_line_bytes, asks);
        tokio::spawn(driver.run());
        if let Some(keeper) = keeper {
            let connection = Arc::clone(&connection);
            tokio::spawn(keeper.run(move || connection.process_ended()));
        }
        let info = Self::opened(&connection, opening, &label).await?;
        let handle = Handle {
            connection,
            options,
            label,
            info,
            cache: ListCache::default(),
            #[cfg(feature = "http")]
            http: None,
        };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// Connects to a server over Streamable HTTP.
    ///
    /// It must be called inside a tokio runtime with time enabled. One task looks after the connection.
    ///
    /// # Errors
    /// [`Error::Address`] if the address or a header is not allowed, [`Error::AuthorizationRequired`] if the server wants
    /// a token, [`Error::Opening`] if the connection does not open otherwise.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    #[cfg(feature = "http")]
    pub async fn connect_http(http: crate::http::HttpOptions, options: ClientOptions) -> Result<Self, Error> {
        use crate::http::{HttpDriver, HttpMachine};

        let label = options.label.clone().unwrap_or_else(|| haversack_http::without_secrets(&http.url));
        let config = http.config(options.max_line_bytes);
        let config = config.map_err(|reason| Error::Address { server: label.clone(), reason })?;
        let machine = ClientMachine::new(options.machine_config());
        let asks = Self::asks(&options);
        let (link, driver, opening) =
            HttpDriver::new(machine, HttpMachine::new(config), &http, options.close_grace, asks);
        tokio::spawn(driver.run());
        let connection = Arc::clone(&link.connection);
        let info = Self::opened(&connection, opening, &label).await.map_err(|(error, _)| error)?;
        let cache = ListCache::default();
        let handle = Handle { connection, options, label, info, cache, http: Some(link) };
        Ok(Self { handle: Arc::new(handle) })
    }

    fn asks(options: &ClientOptions) -> AskSink {
        let desk = AskDesk::new(options.handlers.clone());
        Box::new(move |connection: &Arc<Connection>, ask| desk.take(connection, ask))
    }

    /// Opens a connection that is being driven.
    async fn opened(
        connection: &Arc<Connection>,
        opening: Opening,
        label: &str,
    ) -> Result<ServerInfo, (Error, bool)> {
        let mut unopened = Unopened(Some(connection));
        connection.start();
        let opened = opening.await;
        unopened.0 = None;
        drop(unopened);
        let failed = match opened {
            Ok(Ok(info)) => return Ok(*info),
            failed => failed,
        };
        connection.abandon();
        connection.ended().await;
        let (error, start_again) = match failed {
            Ok(Err(failed)) => failed,
            // The runtime is going down.
            _ => (OpeningError::Closed { step: OpeningStep::Initialize }, false),
        };
        let server = label.to_owned();
        Err((
            match error {
                OpeningError::Failed { failure: failure @ Failure::Unauthorized { .. }, step } => {
                    Error::of_failure(label, step.as_str(), failure)
                }
                error => Error::Opening { server, error, ending: connection.ending() },
            },
            start_again,
        ))
    }

    /// What the server said of itself.
    pub fn info(&self) -> &ServerInfo {
        &self.handle.info
    }

    /// What the server is called in errors.
    pub fn label(&self) -> &str {
        &self.handle.label
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

    pub(crate) async fn request_object(
        &self,
        method: &'static str,
        params: &Object,
    ) -> Result<Object, Error> {
        let answer = self.request(method.into(), params, self.handle.options.request_timing(), None).await?;
        answer.result().map_err(|error| self.answer_error(method, error))
    }

    /// Makes a request and waits for its answer; dropping the future cancels it.
    pub(crate) async fn request(
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
            Err(refusal) => return Err(self.refused(&method, &refusal)),
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
            Ok(Outcome::Failed(failure)) => Err(self.failed(&method, failure)),
            Ok(Outcome::Ended | Outcome::Closed) | Err(_) => Err(self.closed()),
        }
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.handle.connection
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.handle.options
    }

    #[cfg(feature = "http")]
    pub(crate) fn http(&self) -> Option<&crate::http::HttpLink> {
        self.handle.http.as_deref()
    }

    pub(crate) fn cache(&self) -> &ListCache {
        &self.handle.cache
    }

    pub(crate) fn refused(&self, method: &str, refusal: &Refusal) -> Error {
        match refusal {
            Refusal::NotOpen => self.closed(),
            refusal => self.not_sent(method, &refusal.to_string()),
        }
    }

    pub(crate) fn not_sent(&self, method: &str, reason: &str) -> Error {
        let server = self.label().to_owned();
        Error::NotSent { server, method: method.to_owned(), reason: reason.to_owned() }
    }

    pub(crate) fn closed(&self) -> Error {
        let connection = &self.handle.connection;
        Error::Closed {
            server: self.label().to_owned(),
            reason: connection.reason(),
            ending: connection.ending(),
        }
    }

    pub(crate) fn failed(&self, method: &str, failure: Failure) -> Error {
        Error::of_failure(self.label(), method, failure)
    }

    pub(crate) fn answer_error(&self, method: &str, error: AnswerError) -> Error {
        let (server, method) = (self.label().to_owned(), method.to_owned());
        match error {
            AnswerError::Rpc(error) => Error::Rpc { server, method, error },
            AnswerError::Invalid(reason) => Error::InvalidAnswer { server, method, reason },
        }
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

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, serde_json::Value); N]) -> Object {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
