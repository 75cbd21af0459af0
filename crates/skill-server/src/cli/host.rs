//! The host that the flags describe: folders, tools of MCP servers, a model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haversack_agent_core::tool_context::Tool;
use haversack_skill_server::{Host, SkillServer};
use haversack_skills::{LinkPolicy, Root, Roots, Source};

use crate::cli::Ending;
use crate::cli::args::HostArgs;

/// A server with all that it stands on.
pub(crate) struct Built {
    pub(crate) server: SkillServer,
    servers: Servers,
}

impl Built {
    /// Ends the servers whose tools were used.
    pub(crate) async fn close(self) {
        self.servers.close().await;
    }
}

/// Builds what the flags say.
pub(crate) async fn build(args: &HostArgs) -> Result<Built, Ending> {
    let roots = roots(&args.skills_dir)?;
    let (tools, servers) = tools(args.servers.as_deref()).await?;
    let mut host = Host::new().with_tools(tools).with_pre_approved(args.pre_approve);
    for pattern in &args.allow_tool {
        host = host.with_allowed_tool(pattern);
    }
    let host = with_model(host, args)?;
    let server = tokio::task::spawn_blocking(move || SkillServer::new(&roots, host)).await??;
    for problem in server.catalogue().problems() {
        tracing::warn!("{problem}");
    }
    Ok(Built { server, servers })
}

/// The folders of skills, the first one foremost. Links in them are followed only where they stay inside.
pub(crate) fn roots(folders: &[PathBuf]) -> Result<Roots, Ending> {
    let here = [PathBuf::from(".")];
    let folders = if folders.is_empty() { &here } else { folders };
    let mut roots = Roots::new();
    for folder in folders {
        let real = folder
            .canonicalize()
            .ok()
            .filter(|folder| folder.is_dir())
            .ok_or_else(|| Ending::Usage(format!("there is no folder {}", folder.display())))?;
        let root = Root::new(real, Source::Host, folder.display().to_string());
        roots = roots.with_root(root.with_links(LinkPolicy::Inside));
    }
    Ok(roots)
}

#[cfg(feature = "agents")]
fn with_model(host: Host, args: &HostArgs) -> Result<Host, Ending> {
    use haversack_http::{ReqwestClient, Secret};
    use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};

    use crate::cli::args::ModelApi;

    let (Some(api), Some(model)) = (args.model_api, args.model.as_deref()) else { return Ok(host) };
    let key = match &args.api_key_env {
        None => None,
        Some(name) => {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            Some(Secret::from(value.ok_or_else(|| Ending::Usage(format!("{name} is not set")))?))
        }
    };
    let http = ReqwestClient::new()?;
    let url = |usual: &'static str| args.base_url.clone().unwrap_or_else(|| usual.to_owned());
    macro_rules! with {
        ($provider:expr) => {{
            let provider = $provider;
            match key {
                Some(key) => host.with_model(provider.with_key(key)),
                None => host.with_model(provider),
            }
        }};
    }
    Ok(match api {
        ModelApi::OpenaiChat => with!(OpenAiChat::new(http, url("https://api.openai.com/v1"), model)),
        ModelApi::OpenaiResponses => {
            with!(OpenAiResponses::new(http, url("https://api.openai.com/v1"), model))
        }
        ModelApi::Anthropic => with!(Anthropic::new(http, url("https://api.anthropic.com"), model)),
        ModelApi::Gemini => with!(Gemini::new(http, url("https://generativelanguage.googleapis.com"), model)),
        ModelApi::Ollama => with!(Ollama::new(http, url("http://127.0.0.1:11434"), model)),
    })
}

#[cfg(not(feature = "agents"))]
fn with_model(host: Host, args: &HostArgs) -> Result<Host, Ending> {
    match args.model_api {
        Some(_) => Err(Ending::Usage("this program was built without models (feature `agents`)".to_owned())),
        None => Ok(host),
    }
}

#[cfg(feature = "servers")]
#[derive(Default)]
struct Servers(Option<haversack_mcp_client::manager::Manager>);

#[cfg(feature = "servers")]
impl Servers {
    async fn close(self) {
        if let Some(manager) = self.0 {
            manager.close().await;
        }
    }
}

/// The tools of the servers of a file, which are started. One that does not start is logged and costs its own tools only.
#[cfg(feature = "servers")]
async fn tools(file: Option<&Path>) -> Result<(Vec<Arc<dyn Tool>>, Servers), Ending> {
    use haversack_mcp_client::ClientOptions;
    use haversack_mcp_client::config::Config;
    use haversack_mcp_client::environment::Environment;
    use haversack_mcp_client::manager::{Manager, ManagerOptions};
    use haversack_tool_adapter::mcp::{McpServer, mcp_tools};
    use haversack_tool_adapter::naming::NameTable;
    use serde_json::Value;

    let Some(file) = file else { return Ok((Vec::new(), Servers::default())) };
    let unusable = |why: String| Ending::Usage(format!("{}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
    let read: Value = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    let servers = read.get("mcpServers").unwrap_or(&read);
    let folder = file.canonicalize().map_err(|error| unusable(error.to_string()))?;
    let folder = folder.parent().unwrap_or(Path::new("/"));
    // Whoever starts the program names the file: that is the consent.
    let config = Config::new(folder).with_host_servers(servers);
    for problem in config.problems() {
        tracing::warn!("{}: {problem}", file.display());
    }
    let options = ClientOptions::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let manager = Manager::new(ManagerOptions::new(options));
    let environment: Environment = std::env::vars_os().collect();
    for problem in manager.set_config(&config.withhold(), &environment) {
        tracing::warn!("{}: {problem}", file.display());
    }
    for status in manager.ensure_started().await.new_failures() {
        tracing::warn!("the server `{}` did not start: {:?}", status.name, status.state);
    }
    let mut connected = Vec::new();
    for server in manager.ready() {
        match server.client.list_tools().await {
            Ok(list) => connected.push(McpServer::new(&*server.name, server.client.clone(), list.items)),
            Err(error) => tracing::warn!("the server `{}` does not list its tools: {error}", server.name),
        }
    }
    let made = mcp_tools(connected, &mut NameTable::default());
    for problem in &made.problems {
        tracing::warn!("{problem}");
    }
    Ok((made.tools, Servers(Some(manager))))
}

#[cfg(not(feature = "servers"))]
#[derive(Default)]
struct Servers;

#[cfg(not(feature = "servers"))]
impl Servers {
    #[expect(clippy::unused_async, reason = "the same face as with the feature")]
    async fn close(self) {}
}

#[cfg(not(feature = "servers"))]
#[expect(clippy::unused_async, reason = "the same face as with the feature")]
async fn tools(file: Option<&Path>) -> Result<(Vec<Arc<dyn Tool>>, Servers), Ending> {
    match file {
        Some(_) => {
            Err(Ending::Usage("this program was built without other servers (feature `servers`)".to_owned()))
        }
        None => Ok((Vec::new(), Servers)),
    }
}
