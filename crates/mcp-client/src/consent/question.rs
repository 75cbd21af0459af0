//! What a person is shown.

use std::fmt;

use crate::config::{ConfiguredServer, TransportConfig};
use crate::fingerprint::Fingerprint;
use crate::visible::{quoted, visible};

/// The commands that a repository wants to run, ready to be shown, and the fingerprint that an answer is stored under.
///
/// All texts are as written in the repository, before variables are put in, with
/// [invisible characters](crate::visible) written out. `Display` gives a plain text of several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentQuestion {
    servers: Vec<AskedServer>,
    fingerprint: Fingerprint,
}

/// One server of a [`ConsentQuestion`], every text made visible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedServer {
    /// Its name.
    pub name: String,
    /// The file that defines it.
    pub origin: String,
    /// The whole command line; words that are not plain are quoted.
    pub command_line: String,
    /// The working folder, if the entry sets one.
    pub cwd: Option<String>,
    /// The variables that it sets, as name and value.
    pub env: Vec<(String, String)>,
    /// The host's variables that it asks for by name.
    pub passed_env: Vec<String>,
}

impl ConsentQuestion {
    /// The question about a set of servers; `None` when there are none.
    pub(crate) fn about<'a>(servers: impl Iterator<Item = &'a ConfiguredServer>) -> Option<Self> {
        let servers: Vec<_> = servers.collect();
        if servers.is_empty() {
            return None;
        }
        let fingerprint = Fingerprint::of(servers.iter().copied());
        Some(Self { servers: servers.into_iter().map(AskedServer::of).collect(), fingerprint })
    }

    /// The servers, sorted by name.
    #[must_use]
    pub fn servers(&self) -> &[AskedServer] {
        &self.servers
    }

    /// What an answer is stored under.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl AskedServer {
    fn of(server: &ConfiguredServer) -> Self {
        let mut asked = Self {
            name: visible(server.name()).into_owned(),
            origin: server.origin().to_string(),
            command_line: String::new(),
            cwd: None,
            env: Vec::new(),
            passed_env: Vec::new(),
        };
        match &server.config().transport {
            TransportConfig::Stdio(stdio) => {
                let words = std::iter::once(&stdio.command).chain(&stdio.args);
                asked.command_line = words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
                asked.cwd = stdio.cwd.as_ref().map(|cwd| quoted(cwd).into_owned());
                asked.env = pairs(&stdio.env);
                asked.passed_env = stdio.pass_env.iter().map(|name| quoted(name).into_owned()).collect();
            }
            TransportConfig::Http(http) => {
                asked.command_line = quoted(&http.url).into_owned();
                asked.env = pairs(&http.headers);
            }
            TransportConfig::Unsupported(kind) => asked.command_line = quoted(kind).into_owned(),
        }
        asked
    }
}

fn pairs(members: &std::collections::BTreeMap<String, String>) -> Vec<(String, String)> {
    members.iter().map(|(name, value)| (quoted(name).into_owned(), quoted(value).into_owned())).collect()
}

impl fmt::Display for ConsentQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.servers.len();
        let servers = if count == 1 { "server" } else { "servers" };
        write!(f, "This repository wants to start {count} MCP {servers}:")?;
        self.servers.iter().try_for_each(|server| write!(f, "\n\n{server}"))
    }
}

impl fmt::Display for AskedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (from {})\n  runs: {}", self.name, self.origin, self.command_line)?;
        if let Some(cwd) = &self.cwd {
            write!(f, "\n  in: {cwd}")?;
        }
        for (name, value) in &self.env {
            write!(f, "\n  sets: {name}={value}")?;
        }
        if !self.passed_env.is_empty() {
            write!(f, "\n  gets your: {}", self.passed_env.join(", "))?;
        }
        Ok(())
    }
}
