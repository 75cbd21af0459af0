//! Which servers there are: read from files, merged by name, expanded with variables.
//!
//! Servers are defined in up to three places, and a later one wins by name:
//!
//! 1. `.mcp.json` in the project's folder, shared with other clients,
//! 2. `.gbs/mcp.json` there, read by this client only,
//! 3. the host's own map, from its user's settings.
//!
//! The first two belong to the repository, so they are somebody else's text: their servers need
//! [consent](crate::consent), and they can never take, or come close to, a name that the host's map uses.
//!
//! ```
//! use haversack_mcp_client::config::Config;
//! use serde_json::json;
//!
//! let config = Config::new("/home/u/project")
//!     .with_repository_file(".mcp.json", br#"{"mcpServers": {
//!         "docs": {"command": "npx", "args": ["-y", "docs-server"]},
//!         "web":  {"type": "ws", "url": "wss://example.org/mcp"},
//!         "git":  {"command": "evil-git"}
//!     }}"#)
//!     .with_host_servers(&json!({"git": {"command": "mcp-server-git", "env": {"TOKEN": "${GIT_TOKEN}"}}}));
//!
//! let names: Vec<_> = config.startable().map(|server| server.name()).collect();
//! assert_eq!(names, ["docs", "git"]);
//! assert!(config.server("git").unwrap().origin().is_host());
//! // What was left out and why is a value.
//! assert!(config.problems().iter().any(|problem| problem.server.as_deref() == Some("web")));
//! ```
//!
//! # The fields of an entry
//!
//! | Field | Meaning |
//! |---|---|
//! | `command` | the program; needed for a server that is started. A bare name is searched on `PATH`, a relative path is taken from `cwd` |
//! | `args` | array of strings, default empty |
//! | `env` | object of strings, set for the process |
//! | `cwd` | working folder, default the project's root, relative to it |
//! | `passEnv` | names of the host's variables that the process gets, beside the [base set](crate::environment::BASE_UNIX) |
//! | `type` | absent with `command`, or `stdio`: started here. Absent with `url`, `http` or `streamable-http`: reached over HTTP, with the feature `http` (without it, reported as unsupported). Anything else: reported as unsupported |
//! | `url` | the endpoint of a server over HTTP |
//! | `headers` | object of strings: headers that each request to it carries |
//! | `disabled` | `true`: not started |
//! | `required` | `true`: a run without it is worth an error to the host |
//! | `startTimeout`, `timeout`, `maxTimeout` | milliseconds for the start, for a call, and for a call however much progress it reports |
//! | `era` | `auto`, `legacy` or `modern`: which revisions of MCP to speak |
//! | `allowTools`, `denyTools` | arrays of tool names as the server calls them |
//!
//! Other fields are other clients' and are ignored. `${VAR}` and `${VAR:-default}` stand for variables in `command`,
//! `args`, the values of `env`, `cwd`, `url` and the values of `headers`; see [`expand`].

pub mod problem;
pub mod entry;
mod file;
mod parse;
pub mod expand;
mod merge;

use std::io::Read as _;
use std::path::{Path, PathBuf};

pub use entry::{
    ConfiguredServer, HttpConfig, Origin, ServerConfig, StdioConfig, ToolFilter, TransportConfig,
};
pub use parse::{MAX_FILE_BYTES, MAX_SERVERS};
pub use problem::{Problem, ProblemKind};

use merge::Merged;

/// The files of a project that define servers, relative to its root; a later one wins.
pub const PROJECT_FILES: [&str; 2] = [".mcp.json", ".gbs/mcp.json"];

/// The servers of a project, merged from all sources, and what was wrong with them.
///
/// A broken file or entry never spoils the rest: it is one of the [`problems`](Self::problems).
#[derive(Clone, Debug)]
pub struct Config {
    root: PathBuf,
    merged: Merged,
    problems: Vec<Problem>,
}

