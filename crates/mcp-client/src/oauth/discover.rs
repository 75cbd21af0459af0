//! From a server's address to its authorization server.

use oauth2::url::Url;

use crate::oauth::address::{self, AddressRule, shown};
use crate::oauth::error::OAuthError;
use crate::oauth::fetch::Fetch;
use crate::oauth::metadata::{AuthorizationServer, ProtectedResource};
use crate::visible::short;

/// What discovery found: checked, and safe to follow.
#[derive(Clone, Debug)]
pub(super) struct Discovered {
    /// The identifier of the resource, as its metadata writes it: it is sent on without a character changed.
    pub(super) resource: String,
    /// What the resource lists, if it does.
    pub(super) resource_scopes: Option<Vec<String>>,
    /// The authorization server.
    pub(super) issuer: AuthorizationServer,
}

/// Finds the authorization server of an MCP server.
pub(super) async fn discover(
    fetch: &Fetch,
    rule: AddressRule,
    server: &Url,
    challenged: Option<&str>,
) -> Result<Discovered, OAuthError> {
    let described = protected_resource(fetch, rule, server, challenged).await?;
    let described_itself = described.is_some();
    let described = described.unwrap_or_default();
    if let Some(resource) = &described.resource
        && !address::covers(resource, server)
    {
        return Err(OAuthError::ResourceMismatch {
            server: shown(server.as_str()),
            resource: short(resource, 200),
        });
    }
    let resource = described.resource.unwrap_or_else(|| address_of(server));
    // Before 2025-06-18 a server was its own authorization server; one that lists none is taken for such.
    let issuer = described.authorization_servers.into_iter().next();
    let own = issuer.is_none();
    let issuer = issuer.unwrap_or_else(|| address::origin(server));
    let found = authorization_server(fetch, rule, &issuer).await?;
    let issuer = match found {
        Some(issuer) => issuer,
        None if own && !described_itself => AuthorizationServer::at_default_places(&issuer),
        None => {
            let reason = "it has no metadata of an authorization server".to_owned();
            return Err(OAuthError::Answer { what: "authorization server", url: shown(&issuer), reason });
        }
    };
    check_endpoints(rule, &issuer)?;
    Ok(Discovered { resource, resource_scopes: described.scopes_supported, issuer })
}

async fn protected_resource(
    fetch: &Fetch,
    rule: AddressRule,
    server: &Url,
    challenged: Option<&str>,
) -> Result<Option<ProtectedResource>, OAuthError> {
    const WHAT: &str = "metadata of the protected resource";
    for place in address::protected_resource(server, challenged) {
        let url = rule.check(WHAT, &place)?;
        if let Some(found) = fetch.document(WHAT, &url).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn authorization_server(
    fetch: &Fetch,
    rule: AddressRule,
    issuer: &str,
) -> Result<Option<AuthorizationServer>, OAuthError> {
    const WHAT: &str = "metadata of the authorization server";
    let url = rule.check("authorization server", issuer)?;
    for place in address::authorization_server(&url) {
        let url = rule.check(WHAT, &place)?;
        let Some(found) = fetch.document::<AuthorizationServer>(WHAT, &url).await? else { continue };
        if found.issuer != issuer {
            let found = Some(short(&found.issuer, 200));
            return Err(OAuthError::IssuerMismatch { place: WHAT, expected: shown(issuer), found });
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Keys and codes go to these: each is judged like any address of a stranger.
fn check_endpoints(rule: AddressRule, issuer: &AuthorizationServer) -> Result<(), OAuthError> {
    rule.check("authorization endpoint", &issuer.authorization_endpoint)?;
    rule.check("token endpoint", &issuer.token_endpoint)?;
    if let Some(endpoint) = &issuer.registration_endpoint {
        rule.check("registration endpoint", endpoint)?;
    }
    if !issuer.has_pkce() {
        return Err(OAuthError::NoPkce { issuer: shown(&issuer.issuer) });
    }
    Ok(())
}

/// The canonical form of a server's address: no query, no fragment, no slash behind a bare host.
fn address_of(server: &Url) -> String {
    let mut url = server.clone();
    url.set_query(None);
    url.set_fragment(None);
    if url.path() == "/" { address::origin(&url) } else { url.into() }
}
