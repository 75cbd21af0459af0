//! The ready-made client: reqwest, set up the way a model stream or an MCP connection needs it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body as _, Frame, SizeHint};

use crate::body::{RequestBody, ResponseBody};
use crate::client::{HttpClient, HttpRequest, HttpResponse, without_secrets};
use crate::error::{HttpError, HttpErrorKind};

/// How a [`ReqwestClient`] connects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReqwestOptions {
    /// How long a connection, its TLS handshake included, may take to be made. 10 s unless set.
    pub connect_timeout: Duration,
    /// A proxy for all requests, as an address. None unless set: the environment is not asked.
    pub proxy: Option<String>,
    /// The `User-Agent`; none is sent unless set.
    pub user_agent: Option<String>,
}

impl ReqwestOptions {
    /// Sets how long a connection may take to be made.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets a proxy for all requests.
    #[must_use]
    pub fn with_proxy(mut self, url: impl Into<String>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// Sets the `User-Agent`.
    #[must_use]
    pub fn with_user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = Some(name.into());
        self
    }
}

impl Default for ReqwestOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), proxy: None, user_agent: None }
    }
}

/// An [`HttpClient`] over reqwest. Cheap to clone; clones share the pool of connections.
///
/// Redirects are off, nothing is decompressed, no time-out covers the whole answer, the environment is not asked
/// for proxies. Without feature `tls` an `https://` address is refused. It needs a tokio runtime with its I/O and
/// time drivers on; where there is no runtime at all, `send` fails with [`HttpErrorKind::Request`].
#[derive(Clone)]
pub struct ReqwestClient {
    client: reqwest::Client,
    /// The address of the last request, as it was given and as it was read: a host asks the same one again and again, and
    /// reading it is a tenth of what a request costs.
    last_url: Arc<Mutex<Option<(String, reqwest::Url)>>>,
}

impl ReqwestClient {
    /// A client with the default options. With feature `tls` it reads the certificates of the platform, which takes
    /// some milliseconds: make one and share it.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up, for example because the platform has no certificates.
    pub fn new() -> Result<Self, HttpError> {
        Self::with_options(ReqwestOptions::default())
    }

    /// A client with other options.
    ///
    /// # Errors
    ///
    /// When the proxy is no address, or as [`new`](Self::new).
    pub fn with_options(options: ReqwestOptions) -> Result<Self, HttpError> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .no_proxy();
        if let Some(url) = options.proxy {
            let proxy =
                reqwest::Proxy::all(url).map_err(|e| setup("the proxy is no address", e.without_url()))?;
            builder = builder.proxy(proxy);
        }
        if let Some(name) = options.user_agent {
            builder = builder.user_agent(name);
        }
        #[cfg(feature = "tls")]
        {
            builder = builder.tls_backend_preconfigured(tls_config()?);
        }
        let client = builder.build().map_err(|e| setup("the HTTP client cannot be set up", e))?;
        Ok(Self { client, last_url: Arc::default() })
    }

    fn url(&self, text: &str) -> Result<reqwest::Url, HttpError> {
        let mut last = self.last_url.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((given, url)) = &*last
            && given == text
        {
            return Ok(url.clone());
        }
        let url = reqwest::Url::parse(text).map_err(|error| {
            setup(&format!("cannot send a request to {}, which is no address", without_secrets(text)), error)
        })?;
        *last = Some((text.to_owned(), url.clone()));
        Ok(url)
    }
}

impl fmt::Debug for ReqwestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may hold a key.
        f.debug_struct("ReqwestClient").finish_non_exhaustive()
    }
}

/// A configuration of our own: reqwest without a provider asks for a process-wide one and panics when there is none,
/// and a library must not install one.
#[cfg(feature = "tls")]
fn tls_config() -> Result<rustls::ClientConfig, HttpError> {
    use rustls_platform_verifier::BuilderVerifierExt;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map(|builder| builder.with_no_client_auth())
        .map_err(|e| setup("TLS cannot be set up", e))
}

fn setup(message: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HttpError {
    HttpError::new(HttpErrorKind::Request, message).with_source(source)
}

#[async_trait]
impl HttpClient for ReqwestClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // reqwest would panic.
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(HttpError::new(
                HttpErrorKind::Request,
                "there is no tokio runtime here to send with",
            ));
        }
        let place = without_secrets(&request.url);
        let url = self.url(&request.url)?;
        let sent = self
            .client
            .request(request.method, url)
            .headers(request.headers)
            .body(body(request.body))
            .send()
            .await
            .map_err(|e| sending(&place, e))?;
        let (head, body) = http::Response::<reqwest::Body>::from(sent).into_parts();
        let body = ResponseBody::from_stream(Incoming { body, place });
        Ok(HttpResponse::new(head.status, body).with_headers(head.headers))
    }
}

fn sending(place: &str, error: reqwest::Error) -> HttpError {
    let (kind, what) = if error.is_connect() && error.is_timeout() {
        (HttpErrorKind::ConnectTimeout, "timed out connecting to")
    } else if error.is_connect() {
        (HttpErrorKind::Connect, "cannot connect to")
    } else if error.is_builder() {
        (HttpErrorKind::Request, "cannot send a request to")
    } else {
        (HttpErrorKind::Send, "lost the connection while sending to")
    };
    HttpError::new(kind, format!("{what} {place}")).with_source(error.without_url())
}

/// Bodies of one chunk go as they are, others through [`Outgoing`].
fn body(body: RequestBody) -> reqwest::Body {
    if body.length() == Some(0) {
        reqwest::Body::default()
    } else {
        reqwest::Body::wrap(Outgoing(body.into()))
    }
}

/// A request body as hyper reads it. The lock is never contended: it only makes a body of any stream `Sync`.
struct Outgoing(Shared);

struct Shared {
    left: Option<u64>,
    body: Mutex<RequestBody>,
}

impl From<RequestBody> for Shared {
    fn from(body: RequestBody) -> Self {
        Self { left: body.length(), body: Mutex::new(body) }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let body = self.0.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        let chunk = ready!(Pin::new(body).poll_next(cx));
        if let (Some(left), Some(Ok(chunk))) = (&mut self.0.left, &chunk) {
            *left = left.saturating_sub(chunk.len() as u64);
        }
        Poll::Ready(chunk.map(|c| c.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer's body as a stream of its chunks.
struct Incoming {
    body: reqwest::Body,
    place: String,
}

impl Stream for Incoming {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                // Trailers are frames too; nobody here reads them.
                Some(Ok(frame)) => {
                    if let Ok(chunk) = frame.into_data() {
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                }
                Some(Err(error)) => {
                    let text = format!("lost the connection while reading from {}", self.place);
                    let error = HttpError::new(HttpErrorKind::Body, text).with_source(error.without_url());
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}
