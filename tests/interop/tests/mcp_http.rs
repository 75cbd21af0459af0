//! Servers of the wild over Streamable HTTP: connect, list, call, close, in each era that they speak.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it saw"
)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haversack_http::ReqwestClient;
use haversack_interop_tests::peer;
use haversack_mcp_client::http::HttpOptions;
use haversack_mcp_client::protocol::{Era, EraChoice};
use haversack_mcp_client::{Client, ClientOptions};
use serde_json::{Value, json};

/// Ends the server with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a port that was free a moment ago, and waits until it listens there.
fn serve(command: impl FnOnce(u16) -> Command) -> (Server, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = command(port);
    let server =
        Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let began = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    (server, port)
}

async fn converse(url: &str, choice: EraChoice, era: Era, call: (&str, Value, &str)) {
    let options = ClientOptions::new("haversack-interop", "0").with_era(choice);
    let http = HttpOptions::new(url, Arc::new(ReqwestClient::new().unwrap()));
    let client = Client::connect_http(http, options).await.unwrap();
    assert_eq!(client.info().era, era);
    let tools = client.list_tools().await.unwrap();
    assert!(tools.items.iter().any(|tool| tool.name == call.0), "{:?}", tools.problems);
    let result = client.call_tool(call.0, call.1.as_object().unwrap().clone()).await.unwrap();
    assert!(result.text().contains(call.2), "{}", result.text());
    client.close().await;
    eprintln!("{url} {choice:?}: {} tools in {}", tools.items.len(), client.info().protocol_version);
}

#[tokio::test]
async fn the_everything_server_over_http() {
    let Some(folder) = peer("mcp-reference") else { return };
    let (_server, port) = serve(|port| {
        let mut command = Command::new(folder.join("node_modules/.bin/mcp-server-everything"));
        command.arg("streamableHttp").env("PORT", port.to_string());
        command
    });
    let url = format!("http://127.0.0.1:{port}/mcp");
    for choice in [EraChoice::Auto, EraChoice::AutoLegacyFirst, EraChoice::Legacy] {
        converse(&url, choice, Era::Legacy, ("echo", json!({"message": "ünï\u{2028}"}), "ünï\u{2028}")).await;
    }
}

#[tokio::test]
async fn the_everything_server_over_the_transport_of_the_first_revision() {
    let Some(folder) = peer("mcp-reference") else { return };
    let (_server, port) = serve(|port| {
        let mut command = Command::new(folder.join("node_modules/.bin/mcp-server-everything"));
        command.arg("sse").env("PORT", port.to_string());
        command
    });
    let options = ClientOptions::new("haversack-interop", "0");
    let http =
        HttpOptions::new(format!("http://127.0.0.1:{port}/sse"), Arc::new(ReqwestClient::new().unwrap()))
            .with_old_transport(true);
    let client = Client::connect_http(http, options).await.unwrap();
    assert!(client.list_tools().await.unwrap().items.len() >= 8);
    client.close().await;
}

#[tokio::test]
async fn a_fastmcp_server_in_both_eras() {
    let Some(folder) = peer("mcp-fastmcp") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/fastmcp_server.py");
    let (_server, port) = serve(|port| {
        let mut command = Command::new(folder.join("bin/python"));
        command.arg(script).arg(port.to_string());
        command
    });
    let url = format!("http://127.0.0.1:{port}/mcp");
    for (choice, era) in
        [(EraChoice::Auto, Era::Modern), (EraChoice::Modern, Era::Modern), (EraChoice::Legacy, Era::Legacy)]
    {
        converse(&url, choice, era, ("shout", json!({"text": "ünï"}), "ÜNÏ")).await;
    }
}
