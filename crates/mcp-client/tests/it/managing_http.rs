//! The manager with servers over HTTP.

use std::sync::Arc;

use haversack_http::Secret;
use haversack_mcp_client::config::{Config, ProblemKind};
use haversack_mcp_client::consent::ApprovedConfig;
use haversack_mcp_client::environment::Environment;
use haversack_mcp_client::http::{AddressPolicy, HttpAccess};
use haversack_mcp_client::manager::{Manager, ManagerEvent, ManagerOptions, ServerState, StartError};
use haversack_mcp_client::protocol::Era;
use haversack_mcp_client::{ClientOptions, Error};
use serde_json::{Map, Value, json};

use crate::web::Web;

const DOCS: &str = "https://docs.example/mcp";
const OTHER: &str = "https://other.example/mcp";

fn access(web: &Web) -> HttpAccess {
    HttpAccess::new(Arc::new(web.clone()))
}

fn options() -> ManagerOptions {
    ManagerOptions::new(ClientOptions::new("test", "0"))
}

fn approved(servers: &Value) -> ApprovedConfig {
    Config::new("/").with_host_servers(servers).withhold()
}

fn want(manager: &Manager, servers: &Value) {
    assert_eq!(manager.set_config(&approved(servers), &Environment::default()), []);
}

async fn call(manager: &Manager, server: &str) -> String {
    let client = manager.client(server).unwrap();
    let arguments = Map::from_iter([("text".to_owned(), json!("hi"))]);
    client.call_tool("echo", arguments).await.unwrap().text()
}

