//! Sends one neutral request to one model and prints what came of it, as one JSON object.
//!
//! ```text
//! inspect-model --api openai-chat --base-url http://127.0.0.1:8080/v1 --model qwen3
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use haversack_examples::inspect_model::ask::Target;
use haversack_examples::inspect_model::outcome::ApiName;
use haversack_examples::inspect_model::request::NeutralRequest;
use haversack_http::{ReqwestClient, Secret};

/// Sends one request to one model and prints what came of it as JSON; exits with 0 when it did, also for an error of the API.
#[derive(Debug, Parser)]
#[command(name = "inspect-model")]
struct Arguments {
    /// openai-chat, openai-responses, anthropic, gemini or ollama.
    #[arg(long, value_parser = api)]
    api: ApiName,
    /// The address, up to where the path of the API begins.
    #[arg(long)]
    base_url: String,
    /// The model.
    #[arg(long)]
    model: String,
    /// The key, where the server wants one.
    #[arg(long)]
    key: Option<String>,
    /// Asks for the whole answer at once.
    #[arg(long)]
    no_stream: bool,
    /// A file with the request as JSON: system, messages, tools, tool_choice, options.
    #[arg(long)]
    request: Option<PathBuf>,
    /// Prints every event on standard error while it comes.
    #[arg(long)]
    events: bool,
}

fn api(name: &str) -> Result<ApiName, String> {
    let names = || ApiName::ALL.map(ApiName::name).join(", ");
    ApiName::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| format!("it is one of {}", names()))
}

async fn run(arguments: &Arguments) -> Result<(), String> {
    let request = match &arguments.request {
        None => NeutralRequest::hello(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?
        }
    };
    let target = Target {
        api: arguments.api,
        base_url: arguments.base_url.clone(),
        model: arguments.model.clone(),
        key: arguments.key.as_deref().map(Secret::new),
        streams: !arguments.no_stream,
    };
    let http = ReqwestClient::new().map_err(|e| e.chain())?;
    let outcome = target
        .ask(http, request.into_request()?, |event| {
            if arguments.events {
                eprintln!("{event:?}");
            }
        })
        .await;
    println!("{}", outcome.to_json());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("inspect-model: {problem}");
            ExitCode::FAILURE
        }
    }
}
