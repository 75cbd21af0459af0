//! Who may come in: pages of this server, opened with its token, on this machine.
//!
//! A server on the loopback interface is reachable by every page that the person's browser shows. Three locks keep them
//! out: a name that was rebound to this machine has the wrong `Host`, a form of another site has the wrong `Origin`, and
//! neither has the cookie, which only a page opened with the token gets.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Bytes of randomness in a token: nobody guesses 32.
const TOKEN_BYTES: usize = 32;

/// The locks of one server.
pub struct Guard {
    token: String,
    port: u16,
}

impl Guard {
    /// New locks for a server on this port.
    ///
    /// # Errors
    ///
    /// When the system gives no randomness.
    pub fn new(port: u16) -> Result<Self, String> {
        Ok(Self { token: random()?, port })
    }

    /// The address that opens the first page.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Whether this is the token.
    pub fn is_token(&self, token: &str) -> bool {
        // All bytes are looked at, so that the time says nothing about how many were right.
        let differs = token.bytes().zip(self.token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
        token.len() == self.token.len() && differs == 0
    }

    /// The cookie that a page gets for the token. Its name holds the port: ports of one machine share their cookies.
    pub fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("haversack_{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().any(|(name, value)| name == self.cookie_name() && self.is_token(value))
    }

    fn is_here(&self, authority: &str) -> bool {
        ["127.0.0.1", "localhost"].iter().any(|name| authority == format!("{name}:{}", self.port))
    }

    /// Why a request is turned away, if it is.
    fn refusal(&self, request: &Request) -> Option<&'static str> {
        let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if !text(header::HOST).is_some_and(|host| self.is_here(host)) {
            return Some("this server is reached as 127.0.0.1 only");
        }
        let origin = text(header::ORIGIN);
        let same = origin.and_then(|o| o.strip_prefix("http://")).is_some_and(|o| self.is_here(o));
        let must_say = request.method() != Method::GET;
        if (must_say || origin.is_some()) && !same {
            return Some("the request comes from another page");
        }
        let opens = request.uri().path() == "/" && request.method() == Method::GET;
        if !opens && !self.has_cookie(request.headers()) {
            return Some("open the address with the token first");
        }
        None
    }
}

/// Hex digits that nobody can guess.
///
/// # Errors
///
/// When the system gives no randomness.
pub fn random() -> Result<String, String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| format!("no randomness: {e}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Turns strangers away, and tells browsers what a page of this server may do: next to nothing.
pub async fn guard(State(guard): State<Arc<Guard>>, request: Request<Body>, next: Next) -> Response {
    let mut response = match guard.refusal(&request) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether the page may be shown: it has the cookie.
pub fn may_see(guard: &Guard, headers: &HeaderMap) -> bool {
    guard.has_cookie(headers)
}
