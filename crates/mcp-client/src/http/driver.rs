//! Moves messages between the machines and an [`HttpClient`], and keeps time.
//!
//! One task drives the connection; each exchange is a task of its own inside it, so that dropping the driver drops all.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream as _;
use haversack_http::{HttpClient, HttpRequest, HttpResponse};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::Sleep;

use crate::connection::{AskSink, Connection, Delivery, Opening, State, Stop, Waiter, now};
use crate::http::exchange::{ExchangeId, ToSend};
use crate::http::machine::{HttpMachine, HttpOutput};
use crate::http::options::HttpOptions;
use crate::http::token::{TokenError, TokenRefusal, TokenSource};
use crate::process::{Exit, ExitHow};
use crate::protocol::ClientMachine;

/// Both machines of a connection. The HTTP machine is locked first.
pub(crate) struct HttpLink {
    pub(crate) connection: Arc<Connection>,
    machine: Mutex<HttpMachine>,
}

impl HttpLink {
    pub(crate) fn machine(&self) -> MutexGuard<'_, HttpMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands something in, gives out what comes of it, and wakes the driver for the rest.
    fn hand_in<R>(&self, id: Option<ExchangeId>, input: impl FnOnce(&mut HttpMachine, &mut State) -> R) -> R {
        let (mut outputs, now) = (VecDeque::new(), now());
        let mut machine = self.machine();
        let mut state = self.connection.lock();
        let result = input(&mut machine, &mut state);
        state.collect(&mut outputs);
        while id.is_some_and(|id| machine.step(now, &mut state.machine, id)) {
            state.collect(&mut outputs);
        }
        state.collect(&mut outputs);
        drop(machine);
        drop(state);
        if let Some(stop) = self.connection.hand_out(&mut outputs) {
            self.stop(&stop);
        }
        self.connection.lock().wake_driver();
        result
    }

    fn stop(&self, stop: &Stop) {
        if let Stop::Broken(reason) = stop {
            self.connection.set_reason(reason);
        }
        self.connection.close();
    }
}

/// Drives a connection until it has ended. Dropping it ends the connection.
pub(crate) struct HttpDriver {
    link: Arc<HttpLink>,
    client: Arc<dyn HttpClient>,
    tokens: Option<Arc<dyn TokenSource>>,
    server_url: String,
    tasks: JoinSet<()>,
    exchanges: BTreeMap<ExchangeId, AbortHandle>,
    by_task: std::collections::HashMap<Id, Option<ExchangeId>>,
    alarm: Pin<Box<Sleep>>,
    close_grace: Duration,
}

impl HttpDriver {
    /// A connection to a server, where its opening will be told, and what drives it.
    pub(crate) fn new(
        client_machine: ClientMachine<Waiter>,
        machine: HttpMachine,
        options: &HttpOptions,
        close_grace: Duration,
        asks: AskSink,
    ) -> (Arc<HttpLink>, Self, Opening) {
        let (connection, opening) = Connection::new(client_machine, None, None, asks);
        let link = Arc::new(HttpLink { connection, machine: Mutex::new(machine) });
        let driver = Self {
            link: Arc::clone(&link),
            client: Arc::clone(&options.client),
            tokens: options.tokens.clone(),
            server_url: options.url.clone(),
            tasks: JoinSet::new(),
            exchanges: BTreeMap::new(),
            by_task: std::collections::HashMap::new(),
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            close_grace,
        };
        (link, driver, opening)
    }