/// The state of a server that has failed.
fn failure(manager: &Manager, server: &str) -> Arc<StartError> {
    match manager.status(server).unwrap().state {
        ServerState::Failed(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_server_over_http_is_started_kept_restarted_on_a_change_and_ended() {
    let web = Web::default().with_echo(DOCS);
    let manager = Manager::new(options().with_http(access(&web)));
    let mut events = manager.events();
    let entry = |team: &str| json!({"docs": {"type": "http", "url": DOCS, "headers": {"X-Team": team}}});
    want(&manager, &entry("a"));
    assert!(web.seen().is_empty(), "nothing is sent before it is wanted");
    manager.ensure_started().await;
    assert_eq!(call(&manager, "docs").await, "hi");
    manager.ensure_started().await;
    let opened = || web.methods(DOCS).iter().filter(|method| *method == "initialize").count();
    assert_eq!(opened(), 1, "it is kept");

    want(&manager, &entry("b"));
    manager.ensure_started().await;
    assert_eq!(opened(), 2, "its headers have changed");
    call(&manager, "docs").await;
    assert_eq!(web.seen().last().unwrap().headers["x-team"], "b");

    want(&manager, &json!({}));
    manager.ensure_started().await;
    assert!(manager.client("docs").is_none());
    manager.close().await;
    let mut kinds = Vec::new();
    while let Some(event) = events.try_next() {
        kinds.push(match event {
            ManagerEvent::Starting { .. } => "starting",
            ManagerEvent::Ready { .. } => "ready",
            ManagerEvent::Stopped { .. } => "stopped",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(kinds, ["starting", "ready", "stopped", "starting", "ready", "stopped"]);
}

#[tokio::test]
async fn the_era_of_an_address_is_remembered() {
    let web = Web::default().with_echo(DOCS);
    let servers = json!({"docs": {"url": DOCS}});
    let first = Manager::new(options().with_http(access(&web)));
    want(&first, &servers);
    first.ensure_started().await;
    assert_eq!(first.client("docs").unwrap().info().era, Era::Legacy);
    first.close().await;
    let asked = || web.methods(DOCS).iter().filter(|method| *method == "server/discover").count();
    assert_eq!(asked(), 1);

    let second = Manager::new(options().with_http(access(&web)).with_era_memory(first.era_memory()));
    want(&second, &servers);
    second.ensure_started().await;
    assert_eq!(call(&second, "docs").await, "hi");
    assert_eq!(asked(), 1, "it was not asked again");
    second.close().await;
}

#[tokio::test]
async fn variables_are_put_in_and_what_is_missing_is_told() {
    let web = Web::default().with_echo(DOCS);
    let manager = Manager::new(options().with_http(access(&web)));
    let servers = json!({"docs": {"url": "https://${WHERE}/mcp", "headers": {
        "X-Key": "Key ${KEY}", "X-Team": "${TEAM:-core}", "X-Odd": "${MISSING}"}}});
    let environment = Environment::from([("WHERE", "docs.example"), ("KEY", "s3cret")]);
    let problems = manager.set_config(&approved(&servers), &environment);
    assert!(matches!(&problems[..], [one] if one.kind == ProblemKind::UnsetVariable));
    assert!(problems[0].message.contains("MISSING"), "{}", problems[0]);
    manager.ensure_started().await;
    let headers = &web.seen()[0].headers;
    assert_eq!(
        ["x-key", "x-team", "x-odd"].map(|name| headers[name].as_str()),
        ["Key s3cret", "core", "${MISSING}"]
    );
    manager.close().await;
}

#[tokio::test]
async fn a_token_goes_to_its_address_whatever_the_servers_are_called() {
    let web = Web::default().with_echo(DOCS).with_echo(OTHER);
    let access = access(&web).with_bearer_token(DOCS, Secret::new("t0ken"));
    assert!(!format!("{access:?}").contains("t0ken"));
    let manager = Manager::new(options().with_http(access));
    want(&manager, &json!({"docs": {"url": OTHER}, "other": {"url": DOCS}}));
    manager.ensure_started().await;
    for seen in web.seen() {
        let token = seen.headers.get("authorization").map(String::as_str);
        assert_eq!(token, (seen.url == DOCS).then_some("Bearer t0ken"), "{seen:?}");
    }
    manager.close().await;
}

#[tokio::test]
async fn an_address_that_the_host_does_not_allow_is_never_asked() {
    let web = Web::default().with_echo("http://10.0.0.1/mcp");
    let servers = json!({"inside": {"url": "http://10.0.0.1/mcp"}});
    let strict = Manager::new(options().with_http(access(&web)));
    want(&strict, &servers);
    strict.ensure_started().await;
    let error = failure(&strict, "inside");
    assert!(matches!(&*error, StartError::Client(Error::Address { .. })), "{error}");
    assert!(web.seen().is_empty());

    let policy = AddressPolicy::default().with_plain_http(true).with_private_networks(true);
    let open = Manager::new(options().with_http(access(&web).with_address_policy(policy)));
    want(&open, &servers);
    open.ensure_started().await;
    assert_eq!(call(&open, "inside").await, "hi");
    open.close().await;
}

#[tokio::test]
async fn what_went_wrong_with_one_server_is_told_and_holds_up_no_other() {
    let web = Web::default()
        .with_echo(DOCS)
        .with_server("https://locked.example/mcp", |_, _| Some(json!({"status": 401})));
    let manager = Manager::new(options().with_http(access(&web)));
    want(
        &manager,
        &json!({
            "docs": {"url": DOCS},
            "gone": {"url": OTHER},
            "header": {"url": DOCS, "headers": {"Host": "x"}},
            "locked": {"url": "https://locked.example/mcp"},
            "no-address": {"url": "docs.example"}
        }),
    );
    let report = manager.ensure_started().await;
    assert_eq!(report.new_failures().count(), 4);
    assert_eq!(call(&manager, "docs").await, "hi");
    for (server, word) in [("gone", "nobody is there"), ("header", "Host"), ("no-address", "https://")] {
        let words = failure(&manager, server).with_causes();
        assert!(words.contains(word), "{words}");
    }
    let locked = failure(&manager, "locked");
    assert!(matches!(&*locked, StartError::Client(Error::AuthorizationRequired { .. })), "{locked}");
    manager.close().await;
}

#[tokio::test]
async fn a_host_without_http_says_so_and_starts_nothing() {
    let servers = json!({"docs": {"url": DOCS}});
    let manager = Manager::new(options());
    want(&manager, &servers);
    let report = manager.ensure_started().await;
    assert!(matches!(&report.statuses[0].state, ServerState::Unsupported(kind) if &**kind == "http"));

    let config = Config::new("/")
        .with_repository_file(".mcp.json", br#"{"mcpServers": {"docs": {"url": "https://h"}}}"#);
    assert!(config.consent_question().is_some());
    let config = config.without_http();
    assert!(config.consent_question().is_none() && config.startable().next().is_none());
    assert!(matches!(config.problems(), [one] if one.kind == ProblemKind::Unsupported));
}
