//! What is written where: answers to standard output, complaints and the log to standard error.

use std::io::{self, Write as _};

use serde::Serialize;
use tracing::level_filters::LevelFilter;

use crate::cli::Ending;
use crate::cli::args::Log;

/// Writes a line to standard output. A reader that has gone away is no failure of ours.
pub(crate) fn line(text: &str) -> Result<(), Ending> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a value as JSON to standard output.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Ending> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    // There is nowhere to say that this failed.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a complaint to standard error.
pub(crate) fn complain(text: &str) {
    say(&format!("error: {text}"));
}

/// Sends the log to standard error: standard output belongs to the protocol.
pub(crate) fn log_to_stderr(log: Log) {
    let level = match log {
        Log::Off => LevelFilter::OFF,
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).init();
}
