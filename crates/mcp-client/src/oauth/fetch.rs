//! One request, one whole small answer: bounded in size and time, redirects refused.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream as _;
use haversack_http::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, Method, StatusCode, header,
};
use oauth2::url::Url;
use serde::de::DeserializeOwned;

use crate::oauth::address::shown;
use crate::oauth::error::OAuthError;
use crate::visible::short;

/// The most bytes of an answer: metadata, registrations and tokens are a few KiB.
const MAX_BYTES: usize = 256 << 10;

/// Asks the servers that have a part in authorization.
#[derive(Clone)]
pub(super) struct Fetch {
    pub(super) http: Arc<dyn HttpClient>,
    pub(super) timeout: Duration,
}

/// An answer that is here whole.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: header::HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Fetch {
    /// A document, or none where there is none: any status from 400 to 499 says so.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Option<T>, OAuthError> {
        let request = HttpRequest::new(Method::GET, url.as_str())
            .with_header(header::ACCEPT, header::HeaderValue::from_static("application/json"));
        let answer = self.send(what, request).await?;
        if answer.status.is_client_error() {
            return Ok(None);
        }
        let unusable = |reason: String| OAuthError::Answer { what, url: shown(url.as_str()), reason };
        if answer.status != StatusCode::OK {
            return Err(unusable(format!("status {}", answer.status)));
        }
        serde_json::from_slice(&answer.body)
            .map(Some)
            .map_err(|error| unusable(short(&error.to_string(), 200)))
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// Cancel safe: dropping it gives the request up.
    pub(super) async fn send(&self, what: &'static str, request: HttpRequest) -> Result<Answer, OAuthError> {
        let url = shown(&request.url);
        let failed = |source| OAuthError::Http { what, url: url.clone(), source };
        let whole = async {
            let HttpResponse { status, headers, body, .. } = self.http.send(request).await.map_err(failed)?;
            let mut body = body;
            let mut bytes = Vec::new();
            while let Some(chunk) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
                bytes.extend_from_slice(&chunk.map_err(failed)?);
                if bytes.len() > MAX_BYTES {
                    let reason = format!("it is longer than {MAX_BYTES} bytes");
                    return Err(OAuthError::Answer { what, url: url.clone(), reason });
                }
            }
            Ok(Answer { status, headers, body: bytes })
        };
        tokio::time::timeout(self.timeout, whole).await.unwrap_or_else(|_| {
            let message = format!("no whole answer within {} s", self.timeout.as_secs());
            Err(failed(HttpError::new(HttpErrorKind::Send, message)))
        })
    }
}
