//! Why no token could be had.

use haversack_http::HttpError;

/// Why authorization did not end with a token.
///
/// No variant holds a token, a code or a client secret. Texts of servers are cut, and made
/// [visible](crate::visible).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// An address that a server named, or the host gave, is not one to send anything to.
    #[error("the address {url} ({what}) is not used: {reason}")]
    Address {
        /// What the address is for.
        what: &'static str,
        /// The address, without what may be a key in it.
        url: String,
        /// Why it is not used.
        reason: &'static str,
    },
    /// There was no answer.
    #[error("cannot reach {url} ({what}): {}", source.chain())]
    Http {
        /// What was asked for.
        what: &'static str,
        /// The address.
        url: String,
        /// What the HTTP client says.
        source: HttpError,
    },
    /// There was an answer, and it is no use.
    #[error("the answer of {url} ({what}) is no use: {reason}")]
    Answer {
        /// What was asked for.
        what: &'static str,
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server's metadata speaks of another resource. Following it would hand a token for one server to another.
    #[error("{server} says it is protected as {resource}, which is another place: refused")]
    ResourceMismatch {
        /// The MCP server's address.
        server: String,
        /// What its metadata names.
        resource: String,
    },
    /// Somebody else than the authorization server that was asked answered ([RFC 9207], [RFC 8414] section 3.3).
    ///
    /// [RFC 9207]: https://www.rfc-editor.org/rfc/rfc9207
    /// [RFC 8414]: https://www.rfc-editor.org/rfc/rfc8414
    #[error("{place} names the issuer {}, expected {expected}: refused", found.as_deref().unwrap_or("of nobody"))]
    IssuerMismatch {
        /// Where the name stood: the metadata or the redirect.
        place: &'static str,
        /// Who was asked.
        expected: String,
        /// Who answered, if the answer says so.
        found: Option<String>,
    },
    /// The authorization server does not offer PKCE with S256, without which a code could be stolen.
    #[error("{issuer} does not offer PKCE with S256, which MCP demands: refused")]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// There is no way to become a client of the authorization server.
    #[error(
        "{issuer} knows no client of this host: give its client id with `with_client`, or a metadata address with \
         `with_client_metadata_url` if the server takes those"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server refused: the user said no, the client is unknown, a code is stale.
    #[error("{issuer} refused {what}: {code}{}", description.as_deref().map(|d| format!(" ({d})")).unwrap_or_default())]
    Refused {
        /// The authorization server.
        issuer: String,
        /// What was refused.
        what: &'static str,
        /// The error code of OAuth, such as `access_denied` or `invalid_grant`.
        code: String,
        /// What the server says about it.
        description: Option<String>,
    },
    /// The browser came back with something that does not belong to this request.
    #[error("the browser came back with an answer that is not to be trusted: {reason}")]
    Redirect {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The user agreed, and the server still wants the same scopes: asking again would not help.
    #[error("{server} wants the scopes {scopes:?}, which have been asked for and were not enough")]
    ScopesNotEnough {
        /// The MCP server.
        server: String,
        /// What it wants.
        scopes: String,
    },
    /// The user was sent to the browser too often in a short time.
    #[error("{server} asked for authorization {visits} times in a row: stopped")]
    TooManyVisits {
        /// The MCP server.
        server: String,
        /// How often the browser was opened.
        visits: usize,
    },
    /// The user did not come back in time.
    #[error("nobody came back from {issuer} within {} s", after.as_secs())]
    TimedOut {
        /// The authorization server.
        issuer: String,
        /// How long was waited.
        after: std::time::Duration,
    },
    /// The host's browser step failed.
    #[error("the browser step failed")]
    Browser(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The host's store failed.
    #[error("the store of credentials failed")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}
