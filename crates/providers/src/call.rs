//! The driver of a call, the same for every API: request out, bytes in, events out, and the bounds on time and size.

mod body;
pub(crate) mod list;
mod read;
mod timer;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use futures_core::Stream;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelRequest, PromptSection, TimeoutPhase,
};
use haversack_agent_core::tool::ToolSpec;
use haversack_http::{
    HeaderMap, HttpError, HttpErrorKind, HttpRequest, HttpResponse, Method, ResponseBody, header,
    without_secrets,
};

use crate::api::{Api, Form};
use crate::call::read::Reading;
use crate::call::timer::Timer;
use crate::encode::{HistoryCache, Pinned};
use crate::endpoint::Endpoint;
use crate::error::{self, Answer};

/// Encoded parts that are kept between the calls of one provider.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) history: HistoryCache,
    /// Without and with a mark at the end.
    pub(crate) tools: [Pinned<[Arc<ToolSpec>]>; 2],
    pub(crate) opening: Pinned<[PromptSection]>,
}

/// Bytes of an error body that are read: enough for every JSON error, little for a proxy's page.
const MAX_ERROR_BODY: usize = 64 << 10;

/// One call. It begins when it is first polled.
pub(crate) struct Call<'a, A: Api>(State<'a, A>);

type Opening<'a, A> = Pin<Box<dyn Future<Output = Result<Reading<A>, Box<ModelError>>> + Send + 'a>>;

enum State<'a, A: Api> {
    Opening(Opening<'a, A>),
    Reading(Box<Reading<A>>),
    Over,
}

impl<'a, A: Api> Call<'a, A> {
    pub(crate) fn new(api: &'a A, endpoint: &'a Endpoint, kept: &'a Kept, request: ModelRequest) -> Self {
        Self(State::Opening(Box::pin(open(api, endpoint, kept, request))))
    }
}

impl<A: Api> Stream for Call<'_, A> {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = match &mut self.0 {
                State::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok(reading) => {
                        self.0 = State::Reading(Box::new(reading));
                        continue;
                    }
                    Err(error) => Some(Err(*error)),
                },
                State::Reading(reading) => match ready!(reading.poll_event(cx)) {
                    Some(Ok(event)) => return Poll::Ready(Some(Ok(event))),
                    Some(Err(error)) => Some(Err(*error)),
                    None => None,
                },
                State::Over => None,
            };
            // Whatever is still open closes here: the connection must not outlive the answer.
            self.0 = State::Over;
            return Poll::Ready(item);
        }
    }
}

/// Sends the request, at most twice in different forms, and waits for the head of an answer that is none of an error.
async fn open<A: Api>(
    api: &A,
    endpoint: &Endpoint,
    kept: &Kept,
    request: ModelRequest,
) -> Result<Reading<A>, Box<ModelError>> {
    let mut form = Form::default();
    let mut adapted = false;
    loop {
        let outgoing = outgoing(api, endpoint, kept, &request, form)?;
        let mut timer = Timer::new(endpoint.timeouts);
        let response = send(endpoint, outgoing, &mut timer).await?;
        if response.status.is_success() {
            let accumulator = api.accumulator(endpoint, &request);
            return Ok(Reading::new(endpoint, accumulator, A::FRAMING, response, timer));
        }
        let error = refusal(endpoint, response, timer).await;
        match api.adapt(&request, &error, form) {
            Some(other) if !adapted && other != form => (form, adapted) = (other, true),
            _ => return Err(error),
        }
    }
}

