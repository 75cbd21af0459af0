//! What carries the bytes of a connection: the two ends of a stream, and the process behind them if there is one.
//!
//! This is the seam for streams of lines. A transport of whole messages, as HTTP is, drives the protocol machine by
//! [`ClientMachine::handle_message`](crate::protocol::ClientMachine::handle_message) instead.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::process::Process;

/// The ends of a connection.
pub(crate) struct Transport {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) process: Option<Process>,
}
