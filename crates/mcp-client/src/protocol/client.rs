//! The client's side of a connection as a value: lines and time in, bytes and outputs out.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::failure::Failure;
use super::json::Object;
use super::line::{Line, LineText};
use super::message::{PeerId, RequestId, RpcError};
use super::notice::{ListKind, Notice, excerpt};
use super::opening::{Next, Opening, OpeningError, OpeningStep};
use super::outgoing::{self, Id, RequestParams};
use super::output::{ClientConfig, MachineCounts, Outcome, Output, Refusal};
use super::pending::{PendingTable, Timing, earlier};
use super::revision::{Era, Revision};
use super::schema::{LogLevel, Problem, ProblemCode, ServerInfo};

mod incoming;

/// How many lines of noise are reported one by one; the rest is only counted.
const REPORTED_NOISE: u64 = 20;

/// How many problems are reported one by one; the rest is only counted.
const REPORTED_PROBLEMS: u64 = 100;

/// How many requests of the server's may wait for the host at once.
const MAX_ASKS: usize = 64;

/// How long notes of a changed list are gathered before one notice is given.
const LIST_CHANGE_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Phase {
    Fresh,
    Opening { step: OpeningStep, id: OpeningId, deadline: Instant, ends: Instant },
    Ready(Era),
    Closed,
}

/// The id of an opening message: a text for the question, a number for the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpeningId(u64);

impl OpeningId {
    fn as_text(self) -> String {
        format!("discover-{}", self.0)
    }
}

/// The client's side of one MCP connection, apart from all input and output.
///
/// Lines and the time come in by the `handle_` methods; bytes to be sent gather in [`outgoing`](Self::outgoing),
/// everything else is taken out with [`poll_output`](Self::poll_output) until there is nothing more. When the time that
/// [`poll_timeout`](Self::poll_timeout) names has come, [`handle_timeout`](Self::handle_timeout) wants to be called.
/// Each request carries a tag `T` of the caller's, which comes back exactly once, with its outcome, unless the request
/// is cancelled.
///
/// ```
/// use std::time::Instant;
/// use haversack_mcp_client::protocol::*;
///
/// let now = Instant::now();
/// let mut config = ClientConfig::new(ClientInfo::new("example", "1.0"));
/// config.era = EraChoice::Legacy;
/// let mut machine = ClientMachine::new(config);
/// machine.start(now);
/// // What would go to the server:
/// let sent = std::mem::take(machine.outgoing());
/// assert!(sent.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"initialize""#));
///
/// let mut lines = LineBuffer::new(1 << 20);
/// lines.feed(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n");
/// while let Some(line) = lines.next_line() {
///     machine.handle_line(now, line);
/// }
/// assert!(matches!(machine.poll_output(), Some(Output::Ready(_))));
/// let id = machine.request(now, "ping", &(), Timing::unlimited(), "my tag").unwrap();
/// assert_eq!(id.get(), 2);
/// ```
#[derive(Debug)]
pub struct ClientMachine<T> {
    config: ClientConfig,
    phase: Phase,
    opening: Opening,
    /// The last `server/discover` that ran into its own time limit.
    given_up_discover: Option<OpeningId>,
    revision: Revision,
    /// What each request carries in its metadata, rendered once.
    metadata: String,
    pending: PendingTable<T>,
    asks: BTreeSet<PeerId>,
    outgoing: Vec<u8>,
    outputs: VecDeque<Output<T>>,
    /// Members of a batch that are not handled yet, and when they came: one by one, so that each output can be acted
    /// upon before the next message is.
    batch: VecDeque<Vec<u8>>,
    batch_came: Option<Instant>,
    /// When the gathered notes of each list are due as a notice.
    list_changes: [Option<Instant>; ListKind::ALL.len()],
    /// How often each list has changed.
    list_versions: [u64; ListKind::ALL.len()],
    counts: MachineCounts,
}

/// A line, or a message that came otherwise.
enum Raw<'a> {
    Line(LineText<'a>),
    Slice(&'a [u8]),
}

impl Raw<'_> {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Line(line) => line.as_bytes(),
            Self::Slice(slice) => slice,
        }
    }

    fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Line(line) => line.into_vec(),
            Self::Slice(slice) => slice.to_vec(),
        }
    }
}

