//! What the server answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRef, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::web_host::desk::{Decision, Desk};
use crate::web_host::guard::{Guard, guard, may_see, random};

/// The page. Its script writes texts as texts, never as HTML.
const PAGE: &str = include_str!("page.html");
/// Bytes of a request.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Pages that listen at the same time.
const MAX_LISTENERS: usize = 16;
/// How often a silent stream says that it lives, so that a connection that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the routes share.
#[derive(Clone)]
pub struct Shared {
    /// The desk.
    pub desk: Arc<Desk>,
    /// The locks.
    pub guard: Arc<Guard>,
    listeners: Arc<Semaphore>,
}

impl Shared {
    /// A desk behind locks.
    pub fn new(desk: Arc<Desk>, guard: Arc<Guard>) -> Self {
        Self { desk, guard, listeners: Arc::new(Semaphore::new(MAX_LISTENERS)) }
    }
}

impl FromRef<Shared> for Arc<Desk> {
    fn from_ref(shared: &Shared) -> Self {
        Self::clone(&shared.desk)
    }
}

/// All routes.
pub fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/events", get(events))
        .route("/message", post(message))
        .route("/decide", post(decide))
        .route("/consent", post(consent))
        .route("/cancel", post(cancel))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(Arc::clone(&shared.guard), guard))
        .with_state(shared)
}

#[derive(Deserialize)]
struct Opening {
    token: Option<String>,
}

/// The page; with the token in its address, first the cookie, so that the token stays out of the history.
async fn page(State(shared): State<Shared>, headers: HeaderMap, Query(opening): Query<Opening>) -> Response {
    if opening.token.as_deref().is_some_and(|token| shared.guard.is_token(token)) {
        return ([(header::SET_COOKIE, shared.guard.cookie())], Redirect::to("/")).into_response();
    }
    if !may_see(&shared.guard, &headers) {
        return (StatusCode::FORBIDDEN, "open the address with the token first").into_response();
    }
    let Ok(nonce) = random() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(PAGE.replace("NONCE", &nonce))).into_response()
}

/// Everything that happened and happens. A browser that lost its connection says which line it had last.
async fn events(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let Ok(place) = Arc::clone(&shared.listeners).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open").into_response();
    };
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let first = last.map_or(0, |last| last.saturating_add(1));
    Sse::new(lines(shared.desk, first, place))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

fn lines(
    desk: Arc<Desk>,
    first: u64,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((desk, first, place), |(desk, number, place)| async move {
        let (number, line) = desk.log.read(number).await;
        Some((Ok(Event::default().id(number.to_string()).data(line)), (desk, number + 1, place)))
    })
}

#[derive(Deserialize)]
struct Written {
    text: String,
}

async fn message(State(desk): State<Arc<Desk>>, Json(written): Json<Written>) -> Response {
    if written.text.trim().is_empty() {
        return (StatusCode::BAD_REQUEST, "the message is empty").into_response();
    }
    match desk.message(written.text) {
        true => StatusCode::ACCEPTED.into_response(),
        false => (StatusCode::TOO_MANY_REQUESTS, "too many messages wait").into_response(),
    }
}

#[derive(Deserialize)]
struct Decided {
    digest: String,
    verdict: String,
    #[serde(default)]
    reason: String,
}

async fn decide(State(desk): State<Arc<Desk>>, Json(decided): Json<Decided>) -> Response {
    let decision = match decided.verdict.as_str() {
        "allow" => Decision::Allow,
        "always" => Decision::Always,
        "deny" => Decision::Deny(decided.reason),
        _ => return (StatusCode::BAD_REQUEST, "allow, always or deny").into_response(),
    };
    settled(desk.decide(&decided.digest, decision))
}

#[derive(Deserialize)]
struct Agreed {
    id: u64,
    yes: bool,
}

async fn consent(State(desk): State<Arc<Desk>>, Json(agreed): Json<Agreed>) -> Response {
    settled(desk.answer(agreed.id, agreed.yes))
}

fn settled(counted: bool) -> Response {
    match counted {
        true => StatusCode::NO_CONTENT.into_response(),
        // Another page was faster, or the run has ended.
        false => (StatusCode::GONE, "this question is closed").into_response(),
    }
}

async fn cancel(State(desk): State<Arc<Desk>>) -> StatusCode {
    desk.cancel();
    StatusCode::NO_CONTENT
}
