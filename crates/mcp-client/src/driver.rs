//! Drives a connection of lines: moves bytes between the protocol machine and a stream, and keeps time.
//!
//! The reader never waits for the writer.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Sleep;

use crate::connection::{AskSink, Connection, Delivery, Opening, Stop, Waiter, now};
use crate::process::{Exit, ExitHow, Process};
use crate::protocol::{ClientMachine, Line, LineBuffer};
use crate::transport::{LineWriter, Transport};

/// How long the status of a process is waited for once its output has ended, before it is ended itself.
const STATUS_PAUSE: Duration = Duration::from_millis(500);

/// How long the rest of the output is read once the process has ended: somebody who left its group may hold the pipe.
const REST_PAUSE: Duration = Duration::from_millis(200);

/// How many reads are made in a row before other tasks get a turn.
const READS_IN_A_ROW: usize = 32;

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
    /// A connection over a transport, where its opening will be told, and what drives it.
    pub(crate) fn new(
        machine: ClientMachine<Waiter>,
        transport: Transport,
        max_line_bytes: usize,
        asks: AskSink,
    ) -> (Arc<Connection>, Self, Opening) {
        let lines = LineWriter::new(transport.writer);
        let (connection, opening) = Connection::new(machine, Some(lines), transport.process, asks);
        let driver = Self {
            connection: Arc::clone(&connection),
            reader: transport.reader,
            lines: LineBuffer::new(max_line_bytes),
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            outputs: VecDeque::new(),
            gathered: false,
        };
        (connection, driver, opening)
    }

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
        state.set_driver(cx.waker());
        let (blocked, gathering) =
            state.lines.as_ref().map_or((false, false), |lines| (lines.blocked, lines.gathering));
        if gathering && !std::mem::replace(&mut self.gathered, true) {
            // After whoever else is about to make a request.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
        } else if blocked || gathering {
            self.gathered = false;
            state.flush(cx);
        }
        if state.lines.as_ref().is_none_or(LineWriter::is_closed) {
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
        state.flush_unless_blocked(cx);
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
                state.flush_unless_blocked(cx);
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
            now = crate::connection::now();
        }
    }

    fn hand_out(&mut self) -> Option<Stop> {
        self.connection.hand_out(&mut self.outputs)
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
        state.flush_unless_blocked(&mut Context::from_waker(Waker::noop()));
        state.machine.handle_closed();
        if let Some(lines) = &mut state.lines {
            lines.close();
        }
        state.driver = None;
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
