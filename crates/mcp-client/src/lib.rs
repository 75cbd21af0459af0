//! An MCP client that other people's servers cannot break.
//!
//! [The Model Context Protocol](https://modelcontextprotocol.io) lets a host use tools, resources and prompts that servers
//! offer. Servers are other people's programs: they print on standard output, answer twice, hang, crash, leave processes
//! behind. This crate speaks all revisions from 2024-11-05 to 2026-07-28, survives such servers, and says what it saw.
//! It needs no SDK, prints nothing, reads nothing from the environment, and starts a repository's servers only after a
//! person has approved them.
//!
//! # One server
//!
//! A [`Client`] is a connection: [started](Client::start) from a [`ServerCommand`], or [over any two
//! streams](Client::connect). Every call has a time limit, and dropping its future cancels it.
//!
//! ```
//! use haversack_mcp_client::{Client, ClientOptions};
//! use serde_json::json;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! # let (ours, theirs) = tokio::io::duplex(64 * 1024);
//! # tokio::spawn(serve(theirs));
//! # let (reader, writer) = tokio::io::split(ours);
//! let client = Client::connect(reader, writer, ClientOptions::new("my-host", "1.0.0")).await?;
//!
//! let tools = client.list_tools().await?;
//! assert_eq!(tools.items[0].name, "shout");
//! // What was odd about the list is beside the good part of it.
//! assert!(tools.problems.is_empty());
//!
//! let arguments = json!({"text": "hi"}).as_object().cloned().unwrap_or_default();
//! let result = client.call_tool("shout", arguments).await?;
//! assert_eq!((result.text().as_str(), result.is_error), ("HI", false));
//! client.close().await;
//! # Ok(())
//! # }
//! # async fn serve(stream: tokio::io::DuplexStream) {
//! #     use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
//! #     let (reader, mut writer) = tokio::io::split(stream);
//! #     let mut lines = tokio::io::BufReader::new(reader).lines();
//! #     while let Ok(Some(line)) = lines.next_line().await {
//! #         let message: serde_json::Value = serde_json::from_str(&line).unwrap();
//! #         let Some(id) = message.get("id") else { continue };
//! #         let result = match message["method"].as_str().unwrap() {
//! #             "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
//! #                 "serverInfo": {"name": "loud", "version": "1"}}),
//! #             "tools/list" => json!({"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}),
//! #             "tools/call" => json!({"content": [{"type": "text", "text":
//! #                 message["params"]["arguments"]["text"].as_str().unwrap().to_uppercase()}]}),
//! #             _ => {
//! #                 let refusal = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}});
//! #                 writer.write_all(format!("{refusal}\n").as_bytes()).await.unwrap();
//! #                 continue;
//! #             }
//! #         };
//! #         let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
//! #         writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
//! #     }
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run()).unwrap();
//! ```
//!
//! # The servers of a project
//!
//! Most hosts have servers named in files. Then the way is: [`config`] reads and merges the files, [`consent`] asks a
//! person before a repository's servers run, and the [`manager`] starts what was approved, keeps it, and ends it.
//!
//! ```
//! use haversack_mcp_client::ClientOptions;
//! use haversack_mcp_client::config::Config;
//! use haversack_mcp_client::consent::{MemoryConsentStore, settle};
//! use haversack_mcp_client::environment::Environment;
//! use haversack_mcp_client::manager::{Manager, ManagerOptions};
//!
//! # async fn run() {
//! let manager = Manager::new(ManagerOptions::new(ClientOptions::new("my-host", "1.0.0")));
//! // At the start of each run:
//! let config = Config::read_project("/home/u/project");
//! let settled = settle(config, "/home/u/project", &MemoryConsentStore::default(), None).await;
//! manager.set_config(&settled.approved, &Environment::from_iter(std::env::vars_os()));
//! for failed in manager.ensure_started().await.new_failures() {
//!     eprintln!("{}: {}", failed.name, failed.state);
//! }
//! for server in manager.ready() {
//!     // server.client.list_tools().await …
//! }
//! // At the end:
//! manager.close().await;
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run());
//! ```
//!
//! # Servers over HTTP
//!
//! With the feature `http`, entries with a `url` are servers like the others, and `Client::connect_http` reaches a single
//! one. The host lends what sends requests (`haversack-http` has a client over reqwest), says which addresses may be
//! asked, and has the tokens; see the module `http`, and `oauth` (feature) for tokens that a user has to agree to.
//!
//! ```
//! # #[cfg(feature = "http")]
//! # fn manager(client: impl haversack_http::HttpClient) -> haversack_mcp_client::manager::Manager {
//! use std::sync::Arc;
//! use haversack_http::Secret;
//! use haversack_mcp_client::ClientOptions;
//! use haversack_mcp_client::http::{AddressPolicy, HttpAccess};
//! use haversack_mcp_client::manager::{Manager, ManagerOptions};
//!
//! let access = HttpAccess::new(Arc::new(client))
//!     .with_address_policy(AddressPolicy::default().with_private_networks(true))
//!     .with_bearer_token("https://10.0.0.7/mcp", Secret::new("…"));
//! Manager::new(ManagerOptions::new(ClientOptions::new("my-host", "1.0.0")).with_http(access))
//! # }
//! ```
//!
//! # What is where
//!
//! - [`protocol`]: the state machine of a connection, without I/O, clock or runtime, for transports of a host's own.
//! - [`environment`]: which variables a server's process gets.
//! - [`process`]: how a program is found and quoted on Windows.
//! - [`visible`]: text of others made safe to show.
//!
//! # When not to use it
//!
//! It is the client side only; to *offer* tools, use the official `rmcp` SDK. Public tool names, approval of calls and
//! what a model is shown are for the layer above; here tools have the names that their servers gave them.

pub mod visible;
pub mod environment;
pub mod protocol;
pub mod config;
pub mod fingerprint;
pub mod consent;
pub mod process;
mod error;
mod events;
mod progress;
mod transport;
mod connection;
mod driver;
mod handlers;
mod options;
mod call;
mod cache;
#[cfg(feature = "http")]
pub mod http;
mod client;
mod lists;
mod calls;
mod listen;
mod served;
#[cfg(feature = "oauth")]
pub mod oauth;
pub mod manager;

pub use call::{ProgressStream, ToolCall};
pub use client::Client;
pub use error::{Ending, Error};
pub use events::{Event, Events};
pub use handlers::{
    Elicitation, ElicitationAnswer, ElicitationForm, ElicitationHandler, Root, RootsHandler, SamplingHandler,
};
pub use listen::{Listen, Subscription};
pub use options::ClientOptions;
#[doc(inline)]
pub use process::{Exit, ExitHow, ExitStatus, ServerCommand};

/// Handles cross threads; a host must be able to rely on it.
const _: () = {
    const fn crosses_threads<T: Send + Sync + 'static>() {}
    crosses_threads::<config::Config>();
    crosses_threads::<consent::ApprovedConfig>();
    crosses_threads::<consent::FileConsentStore>();
    crosses_threads::<consent::ConsentStoreError>();
    crosses_threads::<environment::Environment>();
    crosses_threads::<Client>();
    crosses_threads::<Error>();
    crosses_threads::<Events>();
    crosses_threads::<manager::Manager>();
};
