//! Answers that are made here, and the form of errors: always JSON, never more than a sentence.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// Bytes of an error's text that is passed on.
const MAX_TEXT: usize = 1024;

/// A short answer in JSON.
pub(super) fn answer(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error, in the form of JSON-RPC.
pub(super) fn error(status: StatusCode, message: &str) -> Response<Body> {
    answer(status, &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": message}}))
}

/// The same with one more header.
pub(super) fn error_with(
    status: StatusCode,
    message: &str,
    (name, value): (HeaderName, &'static str),
) -> Response<Body> {
    let mut response = error(status, message);
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

/// Errors of the SDK that are plain text, in the form of ours; everything else as it is.
pub(super) async fn uniform(response: Response<Body>) -> Response<Body> {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    if !is_error || kind.starts_with(b"application/json") || kind.starts_with(b"text/event-stream") {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let text = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let text = String::from_utf8_lossy(text.get(..MAX_TEXT).unwrap_or(&text)).into_owned();
    let made = error(head.status, text.trim());
    head.headers.remove(http::header::CONTENT_LENGTH);
    head.headers.extend(made.headers().clone());
    Response::from_parts(head, made.into_body())
}
