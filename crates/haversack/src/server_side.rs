//! MCP servers: configured by the project and the host, asked about, started and kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haversack_mcp_client::config::Config;
use haversack_mcp_client::consent::{
    ConsentPrompt, ConsentQuestion as Question, ConsentStore, Decision, FileConsentStore, MemoryConsentStore,
    settle,
};
use haversack_mcp_client::environment::Environment;
use haversack_mcp_client::manager::{Manager, ManagerOptions, ReadyServer, ServerState, StartReport};
use haversack_tool_adapter::mcp::{McpServer, McpTools, browse_tools, mcp_tools};
use haversack_tool_adapter::naming::NameTable;
use serde_json::Value;

use crate::consent::{Consent, ConsentQuestion, ConsentSubject};
use crate::error::Error;
use crate::report::{Note, Report, ServerReport};

/// The servers of a project, kept between runs.
pub(crate) struct ServerSide {
    host_servers: Vec<Value>,
    root: PathBuf,
    reads_project: bool,
    workspace: String,
    environment: Environment,
    manager: Manager,
    names: Mutex<NameTable>,
    browses: bool,
    has_http: bool,
    store: Box<dyn ConsentStore>,
}

impl ServerSide {
    pub(crate) fn new(
        host_servers: Vec<Value>,
        root: PathBuf,
        reads_project: bool,
        environment: Environment,
        options: ManagerOptions,
        browses: bool,
        store: Option<&Path>,
    ) -> Self {
        let store: Box<dyn ConsentStore> = match store {
            Some(folder) => Box::new(FileConsentStore::new(folder.join("servers.json"))),
            None => Box::new(MemoryConsentStore::default()),
        };
        let manager = Manager::new(options);
        let workspace = root.to_string_lossy().into_owned();
        Self {
            host_servers,
            root,
            reads_project,
            workspace,
            environment,
            manager,
            names: Mutex::default(),
            browses,
            has_http: false,
            store,
        }
    }

    /// Says whether servers over HTTP can be reached.
    pub(crate) fn with_http(mut self, has_http: bool) -> Self {
        self.has_http = has_http;
        self
    }

    /// Reads the configuration, asks what has to be asked, starts what may start, and makes tools of it.
    pub(crate) async fn prepare(
        &self,
        consent: Option<&dyn Consent>,
        reserved: &[Arc<str>],
        report: &mut Report,
    ) -> Result<McpTools, Error> {
        let read = if self.reads_project { Config::read_project } else { Config::new };
        let config = self.host_servers.iter().fold(read(self.root.clone()), Config::with_host_servers);
        let config = if self.has_http { config } else { config.without_http() };
        report.notes.extend(config.problems().iter().map(|p| Note::new("MCP servers", p.to_string())));
        let prompt = consent.map(Prompt);
        let prompt = prompt.as_ref().map(|p| p as &dyn ConsentPrompt);
        let settled = settle(config, &self.workspace, &*self.store, prompt).await;
        if let Some(error) = settled.store_error {
            report.notes.push(Note::new("server consent", error.to_string()));
        }
        let problems = self.manager.set_config(&settled.approved, &self.environment);
        report.notes.extend(problems.iter().map(|p| Note::new("MCP servers", p.to_string())));
        let started = self.manager.ensure_started().await;
        for failure in started.new_failures() {
            report.notes.push(Note::new(format!("MCP server `{}`", failure.name), in_words(&failure.state)));
        }
        let tools = self.tools(reserved, report).await;
        describe(&started, &tools, report);
        match started.missing_required().next() {
            None => Ok(tools),
            Some(missing) => Err(Error::MissingServer {
                server: missing.name.to_string(),
                state: in_words(&missing.state),
            }),
        }
    }

