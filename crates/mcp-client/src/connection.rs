//! A connection as its driver and its users share it: the protocol machine behind a lock, and those who wait for it.
//!
//! The machine stands behind a lock that is held for as long as it takes to append a request or to hand out the answers
//! of one read. Whoever makes a request writes it itself if the writer is idle, so that a call alone costs no switch of
//! tasks; only when the pipe is full does the driver take over.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Instant;

use tokio::sync::{oneshot, watch};

use crate::error::Ending;
use crate::events::{Event, EventLog};
use crate::process::{Exit, ExitHow, Process};
use crate::progress::ProgressQueue;
use crate::protocol::{
    ClientMachine, OpeningError, Outcome, Output, PeerId, Progress, Refusal, RequestId, RequestParams,
    ServerInfo, Timing,
};
use crate::transport::LineWriter;

/// Up to this many requests at once are written by whoever makes them, which is fastest for one; more are sent together
/// by the driver, which is fastest for all.
const ALONE: usize = 2;

/// The time, by the clock of the runtime: a test that moves that clock moves this one.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Whoever waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) outcome: oneshot::Sender<Outcome>,
    pub(crate) progress: Option<Arc<ProgressQueue>>,
    pub(crate) acknowledged: Option<oneshot::Sender<()>>,
}

/// A request of the server's for the host.
#[derive(Debug)]
pub(crate) enum ServerAsk {
    Asked { id: PeerId, method: String, params: crate::protocol::Object },
    Cancelled { id: PeerId },
}

/// Takes the requests of the server.
pub(crate) type AskSink = Box<dyn Fn(&Arc<Connection>, ServerAsk) + Send + Sync>;

/// How a connection opened.
pub(crate) type Opened = Result<Box<ServerInfo>, (OpeningError, bool)>;

/// Where the opening of a connection is told.
pub(crate) type Opening = oneshot::Receiver<Opened>;

/// A connection, as its driver and its users share it.
pub(crate) struct Connection {
    state: Mutex<State>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) process: Option<Process>,
    asks: AskSink,
    /// Why the connection ended, once it has; then how.
    reason: Mutex<Option<String>>,
    ended: watch::Sender<Option<Exit>>,
}

/// What is behind the lock.
pub(crate) struct State {
    pub(crate) machine: ClientMachine<Waiter>,
    /// `None` for a transport of messages: then everything that is to be sent is the driver's turn.
    pub(crate) lines: Option<LineWriter>,
    /// The process has ended.
    pub(crate) process_ended: bool,
    /// Time for which the driver's alarm is set.
    pub(crate) alarm: Option<Instant>,
    pub(crate) driver: Option<Waker>,
    opened: Option<oneshot::Sender<Opened>>,
    pub(crate) closing: bool,
}

/// Why a driver has nothing more to do.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The output of the server has ended.
    OutputEnded,
    /// The process has ended.
    ProcessEnded,
    /// The connection cannot go on.
    Broken(String),
    /// The host closes it.
    Closed,
}

/// An output on its way to whom it belongs.
pub(crate) enum Delivery {
    Output(Output<Waiter>),
    Progress(Arc<ProgressQueue>, Progress),
}

impl State {
    pub(crate) fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// Leaves the driver's waker.
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        match &mut self.driver {
            Some(driver) => driver.clone_from(waker),
            driver => *driver = Some(waker.clone()),
        }
    }

    /// Takes the outputs of the machine. Who hears of progress is looked up at once: the very next line may be the answer.
    pub(crate) fn collect(&mut self, outputs: &mut VecDeque<Delivery>) {
        while let Some(output) = self.machine.poll_output() {
            outputs.push_back(match output {
                Output::Progress { id, progress } => {
                    let queue = self.machine.tag(id).and_then(|waiter| waiter.progress.clone());
                    let Some(queue) = queue else { continue };
                    Delivery::Progress(queue, progress)
                }
                // What ends with the connection is told after why it ended, which callers ask at once.
                Output::Settled { tag, outcome } if !matches!(outcome, Outcome::Closed) => {
                    // Whoever does not wait any more has dropped its end.
                    let _ = tag.outcome.send(outcome);
                    continue;
                }
                output => Delivery::Output(output),
            });
        }
    }

    /// Writes what waits, as far as the writer takes it.
    pub(crate) fn flush(&mut self, cx: &mut Context<'_>) {
        if let Some(lines) = &mut self.lines {
            lines.flush(self.machine.outgoing(), cx);
        }
    }

    /// As [`flush`](Self::flush), unless it is the driver's turn because the writer took no more.
    pub(crate) fn flush_unless_blocked(&mut self, cx: &mut Context<'_>) {
        if self.lines.as_ref().is_some_and(|lines| !lines.blocked) {
            self.flush(cx);
        }
    }

    /// Writes from outside the driver, and wakes the driver for what is left to it.
    pub(crate) fn flush_or_wake(&mut self) {
        match &mut self.lines {
            None => self.wake_driver(),
            Some(lines) if lines.blocked => {}
            Some(lines) if self.machine.in_flight() > ALONE => {
                if !std::mem::replace(&mut lines.gathering, true) {
                    self.wake_driver();
                }
            }
            Some(lines) => {
                lines.flush(self.machine.outgoing(), &mut Context::from_waker(Waker::noop()));
                if lines.blocked || lines.is_closed() {
                    self.wake_driver();
                }
            }
        }
        if let Some(due) = self.machine.poll_timeout()
            && self.alarm.is_none_or(|alarm| due < alarm)
        {
            self.wake_driver();
        }
    }
}