impl<T> ClientMachine<T> {
    /// A machine that has not started.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            opening: Opening::new(config.era),
            config,
            phase: Phase::Fresh,
            given_up_discover: None,
            revision: Revision::NEWEST_LEGACY,
            metadata: String::new(),
            pending: PendingTable::new(),
            asks: BTreeSet::new(),
            outgoing: Vec::new(),
            outputs: VecDeque::new(),
            batch: VecDeque::new(),
            batch_came: None,
            list_changes: [None; ListKind::ALL.len()],
            list_versions: [0; ListKind::ALL.len()],
            counts: MachineCounts::default(),
        }
    }

    /// Sends the first message.
    pub fn start(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Fresh) {
            let ends = after(now, self.config.start_timeout);
            let next = self.opening.first();
            self.open(now, ends, next);
        }
    }

    /// The bytes that wait to be sent, whole lines, for the driver to take from the front.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The next output. Take all of them after each line.
    pub fn poll_output(&mut self) -> Option<Output<T>> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            self.handle_next_of_batch()?;
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called; never later, perhaps earlier than needed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let opening = match self.phase {
            Phase::Opening { deadline, .. } => Some(deadline),
            _ => None,
        };
        let changes = self.list_changes.iter().copied().fold(None, earlier);
        earlier(earlier(opening, changes), self.pending.poll_timeout())
    }

    /// How many requests wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Whether the connection is open for requests.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// What has been counted so far.
    pub fn counts(&self) -> MachineCounts {
        self.counts
    }

    /// How often a list has changed; a copy is fresh only while this number stands.
    pub fn list_version(&self, list: ListKind) -> u64 {
        self.list_versions.get(list as usize).copied().unwrap_or_default()
    }

    /// The tag of a request that waits.
    pub fn tag(&self, id: RequestId) -> Option<&T> {
        self.pending.get(id).map(|entry| &entry.tag)
    }

    /// The revision that is spoken, once the connection is open.
    #[cfg(feature = "http")]
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.is_ready().then_some(self.revision)
    }

    /// The transport saw that `server/discover` was refused the way only modern servers refuse a method.
    #[cfg(feature = "http")]
    pub(crate) fn note_modern_refusal(&mut self) {
        self.opening.note_modern_refusal();
    }

    /// Reports something odd that the transport saw.
    #[cfg(feature = "http")]
    pub(crate) fn report(&mut self, message: String) {
        self.problem(ProblemCode::Transport, message);
    }

    pub(crate) fn tag_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.pending.get_mut(id).map(|entry| &mut entry.tag)
    }

    /// Sets how much the server should log, where the revision has that in each request. Elsewhere it takes a request
    /// of its own, `logging/setLevel`.
    pub fn set_log_level(&mut self, level: Option<LogLevel>) {
        self.config.log_level = level;
        if let Phase::Ready(Era::Modern) = self.phase {
            self.metadata = self.modern_metadata(self.revision);
        }
    }

    /// Makes a request.
    ///
    /// # Errors
    /// Why it was not taken; then nothing is sent, and the tag is dropped.
    pub fn request(
        &mut self,
        now: Instant,
        method: impl Into<Cow<'static, str>>,
        params: &(impl RequestParams + ?Sized),
        timing: Timing,
        tag: T,
    ) -> Result<RequestId, Refusal> {
        if !self.is_ready() {
            return Err(Refusal::NotOpen);
        }
        if self.pending.len() >= self.config.max_in_flight {
            return Err(Refusal::TooManyInFlight { limit: self.config.max_in_flight });
        }
        if self.outgoing.len() > self.config.max_queued_bytes {
            return Err(Refusal::TooManyQueued { limit: self.config.max_queued_bytes });
        }
        let method = method.into();
        let id = self.pending.next_id();
        let token = timing.limit.map(|_| id.get());
        outgoing::request(&mut self.outgoing, Id::Number(id.get()), &method, &self.metadata, token, params)
            .map_err(Refusal::Unwritable)?;
        self.pending.insert(now, id, method, timing, tag);
        Ok(id)
    }

    /// Gives up a request and tells the server so; its late answer will be dropped. The tag comes back, if the
    /// request still waited.
    pub fn cancel(&mut self, id: RequestId, reason: &str) -> Option<T> {
        let entry = self.pending.give_up(id)?;
        if self.is_ready() {
            let params = json!({"requestId": id.get(), "reason": reason});
            outgoing::notification(&mut self.outgoing, "notifications/cancelled", Some(&params));
        }
        Some(entry.tag)
    }

    /// Sends a notification of the host's.
    pub fn notify(&mut self, method: &str, params: Option<&Value>) {
        if self.is_ready() && self.has_room() {
            outgoing::notification(&mut self.outgoing, method, params);
        }
    }

    /// Answers what the server asked with [`Output::Asked`]. An answer to what is no longer asked is dropped.
    pub fn answer(&mut self, id: &PeerId, result: Result<&Value, &RpcError>) {
        if self.asks.remove(id) && !matches!(self.phase, Phase::Closed) {
            self.reply(id, result);
        }
    }

    /// Takes a line.
    pub fn handle_line(&mut self, now: Instant, line: Line<'_>) {
        while self.handle_next_of_batch().is_some() {}
        match line {
            Line::Text(text) => self.handle(now, Raw::Line(text)),
            Line::TooLong { head, limit } => self.handle_too_long(&head, limit),
            Line::Endless { bytes, limit } => {
                let reason = format!(
                    "it sent a line of over {bytes} bytes that does not end, past the limit of {limit} bytes"
                );
                self.outputs.push_back(Output::Broken { reason });
                self.handle_closed();
            }
        }
    }

    /// Takes a message that did not come as a line.
    pub fn handle_message(&mut self, now: Instant, message: &[u8]) {
        self.handle(now, Raw::Slice(message));
    }

    /// A request of ours will not be answered: its transport says why. `id` is the request's, as it stands on the wire.
    ///
    /// The request is settled with [`Outcome::Failed`]; where it opened the connection, the next step is taken. For what
    /// waits no more this does nothing.
    pub fn handle_failure(&mut self, now: Instant, id: &Value, failure: Failure) {
        if let Phase::Opening { step, ends, .. } = self.phase {
            if self.is_opening_id(id) {
                let next = self.opening.failed(step, failure);
                self.open(now, ends, next);
            }
            return;
        }
        if let Some(entry) = id.as_u64().and_then(|id| self.pending.give_up(RequestId(id))) {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::Failed(failure) });
        }
    }

    /// Whether a request of ours, named by its id on the wire, still waits for its answer.
    pub fn waits_for(&self, id: &Value) -> bool {
        match self.phase {
            Phase::Opening { .. } => self.is_opening_id(id),
            _ => id.as_u64().is_some_and(|id| self.pending.get(RequestId(id)).is_some()),
        }
    }

    fn is_opening_id(&self, id: &Value) -> bool {
        match self.phase {
            Phase::Opening { step: OpeningStep::Discover, id: opening, .. } => {
                id.as_str().is_some_and(|id| id == opening.as_text())
            }
            Phase::Opening { step: OpeningStep::Initialize, id: opening, .. } => {
                id.as_u64() == Some(opening.0)
            }
            _ => false,
        }
    }

    /// The peer has closed the connection, or the driver has: everything that waits is settled.
    pub fn handle_closed(&mut self) {
        if let Phase::Opening { step, .. } = self.phase {
            let start_again = self.opening.may_have_died_of_the_question();
            self.phase = Phase::Closed;
            self.outputs
                .push_back(Output::OpeningFailed { error: OpeningError::Closed { step }, start_again });
        }
        self.phase = Phase::Closed;
        self.outgoing.clear();
        self.batch.clear();
        self.list_changes = [None; ListKind::ALL.len()];
        for entry in self.pending.drain() {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::Closed });
        }
        for id in std::mem::take(&mut self.asks) {
            self.outputs.push_back(Output::AskCancelled { id });
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Opening { step, id, deadline, ends } = self.phase
            && deadline <= now
        {
            if ends <= now {
                let after = self.config.start_timeout;
                self.fail_opening(OpeningError::TimedOut { step, after });
            } else {
                self.given_up_discover = Some(id);
                let next = self.opening.discover_timed_out(self.config.probe_timeout);
                self.open(now, ends, next);
            }
        }
        for (id, after) in self.pending.expired(now) {
            if let Some(tag) = self.cancel(id, "timed out") {
                self.outputs.push_back(Output::Settled { tag, outcome: Outcome::TimedOut { after } });
            }
        }
        for list in ListKind::ALL {
            if let Some(due) = self.list_changes.get_mut(list as usize)
                && due.is_some_and(|due| due <= now)
            {
                *due = None;
                self.outputs.push_back(Output::Notice(Notice::ListChanged(list)));
            }
        }
    }

    // ---- opening ----

    fn open(&mut self, now: Instant, ends: Instant, next: Next) {
        match next {
            Next::Ready(info) => self.become_ready(info),
            Next::Fail(error) => self.fail_opening(error),
            Next::Discover => {
                let id = OpeningId(self.pending.next_id().get());
                let metadata = self.modern_metadata(Revision::NEWEST_MODERN);
                let text = id.as_text();
                self.send_opening(Id::Text(&text), OpeningStep::Discover, &metadata, &Object::new());
                let deadline = after(now, self.config.probe_timeout).min(ends);
                self.phase = Phase::Opening { step: OpeningStep::Discover, id, deadline, ends };
            }
            Next::Initialize(revision) => {
                let id = OpeningId(self.pending.next_id().get());
                let params = json!({
                    "protocolVersion": revision.as_str(),
                    "capabilities": self.config.capabilities,
                    "clientInfo": self.config.client.to_value(),
                });
                let params = params.as_object().cloned().unwrap_or_default();
                self.send_opening(Id::Number(id.0), OpeningStep::Initialize, "", &params);
                self.phase = Phase::Opening { step: OpeningStep::Initialize, id, deadline: ends, ends };
            }
        }
    }

    fn send_opening(&mut self, id: Id<'_>, step: OpeningStep, metadata: &str, params: &Object) {
        // Values made of text and objects of values can always be written.
        let _ = outgoing::request(&mut self.outgoing, id, step.as_str(), metadata, None, params);
    }

    fn become_ready(&mut self, info: Box<ServerInfo>) {
        self.revision = info.protocol_version;
        self.phase = Phase::Ready(info.era);
        match info.era {
            Era::Legacy => outgoing::notification(&mut self.outgoing, "notifications/initialized", None),
            Era::Modern => self.metadata = self.modern_metadata(info.protocol_version),
        }
        self.outputs.push_back(Output::Ready(info));
    }

    fn fail_opening(&mut self, error: OpeningError) {
        self.phase = Phase::Closed;
        self.outgoing.clear();
        self.outputs.push_back(Output::OpeningFailed { error, start_again: false });
    }

    /// The members of `_meta` that the modern revisions want in each request, without the braces.
    fn modern_metadata(&self, revision: Revision) -> String {
        let mut metadata = json!({
            "io.modelcontextprotocol/protocolVersion": revision.as_str(),
            "io.modelcontextprotocol/clientInfo": self.config.client.to_value(),
            "io.modelcontextprotocol/clientCapabilities": self.config.capabilities,
        });
        if let (Some(level), Some(object)) = (self.config.log_level, metadata.as_object_mut()) {
            object.insert("io.modelcontextprotocol/logLevel".to_owned(), level.as_str().into());
        }
        let text = metadata.to_string();
        text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default().to_owned()
    }

    // ---- incoming ----

    fn reply(&mut self, id: &PeerId, result: Result<&Value, &RpcError>) {
        if self.has_room() {
            outgoing::answer(&mut self.outgoing, id.as_json(), result);
        } else {
            let message = "an answer to the server was dropped: it does not read what we send".to_owned();
            self.problem(ProblemCode::Overload, message);
        }
    }

    fn has_room(&self) -> bool {
        self.outgoing.len() <= self.config.max_queued_bytes
    }

    fn noise(&mut self, line: &[u8]) {
        self.counts.noise += 1;
        if self.counts.noise <= REPORTED_NOISE {
            self.outputs.push_back(Output::Notice(Notice::Noise { text: excerpt(line) }));
        }
    }

    fn problem(&mut self, code: ProblemCode, message: String) {
        self.counts.problems += 1;
        if self.counts.problems <= REPORTED_PROBLEMS {
            self.outputs.push_back(Output::Notice(Notice::Problem(Problem::new(code, message))));
        }
    }
}

enum WhichOpening {
    Current,
    GivenUp,
}

/// A point in time that far from now, or as far as the clock goes.
fn after(now: Instant, time: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now.checked_add(time).or_else(|| now.checked_add(FAR)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
