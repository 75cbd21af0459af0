//! What carries the messages of a connection.
//!
//! There are two kinds. A transport of *lines* is the two ends of a stream, and the process behind them if there is one:
//! whoever makes a request writes it into the [`LineWriter`] itself. A transport of whole *messages*, as HTTP is, has no
//! such writer: its driver takes what waits, and hands answers in by
//! [`ClientMachine::handle_message`](crate::protocol::ClientMachine::handle_message).

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::process::Process;

/// The most that the buffer of bytes to be sent keeps allocated when it is empty.
const IDLE_OUTGOING_BYTES: usize = 64 * 1024;

/// The ends of a connection of lines.
pub(crate) struct Transport {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) process: Option<Process>,
}

/// The writing end, and how far it is.
pub(crate) struct LineWriter {
    /// `None` once nothing can be sent any more.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// How much of the outgoing bytes is written.
    written: usize,
    /// The writer took no more: it is the driver's turn.
    pub(crate) blocked: bool,
    /// Many requests are being made at once: the driver sends them together.
    pub(crate) gathering: bool,
}

impl LineWriter {
    pub(crate) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        Self { writer: Some(writer), written: 0, blocked: false, gathering: false }
    }

    /// Whether nothing can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.writer.is_none()
    }

    /// Closes the input of the server.
    pub(crate) fn close(&mut self) {
        self.writer = None;
        self.written = 0;
    }

    /// Writes what waits, as far as the writer takes it.
    pub(crate) fn flush(&mut self, outgoing: &mut Vec<u8>, cx: &mut Context<'_>) {
        self.blocked = false;
        self.gathering = false;
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
}
