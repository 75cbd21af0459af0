//! How a host becomes a client of an authorization server.

use haversack_http::{HttpRequest, Method, Secret, StatusCode, header};
use oauth2::url::Url;
use serde::Deserialize;
use serde_json::json;

use crate::oauth::address::{AddressRule, shown};
use crate::oauth::error::OAuthError;
use crate::oauth::fetch::Fetch;
use crate::oauth::metadata::AuthorizationServer;
use crate::oauth::options::OAuthOptions;
use crate::oauth::store::ClientCredentials;
use crate::visible::short;

/// The client to be at this authorization server: one that the host has for it, else one that is kept from before, else
/// the metadata address where the server takes those, else a new registration.
///
/// The flag says whether it was registered just now, and so is to be kept.
pub(super) async fn client_for(
    fetch: &Fetch,
    rule: AddressRule,
    options: &OAuthOptions,
    issuer: &AuthorizationServer,
    kept: Option<&ClientCredentials>,
    redirect_uri: &str,
    now: u64,
) -> Result<(ClientCredentials, bool), OAuthError> {
    if let Some(client) = options.client_at(&issuer.issuer) {
        return Ok((client.clone(), false));
    }
    if let Some(url) = &options.client_metadata_url
        && issuer.client_id_metadata_document_supported
    {
        return Ok((ClientCredentials::new(url.as_str()), false));
    }
    if let Some(client) = kept
        && client.redirect_uri.as_deref() == Some(redirect_uri)
        && client.secret_expires_at.is_none_or(|end| end > now)
    {
        return Ok((client.clone(), false));
    }
    let Some(endpoint) = &issuer.registration_endpoint else {
        return Err(OAuthError::NoRegistration { issuer: shown(&issuer.issuer) });
    };
    let endpoint = rule.check("registration endpoint", endpoint)?;
    let client = register(fetch, options, issuer, &endpoint, redirect_uri).await?;
    Ok((client, true))
}

/// Dynamic registration, [RFC 7591](https://www.rfc-editor.org/rfc/rfc7591).
async fn register(
    fetch: &Fetch,
    options: &OAuthOptions,
    issuer: &AuthorizationServer,
    endpoint: &Url,
    redirect_uri: &str,
) -> Result<ClientCredentials, OAuthError> {
    const WHAT: &str = "client registration";
    // A program on the user's machine keeps no secret: it asks for none, where that is taken.
    let method = ["none", "client_secret_basic", "client_secret_post"]
        .into_iter()
        .find(|method| issuer.takes(method))
        .unwrap_or("none");
    let asked = json!({
        "client_name": options.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    });
    let json = header::HeaderValue::from_static("application/json");
    let request = HttpRequest::new(Method::POST, endpoint.as_str())
        .with_header(header::CONTENT_TYPE, json.clone())
        .with_header(header::ACCEPT, json)
        .with_body(asked.to_string());
    let answer = fetch.send(WHAT, request).await?;
    if !matches!(answer.status, StatusCode::CREATED | StatusCode::OK) {
        let told: Refusal = serde_json::from_slice(&answer.body).unwrap_or_default();
        return Err(OAuthError::Refused {
            issuer: shown(&issuer.issuer),
            what: WHAT,
            code: told.error.map_or_else(|| format!("status {}", answer.status), |code| short(&code, 60)),
            description: told.error_description.map(|text| short(&text, 300)),
        });
    }
    let given: Registered = serde_json::from_slice(&answer.body).map_err(|error| OAuthError::Answer {
        what: WHAT,
        url: shown(endpoint.as_str()),
        reason: short(&error.to_string(), 200),
    })?;
    Ok(ClientCredentials {
        id: given.client_id,
        secret: given.client_secret.filter(|secret| !secret.is_empty()).map(Secret::from),
        // What the answer leaves out was taken as asked.
        auth_method: Some(given.token_endpoint_auth_method.unwrap_or_else(|| method.to_owned())),
        redirect_uri: Some(redirect_uri.to_owned()),
        secret_expires_at: given.client_secret_expires_at.filter(|end| *end != 0),
    })
}

#[derive(Default, Deserialize)]
struct Refusal {
    error: Option<String>,
    error_description: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}
