//! Starts servers when they are first needed, keeps them, and ends them.
//!
//! A host makes one [`Manager`] for a workspace. At the start of each run it says what is wanted
//! ([`set_config`](Manager::set_config)) and waits until that is so ([`ensure_started`](Manager::ensure_started)):
//!
//! | A server is | then |
//! |---|---|
//! | not started yet | it is started, beside the others |
//! | running, and its configuration is the same | it is kept |
//! | running, and its configuration has changed | it is ended, then started anew |
//! | not wanted any more | it is ended |
//! | exited after a good start | it is started again; at once the first time, later and later if it keeps exiting |
//! | one whose start has failed | it is left alone until its configuration changes or the host [reloads](Manager::reload) |
//!
//! The configuration counts with its variables put in, so a changed secret restarts a server too. One failure never
//! holds up the others or the run, and is told once.
//!
//! ```
//! # async fn run() {
//! use haversack_mcp_client::ClientOptions;
//! use haversack_mcp_client::config::Config;
//! use haversack_mcp_client::environment::Environment;
//! use haversack_mcp_client::manager::{Manager, ManagerOptions, ServerState};
//! use serde_json::json;
//!
//! let manager = Manager::new(ManagerOptions::new(ClientOptions::new("my-host", "1.0.0")));
//! let config = Config::new("/").with_host_servers(&json!({"docs": {"command": "no-such-program"}}));
//! // Only the host's own servers here; see `consent` for those of a repository.
//! let problems = manager.set_config(&config.withhold(), &Environment::from([("PATH", "/usr/bin")]));
//! assert_eq!(problems, []);
//!
//! let report = manager.ensure_started().await;
//! assert!(matches!(report.statuses[0].state, ServerState::Failed(_)));
//! // Told once.
//! assert_eq!(report.new_failures().count(), 1);
//! assert_eq!(manager.ensure_started().await.new_failures().count(), 0);
//!
//! for server in manager.ready() {
//!     let tools = server.client.list_tools().await;
//! }
//! manager.close().await;
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run());
//! ```
//!
//! # Tasks and processes
//!
//! Each server has one task on the runtime that [`ensure_started`](Manager::ensure_started) was called in, which starts
//! it, waits for its end and tidies up after it. [`close`](Manager::close) ends all servers in order. When the last
//! clone of the manager is dropped without it, the servers are told to terminate at once, also when the runtime is going
//! down, and also when somebody still holds a client.

pub mod plan;
pub mod clock;
pub mod era_memory;
pub mod event;
pub mod status;
mod supervisor;
mod launch;
mod connector;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use clock::{Clock, SystemClock};
pub use era_memory::EraMemory;
pub use event::{ManagerEvent, ManagerEvents};
pub use plan::Backoff;
pub use status::{ReadyServer, ServerState, ServerStatus, StartError, StartReport};

use crate::client::Client;
use crate::config::{ConfiguredServer, Problem, TransportConfig};
use crate::consent::ApprovedConfig;
use crate::environment::{Environment, EnvironmentPolicy};
use crate::options::ClientOptions;
use connector::Connector;
use launch::{Host, Launch};
use supervisor::connect::Link as _;
use supervisor::{Seen, Supervisor};

/// How many servers start at once unless the host says otherwise: starting is mostly waiting, but a package runner
/// loads a processor and a disk.
pub const DEFAULT_STARTS_AT_ONCE: usize = 8;

/// How a [`Manager`] works.
#[derive(Clone, Debug)]
pub struct ManagerOptions {
    client: ClientOptions,
    environment: EnvironmentPolicy,
    backoff: Backoff,
    clock: Arc<dyn Clock>,
    starts_at_once: usize,
    eras: EraMemory,
    #[cfg(feature = "http")]
    http: Option<crate::http::HttpAccess>,
}

impl ManagerOptions {
    /// The given options for clients, where an entry has no setting of its own, and defaults for the rest.
    #[must_use]
    pub fn new(client: ClientOptions) -> Self {
        Self {
            client,
            environment: EnvironmentPolicy::default(),
            backoff: Backoff::default(),
            clock: Arc::new(SystemClock::new()),
            starts_at_once: DEFAULT_STARTS_AT_ONCE,
            eras: EraMemory::default(),
            #[cfg(feature = "http")]
            http: None,
        }
    }

