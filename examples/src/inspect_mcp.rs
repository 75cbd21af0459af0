//! The parts of `inspect-mcp`: arguments, one conversation, and the report of it.
//!
//! Every step has the limit that `--timeout` sets: the start, the three lists (which are asked for at once), and each of
//! the operations that are asked for. The end of the process takes at most its grace times.

mod conversation;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use haversack_http::{ReqwestClient, Secret, without_secrets};
use haversack_mcp_client::config::Config;
use haversack_mcp_client::environment::{Environment, EnvironmentPolicy, Inherit};
use haversack_mcp_client::http::{AddressPolicy, HttpAccess, HttpOptions};
use haversack_mcp_client::manager::{Manager, ManagerOptions, ServerState};
use haversack_mcp_client::protocol::EraChoice;
use haversack_mcp_client::{Client, ClientOptions, ServerCommand};
use serde_json::{Map, Value, json};

use conversation::{Asked, converse};
use report::Report;

/// Connects to an MCP server the way Haversack does, lists what it has, does what is asked, and prints one JSON object.
#[derive(Debug, Parser)]
#[command(name = "inspect-mcp")]
pub struct Arguments {
    /// Which revisions to speak: `auto`, `legacy` or `modern`.
    #[arg(long, default_value = "auto", value_parser = era)]
    era: EraChoice,
    /// Seconds that the start may take, and each thing that is asked for.
    #[arg(long, default_value = "30", value_parser = seconds)]
    timeout: Duration,
    /// A tool to call, by the server's own name, and its arguments as a JSON object.
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    call: Option<Vec<String>>,
    /// A resource to read.
    #[arg(long, value_name = "URI")]
    read: Option<String>,
    /// A prompt to fill in, and its arguments as a JSON object.
    #[arg(long, num_args = 2, value_names = ["NAME", "JSON"])]
    prompt: Option<Vec<String>>,
    /// A file in the shape of `.mcp.json`; all of its servers are inspected, and nobody is asked for consent.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    servers: Option<std::path::PathBuf>,
    /// The address of a server over Streamable HTTP.
    #[arg(long, conflicts_with_all = ["command", "servers"])]
    url: Option<String>,
    /// A header that each request to it carries; can be given several times.
    #[arg(long, value_name = "NAME: VALUE", requires = "url", value_parser = header)]
    header: Vec<(String, String)>,
    /// A variable of the environment that holds a bearer token for it.
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    bearer_env: Option<String>,
    /// The server's program and its arguments.
    #[arg(last = true, required_unless_present_any = ["servers", "url"], value_name = "COMMAND")]
    command: Vec<String>,
}

