//! From what is needed to a connection: the process or the address, and the era that is known.

use std::sync::{Arc, Mutex, PoisonError};

use crate::client::Client;
use crate::config::expand::{ExpandedHttp, ExpandedStdio};
use crate::environment::Environment;
#[cfg(feature = "http")]
use crate::http::HttpAccess;
use crate::manager::era_memory::EraMemory;
use crate::manager::launch::{Launch, Reach};
use crate::manager::status::StartError;
use crate::manager::supervisor::connect::{Connect, Link, NotBegun};
use crate::options::ClientOptions;
use crate::process::ServerCommand;
use crate::protocol::{Era, EraChoice};

/// Connects to servers that are processes, and to those over HTTP if the host lends it the means.
pub(crate) struct Connector {
    eras: Arc<Mutex<EraMemory>>,
    #[cfg(feature = "http")]
    http: Option<HttpAccess>,
}

impl Connector {
    pub(crate) fn new(eras: Arc<Mutex<EraMemory>>) -> Self {
        Self {
            eras,
            #[cfg(feature = "http")]
            http: None,
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_http(mut self, http: Option<HttpAccess>) -> Self {
        self.http = http;
        self
    }

    #[cfg(feature = "http")]
    async fn connect_http(
        &self,
        server: Arc<str>,
        entry: &ExpandedHttp,
        options: ClientOptions,
    ) -> Result<Client, StartError> {
        let Some(access) = &self.http else { return Err(StartError::NoHttp { server }) };
        let reach = entry
            .headers
            .iter()
            .fold(access.options(&entry.url), |reach, (name, value)| reach.with_header(name, value));
        Client::connect_http(reach, options).await.map_err(StartError::Client)
    }

    #[cfg(not(feature = "http"))]
    async fn connect_http(
        &self,
        server: Arc<str>,
        _: &ExpandedHttp,
        _: ClientOptions,
    ) -> Result<Client, StartError> {
        Err(StartError::NoHttp { server })
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
        let options = self.options_for(&launch);
        let client = match &launch.reach {
            Err(error) => return Err(StartError::Entry { server, error: error.clone() }),
            Ok(Reach::Process { entry, environment }) => start(server, entry, environment, options).await?,
            Ok(Reach::Http(entry)) => self.connect_http(server, entry, options).await?,
        };
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

async fn start(
    server: Arc<str>,
    entry: &ExpandedStdio,
    environment: &Environment,
    options: ClientOptions,
) -> Result<Client, StartError> {
    // The system's own message would be the one for a missing program.
    if !entry.cwd.is_dir() {
        return Err(StartError::NoFolder { server, folder: entry.cwd.clone() });
    }
    let command =
        ServerCommand::new(&entry.program).args(&entry.args).envs(environment.iter()).current_dir(&entry.cwd);
    Client::start(&command, options).await.map_err(StartError::Client)
}

impl Link for Client {
    async fn ended(&self) -> String {
        let exit = Self::ended(self).await;
        let said = self.stderr_tail();
        if exit.status.is_none() && said.is_empty() {
            // No process: over HTTP, what broke the connection is all that there is to tell.
            return self.connection().reason();
        }
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