    /// Sets what the servers' processes inherit. Default: the base set.
    #[must_use]
    pub fn with_environment(mut self, policy: EnvironmentPolicy) -> Self {
        self.environment = policy;
        self
    }

    /// Sets the pauses before restarts.
    #[must_use]
    pub const fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the clock that those pauses are measured with.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets how many servers may be starting at once, at least one. Default [`DEFAULT_STARTS_AT_ONCE`].
    #[must_use]
    pub const fn with_starts_at_once(mut self, servers: usize) -> Self {
        self.starts_at_once = servers;
        self
    }

    /// Sets how servers over HTTP are reached. Without it, they are [unsupported](ServerState::Unsupported); a host that
    /// never sets it also uses [`Config::without_http`](crate::config::Config::without_http), so that nobody is asked
    /// about them.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    #[must_use]
    pub fn with_http(mut self, access: crate::http::HttpAccess) -> Self {
        self.http = Some(access);
        self
    }

    /// Gives what an earlier manager has learned, see [`Manager::era_memory`].
    #[must_use]
    pub fn with_era_memory(mut self, eras: EraMemory) -> Self {
        self.eras = eras;
        self
    }
}

/// Starts, keeps and ends the servers of one workspace. Clones stand for the same manager.
#[derive(Clone)]
pub struct Manager {
    inner: Arc<Inner>,
}

struct Inner {
    supervisor: Supervisor<Connector>,
    client: ClientOptions,
    environment: EnvironmentPolicy,
    eras: Arc<Mutex<EraMemory>>,
    /// Whether servers over HTTP can be reached.
    has_http: bool,
    config: Mutex<Option<ApprovedConfig>>,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.statuses()).finish()
    }
}

impl Manager {
    /// A manager without servers.
    #[must_use]
    pub fn new(options: ManagerOptions) -> Self {
        let eras = Arc::new(Mutex::new(options.eras));
        let connector = Connector::new(Arc::clone(&eras));
        #[cfg(feature = "http")]
        let (has_http, connector) = (options.http.is_some(), connector.with_http(options.http));
        #[cfg(not(feature = "http"))]
        let has_http = false;
        let supervisor = Supervisor::new(connector, options.clock, options.backoff, options.starts_at_once);
        let (client, environment) = (options.client, options.environment);
        let config = Mutex::new(None);
        Self { inner: Arc::new(Inner { supervisor, client, environment, eras, has_http, config }) }
    }

    /// Says which servers are wanted, and with which variables.
    ///
    /// Nothing starts or ends here: [`ensure_started`](Self::ensure_started) compares what is wanted with what runs.
    /// Gives back a problem for each variable that is not set and has no default.
    pub fn set_config(&self, approved: &ApprovedConfig, environment: &Environment) -> Vec<Problem> {
        let inner = &self.inner;
        let mut wanted = BTreeMap::new();
        let mut problems = Vec::new();
        let host = Host {
            environment,
            policy: &inner.environment,
            root: approved.config().root(),
            options: &inner.client,
        };
        for server in approved.startable() {
            if !inner.can_reach(&server.config().transport) {
                continue;
            }
            let Some(launch) = Launch::new(server, host) else { continue };
            problems.extend(launch.problems(server));
            wanted.insert(server.name().into(), launch.wanted());
        }
        *lock(&inner.config) = Some(approved.clone());
        inner.supervisor.want(wanted);
        problems
    }

    /// Brings what runs in line with what is wanted, and waits until no server is starting any more.
    ///
    /// It takes at most as long as the slowest server's start timeout, times the rounds that
    /// [`with_starts_at_once`](ManagerOptions::with_starts_at_once) makes necessary. It must be called in a tokio
    /// runtime; without one, starts fail.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the servers go on starting, and the next call finds them.
    pub async fn ensure_started(&self) -> StartReport {
        self.inner.supervisor.ensure(|_| true).await;
        let new = self.inner.supervisor.take_new_failures();
        StartReport { statuses: self.statuses(), new }
    }

