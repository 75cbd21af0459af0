//! What a server over HTTP allows.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// Characters of a bearer token at least: what cannot be tried out.
const MIN_TOKEN: usize = 16;

/// What a server over HTTP allows. The defaults fit a server on its user's own machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Names by which clients may reach the server, beside those of this machine.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call, beside those of this machine.
    pub allowed_origins: Vec<String>,
    /// The token that clients have to send.
    pub bearer: Option<BearerToken>,
    /// Bytes of a request's body at most; 4 MiB.
    pub max_body_bytes: usize,
    /// Requests that run at a time; 512. Further ones are answered with 503.
    pub max_requests: usize,
    /// Sessions of clients of the older revisions that are open at a time; 1,000. Further ones are answered with 503.
    pub max_sessions: usize,
    /// How long a session may be idle; 30 minutes.
    pub session_idle: Duration,
    /// How long the head of a request may take, the wait for it included; 30 seconds.
    pub header_limit: Duration,
    /// How long the body of a request may take; 30 seconds.
    pub body_limit: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            bearer: None,
            max_body_bytes: 4 * 1024 * 1024,
            max_requests: 512,
            max_sessions: 1_000,
            session_idle: Duration::from_secs(30 * 60),
            header_limit: Duration::from_secs(30),
            body_limit: Duration::from_secs(30),
        }
    }
}

impl HttpOptions {
    /// Adds names by which clients may reach the server, with or without a port.
    #[must_use]
    pub fn with_allowed_hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.allowed_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Adds origins of pages that may call; a port of `*` is any.
    #[must_use]
    pub fn with_allowed_origins<S: Into<String>>(mut self, origins: impl IntoIterator<Item = S>) -> Self {
        self.allowed_origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Sets the token that clients have to send.
    #[must_use]
    pub fn with_bearer(mut self, token: BearerToken) -> Self {
        self.bearer = Some(token);
        self
    }

    /// Sets [`max_body_bytes`](Self::max_body_bytes).
    #[must_use]
    pub fn with_max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Sets [`max_requests`](Self::max_requests) and [`max_sessions`](Self::max_sessions).
    #[must_use]
    pub fn with_caps(mut self, requests: usize, sessions: usize) -> Self {
        (self.max_requests, self.max_sessions) = (requests, sessions);
        self
    }

    /// Sets [`header_limit`](Self::header_limit) and [`body_limit`](Self::body_limit).
    #[must_use]
    pub fn with_time_limits(mut self, header: Duration, body: Duration) -> Self {
        (self.header_limit, self.body_limit) = (header, body);
        self
    }

    /// The names that the `Host` header may have; `None` where any may be: on an address that others reach, a token
    /// keeps out the pages of strangers, and the names of a proxy are not known.
    pub(super) fn hosts(&self, bound: IpAddr) -> Option<Vec<String>> {
        if !bound.is_loopback() && self.bearer.is_some() && self.allowed_hosts.is_empty() {
            return None;
        }
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        if !bound.is_unspecified() {
            hosts.push(bound.to_string());
        }
        hosts.extend(self.allowed_hosts.iter().cloned());
        Some(hosts)
    }

    pub(super) fn origins(&self) -> Vec<String> {
        let own = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
        own.into_iter().chain(self.allowed_origins.iter().cloned()).collect()
    }
}

/// A token that clients have to send. Only its hash is kept, and nothing shows it.
#[derive(Clone)]
pub struct BearerToken([u8; 32]);

/// A token is too short, or has characters that no header can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has at least {MIN_TOKEN} characters, all of them visible ASCII")]
pub struct WeakToken;

impl BearerToken {
    /// A token; white space around it, such as the end of a line, is no part of it.
    ///
    /// # Errors
    ///
    /// When it is too short or no header can carry it.
    pub fn new(token: &str) -> Result<Self, WeakToken> {
        let token = token.trim();
        if token.len() < MIN_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(WeakToken);
        }
        Ok(Self(Sha256::digest(token).into()))
    }

    /// Whether a header says this token. Hashes are compared, so that the time tells nothing of the token.
    pub(super) fn is_in(&self, header: &[u8]) -> bool {
        let Some((scheme, token)) = header.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ")
            && <[u8; 32]>::from(Sha256::digest(token.trim_ascii())) == self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_opens() {
        let token = BearerToken::new("0123456789abcdef\n").unwrap();
        for (header, opens) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef", true),
            ("Bearer 0123456789abcde", false),
            ("Bearer 0123456789abcdeg", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
            ("", false),
        ] {
            assert_eq!(token.is_in(header.as_bytes()), opens, "{header}");
        }
        assert!(!format!("{token:?}").contains("0123"));
        for weak in ["", "short", "0123456789 abcdef0", "0123456789abcdé0"] {
            assert_eq!(BearerToken::new(weak).err(), Some(WeakToken), "{weak}");
        }
    }

    #[test]
    fn names_of_strangers_are_taken_only_where_a_token_keeps_them_out() {
        let (local, every) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0]));
        let token = || BearerToken::new("0123456789abcdef").unwrap();
        let plain = HttpOptions::default();
        assert!(plain.hosts(local).is_some() && plain.hosts(every).is_some());
        let with_token = HttpOptions::default().with_bearer(token());
        assert!(with_token.hosts(local).is_some());
        assert_eq!(with_token.hosts(every), None);
        let named = with_token.with_allowed_hosts(["skills.example"]);
        assert!(named.hosts(every).unwrap().contains(&"skills.example".to_owned()));
    }
}
