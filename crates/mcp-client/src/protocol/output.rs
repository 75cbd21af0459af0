//! How a client machine is set up, and what comes out of it.

use std::fmt;
use std::time::Duration;

use super::answer::Answer;
use super::failure::Failure;
use super::json::Object;
use super::message::{PeerId, RequestId};
use super::notice::{Notice, Progress};
use super::opening::OpeningError;
use super::revision::EraChoice;
use super::schema::{ClientInfo, LogLevel, ServerInfo};

/// How a client machine behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// What the client says of itself.
    pub client: ClientInfo,
    /// Which family of revisions to open in.
    pub era: EraChoice,
    /// Client capabilities to declare: `roots`, `sampling`, `elicitation` and extensions. Declare only what is served.
    pub capabilities: Object,
    /// How long an answer to `server/discover` is waited for before falling back to `initialize`. Default 10 s: real
    /// servers take up to 7 s to start.
    pub probe_timeout: Duration,
    /// How long opening the connection may take in all. Default 30 s.
    pub start_timeout: Duration,
    /// How many requests may wait for an answer at once. Default 1,024.
    pub max_in_flight: usize,
    /// How many bytes may wait to be sent before further requests are refused and answers to the server dropped.
    /// Default 64 MiB. A single larger message is taken when nothing else waits.
    pub max_queued_bytes: usize,
    /// How much the server should log, where the revision has that in each request.
    pub log_level: Option<LogLevel>,
}

impl ClientConfig {
    /// A client that declares nothing and tries every revision.
    pub fn new(client: ClientInfo) -> Self {
        Self {
            client,
            era: EraChoice::Auto,
            capabilities: Object::new(),
            probe_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(30),
            max_in_flight: 1024,
            max_queued_bytes: 64 << 20,
            log_level: None,
        }
    }
}

/// What a [`ClientMachine`](super::ClientMachine) has to say.
#[derive(Debug)]
pub enum Output<T> {
    /// The connection is open: requests may be made.
    Ready(Box<ServerInfo>),
    /// The connection did not open. The machine is closed.
    OpeningFailed {
        /// Why.
        error: OpeningError,
        /// Whether the peer may have died of being asked `server/discover`: it is worth starting it again and opening
        /// with [`EraChoice::Legacy`].
        start_again: bool,
    },
    /// A request has come to its end.
    Settled {
        /// What was handed in with the request.
        tag: T,
        /// How it ended.
        outcome: Outcome,
    },
    /// A request has made progress.
    Progress {
        /// The request.
        id: RequestId,
        /// The report.
        progress: Progress,
    },
    /// A subscription has been acknowledged by the server.
    Acknowledged {
        /// The request that opened the subscription.
        id: RequestId,
    },
    /// The server asks for something that the host declared. Answer with [`ClientMachine::answer`](super::ClientMachine::answer).
    Asked {
        /// The server's id, for the answer.
        id: PeerId,
        /// `roots/list`, `sampling/createMessage` or `elicitation/create`.
        method: String,
        /// The parameters.
        params: Object,
    },
    /// The server does not want that any more.
    AskCancelled {
        /// The server's id.
        id: PeerId,
    },
    /// Something the server said on its own, or something odd about what it said.
    Notice(Notice),
    /// The connection cannot go on. The machine is closed.
    Broken {
        /// Why, in words.
        reason: String,
    },
}

/// How a request ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// With an answer, which may be an error.
    Answered(Answer),
    /// Without an answer in time. The server has been told that the request is cancelled.
    TimedOut {
        /// The time that ran out, as it was set.
        after: Duration,
    },
    /// With an answer longer than the limit, which was dropped.
    TooLong {
        /// The limit of a line, in bytes.
        limit: usize,
    },
    /// Without an answer that could be delivered: see [`ClientMachine::handle_failure`](super::ClientMachine::handle_failure).
    Failed(Failure),
    /// By the server, which ended a subscription.
    Ended,
    /// With the connection.
    Closed,
}

/// Why a request was not taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The connection is not open, or not any more.
    NotOpen,
    /// Too many requests wait for their answers.
    TooManyInFlight {
        /// The limit.
        limit: usize,
    },
    /// Too many bytes wait to be sent: the server does not read.
    TooManyQueued {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The parameters cannot be written as JSON.
    Unwritable(serde_json::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the connection is not open"),
            Self::TooManyInFlight { limit } => write!(f, "{limit} requests wait for their answers already"),
            Self::TooManyQueued { limit } => {
                write!(f, "over {limit} bytes wait to be sent: the server does not read them")
            }
            Self::Unwritable(error) => write!(f, "the parameters cannot be written as JSON: {error}"),
        }
    }
}

/// What a machine has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineCounts {
    /// Lines that were no messages.
    pub noise: u64,
    /// Problems, those not reported one by one included.
    pub problems: u64,
    /// Answers to requests that had been given up.
    pub late_answers: u64,
}
