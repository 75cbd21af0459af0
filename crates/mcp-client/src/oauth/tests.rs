//! The whole way against an authorization server in memory, each rule of the authorization pages by itself.

mod world;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;

use super::{ClientCredentials, IssuerCredentials, OAuth, OAuthError, OAuthOptions, Refused};
use crate::http::{TokenRefusal, TokenSource};
use crate::oauth::store::CredentialStore;
use crate::protocol::Challenge;
use world::{Case, DESCRIPTION, ISSUER, METADATA, Net, SERVER, World, described_as, metadata, refused, set};

#[tokio::test]
async fn a_refusal_ends_with_a_token_and_each_request_names_the_resource_and_pkce() {
    let case = Case::plain(|_| {});
    assert!(case.oauth.token(SERVER).await.is_none());
    let token = case.renew(refused()).await.unwrap();
    assert_eq!(token.expose(), "t0ken-1");
    assert_eq!(case.oauth.token(SERVER).await, Some(token));

    let visit = &case.visits()[0];
    assert_eq!(visit["resource"], SERVER);
    assert_eq!(visit["code_challenge_method"], "S256");
    assert_eq!(visit["client_id"], "client of auth.example");
    assert!(!visit.contains_key("scope"), "no scope is known: {visit:?}");
    let registration = &case.seen("/register")[0].json;
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["redirect_uris"], json!(["http://127.0.0.1:7777/callback"]));
    let exchange = &case.seen("/token")[0];
    assert_eq!((exchange.form["resource"].as_str(), exchange.form["code"].as_str()), (SERVER, "c0de"));
    assert!(exchange.form["code_verifier"].len() >= 43);
    assert!(exchange.authorization.is_none(), "a public client shows no secret");
}