fn era(text: &str) -> Result<EraChoice, String> {
    match text {
        "auto" => Ok(EraChoice::Auto),
        "legacy" => Ok(EraChoice::Legacy),
        "modern" => Ok(EraChoice::Modern),
        _ => Err("must be `auto`, `legacy` or `modern`".into()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be `Name: value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| "must be a number of seconds above zero".into())
}

impl Arguments {
    fn options(&self) -> ClientOptions {
        // A server that is silent on the modern question must leave time for the handshake.
        let probe = (self.timeout / 3).min(Duration::from_secs(10));
        ClientOptions::new("inspect-mcp", env!("CARGO_PKG_VERSION"))
            .with_era(self.era)
            .with_start_timeout(self.timeout)
            .with_probe_timeout(probe)
            .with_call_timeout(self.timeout)
            .with_call_limit(self.timeout)
            .with_request_timeout(self.timeout)
    }

    fn asked(&self) -> Result<Asked, String> {
        let named = |pair: &Option<Vec<String>>| match pair.as_deref() {
            Some([name, arguments]) => Ok(Some((name.clone(), object(arguments)?))),
            _ => Ok::<_, String>(None),
        };
        Ok(Asked { call: named(&self.call)?, read: self.read.clone(), prompt: named(&self.prompt)? })
    }
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("`{text}` is no JSON object: {error}"))
}

/// Does what the arguments say, and gives the report.
///
/// # Errors
///
/// When the arguments make no sense or the file cannot be read; what a server does wrong is in the report.
pub async fn run(arguments: Arguments) -> Result<Value, String> {
    let asked = arguments.asked()?;
    match (&arguments.servers, &arguments.url) {
        (Some(file), _) => inspect_file(file, &arguments, &asked).await,
        (None, Some(url)) => inspect_url(url, &arguments, &asked).await,
        (None, None) => inspect_command(&arguments, &asked).await,
    }
}

/// Whoever names an address on the command line may mean one of their own network.
fn policy() -> AddressPolicy {
    AddressPolicy::default().with_plain_http(true).with_private_networks(true)
}

fn http_client() -> Result<Arc<ReqwestClient>, String> {
    ReqwestClient::new().map(Arc::new).map_err(|error| error.chain())
}

async fn inspect_url(url: &str, arguments: &Arguments, asked: &Asked) -> Result<Value, String> {
    let mut reach =
        HttpOptions::new(url, http_client()?).with_address_policy(policy()).with_old_transport(true);
    for (name, value) in &arguments.header {
        reach = reach.with_header(name, value);
    }
    if let Some(variable) = &arguments.bearer_env {
        let token = std::env::var(variable).map_err(|error| format!("the variable {variable}: {error}"))?;
        reach = reach.with_bearer_token(Secret::new(token));
    }
    let began = Instant::now();
    let report = match Client::connect_http(reach, arguments.options().with_label(host_of(url))).await {
        Ok(client) => inspect(client, began, asked).await,
        Err(error) => Report::not_connected(&error, began.elapsed()),
    };
    Ok(report.into_json())
}

/// What a server is called where only its address is known: its host, without a port.
fn host_of(url: &str) -> String {
    let shown = without_secrets(url);
    let rest = shown.split_once("://").map_or(shown.as_str(), |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = authority.rsplit_once(':').filter(port).map_or(authority, |(host, _)| host);
    if host.is_empty() { "server".to_owned() } else { host.to_owned() }
}

async fn inspect_command(arguments: &Arguments, asked: &Asked) -> Result<Value, String> {
    let (program, args) = arguments.command.split_first().ok_or("no command was given")?;
    // The server is one that its user started by hand, so it sees what any program of theirs would see.
    let command = ServerCommand::new(program).args(args).envs(std::env::vars_os());
    let began = Instant::now();
    let report = match Client::start(&command, arguments.options()).await {
        Ok(client) => inspect(client, began, asked).await,
        Err(error) => Report::not_connected(&error, began.elapsed()),
    };
    Ok(report.into_json())
}

async fn inspect(client: Client, began: Instant, asked: &Asked) -> Report {
    let mut report = converse(&client, asked).await;
    let exit = client.close().await;
    report.end(&client, exit, began.elapsed());
    report
}

/// All servers of a file, through the manager.
async fn inspect_file(file: &std::path::Path, arguments: &Arguments, asked: &Asked) -> Result<Value, String> {
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let root = std::env::current_dir().map_err(|error| format!("no working folder: {error}"))?;
    let config = Config::new(root).with_repository_file(&file.to_string_lossy(), &text);
    // Whoever names a file on the command line has read it.
    let approved = match config.consent_question() {
        Some(question) => config.approve(question.fingerprint()).map_err(|error| error.to_string())?,
        None => config.withhold(),
    };
    let options = ManagerOptions::new(arguments.options())
        .with_environment(EnvironmentPolicy::new(Inherit::AllButSecrets))
        .with_http(HttpAccess::new(http_client()?).with_address_policy(policy()).with_old_transport(true));
    let manager = Manager::new(options);
    let environment: Environment = std::env::vars_os().collect();
    let mut problems = config.problems().to_vec();
    problems.extend(manager.set_config(&approved, &environment));
    let began = Instant::now();
    let started = manager.ensure_started().await;
    let (mut servers, mut ok) = (Map::new(), true);
    for status in &started.statuses {
        let report = match (manager.client(&status.name), &status.state) {
            (Some(client), _) => inspect(client, began, asked).await,
            (None, ServerState::Disabled | ServerState::Unsupported(_)) => continue,
            (None, state) => Report::not_started(&state.to_string(), began.elapsed()),
        };
        let report = report.into_json();
        ok &= report["ok"] == true;
        servers.insert(status.name.to_string(), report);
    }
    manager.close().await;
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Ok(json!({"ok": ok, "servers": servers, "problems": problems}))
}
