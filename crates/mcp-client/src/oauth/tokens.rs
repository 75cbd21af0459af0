//! The requests of OAuth itself, by the `oauth2` crate: PKCE, the authorization address, and the token endpoint.

use std::pin::Pin;

use haversack_http::{HttpRequest, Secret};
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicTokenResponse};
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope,
    TokenResponse as _, TokenUrl,
};

use crate::oauth::address::shown;
use crate::oauth::error::OAuthError;
use crate::oauth::fetch::Fetch;
use crate::oauth::metadata::AuthorizationServer;
use crate::oauth::store::{ClientCredentials, Tokens};
use crate::visible::short;

type Client = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// A client at one authorization server, for one resource.
pub(super) struct TokenClient<'a> {
    fetch: &'a Fetch,
    issuer: &'a str,
    /// Sent word for word in every request ([RFC 8707](https://www.rfc-editor.org/rfc/rfc8707)): with it the server can
    /// bind the token to the MCP server.
    resource: &'a str,
    client: Client,
}

/// An authorization that the user is to give, and what its answer is checked with.
pub(super) struct Asked {
    pub(super) url: String,
    pub(super) state: String,
    verifier: PkceCodeVerifier,
}

impl<'a> TokenClient<'a> {
    pub(super) fn new(
        fetch: &'a Fetch,
        issuer: &'a AuthorizationServer,
        resource: &'a str,
        credentials: &ClientCredentials,
        redirect_uri: &str,
    ) -> Result<Self, OAuthError> {
        let bad = |what, text: &str| OAuthError::Address {
            what,
            url: shown(text),
            reason: "it is no absolute address",
        };
        let authorize = AuthUrl::new(issuer.authorization_endpoint.clone())
            .map_err(|_| bad("authorization endpoint", &issuer.authorization_endpoint))?;
        let token = TokenUrl::new(issuer.token_endpoint.clone())
            .map_err(|_| bad("token endpoint", &issuer.token_endpoint))?;
        let redirect =
            RedirectUrl::new(redirect_uri.to_owned()).map_err(|_| bad("redirect address", redirect_uri))?;
        let mut client = BasicClient::new(ClientId::new(credentials.id.clone()))
            .set_auth_uri(authorize)
            .set_token_uri(token)
            .set_redirect_uri(redirect)
            .set_auth_type(auth_type(issuer, credentials));
        if let Some(secret) = credentials.secret.as_ref().filter(|_| !is_public(credentials)) {
            client = client.set_client_secret(ClientSecret::new(secret.expose().to_owned()));
        }
        Ok(Self { fetch, issuer: &issuer.issuer, resource, client })
    }

    /// The address that the user is sent to.
    pub(super) fn ask(&self, scopes: &[String]) -> Asked {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (url, state) = self
            .client
            .authorize_url(CsrfToken::new_random)
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource)
            .set_pkce_challenge(challenge)
            .url();
        Asked { url: url.into(), state: state.into_secret(), verifier }
    }

    /// The tokens for a code.
    pub(super) async fn exchange(
        &self,
        code: String,
        asked: Asked,
        scopes: &[String],
        now: u64,
    ) -> Result<Tokens, OAuthError> {
        let given = self
            .client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(asked.verifier)
            .add_extra_param("resource", self.resource)
            .request_async(self.fetch)
            .await;
        self.tokens(given, None, scopes, now)
    }

    /// New tokens for a refresh token. A server that gives no new refresh token means the old one to be kept.
    pub(super) async fn refresh(
        &self,
        refresh: &Secret,
        scopes: &[String],
        now: u64,
    ) -> Result<Tokens, OAuthError> {
        let given = self
            .client
            .exchange_refresh_token(&RefreshToken::new(refresh.expose().to_owned()))
            .add_extra_param("resource", self.resource)
            .request_async(self.fetch)
            .await;
        self.tokens(given, Some(refresh), scopes, now)
    }

    fn tokens(
        &self,
        given: Result<BasicTokenResponse, RequestTokenError<OAuthError, BasicErrorResponse>>,
        refresh: Option<&Secret>,
        scopes: &[String],
        now: u64,
    ) -> Result<Tokens, OAuthError> {
        const WHAT: &str = "a token";
        let unusable = |reason: String| OAuthError::Answer { what: WHAT, url: shown(self.issuer), reason };
        let given = given.map_err(|error| match error {
            RequestTokenError::Request(error) => error,
            RequestTokenError::ServerResponse(told) => OAuthError::Refused {
                issuer: shown(self.issuer),
                what: WHAT,
                code: short(told.error().as_ref(), 60),
                description: told.error_description().map(|text| short(text, 300)),
            },
            // The body is left out: a token may be in it.
            RequestTokenError::Parse(error, _) => {
                unusable(format!("its field {} is not as it should be", error.path()))
            }
            RequestTokenError::Other(reason) => unusable(short(&reason, 200)),
        })?;
        Ok(Tokens {
            access: Secret::new(given.access_token().secret()),
            refresh: given
                .refresh_token()
                .map(|token| Secret::new(token.secret()))
                .or_else(|| refresh.cloned()),
            expires_at: given.expires_in().map(|lasts| now.saturating_add(lasts.as_secs())),
            asked: scopes.to_vec(),
        })
    }
}

fn is_public(client: &ClientCredentials) -> bool {
    client.auth_method.as_deref() == Some("none")
}

/// How the client shows its secret: as it was registered, else as the server lists it.
fn auth_type(issuer: &AuthorizationServer, client: &ClientCredentials) -> AuthType {
    let in_body = match client.auth_method.as_deref() {
        Some("client_secret_post") => true,
        Some(_) => false,
        None => !issuer.takes("client_secret_basic") && issuer.takes("client_secret_post"),
    };
    if in_body { AuthType::RequestBody } else { AuthType::BasicAuth }
}

impl<'c> AsyncHttpClient<'c> for Fetch {
    type Error = OAuthError;
    type Future = Pin<Box<dyn Future<Output = Result<oauth2::HttpResponse, OAuthError>> + Send + 'c>>;

    fn call(&'c self, request: oauth2::HttpRequest) -> Self::Future {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let mut sent = HttpRequest::new(head.method, head.uri.to_string()).with_body(body);
            sent.headers = head.headers;
            let answer = self.send("token endpoint", sent).await?;
            let mut response = oauth2::HttpResponse::new(answer.body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}