    /// Runs until the connection has ended.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        self.finish().await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = now();
            let (mut outputs, mut to_do) = (VecDeque::<Delivery>::new(), Vec::new());
            {
                let mut machine = self.link.machine();
                let mut state = self.link.connection.lock();
                if state.closing {
                    return Poll::Ready(());
                }
                state.set_driver(cx.waker());
                if state.machine.poll_timeout().is_some_and(|due| due <= now) {
                    state.machine.handle_timeout(now);
                }
                machine.handle_timeout(now, &mut state.machine);
                machine.pump(now, &mut state.machine);
                state.collect(&mut outputs);
                to_do.extend(std::iter::from_fn(|| machine.poll_output()));
                state.alarm =
                    [state.machine.poll_timeout(), machine.poll_timeout()].into_iter().flatten().min();
            }
            let idle = outputs.is_empty() && to_do.is_empty();
            if let Some(stop) = self.link.connection.hand_out(&mut outputs) {
                self.link.stop(&stop);
            }
            to_do.into_iter().for_each(|output| self.act(output));
            let reaped = self.reap(cx);
            if idle && !reaped && !self.is_due(cx) {
                return Poll::Pending;
            }
        }
    }

    /// Sets the alarm; says whether its time has come already.
    fn is_due(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(due) = self.link.connection.lock().alarm else { return false };
        self.alarm.as_mut().reset(due.into());
        self.alarm.as_mut().poll(cx).is_ready()
    }

    fn act(&mut self, output: HttpOutput) {
        match output {
            HttpOutput::Send(to_send) => {
                let id = to_send.exchange;
                let exchange = exchange(Arc::clone(&self.link), Arc::clone(&self.client), to_send);
                let task = self.tasks.spawn(exchange);
                self.by_task.insert(task.id(), Some(id));
                if let Some(earlier) = self.exchanges.insert(id, task) {
                    earlier.abort();
                }
            }
            HttpOutput::Abort(id) => {
                if let Some(task) = self.exchanges.remove(&id) {
                    task.abort();
                }
            }
            HttpOutput::FirstToken => self.fetch_token(None),
            HttpOutput::RenewToken(refusal) => self.fetch_token(Some(refusal)),
            HttpOutput::Broken(reason) => self.link.stop(&Stop::Broken(reason)),
        }
    }

    fn fetch_token(&mut self, refusal: Option<TokenRefusal>) {
        let Some(tokens) = self.tokens.clone() else { return };
        let (link, server_url) = (Arc::clone(&self.link), self.server_url.clone());
        let task = self.tasks.spawn(async move {
            let token = match refusal {
                None => tokens.token(&server_url).await,
                Some(refusal) => tokens.renew(refusal).await,
            };
            link.hand_in(None, |machine, state| machine.handle_token(now(), &mut state.machine, token));
        });
        self.by_task.insert(task.id(), None);
    }

    /// Clears away tasks that are done. One that panicked, in the host's code, is a failure of what it was for.
    fn reap(&mut self, cx: &mut Context<'_>) -> bool {
        let mut reaped = false;
        while let Poll::Ready(Some(done)) = self.tasks.poll_join_next_with_id(cx) {
            reaped = true;
            let (task, panicked) = match done {
                Ok((task, ())) => (task, false),
                Err(error) => (error.id(), error.is_panic()),
            };
            let exchange = self.by_task.remove(&task);
            if let Some(Some(id)) = exchange
                && self.exchanges.get(&id).is_some_and(|handle| handle.id() == task)
            {
                self.exchanges.remove(&id);
            }
            match exchange {
                Some(Some(id)) if panicked => self.link.hand_in(Some(id), |machine, state| {
                    machine.handle_break(
                        now(),
                        &mut state.machine,
                        id,
                        "the host's HTTP client failed".to_owned(),
                    );
                }),
                Some(None) if panicked => self.link.hand_in(None, |machine, state| {
                    let error = TokenError::new("the host's source of tokens failed");
                    machine.handle_token(now(), &mut state.machine, Err(error));
                }),
                _ => {}
            }
        }
        reaped
    }

    /// The end of the connection: of what waits, and of the session.
    async fn finish(&mut self) {
        self.link.connection.set_reason("it was closed by this host");
        self.tasks.abort_all();
        self.exchanges.clear();
        self.link.machine().close();
        self.settle_all();
        let mut last = JoinSet::new();
        loop {
            let output = self.link.machine().poll_output();
            match output {
                Some(HttpOutput::Send(to_send)) => {
                    last.spawn(exchange(Arc::clone(&self.link), Arc::clone(&self.client), to_send));
                }
                Some(_) => {}
                None => break,
            }
        }
        // The server may forget the session by itself as well.
        let _ =
            tokio::time::timeout(self.close_grace, async { while last.join_next().await.is_some() {} }).await;
        self.link.connection.set_ended(Exit::new(ExitHow::Stdin, None));
    }

    fn settle_all(&mut self) {
        let mut outputs = VecDeque::new();
        let mut state = self.link.connection.lock();
        state.machine.handle_closed();
        state.driver = None;
        state.collect(&mut outputs);
        drop(state);
        let _ = self.link.connection.hand_out(&mut outputs);
    }
}

impl Drop for HttpDriver {
    fn drop(&mut self) {
        if self.link.connection.exit().is_some() {
            return;
        }
        self.link.connection.set_reason("the runtime it was driven by has ended");
        self.settle_all();
        self.link.connection.set_ended(Exit::new(ExitHow::Kill, None));
    }
}

/// Sends one request and hands in what comes back.
async fn exchange(link: Arc<HttpLink>, client: Arc<dyn HttpClient>, to_send: ToSend) {
    let id = to_send.exchange;
    let mut request = HttpRequest::new(to_send.method, to_send.url).with_body(to_send.body);
    request.headers = to_send.headers;
    let HttpResponse { status, headers, mut body, .. } = match client.send(request).await {
        Ok(response) => response,
        Err(error) => {
            let reason = error.chain();
            return link.hand_in(Some(id), |machine, state| {
                machine.handle_break(now(), &mut state.machine, id, reason);
            });
        }
    };
    let wanted = link.hand_in(Some(id), |machine, state| {
        machine.handle_head(now(), &mut state.machine, id, status, &headers)
    });
    if !wanted {
        return;
    }
    loop {
        match poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
            Some(Ok(piece)) => {
                let more = link.hand_in(Some(id), |machine, state| {
                    machine.handle_piece(now(), &mut state.machine, id, piece)
                });
                if !more {
                    return;
                }
            }
            Some(Err(error)) => {
                let reason = error.chain();
                return link.hand_in(Some(id), |machine, state| {
                    machine.handle_break(now(), &mut state.machine, id, reason);
                });
            }
            None => return link.hand_in(Some(id), |machine, _| machine.handle_end(id)),
        }
    }
}
