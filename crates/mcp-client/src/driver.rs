//! Moves bytes between the protocol machine and a transport, wakes those who wait, and keeps time.
//!
//! The machine stands behind a lock that is held for as long as it takes to append a request or to hand out the answers
//! of one read. Whoever makes a request writes it itself if the writer is idle, so that a call alone costs no switch of
//! tasks; only when the pipe is full does the driver take over. The reader never waits for the writer.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::time::Sleep;

use crate::error::Ending;
use crate::events::{Event, EventLog};
use crate::process::{Exit, ExitHow, Process};
use crate::protocol::{
    ClientMachine, Line, LineBuffer, OpeningError, Outcome, Output, PeerId, Progress, Refusal, RequestId,
    RequestParams, ServerInfo, Timing,
};
use crate::transport::Transport;

/// How long the status of a process is waited for once its output has ended, before it is ended itself.
const STATUS_PAUSE: Duration = Duration::from_millis(500);

/// How long the rest of the output is read once the process has ended: somebody who left its group may hold the pipe.
const REST_PAUSE: Duration = Duration::from_millis(200);

/// How many reads are made in a row before other tasks get a turn.
const READS_IN_A_ROW: usize = 32;

/// Up to this many requests at once are written by whoever makes them, which is fastest for one; more are sent together
/// by the driver, which is fastest for all.
const ALONE: usize = 2;

/// The most that the buffer of bytes to be sent keeps allocated when it is empty.
const IDLE_OUTGOING_BYTES: usize = 64 * 1024;

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

struct State {
    machine: ClientMachine<Waiter>,
    /// `None` once nothing can be sent any more.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// How much of the outgoing bytes is written.
    written: usize,
    /// The writer took no more: it is the driver's turn.
    blocked: bool,
    /// Many requests are being made at once: the driver sends them together.
    gathering: bool,
    /// The process has ended.
    process_ended: bool,
    /// Time for which the driver's alarm is set.
    alarm: Option<Instant>,
    driver: Option<Waker>,
    opened: Option<oneshot::Sender<Opened>>,
    closing: bool,
}

/// An output on its way to whom it belongs.
enum Delivery {
    Output(Output<Waiter>),
    Progress(Arc<ProgressQueue>, Progress),
}

