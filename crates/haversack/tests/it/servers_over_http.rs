//! Servers with a `url`, through a web in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use haversack::http::{
    Bytes, HttpClient, HttpError, HttpRequest, HttpResponse, Method, Secret, StatusCode, header,
};
use haversack::mcp::http::HttpAccess;
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::project::Project;

pub(crate) const URL: &str = "https://docs.example/mcp";

/// One legacy server with one tool, wherever it is asked; it remembers where, and with which token.
#[derive(Clone, Default)]
pub(crate) struct Web(Arc<Mutex<Vec<Seen>>>, Arc<Mutex<Skills>>);

/// The text of the server's one skill, and how often a file of it was read.
#[derive(Default)]
struct Skills {
    text: Option<String>,
    reads: usize,
}

impl Web {
    /// Has the server offer a skill with this body.
    pub(crate) fn serve_skill(&self, body: &str) {
        let text = format!("---\nname: pdf\ndescription: Reads forms.\n---\n{body}\n");
        self.1.lock().unwrap().text = Some(text);
    }

    pub(crate) fn reads(&self) -> usize {
        self.1.lock().unwrap().reads
    }

    fn result(&self, method: &str) -> Value {
        let mut skills = self.1.lock().unwrap();
        match (method, &skills.text) {
            ("initialize", None) => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"}}),
            ("initialize", Some(_)) => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {},
                "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}},
                "serverInfo": {"name": "web", "version": "1"}}),
            ("tools/list", _) => {
                json!({"tools": [{"name": "look_up", "inputSchema": {"type": "object"}}]})
            }
            ("skills/list", Some(text)) => {
                let digest: String = sha2::Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect();
                let file = json!({"uri": SKILL, "digest": format!("sha256:{digest}"), "size": text.len()});
                let frontmatter = json!({"name": "pdf", "description": "Reads forms."});
                json!({"skills": [{"uri": SKILL, "frontmatter": frontmatter, "resources": [file]}]})
            }
            ("resources/read", Some(text)) => {
                let result = json!({"contents": [{"uri": SKILL, "text": text}]});
                skills.reads += 1;
                result
            }
            _ => Value::Null,
        }
    }
}

const SKILL: &str = "skill://docs/pdf/SKILL.md";

/// An address and a token.
type Seen = (String, Option<String>);

#[async_trait]
impl HttpClient for Web {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let token = request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        self.0.lock().unwrap().push((request.url, token));
        if request.method != Method::POST {
            return Ok(HttpResponse::new(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()));
        }
        let body: Vec<_> = request.body.map(|piece| piece.unwrap()).collect().await;
        let message: Value = serde_json::from_slice(&body.concat()).unwrap();
        let Some(id) = message.get("id") else {
            return Ok(HttpResponse::new(StatusCode::ACCEPTED, Bytes::new()));
        };
        let result = self.result(message.get("method").and_then(Value::as_str).unwrap_or_default());
        let answer = match result {
            Value::Null => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})
            }
            result => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        };
        Ok(HttpResponse::new(StatusCode::OK, answer.to_string())
            .with_header(header::CONTENT_TYPE, "application/json".parse().unwrap()))
    }
}

fn tools(equipped: &haversack::Equipped) -> Vec<&str> {
    equipped.report().tools.iter().map(|name| &**name).collect()
}

#[tokio::test]
async fn a_repository_server_over_http_is_asked_about_by_its_address_and_reached_after_a_yes() {
    let project = Project::new();
    let entry = json!({"mcpServers": {"docs": {"url": URL, "headers": {"X-Key": "s3cret"}}}});
    project.write(".mcp.json", &entry.to_string());
    let web = Web::default();
    let access = || HttpAccess::new(Arc::new(web.clone())).with_bearer_token(URL, Secret::new("t0ken"));

    let refused = project.builder(Some(false)).mcp_over_http(access()).build().unwrap();
    let equipped = refused.prepare().await.unwrap();
    assert_eq!(equipped.report().servers[0].short, "not approved");
    assert!(web.0.lock().unwrap().is_empty(), "nothing is sent without a yes");
    let question = &project.asked()[0];
    assert!(question.text.contains(URL) && question.text.contains("X-Key"), "{}", question.text);
    assert!(!question.text.contains("s3cret"), "{}", question.text);

    let allowed = project.builder(Some(true)).mcp_over_http(access()).build().unwrap();
    let equipped = allowed.prepare().await.unwrap();
    assert_eq!(tools(&equipped), ["mcp__docs__look_up"]);
    assert!(equipped.report().servers[0].is_ready);
    let seen = web.0.lock().unwrap().clone();
    assert!(
        seen.iter().all(|(url, token)| url == URL && token.as_deref() == Some("Bearer t0ken")),
        "{seen:?}"
    );
    allowed.close().await;
}

#[tokio::test]
async fn a_host_server_over_http_needs_no_consent() {
    let project = Project::new();
    let builder = project.builder(None).servers(json!({"docs": {"type": "http", "url": URL}}));
    let haversack = builder.mcp_over_http(HttpAccess::new(Arc::new(Web::default()))).build().unwrap();
    assert_eq!(tools(&haversack.prepare().await.unwrap()), ["mcp__docs__look_up"]);
    assert!(project.asked().is_empty());
    haversack.close().await;
}

#[tokio::test]
async fn without_http_such_servers_are_reported_and_nobody_is_asked() {
    let project = Project::new();
    project.write(".mcp.json", &json!({"mcpServers": {"docs": {"url": URL}}}).to_string());
    let equipped = project.builder(Some(true)).build().unwrap().prepare().await.unwrap();
    assert!(project.asked().is_empty());
    assert_eq!(equipped.report().servers[0].short, "not supported");
    assert!(equipped.report().notes.iter().any(|note| note.message.contains("over HTTP")));
}
