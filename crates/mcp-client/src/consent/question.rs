//! What a person is shown.

use std::fmt;

use crate::config::expand::variables;
use crate::config::{ConfiguredServer, HttpConfig, TransportConfig};
use crate::fingerprint::Fingerprint;
use crate::visible::{quoted, visible};

/// The commands that a repository wants to run and the addresses that it wants to be connected to, ready to be shown, and the fingerprint that an answer is stored under.
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
    /// The whole command line, words that are not plain in quotes. For a server over HTTP, its URL.
    pub command_line: String,
    /// The headers that a server over HTTP gets, if it is one: see [`AskedHeader`].
    pub headers: Option<Vec<AskedHeader>>,
    /// The working folder, if the entry sets one.
    pub cwd: Option<String>,
    /// The variables that it sets, as name and value.
    pub env: Vec<(String, String)>,
    /// The host's variables that it asks for by name.
    pub passed_env: Vec<String>,
}

/// A header that a server over HTTP gets. Its value is not part of the question, since it may be a secret: but which of
/// the host's variables would leave this machine with it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedHeader {
    /// Its name.
    pub name: String,
    /// The host's variables that its value is made of.
    pub variables: Vec<String>,
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
            headers: None,
            cwd: None,
            env: Vec::new(),
            passed_env: Vec::new(),
        };
        match &server.config().transport {
            TransportConfig::Stdio(stdio) => {
                let words = std::iter::once(&stdio.command).chain(&stdio.args);
                asked.command_line = words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
                asked.cwd = stdio.cwd.as_ref().map(|cwd| quoted(cwd).into_owned());
                let shown = |(name, value): (&String, &String)| {
                    (quoted(name).into_owned(), quoted(value).into_owned())
                };
                asked.env = stdio.env.iter().map(shown).collect();
                asked.passed_env = stdio.pass_env.iter().map(|name| quoted(name).into_owned()).collect();
            }
            TransportConfig::Http(http) => {
                asked.command_line = quoted(&http.url).into_owned();
                asked.headers = Some(headers(http));
            }
            TransportConfig::Unsupported(kind) => asked.command_line = quoted(kind).into_owned(),
        }
        asked
    }
}

fn headers(http: &HttpConfig) -> Vec<AskedHeader> {
    let asked = |(name, value): (&String, &String)| AskedHeader {
        name: quoted(name).into_owned(),
        variables: variables(value).into_iter().map(ToOwned::to_owned).collect(),
    };
    http.headers.iter().map(asked).collect()
}

impl fmt::Display for ConsentQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.servers.len();
        let servers = if count == 1 { "server" } else { "servers" };
        let remote = self.servers.iter().filter(|server| server.headers.is_some()).count();
        let wants = match remote {
            0 => "start",
            _ if remote == count => "connect to",
            _ => "start or connect to",
        };
        write!(f, "This repository wants to {wants} {count} MCP {servers}:")?;
        self.servers.iter().try_for_each(|server| write!(f, "\n\n{server}"))
    }
}

impl fmt::Display for AskedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = if self.headers.is_some() { "connects to" } else { "runs" };
        write!(f, "{} (from {})\n  {does}: {}", self.name, self.origin, self.command_line)?;
        for header in self.headers.iter().flatten() {
            write!(f, "\n  sends: {}", header.name)?;
            if !header.variables.is_empty() {
                write!(f, " (with your: {})", header.variables.join(", "))?;
            }
        }
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