impl State {
    fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// Takes the outputs of the machine. Who hears of progress is looked up at once: the very next line may be the answer.
    fn collect(&mut self, outputs: &mut VecDeque<Delivery>) {
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
    fn flush(&mut self, cx: &mut Context<'_>) {
        self.blocked = false;
        self.gathering = false;
        let outgoing = self.machine.outgoing();
        while let Some(rest) = outgoing.get(self.written..).filter(|rest| !rest.is_empty()) {
            let Some(writer) = &mut self.writer else { break };
            match Pin::new(writer).poll_write(cx, rest) {
                Poll::Ready(Ok(count @ 1..)) => self.written += count,
                // Nobody reads any more. The end of the output will follow, or it is made to.
                Poll::Ready(Ok(0) | Err(_)) => self.writer = None,
                Poll::Pending => {
                    self.blocked = true;
                    if self.written > outgoing.len() / 2 {
                        outgoing.drain(..self.written);
                        self.written = 0;
                    }
                    return;
                }
            }
        }
        outgoing.clear();
        outgoing.shrink_to(IDLE_OUTGOING_BYTES);
        self.written = 0;
    }

    /// Writes from outside the driver, and wakes the driver for what is left to it.
    fn flush_or_wake(&mut self) {
        if self.machine.in_flight() > ALONE {
            if !self.blocked && !self.gathering {
                self.gathering = true;
                self.wake_driver();
            }
        } else if !self.blocked {
            self.flush(&mut Context::from_waker(Waker::noop()));
            if self.blocked || self.writer.is_none() {
                self.wake_driver();
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
    /// A connection over a transport, and the future that drives it.
    pub(crate) fn new(
        machine: ClientMachine<Waiter>,
        transport: Transport,
        max_line_bytes: usize,
        asks: AskSink,
    ) -> (Arc<Self>, Driver, oneshot::Receiver<Opened>) {
        let (opened, opening) = oneshot::channel();
        let connection = Arc::new(Self {
            state: Mutex::new(State {
                machine,
                writer: Some(transport.writer),
                written: 0,
                blocked: false,
                gathering: false,
                process_ended: false,
                alarm: None,
                driver: None,
                opened: Some(opened),
                closing: false,
            }),
            events: Arc::default(),
            process: transport.process,
            asks,
            reason: Mutex::new(None),
            ended: watch::Sender::new(None),
        });
        let driver = Driver {
            connection: Arc::clone(&connection),
            reader: transport.reader,
            lines: LineBuffer::new(max_line_bytes),
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            outputs: VecDeque::new(),
            gathered: false,
        };
        (connection, driver, opening)
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

    fn set_reason(&self, why: &str) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.get_or_insert_with(|| why.to_owned());
    }

    /// Locks; the machine's own changes are whole even if a waker panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("exit", &self.exit()).finish_non_exhaustive()
    }
}

/// Why the driver has nothing more to do.
#[derive(Clone, Debug)]
enum Stop {
    /// The output of the server has ended.
    OutputEnded,
    /// The process has ended.
    ProcessEnded,
    /// The connection cannot go on.
    Broken(String),
    /// The host closes it.
    Closed,
}

/// Drives a connection until it has ended. Dropping it ends the connection.
pub(crate) struct Driver {
    connection: Arc<Connection>,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    lines: LineBuffer,
    alarm: Pin<Box<Sleep>>,
    outputs: VecDeque<Delivery>,
    /// Whether those who make requests at the same time had their turn.
    gathered: bool,
}

impl Driver {
    /// Runs until the connection has ended, and its process with it.
    pub(crate) async fn run(mut self) {
        let stop = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.finish(stop).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        let process_ended = match self.prepare(cx) {
            Ok(process_ended) => process_ended,
            Err(stop) => return Poll::Ready(stop),
        };
        let mut came_last = None;
        for _ in 0..READS_IN_A_ROW {
            let target = self.lines.read_target();
            let read = pin!(self.reader.read_buf(target)).poll(cx);
            match read {
                Poll::Pending if process_ended => return Poll::Ready(Stop::ProcessEnded),
                Poll::Pending => return self.keep_time(cx, came_last.unwrap_or_else(now)),
                Poll::Ready(Ok(0)) => return Poll::Ready(Stop::OutputEnded),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Stop::Broken(format!("reading from it failed: {error}")));
                }
                Poll::Ready(Ok(_)) => {
                    let came = now();
                    came_last = Some(came);
                    if let Some(stop) = self.take_lines(cx, came) {
                        return Poll::Ready(stop);
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        self.keep_time(cx, came_last.unwrap_or_else(now))
    }

    /// Leaves the driver's waker, and writes what is left to the driver. Tells whether the process has ended.
    fn prepare(&mut self, cx: &mut Context<'_>) -> Result<bool, Stop> {
        let mut state = self.connection.lock();
        if state.closing {
            return Err(Stop::Closed);
        }
        match &mut state.driver {
            Some(driver) => driver.clone_from(cx.waker()),
            driver => *driver = Some(cx.waker().clone()),
        }
        if state.gathering && !std::mem::replace(&mut self.gathered, true) {
            // After whoever else is about to make a request.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
        } else if state.blocked || state.gathering {
            self.gathered = false;
            state.flush(cx);
        }
        if state.writer.is_none() {
            return Err(Stop::Broken("it does not read what is sent to it any more".to_owned()));
        }
        Ok(state.process_ended)
    }

    /// Hands the lines that were read to the machine, and what comes of it to those who wait.
    fn take_lines(&mut self, cx: &mut Context<'_>, now: Instant) -> Option<Stop> {
        let mut state = self.connection.lock();
        while let Some(line) = self.lines.next_line() {
            state.machine.handle_line(now, line);
            state.collect(&mut self.outputs);
        }
        if !state.blocked {
            state.flush(cx);
        }
        drop(state);
        self.hand_out()
    }

    /// Does what is due, and sets the alarm.
    fn keep_time(&mut self, cx: &mut Context<'_>, mut now: Instant) -> Poll<Stop> {
        loop {
            let mut state = self.connection.lock();
            let due = state.machine.poll_timeout();
            if due.is_some_and(|due| due <= now) {
                state.machine.handle_timeout(now);
                if !state.blocked {
                    state.flush(cx);
                }
                state.collect(&mut self.outputs);
                drop(state);
                if let Some(stop) = self.hand_out() {
                    return Poll::Ready(stop);
                }
                continue;
            }
            if due == state.alarm {
                return Poll::Pending;
            }
            state.alarm = due;
            drop(state);
            let Some(due) = due else { return Poll::Pending };
            self.alarm.as_mut().reset(due.into());
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            now = self::now();
        }
    }

    /// Gives each output to whom it belongs.
    fn hand_out(&mut self) -> Option<Stop> {
        let mut stop = None;
        while let Some(delivery) = self.outputs.pop_front() {
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
                Output::Acknowledged { id } => self.connection.acknowledge(id),
                Output::Notice(notice) => self.connection.events.push(Event::Notice(notice)),
                Output::Asked { id, method, params } => {
                    self.connection.asked(ServerAsk::Asked { id, method, params });
                }
                Output::AskCancelled { id } => self.connection.asked(ServerAsk::Cancelled { id }),
                Output::Ready(info) => self.connection.opened(Ok(info)),
                Output::OpeningFailed { error, start_again } => {
                    self.connection.opened(Err((error, start_again)));
                    stop = Some(Stop::Closed);
                }
                Output::Broken { reason } => {
                    self.connection.set_reason(&reason);
                    stop = Some(Stop::Broken(reason));
                }
            }
        }
        stop
    }

    /// The end of the connection: of what waits, of the input, of the process.
    async fn finish(&mut self, stop: Stop) {
        let process = self.connection.process.clone();
        match &stop {
            Stop::OutputEnded | Stop::ProcessEnded => self.read_rest(&stop).await,
            Stop::Broken(reason) => self.connection.set_reason(reason),
            Stop::Closed => self.connection.set_reason("it was closed by this host"),
        }
        if let (Stop::OutputEnded, Some(process)) = (&stop, &process) {
            // It most likely ends just now, and its status belongs into every error.
            let _ = tokio::time::timeout(STATUS_PAUSE, process.ended()).await;
        }
        self.connection.set_reason(match &stop {
            Stop::ProcessEnded => "its process ended",
            _ => "it closed its output",
        });
        self.settle_all();
        let exit = match &process {
            Some(process) => {
                process.end();
                let mut ended = pin!(process.ended());
                // Whoever is about to end may have to write a little more before.
                let mut scrap = [0; 1024];
                loop {
                    tokio::select! {
                        exit = &mut ended => break exit,
                        read = self.reader.read(&mut scrap) => if !matches!(read, Ok(1..)) { break ended.await },
                    }
                }
            }
            None => {
                Exit::new(if matches!(stop, Stop::Closed) { ExitHow::Stdin } else { ExitHow::Itself }, None)
            }
        };
        self.connection.set_ended(exit);
    }

    /// Reads what is left, the unfinished last line included.
    async fn read_rest(&mut self, stop: &Stop) {
        if matches!(stop, Stop::ProcessEnded) {
            let rest = async {
                while let Ok(1..) = self.reader.read_buf(self.lines.read_target()).await {
                    let more = std::future::poll_fn(|cx| Poll::Ready(self.take_lines(cx, now()))).await;
                    if more.is_some() {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(REST_PAUSE, rest).await;
        }
        let now = now();
        let mut state = self.connection.lock();
        if let Some(Line::Text(text)) = self.lines.finish()
            && serde_json::from_slice::<IgnoredAny>(text.as_bytes()).is_ok()
        {
            state.machine.handle_line(now, Line::Text(text));
        }
        state.collect(&mut self.outputs);
        drop(state);
        let _ = self.hand_out();
    }

    /// Closes the machine and the input of the server.
    fn settle_all(&mut self) {
        let mut state = self.connection.lock();
        // What still fits goes out: a cancellation, mostly.
        if !state.blocked {
            state.flush(&mut Context::from_waker(Waker::noop()));
        }
        state.machine.handle_closed();
        state.writer = None;
        state.driver = None;
        state.written = 0;
        state.collect(&mut self.outputs);
        drop(state);
        let _ = self.hand_out();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.connection.exit().is_some() {
            return;
        }
        self.connection.set_reason("the runtime it was driven by has ended");
        self.settle_all();
        let exit = self.connection.process.as_ref().and_then(Process::exit);
        self.connection.set_ended(exit.unwrap_or(Exit::new(ExitHow::Kill, None)));
    }
}

impl Connection {
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

    fn set_ended(&self, exit: Exit) {
        self.ended.send_replace(Some(exit));
        self.events.push(Event::Ended(exit));
    }
}

/// The progress reports of one call, bounded: the oldest go first.
#[derive(Debug, Default)]
pub(crate) struct ProgressQueue {
    inner: Mutex<ProgressInner>,
}

#[derive(Debug, Default)]
struct ProgressInner {
    reports: VecDeque<Progress>,
    ended: bool,
    waker: Option<Waker>,
}

impl ProgressQueue {
    /// How many reports are kept for a reader who is behind.
    const KEPT: usize = 64;

    fn push(&self, progress: Progress) {
        let mut inner = self.lock();
        if inner.reports.len() == Self::KEPT {
            inner.reports.pop_front();
        }
        inner.reports.push_back(progress);
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    /// No more reports will come.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        let mut inner = self.lock();
        match inner.reports.pop_front() {
            Some(progress) => Poll::Ready(Some(progress)),
            None if inner.ended => Poll::Ready(None),
            None => {
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