impl Connection {
    /// A connection that nobody drives yet, and where its opening will be told.
    pub(crate) fn new(
        machine: ClientMachine<Waiter>,
        lines: Option<LineWriter>,
        process: Option<Process>,
        asks: AskSink,
    ) -> (Arc<Self>, Opening) {
        let (opened, opening) = oneshot::channel();
        let connection = Arc::new(Self {
            state: Mutex::new(State {
                machine,
                lines,
                process_ended: false,
                alarm: None,
                driver: None,
                opened: Some(opened),
                closing: false,
            }),
            events: Arc::default(),
            process,
            asks,
            reason: Mutex::new(None),
            ended: watch::Sender::new(None),
        });
        (connection, opening)
    }

    /// Opens the connection.
    pub(crate) fn start(&self) {
        let mut state = self.lock();
        state.machine.start(now());
        state.flush_or_wake();
    }

    /// Makes a request.
    pub(crate) fn request(
        &self,
        method: Cow<'static, str>,
        params: &(impl RequestParams + ?Sized),
        timing: Timing,
        waiter: Waiter,
    ) -> Result<RequestId, Refusal> {
        let now = now();
        let mut state = self.lock();
        let id = state.machine.request(now, method, params, timing, waiter)?;
        state.flush_or_wake();
        Ok(id)
    }

    /// Gives up a request.
    pub(crate) fn cancel(&self, id: RequestId, reason: &str) {
        let mut state = self.lock();
        let waiter = state.machine.cancel(id, reason);
        if waiter.is_some() {
            state.flush_or_wake();
        }
    }

    /// Does something with the machine, and sends what that gives.
    pub(crate) fn with_machine<R>(&self, action: impl FnOnce(&mut ClientMachine<Waiter>) -> R) -> R {
        let mut state = self.lock();
        let result = action(&mut state.machine);
        state.flush_or_wake();
        result
    }

    /// The process has ended: what it has written is read, and no more is waited for.
    pub(crate) fn process_ended(&self) {
        let mut state = self.lock();
        state.process_ended = true;
        state.wake_driver();
    }

    /// Begins the end: everything that waits is settled, and the input of the server is closed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.wake_driver();
    }

    /// Ends the process at once, as far as that can be done without waiting.
    pub(crate) fn abandon(&self) {
        self.close();
        if let Some(process) = &self.process {
            process.end_now();
        }
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> Exit {
        let mut ended = self.ended.subscribe();
        let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        exit.unwrap_or(Exit::new(ExitHow::Kill, None))
    }

    /// How the connection ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        *self.ended.borrow()
    }

    /// Why the connection ended.
    pub(crate) fn reason(&self) -> String {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    /// How the process ended and what it said last.
    pub(crate) fn ending(&self) -> Ending {
        let Some(process) = &self.process else { return Ending::default() };
        Ending { exit: process.exit(), stderr_tail: process.stderr_tail() }
    }

    pub(crate) fn set_reason(&self, why: &str) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.get_or_insert_with(|| why.to_owned());
    }

    /// Locks; the machine's own changes are whole even if a waker panicked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("exit", &self.exit()).finish_non_exhaustive()
    }
}

impl Connection {
    /// Gives each output to whom it belongs.
    pub(crate) fn hand_out(self: &Arc<Self>, outputs: &mut VecDeque<Delivery>) -> Option<Stop> {
        let mut stop = None;
        while let Some(delivery) = outputs.pop_front() {
            let output = match delivery {
                Delivery::Progress(queue, progress) => {
                    queue.push(progress);
                    continue;
                }
                Delivery::Output(output) => output,
            };
            match output {
                // Taken care of above.
                Output::Progress { .. } => {}
                Output::Settled { tag, outcome } => drop(tag.outcome.send(outcome)),
                Output::Acknowledged { id } => self.acknowledge(id),
                Output::Notice(notice) => self.events.push(Event::Notice(notice)),
                Output::Asked { id, method, params } => {
                    self.asked(ServerAsk::Asked { id, method, params });
                }
                Output::AskCancelled { id } => self.asked(ServerAsk::Cancelled { id }),
                Output::Ready(info) => self.opened(Ok(info)),
                Output::OpeningFailed { error, start_again } => {
                    self.opened(Err((error, start_again)));
                    stop = Some(Stop::Closed);
                }
                Output::Broken { reason } => {
                    self.set_reason(&reason);
                    stop = Some(Stop::Broken(reason));
                }
            }
        }
        stop
    }

    fn opened(&self, opened: Opened) {
        let waiting = self.lock().opened.take();
        if let Some(waiting) = waiting {
            let _ = waiting.send(opened);
        }
    }

    fn acknowledge(&self, id: RequestId) {
        let waiting = self.lock().machine.tag_mut(id).and_then(|waiter| waiter.acknowledged.take());
        if let Some(waiting) = waiting {
            let _ = waiting.send(());
        }
    }

    fn asked(self: &Arc<Self>, ask: ServerAsk) {
        (self.asks)(self, ask);
    }

    pub(crate) fn set_ended(&self, exit: Exit) {
        self.ended.send_replace(Some(exit));
        self.events.push(Event::Ended(exit));
    }
}
