//! Resources and prompts of servers as two tools, for hosts that want the model to reach them.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::prelude::*;
use haversack_mcp_client::Client;
use haversack_mcp_client::protocol::{Content, EmbeddedResource, ToolResult as McpResult};
use serde_json::{Map, Value, json};

use super::{McpServer, result, tool_error};

/// Entries that a listing shows; the rest is counted.
const MAX_LISTED: usize = 100;

/// The tools for what these servers declare: `mcp_resources` if one has resources, `mcp_prompts` if one has prompts.
/// Every call asks for approval, as calls of server tools do.
pub fn browse_tools(servers: &[McpServer]) -> Vec<Arc<dyn Tool>> {
    let with = |has: fn(&Client) -> bool| -> Vec<(Arc<str>, Client)> {
        let servers = servers.iter().filter(|server| has(&server.client));
        servers.map(|server| (Arc::clone(&server.name), server.client.clone())).collect()
    };
    let resources = with(|client| client.info().capabilities.resources());
    let prompts = with(|client| client.info().capabilities.prompts());
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if !resources.is_empty() {
        tools.push(Arc::new(Resources { spec: resources_spec(&resources), servers: resources }));
    }
    if !prompts.is_empty() {
        tools.push(Arc::new(Prompts { spec: prompts_spec(&prompts), servers: prompts }));
    }
    tools
}

type Servers = Vec<(Arc<str>, Client)>;

struct Resources {
    spec: ToolSpec,
    servers: Servers,
}

struct Prompts {
    spec: ToolSpec,
    servers: Servers,
}

fn names(servers: &Servers) -> Value {
    servers.iter().map(|(name, _)| Value::from(&**name)).collect()
}

fn resources_spec(servers: &Servers) -> ToolSpec {
    let text = "Lists the resources of an MCP server, or reads one by its URI.";
    let schema = json!({"type": "object", "required": ["server"], "properties": {
        "server": {"type": "string", "enum": names(servers)},
        "uri": {"type": "string", "description": "The resource to read; without it, they are listed."}
    }});
    reading(ToolSpec::new("mcp_resources", text).with_schema(schema))
}

fn prompts_spec(servers: &Servers) -> ToolSpec {
    let text = "Lists the prompts of an MCP server, or gets one by its name.";
    let schema = json!({"type": "object", "required": ["server"], "properties": {
        "server": {"type": "string", "enum": names(servers)},
        "name": {"type": "string", "description": "The prompt to get; without it, they are listed."},
        "arguments": {"type": "object", "description": "The prompt's arguments, all of them texts."}
    }});
    reading(ToolSpec::new("mcp_prompts", text).with_schema(schema))
}

/// Reading changes nothing as far as the protocol goes, but it is the servers that say so.
fn reading(spec: ToolSpec) -> ToolSpec {
    spec.with_effects(Effects::claimed_by_server(Some(true), Some(false), Some(true))).with_origin("mcp")
}

fn server<'a>(servers: &'a Servers, arguments: &Value) -> Result<&'a (Arc<str>, Client), ToolError> {
    let asked = arguments.get("server").and_then(Value::as_str).unwrap_or_default();
    servers.iter().find(|(name, _)| **name == *asked).ok_or_else(|| {
        let known: Vec<_> = servers.iter().map(|(name, _)| &**name).collect();
        ToolError::invalid_arguments(format!("there is no server `{asked}`; there are {}", known.join(", ")))
    })
}

#[async_trait]
impl Tool for Resources {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let (name, client) = server(&self.servers, &arguments)?;
        if let Some(uri) = arguments.get("uri").and_then(Value::as_str) {
            let read = client.read_resource(uri).await.map_err(|error| tool_error(&error))?;
            let parts = read.contents.into_iter().map(|contents| {
                let mut part = EmbeddedResource::default();
                part.resource = contents;
                Content::Resource(part)
            });
            return Ok(result::output(name, "mcp_resources", McpResult::of(parts.collect())));
        }
        let listed = client.list_resources().await.map_err(|error| tool_error(&error))?;
        let templates = client.list_resource_templates().await.map_err(|error| tool_error(&error))?;
        let lines = listed
            .items
            .iter()
            .map(|r| line(&r.uri, r.title.as_ref().or(r.name.as_ref()), r.description.as_ref()));
        let patterns =
            templates.items.iter().map(|t| line(&t.uri_template, t.name.as_ref(), t.description.as_ref()));
        Ok(listing(name, "mcp_resources", lines.chain(patterns)))
    }
}

#[async_trait]
impl Tool for Prompts {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let (server, client) = server(&self.servers, &arguments)?;
        if let Some(name) = arguments.get("name").and_then(Value::as_str) {
            let given =
                arguments.get("arguments").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
            let prompt = client.get_prompt(name, given).await.map_err(|error| tool_error(&error))?;
            let parts = prompt.messages.into_iter().map(|message| message.content);
            return Ok(result::output(server, "mcp_prompts", McpResult::of(parts.collect())));
        }
        let listed = client.list_prompts().await.map_err(|error| tool_error(&error))?;
        let lines = listed.items.iter().map(|p| line(&p.name, p.title.as_ref(), p.description.as_ref()));
        Ok(listing(server, "mcp_prompts", lines))
    }
}

fn line(id: &str, title: Option<&String>, description: Option<&String>) -> String {
    let mut line = format!("- {id}");
    for text in [title, description].into_iter().flatten() {
        let text: Vec<_> = text.split_whitespace().collect();
        // Writing to a string does not fail.
        let _ = write!(line, ": {}", text.join(" "));
    }
    line
}

fn listing(server: &str, tool: &str, lines: impl Iterator<Item = String>) -> ToolOutput {
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(MAX_LISTED);
    lines.truncate(MAX_LISTED);
    if more > 0 {
        lines.push(format!("(and {more} more)"));
    }
    if lines.is_empty() {
        lines.push("(none)".to_owned());
    }
    result::output(server, tool, McpResult::of(vec![Content::text(lines.join("\n"))]))
}
