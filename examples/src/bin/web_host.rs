//! A page in the browser with any model, the project's skills and its MCP servers. See the README.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use haversack::mcp::environment::Environment;
use haversack_examples::chat::provider::{Choice, names};
use haversack_examples::terminal::{asked_to_stop, plain};
use haversack_examples::web_host::WebHost;

/// Serves one page on this machine, to chat with a model and to decide about its calls.
///
/// CHAT_PROVIDER, CHAT_MODEL and CHAT_BASE_URL stand in for the flags of these names.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The project to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Who runs the model [default: the rehearsal, which needs nothing]
    #[arg(long, value_name = "NAME", value_parser = names())]
    provider: Option<String>,
    /// The model's name there
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Another address than the provider's usual one, for example http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The name of the environment variable that holds the key [default: the provider's usual one]
    #[arg(long, value_name = "VAR")]
    api_key_env: Option<String>,
    /// The port, on this machine only; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("web_host: {}", plain(&line));
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Arguments) -> Result<(), String> {
    let environment: Environment = std::env::vars_os().collect();
    let mut choice = Choice::default();
    choice.provider = arguments.provider;
    choice.model = arguments.model;
    choice.base_url = arguments.base_url;
    choice.key_variable = arguments.api_key_env;
    let chosen = choice.or_environment(&environment).make(&environment).await?;
    let host = WebHost::open(chosen.model.clone(), arguments.project, environment, arguments.port).await?;
    println!("model: {}", plain(&chosen.title));
    println!("open {}", host.address());
    host.serve(asked_to_stop()).await
}
