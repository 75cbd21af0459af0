//! What is printed about one server.

use std::time::Duration;

use haversack_mcp_client::protocol::{Problem, ServerInfo};
use haversack_mcp_client::{Client, Error, Exit};
use serde_json::{Map, Value, json};

/// The report on one server, filled in as the conversation goes on.
#[derive(Debug, Default)]
pub(super) struct Report {
    opened: Option<Opened>,
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    pub(super) call: Value,
    pub(super) read: Value,
    pub(super) prompt: Value,
    problems: Vec<Value>,
    noise_lines: u64,
    exit: Value,
    elapsed: Duration,
    error: Value,
}

#[derive(Debug)]
struct Opened {
    era: &'static str,
    protocol_version: &'static str,
    server: Value,
    instructions: Option<String>,
}

impl Report {
    /// The beginning of a report on a connection.
    pub(super) fn on(info: &ServerInfo) -> Self {
        let mut server = Map::new();
        server.insert("name".into(), info.name.as_str().into());
        server.insert("version".into(), info.version.as_str().into());
        if let Some(title) = &info.title {
            server.insert("title".into(), title.as_str().into());
        }
        let opened = Opened {
            era: info.era.as_str(),
            protocol_version: info.protocol_version.as_str(),
            server: server.into(),
            instructions: info.instructions.clone(),
        };
        Self { opened: Some(opened), ..Self::default() }
    }

    /// The report on a server that no connection came about with.
    pub(super) fn not_connected(error: &Error, elapsed: Duration) -> Self {
        let mut report = Self { elapsed, ..Self::default() };
        report.fail(error);
        if let Error::Opening { ending, .. } = error {
            report.exit = ending.exit.map_or(Value::Null, exit);
        }
        report
    }

    /// The report on a server that the manager could not start.
    pub(super) fn not_started(reason: &str, elapsed: Duration) -> Self {
        let error = json!({"kind": "not_started", "message": reason, "stderr_tail": ""});
        Self { elapsed, error, ..Self::default() }
    }

    /// Notes an error; the first one counts, what follows most often follows from it.
    pub(super) fn fail(&mut self, error: &Error) {
        let message = with_sources(error);
        if self.error.is_null() {
            let tail = error.stderr_tail().unwrap_or_default();
            self.error = json!({"kind": error.kind(), "message": message, "stderr_tail": tail});
        } else {
            self.problem(error.kind(), &message);
        }
    }

    /// Notes what was odd.
    pub(super) fn problem(&mut self, code: &str, message: &str) {
        self.problems.push(json!({"code": code, "message": message}));
    }

    /// Notes what the client found odd.
    pub(super) fn problems(&mut self, problems: &[Problem]) {
        for problem in problems {
            self.problem(problem.code.as_str(), &problem.message);
        }
    }

    /// Closes the report once the connection is closed.
    pub(super) fn end(&mut self, client: &Client, ended: Exit, elapsed: Duration) {
        self.noise_lines = client.counts().noise;
        self.exit = exit(ended);
        self.elapsed = elapsed;
        if let Some(tail @ Value::String(_)) = self.error.get_mut("stderr_tail")
            && tail == ""
        {
            *tail = client.stderr_tail().into();
        }
    }

    pub(super) fn into_json(self) -> Value {
        let (era, version, server, instructions) = match self.opened {
            Some(opened) => {
                (opened.era.into(), opened.protocol_version.into(), opened.server, opened.instructions.into())
            }
            None => (Value::Null, Value::Null, Value::Null, Value::Null),
        };
        json!({
            "ok": self.error.is_null(),
            "era": era,
            "protocol_version": version,
            "server": server,
            "instructions": instructions,
            "tools": self.tools,
            "resources": self.resources,
            "prompts": self.prompts,
            "call": self.call,
            "read": self.read,
            "prompt": self.prompt,
            "problems": self.problems,
            "noise_lines": self.noise_lines,
            "exit": self.exit,
            "elapsed_ms": u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            "error": self.error,
        })
    }
}

/// How a process ended: a signal is a negative status, as many tools show it.
fn exit(exit: Exit) -> Value {
    let status = exit.status.and_then(|status| status.code.or_else(|| status.signal.map(|signal| -signal)));
    json!({"how": exit.how.as_str(), "status": status})
}

fn with_sources(error: &Error) -> String {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}
