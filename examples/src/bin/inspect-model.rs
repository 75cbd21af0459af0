//! Sends one neutral request to one model and prints what came of it, as one JSON object.
//!
//! ```text
//! inspect-model --api openai-chat --base-url http://127.0.0.1:8080/v1 --model qwen3
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use futures_util::StreamExt as _;
use haversack_agent_core::model::Model;
use haversack_examples::inspect_model::outcome::{ApiName, Outcome};
use haversack_examples::inspect_model::request::NeutralRequest;
use haversack_http::ReqwestClient;
use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses, Provider, Secret};

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

fn set_up<A>(provider: Provider<A>, arguments: &Arguments) -> Provider<A> {
    let provider = match &arguments.key {
        Some(key) => provider.with_key(Secret::new(key)),
        None => provider,
    };
    if arguments.no_stream { provider.without_streaming() } else { provider }
}

fn model(arguments: &Arguments) -> Result<Box<dyn Model>, String> {
    let http = ReqwestClient::new().map_err(|e| e.chain())?;
    let (base, model) = (arguments.base_url.as_str(), arguments.model.as_str());
    Ok(match arguments.api {
        ApiName::OpenAiChat => Box::new(set_up(OpenAiChat::new(http, base, model), arguments)),
        ApiName::OpenAiResponses => Box::new(set_up(OpenAiResponses::new(http, base, model), arguments)),
        ApiName::Anthropic => Box::new(set_up(Anthropic::new(http, base, model), arguments)),
        ApiName::Gemini => Box::new(set_up(Gemini::new(http, base, model), arguments)),
        ApiName::Ollama => Box::new(set_up(Ollama::new(http, base, model), arguments)),
    })
}

async fn run(arguments: &Arguments) -> Result<(), String> {
    let request = match &arguments.request {
        None => NeutralRequest::hello(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?
        }
    };
    let request = request.into_request()?;
    let model = model(arguments)?;
    let mut outcome = Outcome::new(arguments.api);
    let mut events = model.stream(request);
    while let Some(event) = events.next().await {
        if arguments.events {
            eprintln!("{event:?}");
        }
        match event {
            Ok(event) => outcome.add(event),
            Err(error) => outcome.fail(error),
        }
    }
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
