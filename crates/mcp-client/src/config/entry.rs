//! One server as its entry says it, before anything is expanded.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::EraChoice;
use crate::visible::visible;

/// The longest time that a setting may ask for: one day. Longer is most often a wrong unit.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Where an entry was written, and so whether it needs consent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// A file of the repository, named as the host named it. Its servers need consent.
    Repository(Arc<str>),
    /// The host's own map. Its servers need none.
    Host,
}

impl Origin {
    /// A file of the repository.
    #[must_use]
    pub fn repository(file: &str) -> Self {
        Self::Repository(file.into())
    }

    /// Whether it is the host's own map.
    #[must_use]
    pub const fn is_host(&self) -> bool {
        matches!(self, Self::Host)
    }

    /// Whether it is a file of the repository.
    #[must_use]
    pub const fn is_repository(&self) -> bool {
        matches!(self, Self::Repository(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository(file) => f.write_str(&visible(file)),
            Self::Host => f.write_str("settings"),
        }
    }
}

/// What an entry says about one server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// How to reach it.
    pub transport: TransportConfig,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Whether the host cannot do without it.
    pub required: bool,
    /// How long the start may take, probe and handshake included. `None`: the client's default.
    pub start_timeout: Option<Duration>,
    /// How long a call may take without a sign of progress. `None`: the client's default.
    pub call_timeout: Option<Duration>,
    /// How long a call may take however much progress it reports. `None`: the client's default.
    pub max_call_time: Option<Duration>,
    /// Which revisions of MCP to speak.
    pub era: EraChoice,
    /// Which of its tools may be used.
    pub tools: ToolFilter,
}

impl ServerConfig {
    /// An entry with default settings.
    #[must_use]
    pub fn new(transport: impl Into<TransportConfig>) -> Self {
        Self {
            transport: transport.into(),
            disabled: false,
            required: false,
            start_timeout: None,
            call_timeout: None,
            max_call_time: None,
            era: EraChoice::Auto,
            tools: ToolFilter::default(),
        }
    }

    /// A server that is reached over HTTP.
    #[must_use]
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(HttpConfig::new(url))
    }

    /// A server that is started as a process.
    #[must_use]
    pub fn stdio(command: impl Into<String>) -> Self {
        Self::new(StdioConfig::new(command))
    }

    /// Switches it off, or on again.
    #[must_use]
    pub const fn with_disabled(mut self, disabled: bool) -> Self {
        self.disabled = disabled;
        self
    }

    /// Says whether the host cannot do without it.
    #[must_use]
    pub const fn with_required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets how long the start may take.
    #[must_use]
    pub const fn with_start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = Some(limit);
        self
    }

    /// Sets how long a call may take without a sign of progress.
    #[must_use]
    pub const fn with_call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = Some(limit);
        self
    }

    /// Sets how long a call may take however much progress it reports.
    #[must_use]
    pub const fn with_max_call_time(mut self, limit: Duration) -> Self {
        self.max_call_time = Some(limit);
        self
    }

    /// Sets which revisions of MCP to speak.
    #[must_use]
    pub const fn with_era(mut self, era: EraChoice) -> Self {
        self.era = era;
        self
    }

    /// Sets which tools may be used.
    #[must_use]
    pub fn with_tools(mut self, tools: ToolFilter) -> Self {
        self.tools = tools;
        self
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportConfig {
    /// A process of ours, spoken to over its standard input and output.
    Stdio(StdioConfig),
    /// Streamable HTTP.
    Http(HttpConfig),
    /// Something else; the text is the entry's `type`, or says what was found in its place.
    Unsupported(String),
}

impl TransportConfig {
    /// Whether this build can reach such a server: one over HTTP only with the feature `http`.
    #[must_use]
    pub const fn is_supported(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Http(_) => cfg!(feature = "http"),
            Self::Unsupported(_) => false,
        }
    }
}

impl From<StdioConfig> for TransportConfig {
    fn from(stdio: StdioConfig) -> Self {
        Self::Stdio(stdio)
    }
}

impl From<HttpConfig> for TransportConfig {
    fn from(http: HttpConfig) -> Self {
        Self::Http(http)
    }
}

/// A server that is a process of ours. `Debug` shows the names of its variables, never their values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioConfig {
    /// The program: a bare name is searched on `PATH`, a path with a separator is taken from the working folder.
    pub command: String,
    /// Its arguments. No shell reads them.
    pub args: Vec<String>,
    /// The variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Its working folder; `None` is the project's root.
    pub cwd: Option<String>,
    /// Names of the host's variables that it gets beside the base set.
    pub pass_env: Vec<String>,
}

impl StdioConfig {
    /// A program without arguments.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            pass_env: Vec::new(),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Passes a variable of the host's.
    #[must_use]
    pub fn with_passed_env(mut self, name: impl Into<String>) -> Self {
        self.pass_env.push(name.into());
        self
    }
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("pass_env", &self.pass_env)
            .finish()
    }
}

/// A server that is reached over Streamable HTTP. `Debug` shows the names of its headers, never their values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// The endpoint.
    pub url: String,
    /// Headers that each request carries.
    pub headers: BTreeMap<String, String>,
}

impl HttpConfig {
    /// An endpoint without headers of its own.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: BTreeMap::new() }
    }

    /// Sets a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("url", &self.url)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Which of a server's tools may be used, by the names that the server gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFilter {
    /// Only these; `None` is all.
    pub allow: Option<Vec<String>>,
    /// Not these, even if they are allowed.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// All tools but those that are denied later.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only the given tools.
    #[must_use]
    pub fn only<T: Into<String>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self { allow: Some(tools.into_iter().map(Into::into).collect()), deny: Vec::new() }
    }

    /// Takes tools away.
    #[must_use]
    pub fn without<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.deny.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Whether a tool may be used.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let allowed = self.allow.as_ref().is_none_or(|allow| allow.iter().any(|name| name == tool));
        allowed && !self.deny.iter().any(|name| name == tool)
    }
}

/// One server of a [`Config`](crate::config::Config): its name, where it was defined, and its entry as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredServer {
    name: Arc<str>,
    origin: Origin,
    config: ServerConfig,
}

impl ConfiguredServer {
    pub(crate) fn new(name: &str, origin: Origin, config: ServerConfig) -> Self {
        Self { name: name.into(), origin, config }
    }

    /// Makes a server over HTTP one that cannot be reached; says whether it was one.
    pub(crate) fn without_http(&mut self) -> bool {
        let is_http = matches!(self.config.transport, TransportConfig::Http(_));
        if is_http {
            self.config.transport = TransportConfig::Unsupported("http".into());
        }
        is_http
    }

    /// The name, as written.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the entry was written.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The entry, as written and not expanded.
    #[must_use]
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Whether a manager would start it: it is not disabled and its transport is supported.
    #[must_use]
    pub const fn is_startable(&self) -> bool {
        !self.config.disabled && self.config.transport.is_supported()
    }
}