fn outgoing<A: Api>(
    api: &A,
    endpoint: &Endpoint,
    kept: &Kept,
    request: &ModelRequest,
    form: Form,
) -> Result<HttpRequest, Box<ModelError>> {
    let chunks = body::encode(api, endpoint, kept, request, form)?;
    let accept = if endpoint.streaming && A::FRAMING == crate::api::Framing::Sse {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut outgoing = head(endpoint, Method::POST, api.url(endpoint))?;
    for (name, value) in api.headers() {
        outgoing.headers.insert(name, value);
    }
    outgoing.headers.insert(header::ACCEPT, header_value(accept));
    outgoing.headers.insert(header::CONTENT_TYPE, header_value("application/json"));
    authorize(api, endpoint, &mut outgoing)?;
    outgoing.body = haversack_http::RequestBody::from_chunks(chunks);
    Ok(outgoing)
}

fn header_value(text: &'static str) -> haversack_http::HeaderValue {
    haversack_http::HeaderValue::from_static(text)
}

fn head(endpoint: &Endpoint, method: Method, url: String) -> Result<HttpRequest, Box<ModelError>> {
    if let Some(problem) = &endpoint.bad_header {
        return Err(error::invalid(format!("{}: {problem}", endpoint.provider())));
    }
    Ok(HttpRequest::new(method, url))
}

/// Puts in the key and the host's own headers, which win.
fn authorize<A: Api>(api: &A, endpoint: &Endpoint, request: &mut HttpRequest) -> Result<(), Box<ModelError>> {
    if let Some(key) = &endpoint.key {
        let (name, value) = api.authorize(key);
        let Ok(mut value) = haversack_http::HeaderValue::try_from(value) else {
            let text = format!("{}: the key has characters that a header cannot carry", endpoint.provider());
            return Err(error::invalid(text));
        };
        value.set_sensitive(true);
        request.headers.insert(name, value);
    }
    for (name, value) in &endpoint.headers {
        request.headers.insert(name.clone(), value.clone());
    }
    Ok(())
}

async fn send(
    endpoint: &Endpoint,
    request: HttpRequest,
    timer: &mut Timer,
) -> Result<HttpResponse, Box<ModelError>> {
    match timer.race(endpoint.http.send(request)).await {
        None => Err(timed_out(endpoint, TimeoutPhase::FirstByte)),
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => Err(transport(endpoint, &error)),
    }
}

fn transport(endpoint: &Endpoint, error: &HttpError) -> Box<ModelError> {
    let kind = match error.kind {
        HttpErrorKind::ConnectTimeout => ModelErrorKind::Timeout(TimeoutPhase::Connect),
        HttpErrorKind::Request => ModelErrorKind::InvalidRequest { param: None },
        _ => ModelErrorKind::Transport,
    };
    broken(endpoint, kind, error)
}

/// An HTTP client of the host's own may not say where it was going.
fn broken(endpoint: &Endpoint, kind: ModelErrorKind, error: &HttpError) -> Box<ModelError> {
    let chain = error.chain();
    let says_where = chain.contains(&without_secrets(&endpoint.base_url));
    let place = if says_where { endpoint.provider().to_owned() } else { endpoint.place() };
    let mut text = format!("{place}: {chain}");
    endpoint.redact(&mut text);
    Box::new(ModelError::new(kind, text))
}

fn timed_out(endpoint: &Endpoint, phase: TimeoutPhase) -> Box<ModelError> {
    let (place, times) = (endpoint.place(), endpoint.timeouts);
    let text = match phase {
        TimeoutPhase::Idle => format!("{place} sent nothing more for {}", error::seconds(times.idle)),
        _ => format!("{place} sent no answer within {}", error::seconds(times.first_byte)),
    };
    late(endpoint, phase, text)
}

fn too_quiet(endpoint: &Endpoint) -> Box<ModelError> {
    let quiet = error::seconds(endpoint.timeouts.quiet);
    let text = format!("{} sent signs of life for {quiet} and nothing else", endpoint.place());
    late(endpoint, TimeoutPhase::Idle, text)
}

fn late(endpoint: &Endpoint, phase: TimeoutPhase, mut text: String) -> Box<ModelError> {
    endpoint.redact(&mut text);
    Box::new(ModelError::new(ModelErrorKind::Timeout(phase), text))
}

/// The error behind a status that is none of success.
async fn refusal(endpoint: &Endpoint, response: HttpResponse, mut timer: Timer) -> Box<ModelError> {
    let (status, headers, mut body) = (response.status, response.headers, response.body);
    if status.is_redirection() {
        let place = headers
            .get(header::LOCATION)
            .and_then(|v| v.to_str().ok())
            .map_or("elsewhere".into(), without_secrets);
        let text = format!(
            "{} redirects to {place} (status {status}), which is not followed since it would carry the key there: \
             set the base address to where it should go",
            endpoint.provider()
        );
        let mut error = error::invalid(text);
        error.status = Some(status.as_u16());
        return error;
    }
    let mut bytes = Vec::new();
    // One time for all of it: it is short. A body that breaks off or stalls is still an error with a status: what came of
    // it is used.
    timer.piece(true);
    while let Some(Some(Ok(chunk))) = timer.race(next(&mut body)).await {
        let room = MAX_ERROR_BODY.saturating_sub(bytes.len());
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() >= room {
            break;
        }
    }
    let now = SystemTime::now();
    let answer = Answer { provider: endpoint.provider(), status: status.as_u16(), headers: &headers, now };
    // Before anything is cut: half a key is a leak too.
    let mut text = match packing(&headers, &bytes) {
        Some(packing) => format!("an error whose text is compressed ({packing}), which nobody asked for"),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    };
    endpoint.redact(&mut text);
    let mut error = error::from_body(answer, text.as_bytes());
    redact(endpoint, &mut error);
    error
}

/// How a body is compressed, if it says that it is and its start is no text. An HTTP client that unpacks bodies may leave
/// the header as it was.
fn packing(headers: &HeaderMap, start: &[u8]) -> Option<String> {
    let packing = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    let is_text = match std::str::from_utf8(start) {
        Ok(text) => !text.chars().any(|c| c.is_control() && !c.is_whitespace()),
        // A piece may end inside a character.
        Err(error) => error.error_len().is_none(),
    };
    (!is_text && !packing.eq_ignore_ascii_case("identity")).then(|| packing.to_owned())
}

/// Takes our secrets out of everything that a server wrote into an error.
fn redact(endpoint: &Endpoint, error: &mut ModelError) {
    endpoint.redact(&mut error.message);
    for text in [&mut error.error_type, &mut error.code, &mut error.request_id].into_iter().flatten() {
        endpoint.redact(text);
    }
    if let ModelErrorKind::InvalidRequest { param: Some(param) } = &mut error.kind {
        endpoint.redact(param);
    }
    if let Some(reply) = &mut error.reply {
        endpoint.redact(&mut reply.body);
        if let Some(message) = &mut reply.message {
            endpoint.redact(message);
        }
        if let Some(serde_json::Value::String(code)) = &mut reply.code {
            endpoint.redact(code);
        }
    }
}

async fn next(body: &mut ResponseBody) -> Option<Result<Bytes, HttpError>> {
    std::future::poll_fn(|cx| Pin::new(&mut *body).poll_next(cx)).await
}

/// The messages of a request, as encoders see them.
fn messages(request: &ModelRequest) -> &[Arc<Message>] {
    &request.messages
}
