//! How a client behaves: who it is, how long it waits, and its limits.

use std::sync::Arc;
use std::time::Duration;

use crate::handlers::{ElicitationHandler, Handlers, RootsHandler, SamplingHandler};
use crate::protocol::{ClientConfig, ClientInfo, EraChoice, ListLimits, LogLevel, Timing};

/// How a [`Client`](crate::Client) behaves.
///
/// ```
/// use std::time::Duration;
/// use haversack_mcp_client::{ClientOptions, protocol::EraChoice};
///
/// let options = ClientOptions::new("my-host", "1.4.0")
///     .with_label("notes")
///     .with_era(EraChoice::Auto)
///     .with_call_timeout(Duration::from_secs(120));
/// assert_eq!(options.label(), Some("notes"));
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) config: ClientConfig,
    pub(crate) label: Option<String>,
    pub(crate) handlers: Handlers,
    pub(crate) call_timeout: Duration,
    pub(crate) call_limit: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) list_limits: ListLimits,
    pub(crate) max_line_bytes: usize,
    pub(crate) stderr_tail_bytes: usize,
    pub(crate) close_grace: Duration,
    pub(crate) term_grace: Duration,
}

impl ClientOptions {
    /// Defaults for a host of that name and version, which is what servers are told.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            config: ClientConfig::new(ClientInfo::new(name, version)),
            label: None,
            handlers: Handlers::default(),
            call_timeout: Duration::from_secs(60),
            call_limit: Duration::from_secs(600),
            request_timeout: Duration::from_secs(30),
            list_limits: ListLimits::default(),
            max_line_bytes: 32 << 20,
            stderr_tail_bytes: 64 << 10,
            close_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
        }
    }

    /// Sets what the server is called in errors. Default: the last part of its program's path.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets which family of revisions to open in. Default [`EraChoice::Auto`].
    #[must_use]
    pub fn with_era(mut self, era: EraChoice) -> Self {
        self.config.era = era;
        self
    }

    /// Offers folders to the server.
    #[must_use]
    pub fn with_roots(mut self, handler: Arc<dyn RootsHandler>) -> Self {
        self.handlers.roots = Some(handler);
        self
    }

    /// Offers the host's model to the server.
    #[must_use]
    pub fn with_sampling(mut self, handler: Arc<dyn SamplingHandler>) -> Self {
        self.handlers.sampling = Some(handler);
        self
    }

    /// Offers to ask the user.
    #[must_use]
    pub fn with_elicitation(mut self, handler: Arc<dyn ElicitationHandler>) -> Self {
        self.handlers.elicitation = Some(handler);
        self
    }

    /// Declares a further capability of the host's, an extension for example. Declare only what is served.
    #[must_use]
    pub fn with_capability(mut self, name: impl Into<String>, settings: serde_json::Value) -> Self {
        self.config.capabilities.insert(name.into(), settings);
        self
    }

    /// Sets how long starting may take in all, a second start included. Default 30 s.
    #[must_use]
    pub fn with_start_timeout(mut self, timeout: Duration) -> Self {
        self.config.start_timeout = timeout;
        self
    }

    /// Sets how long the answer to `server/discover` is waited for before the handshake is tried. Default 10 s, since
    /// real servers take up to 7 s to start, and a shorter wait calls a slow modern server legacy.
    #[must_use]
    pub fn with_probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.probe_timeout = timeout;
        self
    }

    /// Sets how long a tool call waits without an answer or progress. Default 60 s, as the reference clients do.
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Sets how long a tool call may take in all, whatever progress it reports. Default 10 minutes.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// Sets how long every other request waits: lists, resources, prompts, ping. Default 30 s.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets how far lists are followed.
    #[must_use]
    pub fn with_list_limits(mut self, limits: ListLimits) -> Self {
        self.list_limits = limits;
        self
    }

    /// Sets how long a line of the server's may be, in bytes. Default 32 MiB: servers are known to send results of
    /// several megabytes in one line, doubled. A longer one fails the call that it answers.
    #[must_use]
    pub fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }

    /// Sets how many requests may wait for answers at once. Default 1,024.
    #[must_use]
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.config.max_in_flight = requests;
        self
    }

    /// Sets how many bytes may wait to be sent to a server that does not read. Default 64 MiB.
    #[must_use]
    pub fn with_max_queued_bytes(mut self, bytes: usize) -> Self {
        self.config.max_queued_bytes = bytes;
        self
    }

    /// Sets how much of the end of standard error is kept for errors, in bytes. Default 64 KiB.
    #[must_use]
    pub fn with_stderr_tail_bytes(mut self, bytes: usize) -> Self {
        self.stderr_tail_bytes = bytes;
        self
    }

    /// Sets how long a server has to end once its input is closed, and then once more after it was asked to
    /// terminate. Default 2 s each.
    #[must_use]
    pub fn with_close_grace(mut self, after_stdin: Duration, after_term: Duration) -> Self {
        self.close_grace = after_stdin;
        self.term_grace = after_term;
        self
    }

    /// Sets how much a server should log from the start, where the revision has that in each request.
    #[must_use]
    pub fn with_log_level(mut self, level: LogLevel) -> Self {
        self.config.log_level = Some(level);
        self
    }

    /// What the server is called in errors, if that was set.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Which family of revisions to open in.
    pub fn era(&self) -> EraChoice {
        self.config.era
    }

    /// How long starting may take in all.
    pub fn start_timeout(&self) -> Duration {
        self.config.start_timeout
    }

    /// The machine's part of the settings.
    pub(crate) fn machine_config(&self) -> ClientConfig {
        let mut config = self.config.clone();
        self.handlers.declare(&mut config.capabilities);
        config
    }

    pub(crate) fn request_timing(&self) -> Timing {
        Timing::fixed(self.request_timeout)
    }
}
