//! A small web in memory: addresses, and the MCP servers that answer there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_core::Stream;
use haversack_http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, Method, StatusCode, header,
};
use serde_json::{Value, json};

/// What a server answers: the method and its parameters in, a result or nothing (an unknown method) out.
pub(crate) type Answer = Arc<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) url: String,
    pub(crate) verb: Method,
    pub(crate) method: String,
    pub(crate) headers: BTreeMap<String, String>,
}

#[derive(Clone, Default)]
pub(crate) struct Web(Arc<Inner>);

#[derive(Default)]
struct Inner {
    servers: Mutex<BTreeMap<String, Answer>>,
    seen: Mutex<Vec<Seen>>,
}

impl Web {
    /// Puts a legacy server with one tool, `echo`, at an address.
    pub(crate) fn with_echo(self, url: &str) -> Self {
        self.with_server(url, |method, params| match method {
            "tools/list" => Some(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
            "tools/call" => {
                let text = params["arguments"]["text"].as_str().unwrap_or_default();
                Some(json!({"content": [{"type": "text", "text": text}]}))
            }
            _ => None,
        })
    }

    /// Puts a legacy server at an address.
    pub(crate) fn with_server(
        self,
        url: &str,
        answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.0.servers.lock().unwrap().insert(url.to_owned(), Arc::new(answer));
        self
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().unwrap().clone()
    }

    /// The methods that were called at an address, in order.
    pub(crate) fn methods(&self, url: &str) -> Vec<String> {
        self.seen().into_iter().filter(|seen| seen.url == url).map(|seen| seen.method).collect()
    }
}

#[async_trait]
impl HttpClient for Web {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut body = request.body;
        let mut bytes = Vec::new();
        while let Some(piece) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_next(cx)).await {
            bytes.extend_from_slice(&piece?);
        }
        let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let headers = request.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let seen = Seen { url: request.url, verb: request.method, method, headers: headers.collect() };
        self.0.seen.lock().unwrap().push(seen.clone());
        let Some(answer) = self.0.servers.lock().unwrap().get(&seen.url).cloned() else {
            return Err(HttpError::new(HttpErrorKind::Connect, "nobody is there"));
        };
        if seen.verb != Method::POST {
            return Ok(HttpResponse::new(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()));
        }
        let Some(id) = message.get("id") else {
            return Ok(HttpResponse::new(StatusCode::ACCEPTED, Bytes::new()));
        };
        let result = answer(&seen.method, &message["params"]).or_else(|| {
            (seen.method == "initialize").then(|| {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "web", "version": "1"}})
            })
        });
        if let Some(status) = result.as_ref().and_then(|result| result["status"].as_u64()) {
            let status = StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap();
            return Ok(HttpResponse::new(status, Bytes::new()));
        }
        let message = match result {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}),
        };
        Ok(HttpResponse::new(StatusCode::OK, message.to_string())
            .with_header(header::CONTENT_TYPE, "application/json".parse().unwrap()))
    }
}
