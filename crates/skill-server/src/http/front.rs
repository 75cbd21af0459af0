//! What stands before the endpoint: paths, the token, caps, and bodies that are read whole before anything else.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::PATH;
use super::options::{BearerToken, HttpOptions};
use super::reply::{Body, answer, error, error_with, uniform};

/// The header that names the session of a client of an older revision.
const SESSION: &str = "mcp-session-id";
/// The header that names the revision.
const VERSION: &str = "mcp-protocol-version";
/// The first revision that has no sessions.
const WITHOUT_SESSIONS: &[u8] = b"2026-07-28";

/// What stands before the endpoint.
pub(super) struct Front<H> {
    service: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    room: Arc<Semaphore>,
    bearer: Option<BearerToken>,
    max_sessions: usize,
    max_body: usize,
    body_limit: Duration,
}

impl<H: ServerHandler + Send + 'static> Front<H> {
    pub(super) fn new(
        service: StreamableHttpService<H, LocalSessionManager>,
        sessions: Arc<LocalSessionManager>,
        options: &HttpOptions,
    ) -> Self {
        Self {
            service,
            sessions,
            room: Arc::new(Semaphore::new(options.max_requests.min(Semaphore::MAX_PERMITS))),
            bearer: options.bearer.clone(),
            max_sessions: options.max_sessions,
            max_body: options.max_body_bytes,
            body_limit: options.body_limit,
        }
    }

    /// The answer to a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/healthz" if request.method() == Method::GET => answer(StatusCode::OK, &json!({"status": "ok"})),
            "/healthz" => {
                error_with(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here", (ALLOW, "GET"))
            }
            PATH => uniform(self.speak(request).await).await,
            _ => error(StatusCode::NOT_FOUND, "there is nothing here; MCP is spoken at /mcp"),
        }
    }

    async fn speak(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.is_let_in(&request) {
            let how = (WWW_AUTHENTICATE, "Bearer");
            return error_with(StatusCode::UNAUTHORIZED, "a bearer token is needed, and not this one", how);
        }
        // A standing stream belongs to a session, and those have a cap of their own.
        let permit = if request.method() == Method::POST {
            match Arc::clone(&self.room).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => return busy("too many requests are under way"),
            }
        } else {
            None
        };
        if self.may_open_session(&request) && self.sessions.sessions.read().await.len() >= self.max_sessions {
            return busy("too many sessions are open");
        }
        let request = match self.whole(request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let readable = match json_of(&request) {
            Ok(readable) => readable,
            Err(text) => {
                let error = json!({"code": -32700, "message": text});
                return answer(
                    StatusCode::BAD_REQUEST,
                    &json!({"jsonrpc": "2.0", "id": null, "error": error}),
                );
            }
        };
        let response = self.service.handle(request).await;
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && readable.is_some() {
            // The SDK says so of JSON that is no message, too.
            return not_a_message(readable.as_ref());
        }
        response.map(|body| Held { body, _permit: permit }.boxed())
    }

    fn is_let_in(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.bearer else { return true };
        request.headers().get(AUTHORIZATION).is_some_and(|header| token.is_in(header.as_bytes()))
    }

    /// Whether a request may be one that opens a session: it names none, and no revision that has none.
    fn may_open_session(&self, request: &Request<Incoming>) -> bool {
        let version = request.headers().get(VERSION).map(|version| version.as_bytes());
        request.method() == Method::POST
            && !request.headers().contains_key(SESSION)
            && version.is_none_or(|version| version < WITHOUT_SESSIONS)
    }

    /// The request with its whole body: a slow or endless one holds nothing but itself.
    async fn whole(&self, request: Request<Incoming>) -> Result<Request<Full<Bytes>>, Response<Body>> {
        let (head, body) = request.into_parts();
        let too_large = || error(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than this server takes");
        let max = u64::try_from(self.max_body).unwrap_or(u64::MAX);
        if body.size_hint().lower() > max {
            return Err(too_large());
        }
        match tokio::time::timeout(self.body_limit, Limited::new(body, self.max_body).collect()).await {
            Ok(Ok(body)) => Ok(Request::from_parts(head, Full::new(body.to_bytes()))),
            Ok(Err(failed)) if failed.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(error(StatusCode::BAD_REQUEST, "the body broke off")),
            Err(_) => Err(error(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        }
    }
}

/// The id of a message, if it has one and can be read.
#[derive(serde::Deserialize)]
struct Readable {
    #[serde(default)]
    id: Value,
}

/// What can be read of a body that says it is JSON; an error where it is none. `None` for other bodies.
fn json_of(request: &Request<Full<Bytes>>) -> Result<Option<Readable>, String> {
    let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if request.method() != Method::POST || !kind.to_ascii_lowercase().starts_with(b"application/json") {
        return Ok(None);
    }
    // A clone of bytes is a count.
    let body = request.body().clone().collect().now_or_never();
    let bytes = match body {
        Some(Ok(body)) => body.to_bytes(),
        Some(Err(never)) => match never {},
        None => return Ok(None),
    };
    match serde_json::from_slice::<IgnoredAny>(&bytes) {
        Ok(IgnoredAny) => Ok(Some(serde_json::from_slice(&bytes).unwrap_or(Readable { id: Value::Null }))),
        Err(error) => Err(format!("the body is no JSON: {error}")),
    }
}

fn not_a_message(readable: Option<&Readable>) -> Response<Body> {
    let id = readable.map(|readable| &readable.id).filter(|id| id.is_string() || id.is_number());
    let error = json!({"code": -32600, "message": "the body is no message of MCP"});
    answer(StatusCode::BAD_REQUEST, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn busy(why: &str) -> Response<Body> {
    error_with(StatusCode::SERVICE_UNAVAILABLE, why, (RETRY_AFTER, "1"))
}

/// A body that keeps the room of its request until it was sent.
struct Held {
    body: Body,
    _permit: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
