//! The client's side of a connection as a value: lines and time in, bytes and outputs out.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::Answer;
use super::json::Object;
use super::line::{Line, LineText};
use super::message::{self, AnswerId, Incoming, PeerId, RequestId, RpcError, code};
use super::notice::{ListKind, Notice, Progress, bounded, excerpt};
use super::opening::{Next, Opening, OpeningError, OpeningStep};
use super::outgoing::{self, Id, RequestParams};
use super::output::{ClientConfig, MachineCounts, Outcome, Output, Refusal};
use super::pending::{Entry, PendingTable, Reported, Timing, earlier};
use super::revision::{Era, Revision};
use super::schema::{LogLevel, Problem, ProblemCode, ServerInfo};

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
            Line::Endless { bytes } => {
                let reason = format!("the server sent a line of over {bytes} bytes that does not end");
                self.outputs.push_back(Output::Broken { reason });
                self.handle_closed();
            }
        }
    }

    /// Takes a message that did not come as a line.
    pub fn handle_message(&mut self, now: Instant, message: &[u8]) {
        self.handle(now, Raw::Slice(message));
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

    fn handle(&mut self, now: Instant, raw: Raw<'_>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        match message::parse(raw.as_bytes()) {
            Ok(Incoming::Answer { id, result }) => self.handle_answer(now, &id, result, raw),
            Ok(Incoming::Call { id: Some(id), method, params }) => {
                let params = object_of(params.map(|params| params.get()));
                self.handle_request(id, &method, params);
            }
            Ok(Incoming::Call { id: None, method, params }) => {
                self.handle_notification(now, &method, params.map_or("null", |params| params.get()));
            }
            Ok(Incoming::Batch { members, in_all }) => {
                if in_all > members.len() {
                    let message = format!("a batch of {in_all} messages was cut at {}", members.len());
                    self.problem(ProblemCode::TooLong, message);
                }
                self.batch_came = Some(now);
                self.batch.extend(members.into_iter().map(|member| member.get().as_bytes().to_vec()));
            }
            Err(_) => match super::json::repair(raw.as_bytes()) {
                Some(repaired) if message::parse(&repaired).is_ok() => {
                    self.handle(now, Raw::Slice(&repaired));
                }
                _ => self.noise(raw.as_bytes()),
            },
        }
    }

    fn handle_next_of_batch(&mut self) -> Option<()> {
        let member = self.batch.pop_front()?;
        match self.batch_came {
            // A batch inside a batch is noise, which bounds the depth.
            Some(now) if !member.starts_with(b"[") => self.handle(now, Raw::Slice(&member)),
            _ => self.noise(&member),
        }
        Some(())
    }

    fn handle_answer(&mut self, now: Instant, id: &AnswerId, result: Option<Range<usize>>, raw: Raw<'_>) {
        match id {
            AnswerId::Exact(id) | AnswerId::Loose(id) => {
                if let Some(entry) = self.pending.settle(*id) {
                    let outcome = Outcome::Answered(Answer::new(raw.into_vec(), result));
                    self.outputs.push_back(Output::Settled { tag: entry.tag, outcome });
                    return;
                }
                if self.pending.take_tombstone(*id) {
                    self.counts.late_answers += 1;
                    return;
                }
            }
            AnswerId::Null => {
                let opening = matches!(self.phase, Phase::Opening { step: OpeningStep::Discover, .. });
                // An old server that could not even read the question: an answer to nothing else is due.
                if opening {
                    self.settle_opening(now, &Answer::new(raw.into_vec(), result));
                    return;
                }
                let error = Answer::new(raw.into_vec(), result).result().err();
                let said = error.map_or_else(String::new, |error| format!(": {error}"));
                let message = format!("the server says that it could not read a message of ours{said}");
                self.problem(ProblemCode::PeerCouldNotRead, message);
                return;
            }
            AnswerId::Foreign => {}
        }
        if let Some(which) = self.opening_id(id, raw.as_bytes()) {
            let answer = Answer::new(raw.into_vec(), result);
            match which {
                WhichOpening::Current => self.settle_opening(now, &answer),
                WhichOpening::GivenUp => self.opening.discovered_late(answer.result()),
            }
            return;
        }
        let message = format!("an answer to nothing that we asked: {}", excerpt(raw.as_bytes()));
        self.problem(ProblemCode::UnknownAnswer, message);
    }

    /// Whether an answer is one to an opening message.
    fn opening_id(&self, id: &AnswerId, line: &[u8]) -> Option<WhichOpening> {
        let current = match self.phase {
            Phase::Opening { step, id, .. } => Some((step, id)),
            _ => None,
        };
        match id {
            AnswerId::Exact(number) | AnswerId::Loose(number) => {
                let (step, current) = current?;
                (step == OpeningStep::Initialize && current.0 == *number).then_some(WhichOpening::Current)
            }
            AnswerId::Foreign => {
                let id = answer_id_text(line)?;
                match current {
                    Some((OpeningStep::Discover, current)) if current.as_text() == id => {
                        Some(WhichOpening::Current)
                    }
                    _ => {
                        let given_up = self.given_up_discover?;
                        (given_up.as_text() == id).then_some(WhichOpening::GivenUp)
                    }
                }
            }
            AnswerId::Null => None,
        }
    }

    fn settle_opening(&mut self, now: Instant, answer: &Answer) {
        let Phase::Opening { step, ends, .. } = self.phase else { return };
        let next = match step {
            OpeningStep::Discover => self.opening.discovered(answer.result()),
            OpeningStep::Initialize => self.opening.initialized(answer.result()),
        };
        self.open(now, ends, next);
    }

    fn handle_request(&mut self, id: PeerId, method: &str, params: Object) {
        if matches!(self.phase, Phase::Ready(Era::Modern)) {
            let message =
                format!("the server asked {method}, which it may not in this revision: not answered");
            self.problem(ProblemCode::ForbiddenRequest, message);
            return;
        }
        let declared = match method {
            "ping" => return self.reply(&id, Ok(&json!({}))),
            "roots/list" => "roots",
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            _ => "",
        };
        if !self.config.capabilities.contains_key(declared) {
            let error = RpcError::new(code::METHOD_NOT_FOUND, format!("this client does not serve {method}"));
            self.reply(&id, Err(&error));
        } else if self.asks.len() >= MAX_ASKS || self.asks.contains(&id) {
            let error =
                RpcError::new(code::INTERNAL_ERROR, "too many requests are waiting, or this id is in use");
            self.reply(&id, Err(&error));
        } else {
            self.asks.insert(id.clone());
            self.outputs.push_back(Output::Asked { id, method: method.to_owned(), params });
        }
    }

    fn handle_notification(&mut self, now: Instant, method: &str, params_json: &str) {
        let params = object_of(Some(params_json));
        let Some(id) = subscription_of(&params) else {
            return self.handle_plain_notification(now, method, params, params_json);
        };
        // Of a subscription: its id must be one of ours, and the acknowledgement comes first.
        let entry = id.and_then(|id| self.pending.get_mut(RequestId(id)).map(|entry| (RequestId(id), entry)));
        match entry {
            Some((id, entry)) if method == "notifications/subscriptions/acknowledged" => {
                entry.acknowledged = true;
                self.outputs.push_back(Output::Acknowledged { id });
            }
            Some((_, Entry { acknowledged: true, .. })) => {
                self.handle_plain_notification(now, method, params, params_json);
            }
            _ => {
                let message = format!("{method} of a subscription that is not open was left out");
                self.problem(ProblemCode::Stray, message);
            }
        }
    }

    fn handle_plain_notification(
        &mut self,
        now: Instant,
        method: &str,
        mut params: Object,
        params_json: &str,
    ) {
        match method {
            "notifications/progress" => self.handle_progress(now, &params),
            "notifications/tools/list_changed" => self.list_changed(now, ListKind::Tools),
            "notifications/resources/list_changed" => self.list_changed(now, ListKind::Resources),
            "notifications/prompts/list_changed" => self.list_changed(now, ListKind::Prompts),
            "notifications/cancelled" => self.handle_cancelled(&params),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
                let uri = uri.chars().take(super::notice::MAX_NOTICE_CHARS * 4).collect();
                self.outputs.push_back(Output::Notice(Notice::ResourceUpdated { uri }));
            }
            "notifications/message" => {
                let text =
                    |key: &str| params.get(key).and_then(Value::as_str).map(|text| excerpt(text.as_bytes()));
                let (level, logger) = (text("level").unwrap_or_else(|| "info".to_owned()), text("logger"));
                let data = params.shift_remove("data").unwrap_or(Value::Null);
                let data = bounded(params_json, data);
                self.outputs.push_back(Output::Notice(Notice::Log { level, logger, data }));
            }
            _ => {
                let method = excerpt(method.as_bytes());
                let params = bounded(params_json, Value::Object(params));
                self.outputs.push_back(Output::Notice(Notice::Notification { method, params }));
            }
        }
    }

    fn handle_progress(&mut self, now: Instant, params: &Object) {
        let token = params.get("progressToken");
        let id = token.and_then(|token| token.as_u64().or_else(|| token.as_str()?.parse().ok()));
        let value = params.get("progress").and_then(Value::as_f64);
        let reported = id.map_or(Reported::Stray, |id| self.pending.progress(now, id, value));
        match (reported, id, value) {
            (Reported::News, Some(id), Some(progress)) => {
                let message = params.get("message").and_then(Value::as_str);
                let progress = Progress {
                    progress,
                    total: params.get("total").and_then(Value::as_f64),
                    message: message.map(|message| excerpt(message.as_bytes())),
                };
                self.outputs.push_back(Output::Progress { id: RequestId(id), progress });
            }
            (Reported::NotRising, ..) => {
                self.problem(
                    ProblemCode::Stray,
                    "a progress report that does not rise was left out".to_owned(),
                );
            }
            _ => {
                let message = "a progress report for nothing that reports progress was left out";
                self.problem(ProblemCode::Stray, message.to_owned());
            }
        }
    }

    /// The server takes back a request of its own, or ends a subscription of ours.
    fn handle_cancelled(&mut self, params: &Object) {
        let Some(id) = params.get("requestId") else { return };
        if let Some(peer) = PeerId::from_json(&id.to_string())
            && self.asks.remove(&peer)
        {
            self.outputs.push_back(Output::AskCancelled { id: peer });
            return;
        }
        let Some(id) = id.as_u64().map(RequestId) else { return };
        if self.pending.get(id).is_some_and(|entry| entry.method == "subscriptions/listen")
            && let Some(entry) = self.pending.give_up(id)
        {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::Ended });
        }
    }

    fn list_changed(&mut self, now: Instant, list: ListKind) {
        if let Some(version) = self.list_versions.get_mut(list as usize) {
            *version += 1;
        }
        if let Some(due) = self.list_changes.get_mut(list as usize) {
            due.get_or_insert_with(|| after(now, LIST_CHANGE_PAUSE));
        }
    }

    fn handle_too_long(&mut self, head: &[u8], limit: usize) {
        let entry = message::answered_id(head).and_then(|(id, _)| self.pending.settle(id));
        if let Some(entry) = entry {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::TooLong { limit } });
        } else {
            let message = format!("a line of over {limit} bytes was dropped: {}", excerpt(head));
            self.problem(ProblemCode::TooLong, message);
        }
    }

    // ---- small parts ----

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

/// Parameters as an object; anything else is read as an empty one.
fn object_of(json: Option<&str>) -> Object {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The subscription that a notification belongs to: `None` if to none, `Some(None)` if its id is none of ours.
fn subscription_of(params: &Object) -> Option<Option<u64>> {
    let id = params.get("_meta")?.get("io.modelcontextprotocol/subscriptionId")?;
    Some(id.as_u64().or_else(|| id.as_str()?.parse().ok()))
}

/// The id of an answer, if it is a text.
fn answer_id_text(line: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Value,
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    head.id.as_str().map(str::to_owned)
}
