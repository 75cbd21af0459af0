use std::path::PathBuf;
use std::time::Duration;

use haversack_mcp_client::protocol::EraChoice;
use haversack_mcp_client::{Client, ClientOptions, ServerCommand};
use serde_json::json;

fn script() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !root.is_dir() {
        eprintln!(
            "SKIPPED: {} is missing, and with it the server that misbehaves on purpose",
            root.display()
        );
        return None;
    }
    Some(root.join("probes/mcp/faulty_server.py").canonicalize().unwrap())
}

#[tokio::test]
async fn smoke() {
    let Some(script) = script() else { return };
    let command =
        ServerCommand::new("python3").arg(script).args(["--mode", "pages"]).envs(std::env::vars_os());
    let options = ClientOptions::new("test", "0").with_era(EraChoice::Legacy);
    let client = Client::start(&command, options).await.unwrap();
    println!("{:?}", client.info());
    let tools = client.list_tools().await.unwrap();
    println!("{tools:?}");
    assert_eq!(tools.items.len(), 6);
    let result = client.call_tool("echo", json!({"text": "hi"}).as_object().unwrap().clone()).await.unwrap();
    assert_eq!(result.text(), "echo: hi");
    let exit = client.close().await;
    println!("{exit:?}");
    let command = ServerCommand::new("python3")
        .arg(self::script().unwrap())
        .args(["--mode", "slow-call"])
        .envs(std::env::vars_os());
    let client = Client::start(
        &command,
        ClientOptions::new("test", "0").with_call_timeout(Duration::from_millis(300)),
    )
    .await
    .unwrap();
    let e = client.call_tool("echo", Default::default()).await.unwrap_err();
    println!("{e}");
    assert!(e.is_timeout());
    println!("{:?}", client.close().await);
}
