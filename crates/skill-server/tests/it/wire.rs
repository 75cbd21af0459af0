//! A client that is nothing but lines of JSON, and folders of skills to serve.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use haversack_skill_server::{Host, SkillServer};
use haversack_skills::{LinkPolicy, Root, Roots, Source};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// Longer than anything here takes, so that a hang is a failure and not a wait for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of skills: pairs of a name and the text of its `SKILL.md`.
pub(crate) fn folder(skills: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in skills {
        write(folder.path(), name, text);
    }
    folder
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder.join(name)).unwrap();
    std::fs::write(folder.join(name).join("SKILL.md"), text).unwrap();
}

/// A server of that folder.
pub(crate) fn serve(folder: &Path, host: Host) -> SkillServer {
    let root = Root::new(folder, Source::Host, "skills").with_links(LinkPolicy::Inside);
    SkillServer::new(&Roots::new().with_root(root), host).unwrap()
}

/// A client on a pipe in memory.
pub(crate) struct Wire {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    next_id: u64,
    modern: Option<Value>,
    /// Notifications and requests of the server that came while an answer was waited for.
    pub(crate) seen: VecDeque<Value>,
}

impl Wire {
    /// Connects, without any word yet.
    pub(crate) fn connect(server: &SkillServer) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let handler = server.handler();
        tokio::spawn(async move {
            let service = handler.serve(far).await.unwrap();
            let _ = service.waiting().await;
        });
        let (reader, writer) = tokio::io::split(near);
        Self { reader: BufReader::new(reader), writer, next_id: 1, modern: None, seen: VecDeque::new() }
    }

    /// A client of the older revisions, with these capabilities.
    pub(crate) async fn legacy(server: &SkillServer, capabilities: Value) -> Self {
        let mut wire = Self::connect(server);
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "wire", "version": "1"},
        });
        wire.request("initialize", about).await;
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        // An answer comes after the notification was taken, on this ordered wire.
        wire.request("ping", json!({})).await;
        wire
    }

    /// A client of the revision without sessions, with these capabilities.
    pub(crate) fn modern(server: &SkillServer, capabilities: &Value) -> Self {
        let mut wire = Self::connect(server);
        wire.modern = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        wire
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    /// The next line of the server.
    pub(crate) async fn read(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.reader.read_line(&mut line)).await;
        assert!(read.expect("the server says something").unwrap() > 0, "the server hung up");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request; its id.
    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let Some(meta) = &self.modern {
            let kept = params["_meta"].as_object().cloned().unwrap_or_default();
            params["_meta"] = meta.clone();
            params["_meta"].as_object_mut().unwrap().extend(kept);
        }
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The answer to a request; what comes before it is kept in [`seen`](Self::seen).
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            if message["id"] == json!(id) && message.get("method").is_none() {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    /// Sends a request and waits for its whole answer.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// The result of a call of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }
}

/// The text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
