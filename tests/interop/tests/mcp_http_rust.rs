//! Servers over Streamable HTTP that are Rust programs: one that is nothing but the official SDK, and our own skill
//! server. They run in this process, on ports of their own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;

use haversack_http::ReqwestClient;
use haversack_mcp_client::http::HttpOptions;
use haversack_mcp_client::protocol::{Era, EraChoice};
use haversack_mcp_client::{Client, ClientOptions};
use haversack_skill_server::http::{HttpOptions as ServerOptions, HttpServer};
use haversack_skill_server::{Host, SkillServer};
use haversack_skills::{Limits, Root, Roots};
use haversack_tool_adapter::served_skills::{ServedOffer, ServedSkills};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use serde_json::json;

const ERAS: [(EraChoice, Era); 3] =
    [(EraChoice::Auto, Era::Modern), (EraChoice::Modern, Era::Modern), (EraChoice::Legacy, Era::Legacy)];

async fn connect(address: SocketAddr, choice: EraChoice) -> Client {
    let options = ClientOptions::new("haversack-interop", "0").with_era(choice);
    let http = HttpOptions::new(format!("http://{address}/mcp"), Arc::new(ReqwestClient::new().unwrap()));
    Client::connect_http(http, options).await.unwrap()
}

/// A server with one tool.
#[derive(Clone)]
struct Loud;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Shout {
    text: String,
}

#[tool_router]
impl Loud {
    #[tool(description = "Says it louder.")]
    async fn shout(&self, Parameters(shout): Parameters<Shout>) -> String {
        shout.text.to_uppercase()
    }
}

#[tool_handler]
impl ServerHandler for Loud {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

async fn loud(config: StreamableHttpServerConfig) -> SocketAddr {
    let service = StreamableHttpService::new(|| Ok(Loud), Arc::new(LocalSessionManager::default()), config);
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn a_bare_server_of_the_official_sdk_in_both_eras_with_sessions_and_without() {
    for config in [
        StreamableHttpServerConfig::default(),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true),
    ] {
        let address = loud(config).await;
        for (choice, era) in ERAS {
            let client = connect(address, choice).await;
            assert_eq!(client.info().era, era);
            let tools = client.list_tools().await.unwrap();
            assert_eq!(tools.items.len(), 1, "{:?}", tools.problems);
            let arguments = json!({"text": "ünï\u{2028}"}).as_object().unwrap().clone();
            let result = client.call_tool("shout", arguments).await.unwrap();
            assert_eq!(result.text(), "ÜNÏ\u{2028}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn our_skill_server_in_both_eras_and_its_skills_as_they_were_listed() {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join("tidy");
    std::fs::create_dir_all(skill.join("references")).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        "---\nname: tidy\ndescription: Tidies ünï.\nmetadata:\n  version: 1.5\n---\nTidy up.\n",
    )
    .unwrap();
    std::fs::write(skill.join("references/how.md"), "With care.\n").unwrap();
    let server = SkillServer::new(&Roots::new().with_root(Root::user(folder.path())), Host::new()).unwrap();
    let http =
        HttpServer::bind("127.0.0.1:0".parse().unwrap(), ServerOptions::default(), move || server.handler())
            .await
            .unwrap();
    let address = http.address();
    tokio::spawn(http.run(std::future::pending()));

    for (choice, era) in ERAS {
        let client = connect(address, choice).await;
        assert_eq!(client.info().era, era);
        let result = client.call_tool("tidy", serde_json::Map::new()).await.unwrap();
        assert!(result.text().contains("Tidy up."), "{}", result.text());
        let listed = client.list_skills().await.unwrap();
        assert!(listed.problems.is_empty(), "{:?}", listed.problems);
        let served =
            ServedSkills::new([ServedOffer::new("ours", client.clone(), listed.items)], Limits::default());
        assert_eq!(served.names().collect::<Vec<_>>(), ["ours:tidy"]);
        let body = served.load("ours:tidy", 1).await.unwrap();
        assert!(body.contains("Tidy up."), "{body}");
        let file = served.resource("ours:tidy", "references/how.md", 1).await.unwrap();
        assert!(file.contains("With care."), "{file}");
        client.close().await;
    }
}
