//! The authorization server, the network and the user's browser, in memory.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_core::Stream as _;
use haversack_http::{HttpClient, HttpError, HttpRequest, HttpResponse, Method, Secret, StatusCode};
use oauth2::url::{Url, form_urlencoded};
use serde_json::{Value, json};

use crate::oauth::{AuthorizationRequest, Browser, OAuth, OAuthError, OAuthOptions, Refused};

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const DESCRIPTION: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub(super) const ISSUER: &str = "https://auth.example";
pub(super) const METADATA: &str = "https://auth.example/.well-known/oauth-authorization-server";

/// What the servers answer, and what they were asked.
pub(super) struct World {
    pub(super) documents: BTreeMap<String, Value>,
    /// What the redirect says beside the code.
    pub(super) iss: Option<String>,
    pub(super) denies: bool,
    pub(super) refuses_refresh: bool,
    pub(super) token_lasts: Option<u64>,
    pub(super) seen: Vec<Seen>,
    pub(super) given: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) authorization: Option<String>,
    pub(super) form: BTreeMap<String, String>,
    pub(super) json: Value,
}

impl Default for World {
    fn default() -> Self {
        let resource = json!({"resource": SERVER, "authorization_servers": [ISSUER]});
        let mut world = Self {
            documents: BTreeMap::new(),
            iss: None,
            denies: false,
            refuses_refresh: false,
            token_lasts: Some(3600),
            seen: Vec::new(),
            given: 0,
        };
        world.at(DESCRIPTION, resource);
        world.at(METADATA, metadata(ISSUER));
        world
    }
}

pub(super) fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

pub(super) fn set(world: &mut World, field: &str, value: Value) {
    world.documents.get_mut(METADATA).unwrap()[field] = value;
}

pub(super) fn described_as(world: &mut World, resource: &str) {
    world.at(DESCRIPTION, json!({"resource": resource, "authorization_servers": [ISSUER]}));
}

impl World {
    pub(super) fn at(&mut self, url: &str, document: Value) {
        self.documents.insert(url.to_owned(), document);
    }

    pub(super) fn answer(&mut self, seen: &Seen) -> HttpResponse {
        self.seen.push(seen.clone());
        let url = Url::parse(&seen.url).unwrap();
        let json = |status, value: Value| HttpResponse::new(status, value.to_string());
        match (seen.method.as_str(), url.path()) {
            ("POST", path) if path.ends_with("/register") => {
                let mut given = json!({"client_id": format!("client of {}", url.host_str().unwrap())});
                if seen.json["token_endpoint_auth_method"] != "none" {
                    given["client_secret"] = json!("cl13nt-s3cret");
                }
                json(StatusCode::CREATED, given)
            }
            ("POST", path) if path.ends_with("/token") => {
                if self.refuses_refresh && seen.form.get("grant_type").is_some_and(|g| g == "refresh_token") {
                    return json(StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}));
                }
                self.given += 1;
                let mut given = json!({"access_token": format!("t0ken-{}", self.given), "token_type": "bearer",
                    "refresh_token": format!("r3fresh-{}", self.given)});
                if let Some(lasts) = self.token_lasts {
                    given["expires_in"] = json!(lasts);
                }
                json(StatusCode::OK, given)
            }
            ("GET", _) => match self.documents.get(&seen.url) {
                Some(document) => json(StatusCode::OK, document.clone()),
                None => json(StatusCode::NOT_FOUND, json!({"error": "not found"})),
            },
            _ => json(StatusCode::METHOD_NOT_ALLOWED, json!({})),
        }
    }
}

/// The servers behind the address bar and behind the client.
#[derive(Clone)]
pub(super) struct Net(pub(super) Arc<Mutex<World>>);

#[async_trait]
impl HttpClient for Net {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) =
            std::future::poll_fn(|cx| std::pin::Pin::new(&mut request.body).poll_next(cx)).await
        {
            body.extend_from_slice(&chunk?);
        }
        let seen = Seen {
            method: request.method,
            url: request.url,
            authorization: request
                .headers
                .get("authorization")
                .map(|value| value.to_str().unwrap().to_owned()),
            form: form_urlencoded::parse(&body).into_owned().collect(),
            json: serde_json::from_slice(&body).unwrap_or_default(),
        };
        Ok(self.0.lock().unwrap().answer(&seen))
    }
}

#[async_trait]
impl Browser for Net {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:7777/callback".to_owned()
    }

    async fn visit(&self, request: &AuthorizationRequest) -> Result<String, Box<dyn Error + Send + Sync>> {
        let mut world = self.0.lock().unwrap();
        let url = Url::parse(&request.url)?;
        let form: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        world.seen.push(Seen {
            method: Method::GET,
            url: request.url.clone(),
            authorization: None,
            form: form.clone(),
            json: Value::Null,
        });
        let mut back = Url::parse(&form["redirect_uri"])?;
        let what = if world.denies { ("error", "access_denied") } else { ("code", "c0de") };
        back.query_pairs_mut().append_pair(what.0, what.1).append_pair("state", &form["state"]);
        if let Some(iss) = &world.iss {
            back.query_pairs_mut().append_pair("iss", iss);
        }
        Ok(back.into())
    }
}

pub(super) struct Case {
    pub(super) net: Net,
    pub(super) oauth: OAuth,
}

impl Case {
    pub(super) fn new(options: OAuthOptions, change: impl FnOnce(&mut World)) -> Self {
        let mut world = World::default();
        change(&mut world);
        let net = Net(Arc::new(Mutex::new(world)));
        Self { oauth: OAuth::new(net.clone(), net.clone(), options), net }
    }

    pub(super) fn plain(change: impl FnOnce(&mut World)) -> Self {
        Self::new(OAuthOptions::new("test host"), change)
    }

    pub(super) async fn renew(&self, refused: Refused) -> Result<Secret, OAuthError> {
        self.oauth.renew(SERVER, &refused).await
    }

    pub(super) fn seen(&self, path: &str) -> Vec<Seen> {
        let world = self.net.0.lock().unwrap();
        world.seen.iter().filter(|seen| Url::parse(&seen.url).unwrap().path() == path).cloned().collect()
    }

    pub(super) fn visits(&self) -> Vec<BTreeMap<String, String>> {
        self.seen("/authorize").into_iter().map(|seen| seen.form).collect()
    }
}

pub(super) fn refused() -> Refused {
    Refused::default()
}
