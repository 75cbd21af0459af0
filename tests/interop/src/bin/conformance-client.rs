//! The client under test of the official MCP conformance suite, which starts it as `conformance-client URL`.
//!
//! The client itself is the library as any host uses it; this file only decides which calls are made in which scenario.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_http::{HttpClient, HttpRequest, Method, ReqwestClient};
use haversack_mcp_client::http::{AddressPolicy, HttpOptions};
use haversack_mcp_client::oauth::{AuthorizationRequest, Browser, ClientCredentials, OAuth, OAuthOptions};
use haversack_mcp_client::protocol::{EraChoice, ToolInfo};
use haversack_mcp_client::{Client, ClientOptions, Elicitation, ElicitationAnswer, ElicitationHandler};
use haversack_skills::Limits;
use haversack_tool_adapter::served_skills::{ServedOffer, ServedSkills};
use serde_json::{Map, Value, json};

type Fault = Box<dyn Error + Send + Sync>;

/// The identifier that the suite's authorization servers take for a client with a metadata document.
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back() else { return ExitCode::from(2) };
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION");
    let context = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    match run(&url, &scenario, &version, &context).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("conformance-client: {scenario}: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// Plays one scenario. That it cannot be played to its end is what some of them want.
async fn run(url: &str, scenario: &str, version: &str, context: &Value) -> Result<(), Fault> {
    let era = if version >= "2026" { EraChoice::Auto } else { EraChoice::Legacy };
    let options = ClientOptions::new("haversack-conformance", env!("CARGO_PKG_VERSION"))
        .with_era(era)
        .with_elicitation(Arc::new(Defaults));
    let http = ReqwestClient::new()?;
    let policy = AddressPolicy::default().with_plain_http(true).with_private_networks(true);
    let mut reach = HttpOptions::new(url, Arc::new(http.clone())).with_address_policy(policy);
    if scenario.starts_with("auth/") {
        reach = reach.with_token_source(Arc::new(oauth(http, context)));
    }
    let client = Client::connect_http(reach, options).await?;
    let outcome = play(&client, scenario, context).await;
    client.close().await;
    outcome
}

async fn play(client: &Client, scenario: &str, context: &Value) -> Result<(), Fault> {
    match scenario {
        "initialize" => Ok(()),
        "elicitation-sep1034-client-defaults" => {
            call(client, "test_client_elicitation_defaults", &json!({})).await
        }
        "sse-retry" => call(client, "test_reconnection", &json!({})).await,
        "tools_call" => {
            client.list_tools().await?;
            call(client, "add_numbers", &json!({"a": 5, "b": 3})).await
        }
        "sep-2322-client-request-state" => call_rounds(client).await,
        "http-standard-headers" => use_everything(client).await,
        "http-custom-headers" => {
            client.list_tools().await?;
            for wanted in context["toolCalls"].as_array().into_iter().flatten() {
                call(client, wanted["name"].as_str().unwrap_or_default(), &wanted["arguments"]).await?;
            }
            Ok(())
        }
        "http-invalid-tool-headers" => {
            for tool in client.list_tools().await?.items {
                call(client, &tool.name, &arguments_for(&tool)).await?;
            }
            Ok(())
        }
        _ if scenario.starts_with("sep-2640-client-") => skills(client, scenario).await,
        _ if scenario.starts_with("auth/") => {
            client.list_tools().await?;
            call(client, "test-tool", &json!({})).await
        }
        _ => client.list_tools().await.map(drop).map_err(Into::into),
    }
}

async fn call(client: &Client, tool: &str, arguments: &Value) -> Result<(), Fault> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    client.call_tool(tool, arguments).await.map(drop).map_err(Into::into)
}

/// A value for each parameter that a tool demands.
fn arguments_for(tool: &ToolInfo) -> Value {
    let properties = tool.input_schema["properties"].as_object().cloned().unwrap_or_default();
    let values = properties.into_iter().map(|(name, schema)| {
        let value = match schema["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("object") => json!({}),
            Some("array") => json!([]),
            _ => json!("test"),
        };
        (name, value)
    });
    Value::Object(values.collect())
}

/// Calls all tools, and one that asks nothing in between.
async fn call_rounds(client: &Client) -> Result<(), Fault> {
    let tools = client.list_tools().await?.items;
    for tool in &tools {
        // A tool may be made to fail; the suite judges what was sent.
        let called = call(client, &tool.name, &arguments_for(tool)).await;
        if let Err(fault) = called {
            eprintln!("{}: {fault}", tool.name);
        }
        if tools.iter().any(|tool| tool.name == "test_mrtr_unrelated") {
            call(client, "test_mrtr_unrelated", &json!({})).await?;
        }
    }
    Ok(())
}

async fn use_everything(client: &Client) -> Result<(), Fault> {
    for tool in client.list_tools().await?.items {
        call(client, &tool.name, &arguments_for(&tool)).await?;
    }
    for resource in client.list_resources().await?.items {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await?.items {
        let arguments =
            prompt.arguments.iter().map(|argument| (argument.name.clone(), json!("test"))).collect();
        client.get_prompt(&prompt.name, arguments).await?;
    }
    Ok(())
}

/// Lists the skills that are served and reads of them what is asked, each file only if the one before was what it should.
async fn skills(client: &Client, scenario: &str) -> Result<(), Fault> {
    let offer = ServedOffer::new("suite", client.clone(), client.list_skills().await?.items);
    let served = ServedSkills::new([offer], Limits::default());
    for name in served.names() {
        if scenario.ends_with("no-prefetch") {
            continue;
        }
        served.load(name, 1).await?;
        served.resource(name, "references/FORMS.md", 1).await?;
    }
    Ok(())
}

/// Agrees to every form and leaves all fields to their defaults.
struct Defaults;

#[async_trait]
impl ElicitationHandler for Defaults {
    async fn elicit(&self, _: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept(Map::new())
    }
}

fn oauth(http: ReqwestClient, context: &Value) -> OAuth {
    let mut options = OAuthOptions::new("haversack-conformance")
        .with_client_metadata_url(METADATA_URL)
        .with_private_addresses(true);
    if let Some(id) = context["client_id"].as_str() {
        let mut known = ClientCredentials::new(id);
        if let Some(secret) = context["client_secret"].as_str() {
            known = known.with_secret(secret);
        }
        options = options.with_client(context["issuer"].as_str().unwrap_or_default(), known);
    }
    OAuth::new(http.clone(), Agreeing(http), options)
}

/// A browser whose user agrees at once: the suite's authorization servers redirect without asking.
struct Agreeing(ReqwestClient);

#[async_trait]
impl Browser for Agreeing {
    fn redirect_uri(&self) -> String {
        "http://localhost:3000/callback".to_owned()
    }

    async fn visit(&self, request: &AuthorizationRequest) -> Result<String, Fault> {
        let answer = self.0.send(HttpRequest::new(Method::GET, &request.url)).await?;
        let back = answer.header("location").ok_or("the authorization server does not redirect")?;
        Ok(back.to_owned())
    }
}
