//! The step that only a person can take.

use std::error::Error;

use async_trait::async_trait;

/// Lets the user agree in a browser: the host's part.
///
/// [`LoopbackBrowser`](crate::oauth::LoopbackBrowser) is ready-made for programs on the user's own machine; a web
/// application, or a host that shows the address in its own interface, implements this.
#[async_trait]
pub trait Browser: Send + Sync + 'static {
    /// Where the authorization server sends the user back to. It has to stay the same while the program runs, since
    /// clients are registered with it.
    fn redirect_uri(&self) -> String;

    /// Sends the user to [`url`](AuthorizationRequest::url) and waits until the browser comes back to the redirect
    /// address. The answer is the whole address it came back to, or the query of it.
    ///
    /// The wait is bounded by [`OAuthOptions::with_visit_timeout`](crate::oauth::OAuthOptions::with_visit_timeout);
    /// then the future is dropped.
    ///
    /// # Errors
    ///
    /// When the user closed the question, or the browser could not be shown.
    async fn visit(&self, request: &AuthorizationRequest) -> Result<String, Box<dyn Error + Send + Sync>>;
}

/// What the user is asked to agree to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorizationRequest {
    /// The address to open. It holds no secret, only what may be seen in a browser's history.
    pub url: String,
    /// The MCP server that is asked for, without its query.
    pub server: String,
    /// Who asks the user: show it before the browser opens.
    pub issuer: String,
    /// What is asked for; empty for whatever the server gives by default.
    pub scopes: Vec<String>,
}
