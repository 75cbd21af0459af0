//! From an entry to what is needed to start it: variables put in, the environment, the client's options, the key.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::expand::{ExpandError, ExpandedHttp, ExpandedStdio, expand_http, expand_stdio};
use crate::config::{ConfiguredServer, Problem, ProblemKind, StdioConfig, TransportConfig};
use crate::environment::{Environment, EnvironmentPolicy};
use crate::fingerprint::Fingerprint;
use crate::manager::supervisor::connect::Wanted;
use crate::options::ClientOptions;
use crate::protocol::EraChoice;

/// All that is needed to start one server.
pub(crate) struct Launch {
    /// The entry as written: what the era is remembered under.
    pub(crate) written: Fingerprint,
    /// The entry as it runs: a change of it is a restart.
    key: Fingerprint,
    pub(crate) reach: Result<Reach, ExpandError>,
    pub(crate) options: ClientOptions,
}

/// How a server is reached, with all variables put in.
pub(crate) enum Reach {
    Process { entry: ExpandedStdio, environment: Environment },
    Http(ExpandedHttp),
}

/// What the host brings to all servers.
#[derive(Clone, Copy)]
pub(crate) struct Host<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) policy: &'a EnvironmentPolicy,
    pub(crate) root: &'a std::path::Path,
    pub(crate) options: &'a ClientOptions,
}

impl Launch {
    /// `None` for a transport that there is no way to start.
    pub(crate) fn new(server: &ConfiguredServer, host: Host<'_>) -> Option<Self> {
        let (reach, runs) = match &server.config().transport {
            TransportConfig::Stdio(stdio) => Reach::of_process(stdio, host),
            TransportConfig::Http(http) => {
                let entry = expand_http(http, host.environment);
                let runs = entry.as_ref().map(|entry| json!(["http", entry.url, entry.headers]));
                let runs = runs.unwrap_or_else(|error| json!(error.to_string()));
                (entry.map(Reach::Http), runs)
            }
            TransportConfig::Unsupported(_) => return None,
        };
        let written = Fingerprint::of([server]);
        Some(Self { written, key: key_of(server, &runs), reach, options: options(server, host.options) })
    }

    pub(crate) fn wanted(self) -> Wanted<Self> {
        Wanted { key: self.key, launch: Arc::new(self) }
    }

    /// The variables that are missing.
    pub(crate) fn problems<'a>(&'a self, server: &'a ConfiguredServer) -> impl Iterator<Item = Problem> + 'a {
        let unset = self.reach.iter().flat_map(|reach| match reach {
            Reach::Process { entry, .. } => &entry.unset,
            Reach::Http(entry) => &entry.unset,
        });
        unset.map(move |name| {
            let message = format!("the variable `{name}` is not set and has no default; it stays as written");
            Problem::of_server(server.origin(), server.name(), ProblemKind::UnsetVariable, message)
        })
    }
}

impl Reach {
    /// The base set is not in what a key is made of: a new terminal would restart all servers. What the entry or the
    /// host names is.
    fn of_process(stdio: &StdioConfig, host: Host<'_>) -> (Result<Self, ExpandError>, Value) {
        let entry = expand_stdio(stdio, host.environment, host.root);
        let passed: Vec<_> = host
            .policy
            .pass
            .iter()
            .chain(&stdio.pass_env)
            .map(|name| (name, host.environment.get(name).map(std::ffi::OsStr::to_string_lossy)))
            .collect();
        let runs = match &entry {
            Ok(entry) => json!([entry.program, entry.args, entry.env, entry.cwd.to_string_lossy()]),
            Err(error) => json!(error.to_string()),
        };
        let runs = json!([runs, passed]);
        let reach = entry.map(|entry| {
            let environment = host.policy.child(host.environment, &stdio.pass_env, entry.env.clone());
            Self::Process { entry, environment }
        });
        (reach, runs)
    }
}

fn options(server: &ConfiguredServer, options: &ClientOptions) -> ClientOptions {
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
    options
}

fn key_of(server: &ConfiguredServer, runs: &Value) -> Fingerprint {
    let settings = server.config();
    let times = [settings.start_timeout, settings.call_timeout, settings.max_call_time]
        .map(|limit| limit.map(|limit| limit.as_micros().to_string()));
    Fingerprint::of_value(&json!([runs, times, format!("{:?}", settings.era)]))
}
