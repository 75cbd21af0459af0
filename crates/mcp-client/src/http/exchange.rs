//! One message on its way: what it is, what it may still become, and how far its answer has come.

use std::time::{Duration, Instant};

use haversack_http::{Bytes, HeaderMap, HeaderValue, Method, SseDecoder};
use serde_json::Value;

/// Names a request to the server, from when it is sent until its answer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExchangeId(pub(crate) u64);

/// A request for the driver to send.
#[derive(Debug)]
pub(crate) struct ToSend {
    pub(crate) exchange: ExchangeId,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What a message is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Purpose {
    /// A request, which wants an answer.
    Request { id: Value, method: String },
    /// `notifications/initialized`: what comes after it has to wait until it has arrived.
    Initialized,
    /// Any other notification, or an answer to the server.
    Note { what: String },
    /// The handshake once more, after the server has forgotten the session.
    Renewal { id: String },
    /// The stream on which a legacy server speaks unasked.
    Listen,
    /// The stream of the first revision, on which all answers come.
    OldStream,
    /// The end of the session.
    Delete,
}

impl Purpose {
    pub(crate) fn wants_answer(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Renewal { .. })
    }

    /// Whether it is a stream that lasts as long as the connection.
    pub(crate) fn lasts(&self) -> bool {
        matches!(self, Self::Listen | Self::OldStream)
    }
}

/// How far an exchange is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It will be sent once there is a session, or a token.
    Waiting,
    /// It will be asked for again at that time.
    Resting(Instant),
    /// It was sent.
    Sent,
    /// Its answer comes whole.
    Whole { status: u16, body: Vec<u8>, ended: bool },
    /// Its answer is here and was handed on.
    Handed,
    /// Its answer comes as a stream of events.
    Stream { decoder: Box<SseDecoder>, ended: bool },
}

/// One message on its way.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) purpose: Purpose,
    pub(crate) body: Bytes,
    /// Headers of this message alone.
    pub(crate) headers: HeaderMap,
    pub(crate) stage: Stage,
    /// When it is given up; requests have their own limits in the protocol machine.
    pub(crate) deadline: Option<Instant>,
    /// The session and the token it was last sent with, by number.
    pub(crate) session: u64,
    pub(crate) token: u64,
    /// How often it was refused for want of authorization.
    pub(crate) refusals: u32,
    /// Whether it was sent again for want of a session.
    pub(crate) replayed: bool,
    /// How often its stream was opened again without anything coming of it.
    pub(crate) resumes: u32,
    /// The last id that its stream gave: from there on it can be asked for again.
    pub(crate) last_event: Option<HeaderValue>,
    /// How long the server wants to be left alone before that.
    pub(crate) retry: Option<Duration>,
}

impl Exchange {
    pub(crate) fn new(purpose: Purpose, body: impl Into<Bytes>, headers: HeaderMap) -> Self {
        Self {
            purpose,
            body: body.into(),
            headers,
            stage: Stage::Waiting,
            deadline: None,
            session: 0,
            token: 0,
            refusals: 0,
            replayed: false,
            resumes: 0,
            last_event: None,
            retry: None,
        }
    }

    /// Whether it is sent as GET: a stream, or the rest of one.
    pub(crate) fn method(&self) -> Method {
        match self.purpose {
            Purpose::Delete => Method::DELETE,
            Purpose::Listen | Purpose::OldStream => Method::GET,
            _ if self.last_event.is_some() => Method::GET,
            _ => Method::POST,
        }
    }
}
