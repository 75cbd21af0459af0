//! From what a server said to a [`ModelError`].
//!
//! Bodies come in many shapes: an object, a text or a list under `error`, a `detail`, a bare message, an HTML page
//! of a proxy. The reader takes what it finds and never fails, because a failure here would hide the failure.

mod overflow;
pub(crate) mod wording;
mod retry;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use haversack_agent_core::model::{ModelError, ModelErrorKind, ServerReply};
use haversack_http::HeaderMap;
use serde_json::{Map, Value};

use crate::error::wording::ErrorFacts;

/// How much of an error body is kept, in bytes.
pub(crate) const MAX_KEPT_BODY: usize = 8 << 10;

/// How much of a body that is no JSON becomes the message, in characters.
const MAX_PLAIN_MESSAGE: usize = 500;

/// The answer that an error was found in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// The provider's name, for messages.
    pub(crate) provider: &'a str,
    /// The status.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) headers: &'a HeaderMap,
    /// The time, for waits that are given as a date; only asked of the driver.
    pub(crate) now: SystemTime,
}

/// Reads the body of an answer whose status is an error.
pub(crate) fn from_body(answer: Answer<'_>, body: &[u8]) -> Box<ModelError> {
    let text = String::from_utf8_lossy(body);
    let value = serde_json::from_str(&text).unwrap_or_else(|_| {
        let start: String = text.trim().chars().take(MAX_PLAIN_MESSAGE).collect();
        Value::Object(Map::from_iter([("error".to_owned(), start.into())]))
    });
    build(answer, &value, &text)
}

/// Reads an error object that came inside an answer.
pub(crate) fn from_value(answer: Answer<'_>, value: &Value) -> Box<ModelError> {
    build(answer, value, &value.to_string())
}

fn build(answer: Answer<'_>, value: &Value, body: &str) -> Box<ModelError> {
    let found = Found::of(value);
    let hints = retry::hints(answer.headers, &found.details, answer.now);
    // What an upstream provider said is where the cause is.
    let told = match (&found.message, &found.upstream) {
        (Some(message), Some(upstream)) => format!("{message}: {upstream}"),
        (Some(text), None) | (None, Some(text)) => text.clone().into_owned(),
        (None, None) => String::new(),
    };
    let code = found.code.map(text_of);
    let quotas = quotas(&found.details);
    let facts = ErrorFacts {
        status: answer.status,
        error_type: found.kind,
        code: found.reason.or(code.as_deref()),
        param: found.param,
        message: &told,
        quotas: &quotas,
        retry_after: hints.wait,
    };
    let message = match &*told {
        "" => format!("{} answered with status {} and no message", answer.provider, answer.status),
        told => format!("{}: {told}", answer.provider),
    };
    let mut error = Box::new(ModelError::new(wording::kind(&facts), message));
    error.status = Some(answer.status);
    error.error_type = found.kind.map(str::to_owned);
    error.retry_after = hints.wait;
    error.retryable = hints.retryable;
    error.request_id = ["x-request-id", "request-id", "x-goog-request-id", "cf-ray"]
        .iter()
        .find_map(|name| answer.headers.get(*name)?.to_str().ok())
        .map(str::to_owned);
    let mut reply = ServerReply::new(cut(body, MAX_KEPT_BODY));
    reply.message = found.message.map(Cow::into_owned);
    reply.code = found.code.cloned();
    error.code = code.map(Cow::into_owned);
    error.reply = Some(Box::new(reply));
    error
}

/// What stands in an error body.
#[derive(Debug, Default)]
struct Found<'a> {
    message: Option<Cow<'a, str>>,
    /// `type`, or Google's `status`.
    kind: Option<&'a str>,
    code: Option<&'a Value>,
    param: Option<&'a str>,
    /// The reason in Google's `ErrorInfo`.
    reason: Option<&'a str>,
    /// What a gateway's upstream said (OpenRouter).
    upstream: Option<Cow<'a, str>>,
    details: Vec<&'a Map<String, Value>>,
}

/// The names of the quotas that Google says were used up, in its `QuotaFailure`.
fn quotas(details: &[&Map<String, Value>]) -> String {
    let failures = details.iter().filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    failures.filter_map(|failure| failure.get("quotaId")?.as_str()).collect::<Vec<_>>().join(" ")
}

impl<'a> Found<'a> {
    fn of(value: &'a Value) -> Self {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let Some(outer) = value.as_object() else {
            return Self { message: value.as_str().map(Cow::Borrowed), ..Self::default() };
        };
        match (outer.get("error"), outer.get("detail")) {
            (Some(Value::Object(error)), _) => Self::of_object(error),
            (Some(error), _) if !error.is_null() => Self { message: Some(text_of(error)), ..Self::default() },
            (_, Some(detail @ (Value::String(_) | Value::Array(_) | Value::Object(_)))) => {
                Self { message: Some(text_of(detail)), ..Self::default() }
            }
            _ => Self::of_object(outer),
        }
    }

    fn of_object(error: &'a Map<String, Value>) -> Self {
        let text = |key: &str| error.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let given = |key: &str| error.get(key).filter(|value| !value.is_null());
        let details: Vec<_> = error
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .collect();
        let metadata = error.get("metadata");
        Self {
            message: given("message").map(text_of),
            kind: text("type").or_else(|| text("status")),
            code: given("code"),
            param: text("param"),
            reason: details.iter().find_map(|detail| detail.get("reason")?.as_str()),
            upstream: metadata.and_then(|m| m.get("raw")).filter(|raw| !raw.is_null()).map(text_of),
            details,
        }
    }
}

/// A value as text: a string without its quotes, anything else as JSON.
fn text_of(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// The start of a text, at most this many bytes, cut between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// An answer that is not what the API promises.
pub(crate) fn protocol(provider: &str, what: &str) -> Box<ModelError> {
    Box::new(ModelError::new(
        ModelErrorKind::Protocol,
        format!("{provider} sent what its API does not have: {what}"),
    ))
}

/// A request that cannot be sent as it is.
pub(crate) fn invalid(message: String) -> Box<ModelError> {
    Box::new(ModelError::new(ModelErrorKind::InvalidRequest { param: None }, message))
}

/// A wait in words.
pub(crate) fn seconds(wait: Duration) -> String {
    format!("{} s", wait.as_secs_f64())
}

#[cfg(test)]
mod tests;
