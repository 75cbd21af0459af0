//! From an entry to a connection: the environment, the command, the client's options, the era.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use crate::client::Client;
use crate::config::expand::{ExpandError, ExpandedStdio, expand_stdio};
use crate::config::{ConfiguredServer, Problem, ProblemKind, StdioConfig};
use crate::environment::{Environment, EnvironmentPolicy};
use crate::fingerprint::Fingerprint;
use crate::manager::era_memory::EraMemory;
use crate::manager::status::StartError;
use crate::manager::supervisor::{Connect, Link, NotBegun, Wanted};
use crate::options::ClientOptions;
use crate::process::ServerCommand;
use crate::protocol::{Era, EraChoice};

/// All that is needed to start one server.
pub(crate) struct Launch {
    /// The entry as written: what the era is remembered under.
    written: Fingerprint,
    /// The entry as it runs: a change of it is a restart.
    key: Fingerprint,
    entry: Result<ExpandedStdio, ExpandError>,
    environment: Environment,
    options: ClientOptions,
}

impl Launch {
    pub(crate) fn new(
        server: &ConfiguredServer,
        stdio: &StdioConfig,
        host: &Environment,
        policy: &EnvironmentPolicy,
        root: &std::path::Path,
        options: &ClientOptions,
    ) -> Self {
        let settings = server.config();
        let mut options = options.clone().with_label(server.name());
        if let Some(limit) = settings.start_timeout {
            options = options.with_start_timeout(limit);
        }
        if let Some(limit) = settings.call_timeout {
            options = options.with_call_timeout(limit);
        }
        if let Some(limit) = settings.max_call_time {
            options = options.with_call_limit(limit);
        }
        if settings.era != EraChoice::Auto {
            options = options.with_era(settings.era);
        }
        let entry = expand_stdio(stdio, host, root);
        let set = entry.as_ref().map(|entry| entry.env.clone()).unwrap_or_default();
        let environment = policy.child(host, &stdio.pass_env, set);
        let key = key_of(server, stdio, &entry, host, policy);
        Self { written: Fingerprint::of([server]), key, entry, environment, options }
    }

    pub(crate) fn wanted(self) -> Wanted<Self> {
        Wanted { key: self.key, launch: Arc::new(self) }
    }

    /// The variables that are missing.
    pub(crate) fn problems<'a>(&'a self, server: &'a ConfiguredServer) -> impl Iterator<Item = Problem> + 'a {
        self.entry.iter().flat_map(|entry| &entry.unset).map(move |name| {
            let message = format!("the variable `{name}` is not set and has no default; it stays as written");
            Problem::of_server(server.origin(), server.name(), ProblemKind::UnsetVariable, message)
        })
    }
}

/// The base set is not in it: a new terminal would restart all servers. What the entry or the host names is.
fn key_of(
    server: &ConfiguredServer,
    stdio: &StdioConfig,
    entry: &Result<ExpandedStdio, ExpandError>,
    host: &Environment,
    policy: &EnvironmentPolicy,
) -> Fingerprint {
    let passed: Vec<_> = policy
        .pass
        .iter()
        .chain(&stdio.pass_env)
        .map(|name| (name, host.get(name).map(std::ffi::OsStr::to_string_lossy)))
        .collect();
    let entry = match entry {
        Ok(entry) => json!([entry.program, entry.args, entry.env, entry.cwd.to_string_lossy()]),
        Err(error) => json!(error.to_string()),
    };
    let settings = server.config();
    let times = [settings.start_timeout, settings.call_timeout, settings.max_call_time]
        .map(|limit| limit.map(|limit| limit.as_micros().to_string()));
    Fingerprint::of_value(&json!([entry, passed, times, format!("{:?}", settings.era)]))
}

/// Connects to servers that are processes.
pub(crate) struct Connector {
    eras: Arc<Mutex<EraMemory>>,
}

impl Connector {
    pub(crate) const fn new(eras: Arc<Mutex<EraMemory>>) -> Self {
        Self { eras }
    }

    fn options_for(&self, launch: &Launch) -> ClientOptions {
        let options = launch.options.clone();
        let known = self.eras.lock().unwrap_or_else(PoisonError::into_inner).era(launch.written);
        if options.era() == EraChoice::Auto && known == Some(Era::Legacy) {
            return options.with_era(EraChoice::AutoLegacyFirst);
        }
        options
    }

    fn remember(&self, launch: &Launch, era: Era) {
        if launch.options.era() == EraChoice::Auto {
            self.eras.lock().unwrap_or_else(PoisonError::into_inner).remember(launch.written, era);
        }
    }
}

impl Connect for Connector {
    type Launch = Launch;
    type Link = Client;
    type Error = StartError;

    async fn connect(self: Arc<Self>, server: Arc<str>, launch: Arc<Launch>) -> Result<Client, StartError> {
        let entry = match &launch.entry {
            Ok(entry) => entry,
            Err(error) => return Err(StartError::Entry { server, error: error.clone() }),
        };
        // The system's own message would be the one for a missing program.
        if !entry.cwd.is_dir() {
            return Err(StartError::NoFolder { server, folder: entry.cwd.clone() });
        }
        let command = ServerCommand::new(&entry.program)
            .args(&entry.args)
            .envs(launch.environment.iter())
            .current_dir(&entry.cwd);
        let client = Client::start(&command, self.options_for(&launch)).await.map_err(StartError::Client)?;
        self.remember(&launch, client.info().era);
        Ok(client)
    }

    fn describe(error: &StartError) -> String {
        error.with_causes()
    }

    fn not_begun(reason: NotBegun) -> StartError {
        match reason {
            NotBegun::NoRuntime => StartError::NoRuntime,
            NotBegun::Abandoned => StartError::Abandoned,
        }
    }
}

impl Link for Client {
    async fn ended(&self) -> String {
        let exit = Self::ended(self).await;
        let said = self.stderr_tail();
        match said.trim_end().lines().last() {
            Some(last) => format!("{exit}; its last words: {}", crate::visible::short(last, 200)),
            None => exit.to_string(),
        }
    }

    fn has_ended(&self) -> bool {
        !self.is_open()
    }

    async fn close(&self) {
        Self::close(self).await;
    }

    fn end_now(&self) {
        self.abandon();
    }
}
