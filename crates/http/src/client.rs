//! The seam to HTTP: one method.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::body::{RequestBody, ResponseBody};
use crate::error::{HttpError, HttpErrorKind};

/// Something that can send an HTTP request.
///
/// # Contract
///
/// - [`send`](Self::send) returns when the head of the answer is here; the body streams. Every status is an
///   answer, not an error.
/// - **Redirects are not followed**: they would carry keys to wherever they point.
/// - Nothing is retried that may have reached the server, nothing is decompressed unasked, and there is no time-out
///   over the whole answer: callers bound their own waiting, since a stream may rightly last for minutes.
/// - Dropping the future, or the body, closes the connection or gives it back to a pool only once it is clean.
/// - Many calls run at the same time.
#[async_trait]
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// When there is no answer: see [`HttpErrorKind`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the request up. The server may have received it.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError>;
}

#[async_trait]
impl<C: HttpClient + ?Sized> HttpClient for Arc<C> {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        (**self).send(request).await
    }
}

/// A request.
///
/// `Debug` shows the method, the address without its query, and the *names* of the headers: values and bodies may
/// hold keys.
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The absolute address, `http://` or `https://`.
    pub url: String,
    /// The headers. `Host` and `Content-Length` are set by the client.
    pub headers: HeaderMap,
    /// The body.
    pub body: RequestBody,
}

impl HttpRequest {
    /// A request without headers and body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: HeaderMap::new(), body: RequestBody::empty() }
    }

    /// Adds a header whose name and value are known to be legal.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Adds a header from text.
    ///
    /// # Errors
    ///
    /// When the name or the value has characters that a header cannot carry. The error names the header and
    /// never its value.
    pub fn try_with_header(self, name: &str, value: &str) -> Result<Self, HttpError> {
        let bad = |what| {
            HttpError::new(HttpErrorKind::Request, format!("the {what} of header {name:?} is not legal"))
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
        let value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
        Ok(self.with_header(key, value))
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<RequestBody>) -> Self {
        self.body = body.into();
        self
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &without_secrets(&self.url))
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("body", &self.body)
            .finish()
    }
}

/// An address without what may be a key in it: user and password, query and fragment. For messages and logs.
pub fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = url.get(..end).unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.find('/').and_then(|at| rest.split_at_checked(at)).unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The answer to a request: its head, and a body that may still be on its way.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: ResponseBody,
}

impl HttpResponse {
    /// An answer without headers.
    pub fn new(status: StatusCode, body: impl Into<ResponseBody>) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.into() }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets all headers.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// The value of a header as text, where there is one.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

const _: () = {
    const fn sendable<T: Send>() {}
    const fn shareable<T: Send + Sync + ?Sized>() {}
    sendable::<HttpRequest>();
    sendable::<HttpResponse>();
    shareable::<dyn HttpClient>();
    shareable::<HttpError>();
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_of_a_request_hides_header_values_queries_and_users() {
        let request = HttpRequest::new(Method::POST, "https://me:pw@example.org:8/a/b?key=k#f")
            .try_with_header("authorization", "Bearer k3y")
            .unwrap();
        let text = format!("{request:?}");
        assert!(text.contains("https://example.org:8/a/b") && text.contains("authorization"), "{text}");
        for secret in ["pw", "key=", "k3y", "#f"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_an_error_that_names_it_without_its_value() {
        let error =
            HttpRequest::new(Method::GET, "http://x").try_with_header("x-key", "a\nsecret").unwrap_err();
        assert_eq!(error.kind, HttpErrorKind::Request);
        assert!(error.message.contains("x-key") && !format!("{error:?}").contains("secret"), "{error:?}");
    }
}