    async fn tools(&self, reserved: &[Arc<str>], report: &mut Report) -> McpTools {
        let mut servers = Vec::new();
        for server in self.manager.ready() {
            match listed(&server, report).await {
                Some(listed) => servers.push(listed),
                None => report.notes.push(Note::new(
                    format!("MCP server `{}`", server.name),
                    "its tools could not be listed; the run goes on without them",
                )),
            }
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.iter().for_each(|name| names.reserve(Arc::clone(name)));
        let browse = if self.browses { browse_tools(&servers) } else { Vec::new() };
        let mut made = mcp_tools(servers, &mut names);
        made.tools.extend(browse.into_iter().filter(|tool| {
            let is_free = !reserved.contains(&tool.spec().name);
            if !is_free {
                let why = "not offered: the host has a tool of this name";
                report.notes.push(Note::new(&*tool.spec().name, why));
            }
            is_free
        }));
        report.notes.extend(made.problems.iter().map(|p| Note::new("MCP tools", p.to_string())));
        made
    }

    /// The servers that are connected, and where answers about them are kept and for which workspace.
    #[cfg(feature = "skills")]
    pub(crate) fn ready(&self) -> (Vec<ReadyServer>, &dyn ConsentStore, &str) {
        (self.manager.ready(), &*self.store, &self.workspace)
    }

    /// Ends all servers and forgets failures and answers, so that the next run starts and asks anew.
    pub(crate) async fn reload(&self) -> Option<Note> {
        self.manager.reload();
        let forgotten = self.store.forget(&self.workspace).await;
        forgotten.err().map(|error| Note::new("server consent", error.to_string()))
    }

    pub(crate) async fn close(&self) {
        self.manager.close().await;
    }

    /// The servers that are connected now.
    #[cfg(feature = "skills")]
    pub(crate) fn connected(&self) -> Vec<String> {
        self.manager.ready().iter().map(|server| server.name.to_string()).collect()
    }
}

async fn listed(server: &ReadyServer, report: &mut Report) -> Option<McpServer> {
    if !server.client.info().capabilities.tools() {
        return Some(McpServer::new(Arc::clone(&server.name), server.client.clone(), Vec::new()));
    }
    let about = || format!("MCP server `{}`", server.name);
    match server.client.list_tools().await {
        Ok(listing) => {
            report.notes.extend(listing.problems.iter().map(|p| Note::new(about(), p.to_string())));
            let tools = listing.items.into_iter().filter(|tool| server.tools.allows(&tool.name)).collect();
            Some(McpServer::new(Arc::clone(&server.name), server.client.clone(), tools))
        }
        Err(error) => {
            report.notes.push(Note::new(about(), error.to_string()));
            None
        }
    }
}

fn describe(started: &StartReport, tools: &McpTools, report: &mut Report) {
    for status in &started.statuses {
        let origin = format!("mcp:{}", status.name);
        report.servers.push(ServerReport {
            name: Arc::clone(&status.name),
            short: in_short(&status.state),
            state: in_words(&status.state),
            is_ready: status.state.is_ready(),
            tools: tools.tools.iter().filter(|tool| *tool.spec().origin == *origin).count(),
        });
    }
}

fn in_short(state: &ServerState) -> &'static str {
    match state {
        ServerState::Disabled => "switched off",
        ServerState::Unsupported(_) => "not supported",
        ServerState::Unapproved => "not approved",
        ServerState::NotStarted => "not started",
        ServerState::Starting => "starting",
        ServerState::Ready => "ready",
        ServerState::Failed(_) => "failed",
        ServerState::Exited { .. } => "ended",
        _ => "unknown",
    }
}

/// The state with what lies behind a failure: that a program was not found, for example.
fn in_words(state: &ServerState) -> String {
    let mut parts = vec![state.to_string()];
    if let ServerState::Failed(error) = state {
        let first = std::error::Error::source(&**error);
        parts.extend(std::iter::successors(first, |error| error.source()).map(ToString::to_string));
    }
    parts.join(": ")
}

/// The host's one prompt, asked about servers.
struct Prompt<'a>(&'a dyn Consent);

#[async_trait]
impl ConsentPrompt for Prompt<'_> {
    async fn ask(&self, question: &Question) -> Option<Decision> {
        let asked = ConsentQuestion::new(
            ConsentSubject::Servers,
            question.to_string(),
            question.fingerprint().to_string(),
        );
        let allowed = self.0.ask(asked).await?;
        Some(if allowed { Decision::Allow } else { Decision::Refuse })
    }
}
