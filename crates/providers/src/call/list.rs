//! Questions beside the calls: what models a server has, page by page.

use haversack_agent_core::model::{ModelError, ModelErrorKind, TimeoutPhase};
use haversack_http::{HttpResponse, Method, header};
use serde_json::Value;

use crate::api::Api;
use crate::call::timer::Timer;
use crate::call::{authorize, broken, head, header_value, next, refusal, send, timed_out, too_quiet};
use crate::endpoint::Endpoint;
use crate::error;
use crate::listing::ListedModel;

/// Pages that are asked for: the longest list of today fits into one or two.
const MAX_PAGES: usize = 20;

/// Models that are taken: the largest gateways have some thousands.
const MAX_MODELS: usize = 20_000;

/// All models, in the server's order.
pub(crate) async fn models<A: Api>(
    api: &A,
    endpoint: &Endpoint,
) -> Result<Vec<ListedModel>, Box<ModelError>> {
    let mut models = Vec::new();
    let mut from = None;
    for _ in 0..MAX_PAGES {
        let body = ask(api, endpoint, api.list_url(endpoint, from.as_deref()), None).await?;
        let page = api.list_page(&body);
        models.extend(page.models);
        models.truncate(MAX_MODELS);
        match page.next {
            // The same page again would never end.
            Some(next) if models.len() < MAX_MODELS && from.as_ref() != Some(&next) => from = Some(next),
            _ => break,
        }
    }
    Ok(models)
}

/// A question beside the calls, answered with JSON: a GET, or a POST when there is something to say.
pub(crate) async fn ask<A: Api>(
    api: &A,
    endpoint: &Endpoint,
    url: String,
    question: Option<&Value>,
) -> Result<Value, Box<ModelError>> {
    let method = if question.is_some() { Method::POST } else { Method::GET };
    let mut request = head(endpoint, method, url)?;
    if let Some(question) = question {
        request.headers.insert(header::CONTENT_TYPE, header_value("application/json"));
        request.body = question.to_string().into();
    }
    for (name, value) in api.headers() {
        request.headers.insert(name, value);
    }
    authorize(api, endpoint, &mut request)?;
    let mut timer = Timer::new(endpoint.timeouts);
    let response = send(endpoint, request, &mut timer).await?;
    if !response.status.is_success() {
        return Err(refusal(endpoint, response, timer).await);
    }
    let body = whole(endpoint, response, timer).await?;
    let body = body.trim_ascii();
    serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
        .map_err(|e| error::protocol(endpoint.provider(), &format!("an answer that is no JSON ({e})")))
}

/// The whole body of an answer.
async fn whole(
    endpoint: &Endpoint,
    mut response: HttpResponse,
    mut timer: Timer,
) -> Result<Vec<u8>, Box<ModelError>> {
    let provider = endpoint.provider();
    let limit = endpoint.limits.max_body_bytes;
    let mut body = Vec::new();
    loop {
        timer.piece(false);
        if timer.was_too_quiet() {
            return Err(too_quiet(endpoint));
        }
        match timer.race(next(&mut response.body)).await {
            Some(None) => return Ok(body),
            Some(Some(Ok(chunk))) if body.len().saturating_add(chunk.len()) <= limit => {
                body.extend_from_slice(&chunk);
            }
            Some(Some(Ok(_))) => {
                return Err(error::protocol(provider, &format!("an answer of more than {limit} bytes")));
            }
            Some(Some(Err(error))) => return Err(broken(endpoint, ModelErrorKind::Interrupted, &error)),
            None if timer.is_too_quiet() => return Err(too_quiet(endpoint)),
            None => return Err(timed_out(endpoint, TimeoutPhase::Idle)),
        }
    }
}
