//! The server's side of a connection as a value, for tests: the mirror of the client machine.
//!
//! It opens connections in both eras, checks what modern requests must carry, and leaves every other request to
//! whoever drives it.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::json::Object;
use super::message::{self, Incoming, PeerId, RpcError, code};
use super::outgoing::{self, Id};
use super::revision::{Era, Revision};

/// What a [`ServerMachine`] has to say.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerOutput {
    /// A request that the driver answers with [`ServerMachine::answer`].
    Request {
        /// The client's id.
        id: PeerId,
        /// What is asked.
        method: String,
        /// The parameters, metadata included.
        params: Object,
    },
    /// A notification of the client's.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Object,
    },
    /// The client does not want a request answered any more.
    Cancelled {
        /// The client's id.
        id: PeerId,
    },
    /// The client's answer to what was asked with [`ServerMachine::ask`].
    Answered {
        /// The id that `ask` gave.
        id: u64,
        /// The answer.
        answer: Result<Value, RpcError>,
    },
    /// A line that is no message.
    Noise(Vec<u8>),
}

/// The server's side of one MCP connection, apart from all input and output.
#[derive(Debug)]
pub struct ServerMachine {
    revisions: Vec<Revision>,
    capabilities: Value,
    era: Option<Era>,
    open: BTreeSet<PeerId>,
    last_ask: u64,
    outgoing: Vec<u8>,
    outputs: VecDeque<ServerOutput>,
}

impl ServerMachine {
    /// A server that speaks these revisions and declares these capabilities.
    pub fn new(revisions: impl Into<Vec<Revision>>, capabilities: Value) -> Self {
        Self {
            revisions: revisions.into(),
            capabilities,
            era: None,
            open: BTreeSet::new(),
            last_ask: 0,
            outgoing: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The bytes that wait to be sent.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<ServerOutput> {
        self.outputs.pop_front()
    }

    /// The family of revisions that the client opened in, once it has.
    pub fn era(&self) -> Option<Era> {
        self.era
    }

    /// Takes a line.
    pub fn handle_line(&mut self, line: &[u8]) {
        let noise = || ServerOutput::Noise(line.to_vec());
        match message::parse(line) {
            Ok(Incoming::Call { id: Some(id), method, params }) => {
                let params = object_of(params.map(|params| params.get()));
                self.handle_request(id, &method, params);
            }
            Ok(Incoming::Call { id: None, method, params }) => {
                let params = object_of(params.map(|params| params.get()));
                let cancelled = params.get("requestId").and_then(|id| PeerId::from_json(&id.to_string()));
                self.outputs.push_back(match cancelled {
                    Some(id) if method == "notifications/cancelled" => {
                        self.open.remove(&id);
                        ServerOutput::Cancelled { id }
                    }
                    _ => ServerOutput::Notification { method: method.into_owned(), params },
                });
            }
            Ok(Incoming::Answer { .. }) => {
                let mut answer = object_of(std::str::from_utf8(line).ok());
                let output = match (answer.get("id").and_then(Value::as_u64), answer.shift_remove("error")) {
                    (Some(id), Some(error)) => {
                        ServerOutput::Answered { id, answer: Err(RpcError::from_value(error)) }
                    }
                    (Some(id), None) => {
                        let result = answer.shift_remove("result").unwrap_or(Value::Null);
                        ServerOutput::Answered { id, answer: Ok(result) }
                    }
                    (None, _) => noise(),
                };
                self.outputs.push_back(output);
            }
            Ok(Incoming::Batch { .. }) | Err(_) => self.outputs.push_back(noise()),
        }
    }

    /// Answers a request, unless it was cancelled or answered before.
    pub fn answer(&mut self, id: &PeerId, result: Result<Value, RpcError>) {
        if self.open.remove(id) {
            self.reply(id, result);
        }
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        outgoing::notification(&mut self.outgoing, method, Some(params));
    }

    /// Asks the client something, as only legacy servers may.
    pub fn ask(&mut self, method: &str, params: &Object) -> u64 {
        self.last_ask += 1;
        // Values can always be written.
        let _ = outgoing::request(&mut self.outgoing, Id::Number(self.last_ask), method, "", None, params);
        self.last_ask
    }

    /// Sends bytes as they are, for tests of what must not be sent.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    fn handle_request(&mut self, id: PeerId, method: &str, params: Object) {
        let metadata = params.get("_meta").and_then(Value::as_object);
        let version = metadata.and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
        let version = version.and_then(Value::as_str).map(str::to_owned);
        match (method, version) {
            ("initialize", _) => self.initialize(&id, &params),
            (_, Some(version)) => self.handle_modern(id, method, &version, params),
            ("ping", None) => self.reply(&id, Ok(json!({}))),
            (_, None) if self.era == Some(Era::Legacy) => self.request(id, method, params),
            (_, None) => self.reply(&id, Err(RpcError::new(code::INVALID_PARAMS, "nothing was opened"))),
        }
    }

    fn initialize(&mut self, id: &PeerId, params: &Object) {
        let asked = params.get("protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
        let legacy = |revision: &Revision| revision.era() == Era::Legacy;
        let known = asked.filter(|asked| legacy(asked) && self.revisions.contains(asked));
        let Some(revision) = known.or_else(|| self.revisions.iter().copied().filter(legacy).max()) else {
            return self.reply(id, Err(self.unsupported("initialize")));
        };
        self.era = Some(Era::Legacy);
        let result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.capabilities,
            "serverInfo": {"name": "server machine", "version": "1"},
        });
        self.reply(id, Ok(result));
    }

    fn handle_modern(&mut self, id: PeerId, method: &str, version: &str, params: Object) {
        let spoken = Revision::parse(version).filter(|revision| self.revisions.contains(revision));
        if spoken.is_none_or(|revision| revision.era() == Era::Legacy) {
            let modern = self.revisions.iter().any(|revision| revision.era() == Era::Modern);
            let unknown = RpcError::new(code::METHOD_NOT_FOUND, "method not found");
            let error = if modern { self.unsupported(version) } else { unknown };
            return self.reply(&id, Err(error));
        }
        self.era = Some(Era::Modern);
        if method == "server/discover" {
            let versions: Vec<&str> = self.revisions.iter().map(|revision| revision.as_str()).collect();
            let result = json!({"supportedVersions": versions, "capabilities": self.capabilities});
            return self.reply(&id, Ok(result));
        }
        self.request(id, method, params);
    }

    fn request(&mut self, id: PeerId, method: &str, params: Object) {
        self.open.insert(id.clone());
        self.outputs.push_back(ServerOutput::Request { id, method: method.to_owned(), params });
    }

    fn unsupported(&self, asked: &str) -> RpcError {
        let supported: Vec<&str> = self.revisions.iter().map(|revision| revision.as_str()).collect();
        let error = RpcError::new(code::UNSUPPORTED_VERSION, "unsupported protocol version");
        error.with_data(json!({"supported": supported, "requested": asked}))
    }

    fn reply(&mut self, id: &PeerId, mut result: Result<Value, RpcError>) {
        if let (Some(Era::Modern), Ok(Value::Object(result))) = (self.era, &mut result) {
            result.entry("resultType").or_insert_with(|| "complete".into());
        }
        outgoing::answer(&mut self.outgoing, id.as_json(), result.as_ref());
    }
}

fn object_of(json: Option<&str>) -> Object {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}