#[tokio::test]
async fn the_resource_is_sent_as_its_metadata_writes_it() {
    let case = Case::plain(|world| {
        world.documents.remove(DESCRIPTION);
        world.at(
            "https://mcp.example/.well-known/oauth-protected-resource",
            json!({"resource": "https://mcp.example", "authorization_servers": [ISSUER]}),
        );
    });
    case.renew(refused()).await.unwrap();
    assert_eq!(case.visits()[0]["resource"], "https://mcp.example", "no slash is added");
    assert_eq!(case.seen("/token")[0].form["resource"], "https://mcp.example");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_the_user_is_asked() {
    type Change = fn(&mut World);
    let cases: &[(&str, Change, &str)] = &[
        ("another resource", |world| described_as(world, "https://evil.example/mcp"), "another place"),
        (
            "another issuer",
            |world| set(world, "issuer", json!("https://attacker.example")),
            "attacker.example",
        ),
        ("no PKCE", |world| set(world, "code_challenge_methods_supported", json!(null)), "PKCE"),
        ("only plain PKCE", |world| set(world, "code_challenge_methods_supported", json!(["plain"])), "PKCE"),
        (
            "an endpoint inside our network",
            |world| set(world, "token_endpoint", json!("http://169.254.169.254/token")),
            "token endpoint",
        ),
        ("no registration", |world| set(world, "registration_endpoint", json!(null)), "with_client"),
        ("no metadata", |world| drop(world.documents.remove(METADATA)), "no metadata"),
    ];
    for (name, change, word) in cases {
        let case = Case::plain(change);
        let error = case.renew(refused()).await.unwrap_err().to_string();
        assert!(error.contains(word), "{name}: {error}");
        assert!(case.visits().is_empty(), "{name}: the user was asked");
    }
}

#[tokio::test]
async fn an_answer_of_another_issuer_gets_no_token() {
    // What the metadata promises, what the redirect says, whether a token follows.
    let cases = [
        (Some(true), Some(ISSUER), true),
        (None, None, true),
        (None, Some(ISSUER), true),
        (Some(true), None, false),
        (Some(true), Some("https://evil.example"), false),
        (None, Some("https://evil.example"), false),
        (Some(true), Some("https://auth.example/"), false),
    ];
    for (promised, iss, expected) in cases {
        let case = Case::plain(|world| {
            world.iss = iss.map(ToOwned::to_owned);
            set(world, "authorization_response_iss_parameter_supported", json!(promised));
        });
        assert_eq!(case.renew(refused()).await.is_ok(), expected, "{promised:?} {iss:?}");
        assert_eq!(case.seen("/token").len(), usize::from(expected), "{promised:?} {iss:?}");
    }
}

#[tokio::test]
async fn the_client_is_the_hosts_then_its_metadata_address_then_a_registered_one() {
    let url = "https://host.example/client.json";
    let options = || OAuthOptions::new("test host").with_client_metadata_url(url);
    let by_metadata = |world: &mut World| {
        set(world, "client_id_metadata_document_supported", json!(true));
    };
    let own = ClientCredentials::new("own").with_secret("own-s3cret");
    let cases = [
        (options().with_client(ISSUER, own.clone()), true, "own"),
        (options(), true, url),
        (options(), false, "client of auth.example"),
        (options().with_client("https://other.example", own), false, "client of auth.example"),
    ];
    for (options, takes_metadata, expected) in cases {
        let case = Case::new(options, |world| {
            if takes_metadata {
                by_metadata(world);
            }
        });
        case.renew(refused()).await.unwrap();
        assert_eq!(case.visits()[0]["client_id"], expected);
        assert_eq!(case.seen("/register").len(), usize::from(expected.starts_with("client of")));
    }
}

#[tokio::test]
async fn a_secret_is_shown_the_way_the_token_endpoint_takes_it() {
    for (method, in_header, in_form) in
        [("client_secret_basic", true, false), ("client_secret_post", false, true), ("none", false, false)]
    {
        let case = Case::plain(|world| {
            set(world, "token_endpoint_auth_methods_supported", json!([method]));
        });
        case.renew(refused()).await.unwrap();
        let exchange = &case.seen("/token")[0];
        assert_eq!(exchange.authorization.is_some(), in_header, "{method}");
        assert_eq!(exchange.form.contains_key("client_secret"), in_form, "{method}");
    }
}

#[tokio::test]
async fn more_scopes_are_asked_for_together_with_those_before_and_the_same_ones_only_once() {
    let case = Case::plain(|_| {});
    let first = case.renew(Refused { scope: Some("read".into()), ..refused() }).await.unwrap();
    let wider =
        Refused { scope: Some("write".into()), insufficient_scope: true, token: Some(first), ..refused() };
    let second = case.renew(wider.clone()).await.unwrap();
    assert_eq!(second.expose(), "t0ken-2");
    let asked: Vec<_> = case.visits().iter().map(|visit| visit["scope"].clone()).collect();
    assert_eq!(asked, ["read", "read write"]);

    let again = case.renew(Refused { token: Some(second), ..wider }).await.unwrap_err();
    assert!(matches!(again, OAuthError::ScopesNotEnough { .. }), "{again}");
    assert_eq!(case.visits().len(), 2);
}

#[tokio::test]
async fn a_token_that_is_not_taken_is_refreshed_before_anybody_is_asked() {
    let case = Case::plain(|_| {});
    let first = case.renew(refused()).await.unwrap();
    let second = case.renew(Refused { token: Some(first), ..refused() }).await.unwrap();
    assert_eq!((second.expose(), case.visits().len()), ("t0ken-2", 1));
    let refresh = &case.seen("/token")[1].form;
    assert_eq!((refresh["grant_type"].as_str(), refresh["resource"].as_str()), ("refresh_token", SERVER));
    assert_eq!(refresh["refresh_token"], "r3fresh-1");

    case.net.0.lock().unwrap().refuses_refresh = true;
    let third = case.renew(Refused { token: Some(second), ..refused() }).await.unwrap();
    assert_eq!((third.expose(), case.visits().len()), ("t0ken-3", 2), "then the user is asked");
}

#[tokio::test]
async fn a_token_about_to_end_is_renewed_before_it_is_used() {
    let case = Case::plain(|world| world.token_lasts = Some(10));
    case.renew(refused()).await.unwrap();
    assert_eq!(case.oauth.token(SERVER).await.unwrap().expose(), "t0ken-2");
    case.net.0.lock().unwrap().refuses_refresh = true;
    assert!(case.oauth.token(SERVER).await.is_none(), "an ended token is not sent");
}

#[tokio::test]
async fn another_authorization_server_sees_nothing_of_the_one_before() {
    const OTHER: &str = "https://other.example";
    let case = Case::plain(|_| {});
    let first = case.renew(refused()).await.unwrap();
    case.net.0.lock().unwrap().at(DESCRIPTION, json!({"resource": SERVER, "authorization_servers": [OTHER]}));
    case.net
        .0
        .lock()
        .unwrap()
        .at("https://other.example/.well-known/oauth-authorization-server", metadata(OTHER));
    let second = case.renew(Refused { token: Some(first), ..refused() }).await.unwrap();
    assert_eq!(second.expose(), "t0ken-2");
    let world = case.net.0.lock().unwrap();
    for seen in world.seen.iter().filter(|seen| seen.url.starts_with(OTHER)) {
        let text = format!("{seen:?}");
        assert!(!text.contains("client of auth.example") && !text.contains("r3fresh-1"), "{text}");
    }
    assert!(world.seen.iter().any(|seen| seen.url == "https://other.example/register"));
}

#[tokio::test]
async fn a_server_of_2025_03_26_is_its_own_authorization_server_at_the_default_places() {
    let case = Case::plain(|world| world.documents.clear());
    case.renew(refused()).await.unwrap();
    let world = case.net.0.lock().unwrap();
    for place in ["https://mcp.example/register", "https://mcp.example/token"] {
        assert!(world.seen.iter().any(|seen| seen.url == place), "{place}");
    }
}

#[tokio::test]
async fn a_server_that_never_takes_a_token_does_not_send_the_user_round_for_ever() {
    let case = Case::plain(|world| world.refuses_refresh = true);
    let mut token = None;
    let error = loop {
        match case.renew(Refused { token, ..refused() }).await {
            Ok(given) => token = Some(given),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, OAuthError::TooManyVisits { .. }), "{error}");
    assert_eq!(case.visits().len(), 3);
}

#[tokio::test]
async fn requests_that_wait_at_the_same_time_ask_once() {
    let case = Case::plain(|_| {});
    let (a, b) = tokio::join!(case.renew(refused()), case.renew(refused()));
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(case.visits().len(), 1);

    let token = case.oauth.token(SERVER).await;
    let wider = Refused { scope: Some("more".into()), insufficient_scope: true, token, ..refused() };
    let (a, b) = tokio::join!(case.renew(wider.clone()), case.renew(wider));
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(case.visits().len(), 2);
}

#[tokio::test]
async fn a_no_of_the_user_is_told_as_such() {
    let case = Case::plain(|world| world.denies = true);
    let error = case.renew(refused()).await.unwrap_err().to_string();
    assert!(error.contains("access_denied"), "{error}");
}

/// A store that outlives the client.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, String>>>);

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self, issuer: &str) -> Result<Option<IssuerCredentials>, Box<dyn Error + Send + Sync>> {
        let text = self.0.lock().unwrap().get(issuer).cloned();
        Ok(text.map(|text| IssuerCredentials::from_json(&text)).transpose()?)
    }

    async fn save(
        &self,
        issuer: &str,
        credentials: &IssuerCredentials,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.lock().unwrap().insert(issuer.to_owned(), credentials.expose_json());
        Ok(())
    }
}

