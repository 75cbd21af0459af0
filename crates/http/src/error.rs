//! Why a request got no answer, or lost it on the way.

use std::error::Error;
use std::fmt;

/// A request that got no answer, or an answer that broke off.
///
/// A status such as 404 or 500 is an answer and no error. The text never holds headers or the query of an
/// address, since those are where keys are.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpError {
    /// What kind of failure.
    pub kind: HttpErrorKind,
    /// What was attempted, naming the server.
    pub message: String,
    /// What is behind it.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl HttpError {
    /// An error from its kind and text.
    pub fn new(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Sets what is behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The message followed by those of all sources, for reports of one line.
    pub fn chain(&self) -> String {
        let mut text = self.message.clone();
        let mut next = self.source();
        while let Some(error) = next {
            text.push_str(": ");
            text.push_str(&error.to_string());
            next = error.source();
        }
        text
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// The kinds of failure that a caller can do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The request cannot be sent as it is: a bad address or header, or no runtime. Trying again is pointless.
    Request,
    /// There is no connection: refused, unknown host, failed TLS handshake.
    Connect,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The connection broke before the answer began.
    Send,
    /// The connection broke while the answer was read.
    Body,
}