    /// Does the same for one server only, and gives its status; `None` if the configuration does not have it.
    ///
    /// For a call into a server that has exited during a run.
    ///
    /// # Cancel safety
    ///
    /// As [`ensure_started`](Self::ensure_started).
    pub async fn ensure_server(&self, name: &str) -> Option<ServerStatus> {
        self.inner.supervisor.ensure(|server| server == name).await;
        self.status(name)
    }

    /// The client of a server that is connected.
    #[must_use]
    pub fn client(&self, server: &str) -> Option<Client> {
        match self.inner.supervisor.see(server) {
            Seen::Running(client) if !client.has_ended() => Some(client),
            _ => None,
        }
    }

    /// The servers that are connected, sorted by name.
    #[must_use]
    pub fn ready(&self) -> Vec<ReadyServer> {
        let Some(approved) = self.config() else { return Vec::new() };
        let ready = approved.config().servers().filter_map(|server| {
            let client = self.client(server.name())?;
            Some(ReadyServer {
                name: server.name().into(),
                origin: server.origin().clone(),
                client,
                tools: server.config().tools.clone(),
            })
        });
        ready.collect()
    }

    /// How all servers of the configuration are, sorted by name: disabled, unsupported and unapproved ones too.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let Some(approved) = self.config() else { return Vec::new() };
        approved.config().servers().map(|server| self.status_of(&approved, server)).collect()
    }

    /// How one server is.
    #[must_use]
    pub fn status(&self, server: &str) -> Option<ServerStatus> {
        let approved = self.config()?;
        let server = approved.config().server(server)?;
        Some(self.status_of(&approved, server))
    }

    /// What happens to the servers from now on.
    #[must_use]
    pub fn events(&self) -> ManagerEvents {
        ManagerEvents::new(self.inner.supervisor.events())
    }

    /// Which era each server was found to speak, for [`ManagerOptions::with_era_memory`] of the next start of the host.
    #[must_use]
    pub fn era_memory(&self) -> EraMemory {
        lock(&self.inner.eras).clone()
    }

    /// Ends all servers and forgets failures and pauses, so that the next [`ensure_started`](Self::ensure_started) starts
    /// everything anew. A host that lets its user reload also reads its configuration again, and lets the
    /// [store](crate::consent::ConsentStore::forget) forget its answers.
    pub fn reload(&self) {
        self.inner.supervisor.reset();
    }

    /// Ends all servers in order, and waits until none of their processes is left. The manager starts nothing any more.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the servers still end, each in its task.
    pub async fn close(&self) {
        self.inner.supervisor.close().await;
    }

    fn config(&self) -> Option<ApprovedConfig> {
        lock(&self.inner.config).clone()
    }

    fn status_of(&self, approved: &ApprovedConfig, server: &ConfiguredServer) -> ServerStatus {
        let state = match &server.config().transport {
            _ if server.config().disabled => ServerState::Disabled,
            TransportConfig::Unsupported(kind) => ServerState::Unsupported(kind.as_str().into()),
            TransportConfig::Http(_) if !self.inner.has_http => ServerState::Unsupported("http".into()),
            _ if !approved.allows(server) => ServerState::Unapproved,
            _ => match self.inner.supervisor.see(server.name()) {
                Seen::Absent => ServerState::NotStarted,
                Seen::Starting => ServerState::Starting,
                Seen::Running(_) => ServerState::Ready,
                Seen::Failed(error) => ServerState::Failed(error),
                Seen::Exited { reason, restart_in } => ServerState::Exited { reason, restart_in },
            },
        };
        ServerStatus {
            name: server.name().into(),
            origin: server.origin().clone(),
            required: server.config().required,
            state,
        }
    }
}

impl Inner {
    fn can_reach(&self, transport: &TransportConfig) -> bool {
        match transport {
            TransportConfig::Stdio(_) => true,
            TransportConfig::Http(_) => self.has_http,
            TransportConfig::Unsupported(_) => false,
        }
    }
}

/// Locks; what is behind these locks is replaced as a whole, so a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
