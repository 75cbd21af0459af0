//! Servers of the wild: connect, list, call, read, close, in each era that they speak.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it saw"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use haversack_interop_tests::peer;
use haversack_mcp_client::protocol::{Era, EraChoice};
use haversack_mcp_client::{Client, ClientOptions, ExitHow, ServerCommand};
use serde_json::{Value, json};

/// A server and what is known of it.
struct Server {
    peer: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    /// The eras it speaks.
    eras: &'static [Era],
    /// The least number of tools it offers.
    tools: usize,
    /// A call, and a text that its result holds.
    call: (&'static str, Value, &'static str),
    /// How it ends when it is closed.
    ends: &'static [ExitHow],
}

const LEGACY: &[Era] = &[Era::Legacy];
const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
const POLITE: &[ExitHow] = &[ExitHow::Stdin];

#[expect(clippy::too_many_lines, reason = "a table is as long as what it lists")]
fn servers() -> Vec<Server> {
    vec![
        Server {
            peer: "mcp-reference",
            program: "node_modules/.bin/mcp-server-everything",
            args: &["stdio"],
            eras: LEGACY,
            tools: 8,
            call: ("echo", json!({"message": "ünï\u{2028}"}), "ünï\u{2028}"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-reference",
            program: "node_modules/.bin/mcp-server-filesystem",
            args: &["FOLDER"],
            eras: LEGACY,
            tools: 10,
            call: ("list_allowed_directories", json!({}), "interop"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-reference",
            program: "node_modules/.bin/mcp-server-memory",
            args: &[],
            eras: LEGACY,
            tools: 9,
            call: ("read_graph", json!({}), "entities"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-more",
            program: "node_modules/.bin/mcp-server-sequential-thinking",
            args: &[],
            eras: LEGACY,
            tools: 1,
            call: (
                "sequentialthinking",
                json!({"thought": "t", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}),
                "thoughtNumber",
            ),
            ends: POLITE,
        },
        Server {
            peer: "mcp-old",
            program: "node_modules/.bin/mcp-server-everything",
            args: &[],
            eras: LEGACY,
            tools: 5,
            call: ("echo", json!({"message": "old"}), "old"),
            ends: &[ExitHow::Term],
        },
        Server {
            peer: "mcp-binaries",
            program: "node_modules/mcp-time-linux-x64/bin/mcp-time",
            args: &[],
            eras: LEGACY,
            tools: 5,
            call: ("current_time", json!({"timezone": "UTC", "format": "RFC3339"}), "20"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-python",
            program: "bin/mcp-server-time",
            args: &[],
            eras: BOTH,
            tools: 2,
            call: ("get_current_time", json!({"timezone": "UTC"}), "UTC"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-python",
            program: "bin/mcp-server-git",
            args: &[],
            eras: BOTH,
            tools: 10,
            call: ("git_status", json!({"repo_path": "REPOSITORY"}), "status"),
            ends: POLITE,
        },
        Server {
            peer: "mcp-python-fetch",
            program: "bin/mcp-server-fetch",
            args: &[],
            eras: BOTH,
            tools: 1,
            call: ("fetch", json!({"url": "http://127.0.0.1:9/"}), ""),
            ends: POLITE,
        },
        Server {
            peer: "mcp-python-1",
            program: "bin/mcp-server-sqlite",
            args: &["--db-path", "FOLDER/test.db"],
            eras: LEGACY,
            tools: 6,
            call: ("list_tables", json!({}), "["),
            ends: POLITE,
        },
        Server {
            peer: "mcp-python-old",
            program: "bin/python",
            args: &["OLD_SERVER"],
            eras: LEGACY,
            tools: 1,
            call: ("shout", json!({"text": "ann"}), "ANN"),
            // It takes about as long to notice the end of its input as it is given.
            ends: &[ExitHow::Stdin, ExitHow::Term],
        },
    ]
}

fn command(server: &Server, peer: &Path, folder: &Path) -> ServerCommand {
    let old_server = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/old_sdk_server.py");
    let fill = |arg: &&str| {
        arg.replace("FOLDER", &folder.to_string_lossy()).replace("OLD_SERVER", &old_server.to_string_lossy())
    };
    ServerCommand::new(peer.join(server.program))
        .args(server.args.iter().map(fill))
        .envs(std::env::vars_os())
        .env("MEMORY_FILE_PATH", folder.join("memory.json"))
        .current_dir(folder)
}

async fn talk(server: &Server, command: &ServerCommand, folder: &Path, choice: EraChoice, wanted: Era) {
    let name = format!("{}/{} {choice:?}", server.peer, server.program);
    let started = Instant::now();
    let options = ClientOptions::new("haversack-interop", "0").with_era(choice);
    let client = Client::start(command, options).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let connected = started.elapsed();
    assert_eq!(client.info().era, wanted, "{name}");
    let tools = client.list_tools().await.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(tools.items.len() >= server.tools, "{name}: {} tools", tools.items.len());
    assert_eq!(tools.problems, [], "{name}");
    let (tool, arguments, text) = &server.call;
    let arguments: Value =
        serde_json::from_str(&arguments.to_string().replace("REPOSITORY", &folder.to_string_lossy()))
            .unwrap();
    let result = client.call_tool(tool, arguments.as_object().unwrap().clone()).await;
    let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(result.text().contains(text), "{name}: {result:?}");
    let mut resources = 0;
    if client.info().capabilities.resources() {
        let listed = client.list_resources().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        resources = listed.items.len();
        if let Some(first) = listed.items.first() {
            let read =
                client.read_resource(&first.uri).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!read.contents.is_empty(), "{name}");
        }
    }
    let mut prompts = 0;
    if client.info().capabilities.prompts() {
        prompts = client.list_prompts().await.unwrap_or_else(|error| panic!("{name}: {error}")).items.len();
    }
    let info = client.info().clone();
    let exit = client.close().await;
    assert!(server.ends.contains(&exit.how), "{name}: {exit:?}");
    eprintln!(
        "{name}: {} {} {}, connected after {} ms, {} tools, {resources} resources, {prompts} prompts, ended by {}",
        info.name,
        info.version,
        info.protocol_version,
        connected.as_millis(),
        tools.items.len(),
        exit.how.as_str()
    );
}

#[tokio::test]
async fn real_servers_are_talked_to_in_each_era_that_they_speak() {
    for server in servers() {
        let Some(peer) = peer(server.peer) else { continue };
        // A folder whose name the servers give back, with a repository in it.
        let folder = tempfile::Builder::new().prefix("interop").tempdir().unwrap();
        let git = std::process::Command::new("git")
            .args(["init", "-q"])
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(git.success());
        let command = command(&server, &peer, folder.path());
        for era in server.eras {
            let choice = if *era == Era::Legacy { EraChoice::Legacy } else { EraChoice::Modern };
            talk(&server, &command, folder.path(), choice, *era).await;
        }
        let best = server.eras.last().copied().unwrap();
        let limit = Duration::from_secs(60);
        let auto = talk(&server, &command, folder.path(), EraChoice::Auto, best);
        tokio::time::timeout(limit, auto).await.unwrap();
    }
}
