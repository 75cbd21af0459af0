//! A chat at the terminal with any model, the project's skills and its MCP servers. See the README.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use haversack::agent_core::policy::Mode;
use haversack_examples::chat::input::Input;
use haversack_examples::chat::provider::names;
use haversack_examples::chat::screen::{Look, Screen};
use haversack_examples::chat::tty::{Tty, columns};
use haversack_examples::chat::turn::Signals;
use haversack_examples::chat::{Options, command, run};
use haversack_examples::terminal::plain;
use tokio::sync::Notify;

/// Chats with a model that has the project's skills and servers, and asks before each call.
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
    /// Tokens that the model takes: shows how full its context is, and sums up before it is full
    #[arg(long, value_name = "TOKENS")]
    context_window: Option<u64>,
    /// What is asked about: read-only, ask, accept-known or autonomous
    #[arg(long, value_name = "MODE", default_value = "ask", value_parser = mode)]
    mode: Mode,
    /// Go on with a saved session; it is saved there after each turn
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Skills of your own, beside those of the project
    #[arg(long, value_name = "DIR")]
    user_skills: Option<PathBuf>,
    /// Remember here what you agreed to use
    #[arg(long, value_name = "DIR")]
    consents: Option<PathBuf>,
    /// Answer every question with yes
    #[arg(long)]
    yes: bool,
    /// No colours (NO_COLOR in the environment does the same)
    #[arg(long)]
    no_colour: bool,
}

fn mode(name: &str) -> Result<Mode, String> {
    command::mode(name).ok_or_else(|| "read-only, ask, accept-known or autonomous".to_owned())
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let tty = Tty::found().map(Arc::new);
    let result = chat(arguments, tty.clone()).await;
    if let Some(tty) = tty {
        tty.restore();
    }
    if let Err(line) = &result {
        eprintln!("chat: {}", plain(line));
    }
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn chat(arguments: Arguments, tty: Option<Arc<Tty>>) -> Result<(), String> {
    let mut options = Options::new(arguments.project);
    options.environment = std::env::vars_os().collect();
    options.choice.provider = arguments.provider;
    options.choice.model = arguments.model;
    options.choice.base_url = arguments.base_url;
    options.choice.key_variable = arguments.api_key_env;
    options.choice.context_window = arguments.context_window;
    options.mode = arguments.mode;
    options.resume = arguments.resume;
    options.user_skills = arguments.user_skills;
    options.consent_folder = arguments.consents;
    options.assume_yes = arguments.yes;

    let out_is_terminal = std::io::stdout().is_terminal();
    let colours = !arguments.no_colour && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let look = if out_is_terminal { Look::terminal(colours) } else { Look::pipe() };
    let screen = Screen::new(std::io::stdout(), look, columns);
    let interactive = out_is_terminal && tty.is_some();
    if let Some(tty) = tty.as_ref().filter(|_| interactive) {
        tty.echo(false);
    }
    let input = if interactive { Input::editor(tty)? } else { Input::pipe() };
    run(options, screen, input, signals()).await.map(drop)
}

/// Ctrl-C stops a turn; the signals with which terminals and supervisors end a program end the chat, in order.
fn signals() -> Signals {
    let signals = Signals { interrupt: Arc::new(Notify::new()), end: Arc::new(Notify::new()) };
    let interrupt = Arc::clone(&signals.interrupt);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            interrupt.notify_one();
        }
    });
    #[cfg(unix)]
    for kind in [tokio::signal::unix::SignalKind::terminate(), tokio::signal::unix::SignalKind::hangup()] {
        let (end, stream) = (Arc::clone(&signals.end), tokio::signal::unix::signal(kind));
        tokio::spawn(async move {
            if let Ok(mut stream) = stream {
                while stream.recv().await.is_some() {
                    end.notify_one();
                }
            }
        });
    }
    signals
}