#[tokio::test]
async fn after_a_restart_a_kept_token_is_used_and_nobody_is_asked() {
    let (store, net) = (Kept::default(), Net(Arc::new(Mutex::new(World::default()))));
    let start = || OAuth::with_store(net.clone(), net.clone(), OAuthOptions::new("test host"), store.clone());
    let first = start().renew(SERVER, &refused()).await.unwrap();
    let second = start().renew(SERVER, &refused()).await.unwrap();
    assert_eq!(first, second);
    let world = net.0.lock().unwrap();
    let count = |end: &str| world.seen.iter().filter(|seen| seen.url.ends_with(end)).count();
    assert_eq!((count("/register"), count("/token")), (1, 1));
}

#[tokio::test]
async fn no_secret_stands_in_any_error_or_debug_text() {
    let case = Case::plain(|world| {
        set(world, "token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    });
    let token = case.renew(refused()).await.unwrap();
    case.net.0.lock().unwrap().denies = true;
    let wider = Refused { insufficient_scope: true, token: Some(token), ..refused() };
    let error = case.renew(wider.clone()).await.unwrap_err();
    let text = format!("{error} {error:?} {:?} {wider:?}", case.oauth);
    for secret in ["t0ken", "r3fresh", "c0de", "cl13nt-s3cret"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn a_transport_gets_its_tokens_by_the_challenge_and_none_for_what_no_token_changes() {
    let case = Case::plain(|_| {});
    let source: &dyn TokenSource = &case.oauth;
    assert_eq!(source.token(SERVER).await.unwrap(), None);
    let header = format!(r#"Bearer scope="read", resource_metadata="{DESCRIPTION}""#);
    let refusal = TokenRefusal::new(SERVER, 401, Challenge::bearer([header.as_str()]));
    let token = source.renew(refusal).await.unwrap().unwrap();
    assert_eq!((token.expose(), case.visits()[0]["scope"].as_str()), ("t0ken-1", "read"));

    let mut forbidden = TokenRefusal::new(SERVER, 403, None);
    forbidden.token = Some(token.clone());
    assert_eq!(source.renew(forbidden).await.unwrap(), None);
    let header = r#"Bearer error="insufficient_scope", scope="write""#;
    let mut wider = TokenRefusal::new(SERVER, 403, Challenge::bearer([header]));
    wider.token = Some(token);
    let token = source.renew(wider).await.unwrap();
    assert_eq!(token.as_ref().unwrap().expose(), "t0ken-2");

    case.net.0.lock().unwrap().documents.clear();
    case.net.0.lock().unwrap().denies = true;
    let mut ended = TokenRefusal::new(SERVER, 401, None);
    ended.token = token;
    let error = source.renew(ended).await.unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
}
