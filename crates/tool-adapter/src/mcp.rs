//! Tools of MCP servers as ordinary tools of the loop.
//!
//! A server's tool becomes a [`Tool`] under a safe public name; calling it calls the server by the original name.
//! What the server says of its tool is kept as the server's claim: it may run beside others when the server calls it
//! read-only, and it asks for approval all the same.
//!
//! What the model reads of a result stands in a `<mcp_result>` wrapper, and one [section](McpTools::section) of the
//! system prompt says that such text is data. The section exists only when there is at least one tool.

mod result;
mod schema;
mod section;
mod browse;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::prelude::*;
use haversack_mcp_client::protocol::{ToolInfo, ToolResult as McpResult};
use haversack_mcp_client::{Client, Error as McpError, ToolCall};
use serde_json::Value;

use crate::naming::{NameTable, Original};

pub use browse::browse_tools;
pub use schema::{MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES};
pub use section::MAX_INSTRUCTIONS;

/// A connected server with the tools that it listed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpServer {
    /// The name in the configuration, which is part of every public name.
    pub name: Arc<str>,
    /// The connection. It is kept for a run; a server that dies in between gives error results.
    pub client: Client,
    /// The tools, as listed and filtered.
    pub tools: Vec<ToolInfo>,
}

impl McpServer {
    /// A server from its parts.
    pub fn new(name: impl Into<Arc<str>>, client: Client, tools: Vec<ToolInfo>) -> Self {
        Self { name: name.into(), client, tools }
    }
}

/// What a set of servers gives to an agent.
#[derive(Default)]
#[non_exhaustive]
pub struct McpTools {
    /// The tools: servers by name, each one's tools in its own order.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The text for the system prompt; `None` when there is no tool, so that nothing is left of the feature.
    pub section: Option<String>,
    /// Tools that were left out, and schemas that were mended.
    pub problems: Vec<McpToolProblem>,
}

impl fmt::Debug for McpTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| &tool.spec().name).collect();
        f.debug_struct("McpTools")
            .field("tools", &names)
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// Something about a tool that the host should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpToolProblem {
    /// The server.
    pub server: Arc<str>,
    /// The tool, as the server calls it.
    pub tool: String,
    /// What is the matter and what was done about it.
    pub message: String,
    /// Whether the tool is left out because of it.
    pub left_out: bool,
}

impl fmt::Display for McpToolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}` of server `{}`: {}", self.tool, self.server, self.message)
    }
}

/// Makes tools of all that these servers offer. Names come from `names`, which the host keeps as long as its
/// process runs, so that a tool never changes its name.
pub fn mcp_tools(servers: impl IntoIterator<Item = McpServer>, names: &mut NameTable) -> McpTools {
    let mut servers: Vec<McpServer> = servers.into_iter().collect();
    servers.sort_by(|a, b| a.name.cmp(&b.name));
    names.assign(servers.iter().flat_map(originals));
    let mut made = McpTools::default();
    let mut with_tools = Vec::new();
    for server in &servers {
        let before = made.tools.len();
        for info in &server.tools {
            let problem = |message: String, left_out| McpToolProblem {
                server: Arc::clone(&server.name),
                tool: info.name.clone(),
                message,
                left_out,
            };
            let public = names.public(&Original::new(Arc::clone(&server.name), info.name.as_str()));
            match (public, schema::for_model(&info.input_schema)) {
                (Some(public), Ok(schema)) => {
                    made.problems.extend(schema.mended.map(|m| problem(m, false)));
                    made.tools.push(Arc::new(McpTool::new(server, info, public, schema.schema)));
                }
                (None, _) => made.problems.push(problem("it has no public name".to_owned(), true)),
                (_, Err(reason)) => made.problems.push(problem(reason, true)),
            }
        }
        if made.tools.len() > before {
            with_tools.push(server);
        }
    }
    made.section = section::text(with_tools);
    made
}

fn originals(server: &McpServer) -> impl Iterator<Item = Original> {
    server.tools.iter().map(|info| Original::new(Arc::clone(&server.name), info.name.as_str()))
}

/// One tool of one server.
struct McpTool {
    spec: ToolSpec,
    server: Arc<str>,
    client: Client,
    original: String,
}

impl McpTool {
    fn new(server: &McpServer, info: &ToolInfo, public: &str, schema: Arc<Value>) -> Self {
        let claims = &info.annotations;
        let effects = Effects::claimed_by_server(claims.read_only, claims.destructive, claims.idempotent);
        let spec = ToolSpec::new(public, description(server, info))
            .with_schema(schema)
            .with_effects(effects)
            .with_origin(format!("mcp:{}", server.name));
        Self {
            spec,
            server: Arc::clone(&server.name),
            client: server.client.clone(),
            original: info.name.clone(),
        }
    }

    async fn send(&self, arguments: Value, context: &ToolContext) -> Result<McpResult, McpError> {
        let Value::Object(arguments) = arguments else {
            // The loop hands over objects only; anything else is sent as no arguments, which the server answers.
            return self.client.call(ToolCall::new(&*self.original)).await;
        };
        let mut call = ToolCall::new(&*self.original).with_arguments(arguments);
        let mut progress = call.progress();
        let mut answer = std::pin::pin!(self.client.call(call));
        loop {
            let report = std::pin::pin!(progress.next());
            match futures_util::future::select(&mut answer, report).await {
                futures_util::future::Either::Left((answer, _)) => return answer,
                futures_util::future::Either::Right((Some(report), _)) => {
                    context.progress(progress_text(&report));
                }
                futures_util::future::Either::Right((None, _)) => return answer.await,
            }
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        match self.send(arguments, &context).await {
            Ok(answer) => Ok(result::output(&self.server, &self.original, answer)),
            Err(error) => Err(tool_error(&error)),
        }
    }
}

fn description(server: &McpServer, info: &ToolInfo) -> String {
    let told = [&info.description, &info.title, &info.annotations.title];
    let told = told.into_iter().flatten().map(|t| t.trim()).find(|t| !t.is_empty());
    told.map_or_else(
        || format!("The tool `{}` of the MCP server `{}`.", info.name, server.name),
        str::to_owned,
    )
}

fn tool_error(error: &McpError) -> ToolError {
    let kind = if error.is_timeout() {
        ToolErrorKind::Timeout
    } else if error.is_closed() {
        ToolErrorKind::Unavailable
    } else {
        ToolErrorKind::Failed
    };
    let more = if error.is_closed() { ". It is started again with the next run" } else { "" };
    ToolError::new(kind, format!("{error}{more}"))
}

fn progress_text(report: &haversack_mcp_client::protocol::Progress) -> String {
    let part = match report.total {
        Some(total) => format!("{} of {total}", report.progress),
        None => report.progress.to_string(),
    };
    match &report.message {
        Some(message) => format!("{part}: {message}"),
        None => part,
    }
}
