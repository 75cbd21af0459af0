//! What the command line takes.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use haversack_skill_runtime::metadata::{Approval, Word};

const EXAMPLES: &str = "\
Examples:
  haversack-skill-server --skills-dir ~/skills
      Serves a folder of skills on standard input and output, as clients start it.
  haversack-skill-server --skills-dir ./skills --transport http --port 3030
      Serves it at http://127.0.0.1:3030/mcp.
  haversack-skill-server --skills-dir ./skills --servers .mcp.json --model-api ollama --model qwen3
      Pipelines call the tools of these MCP servers, and agents run on this model.
  haversack-skill-server validate ./skills
      Says what is wrong with the skills of a folder; exit status 1 if something is.
  haversack-skill-server call --skills-dir ./skills greet '{\"name\": \"Ada\"}'
      Runs one skill and prints what it gives back.";

/// Folders of skills as an MCP server: every skill a tool, prompt skills as prompts, all files as resources.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,

    /// What is logged, to standard error.
    #[arg(long, global = true, value_enum, default_value_t = Log::Warn)]
    pub(crate) log: Log,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves skills to MCP clients. This is what happens when no command is named.
    Serve(ServeArgs),
    /// Says what is wrong with the skills of a folder.
    #[command(
        after_help = "Exit status: 0 if every skill can be served, 1 if one cannot, 2 for a wrong command line."
    )]
    Validate(ValidateArgs),
    /// Compiles the pipelines of a folder and prints them.
    Compile(CompileArgs),
    /// Lists what would be served, and what would not and why.
    List(ListArgs),
    /// Calls one skill and prints what it gives back. Exit status 1 if it reports an error.
    Call(CallArgs),
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) host: HostArgs,

    /// How clients are spoken with.
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    pub(crate) transport: Transport,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// The port to listen on; 0 for a free one, which is logged.
    #[arg(long, default_value_t = 3030)]
    pub(crate) port: u16,

    /// The address to listen on. Others than those of this machine need --bearer-token-file.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// Names by which clients may reach the server, beside those of this machine; may be given again.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Origins from which pages in browsers may call, such as `http://localhost:5173`; may be given again.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// A file with the token that clients have to send.
    #[arg(long, value_name = "FILE")]
    pub(crate) bearer_token_file: Option<PathBuf>,

    /// Bytes of a request at most.
    #[arg(long, value_name = "BYTES", default_value_t = 4 * 1024 * 1024)]
    pub(crate) max_body: usize,

    /// Requests that run at a time; further ones are answered with 503.
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    pub(crate) max_requests: usize,

    /// Sessions of older clients that are open at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub(crate) max_sessions: usize,
}

/// Where skills are, and what they may use.
#[derive(Args, Debug)]
pub(crate) struct HostArgs {
    /// A folder of skills; may be given again, and of skills of one name that of the first folder is served.
    /// [default: the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) skills_dir: Vec<PathBuf>,

    /// MCP servers whose tools pipelines and agents may use, in the format of `.mcp.json`.
    #[arg(long, value_name = "FILE")]
    pub(crate) servers: Option<PathBuf>,

    /// The API of the model that agents run on.
    #[arg(long, value_enum, requires = "model")]
    pub(crate) model_api: Option<ModelApi>,

    /// The address of the API, where it is not the usual one.
    #[arg(long, value_name = "URL", requires = "model_api")]
    pub(crate) base_url: Option<String>,

    /// The name of the model.
    #[arg(long, value_name = "NAME", requires = "model_api")]
    pub(crate) model: Option<String>,

    /// The environment variable that holds the key of the API.
    #[arg(long, value_name = "VARIABLE", requires = "model_api")]
    pub(crate) api_key_env: Option<String>,

    /// What steps of pipelines may want without anybody being asked; with `exec_escalation`, agents ask nothing either.
    #[arg(long, value_name = "APPROVAL", default_value = "none", value_parser = approval)]
    pub(crate) pre_approve: Approval,

    /// A tool that agents may call without anybody being asked, `*` for any characters; may be given again.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow_tool: Vec<String>,
}

impl HostArgs {
    /// No folders, nothing to use.
    pub(crate) fn bare() -> Self {
        Self {
            skills_dir: Vec::new(),
            servers: None,
            model_api: None,
            base_url: None,
            model: None,
            api_key_env: None,
            pre_approve: Approval::None,
            allow_tool: Vec::new(),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// The folder.
    pub(crate) dir: PathBuf,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompileArgs {
    /// The folder.
    pub(crate) dir: PathBuf,

    /// MCP servers whose tools pipelines may use; without it, every tool counts as known.
    #[arg(long, value_name = "FILE")]
    pub(crate) servers: Option<PathBuf>,

    /// Also writes the pipelines to this folder, as `composed_tools.json`.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) host: HostArgs,

    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) host: HostArgs,

    /// The skill, by its name or that of its tool.
    pub(crate) skill: String,

    /// The arguments, a JSON object.
    #[arg(default_value = "{}", value_name = "JSON", value_parser = object)]
    pub(crate) arguments: serde_json::Value,

    /// Prints the whole result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP, at `/mcp`.
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelApi {
    /// OpenAI's Chat Completions, which most servers imitate.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// Nothing.
    Off,
    /// What failed.
    Error,
    /// And what may be wrong.
    Warn,
    /// And what happens.
    Info,
    /// And how.
    Debug,
}

fn approval(word: &str) -> Result<Approval, String> {
    Approval::from_word(word).ok_or_else(|| format!("it is one of {}", Approval::WORDS.join(", ")))
}

fn object(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("it is no JSON object".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