impl Config {
    /// No servers yet, for a project in `root`.
    ///
    /// Working folders are relative to it. A host without a project gives the folder where its own servers should
    /// work.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), merged: Merged::default(), problems: Vec::new() }
    }

    /// Reads [`PROJECT_FILES`] in `root`. A file that is not there defines nothing; one that cannot be read is a
    /// problem.
    ///
    /// Two small files are read with blocking calls; this is the only place of this crate where configuration is
    /// read from disk, and a host that watches or caches files uses [`with_repository_file`] instead.
    ///
    /// [`with_repository_file`]: Self::with_repository_file
    #[must_use]
    pub fn read_project(root: impl Into<PathBuf>) -> Self {
        let mut config = Self::new(root);
        for file in PROJECT_FILES {
            match read_bounded(&config.root.join(file)) {
                Ok(None) => {}
                Ok(Some(text)) => config = config.with_repository_file(file, &text),
                Err(reason) => {
                    config.problems.push(Problem::of_source(
                        Origin::repository(file),
                        ProblemKind::Unreadable,
                        reason,
                    ));
                }
            }
        }
        config
    }

    /// Adds the servers of a file of the repository: the text of an object with the member `mcpServers`.
    ///
    /// `file` names it in messages, most often its path relative to the root. A server replaces one of the same
    /// name from an earlier file, never one of the host's.
    #[must_use]
    pub fn with_repository_file(mut self, file: &str, text: &[u8]) -> Self {
        let parsed = parse::parse_file(&Origin::repository(file), text);
        self.take(parsed);
        self
    }

    /// Adds the host's own servers: an object from name to entry, most often from its user's settings.
    ///
    /// They need no consent. They win over the repository's whatever the order of the calls, and over host servers
    /// of the same name that were added before.
    #[must_use]
    pub fn with_host_servers(mut self, servers: &serde_json::Value) -> Self {
        let parsed = parse::parse_servers(&Origin::Host, servers);
        self.take(parsed);
        self
    }

    /// Adds one server of the host's own.
    #[must_use]
    pub fn with_host_server(mut self, name: impl Into<String>, server: ServerConfig) -> Self {
        let parsed = parse::Parsed::of_one(Origin::Host, name.into(), server);
        self.take(parsed);
        self
    }

    fn take(&mut self, parsed: parse::Parsed) {
        self.problems.extend(parsed.problems);
        self.merged.merge(&parsed.origin, parsed.entries, &mut self.problems);
    }

    /// The project's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The servers that could be read, sorted by name; disabled and unsupported ones too.
    pub fn servers(&self) -> impl Iterator<Item = &ConfiguredServer> {
        self.merged.servers()
    }

    /// The servers that a manager would start, sorted by name.
    pub fn startable(&self) -> impl Iterator<Item = &ConfiguredServer> {
        self.servers().filter(|server| server.is_startable())
    }

    /// One server.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&ConfiguredServer> {
        self.merged.server(name)
    }

    /// What was left out, replaced or ignored, and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// This configuration for a host that reaches nothing over HTTP: such servers are
    /// [unsupported](TransportConfig::Unsupported), nobody is asked about them, and each is a problem.
    ///
    /// A build without the feature `http` does so by itself.
    #[must_use]
    pub fn without_http(mut self) -> Self {
        let before = self.merged.servers_mut().filter(|server| server.is_startable());
        for server in before {
            if server.without_http() {
                let (origin, name) = (server.origin(), server.name());
                self.problems.push(Problem::of_server(
                    origin,
                    name,
                    ProblemKind::Unsupported,
                    parse::NO_HTTP,
                ));
            }
        }
        self
    }

    /// This configuration with only the servers for which `keep` says so.
    #[must_use]
    pub fn retain(mut self, keep: impl FnMut(&ConfiguredServer) -> bool) -> Self {
        self.merged.retain(keep);
        self
    }
}

/// The file's bytes, `None` where there is no file, a reason where it cannot be used.
fn read_bounded(path: &Path) -> Result<Option<Vec<u8>>, String> {
    // Asked before it is opened: opening a named pipe would wait for a writer.
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut text))
        .map_err(|error| format!("cannot be read: {error}"))?;
    Ok(Some(text))
}
