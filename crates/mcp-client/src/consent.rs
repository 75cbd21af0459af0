//! Asking before a repository's servers run.
//!
//! A configuration file in a repository makes whoever opens it run somebody else's commands. So its servers start only
//! after a person has seen the exact commands and said yes, once for a workspace. The same goes for servers over HTTP,
//! which get what the host's variables hold if the repository says so. Any change of the commands, arguments, variables,
//! working folders, URLs or headers is a new question; an answer, yes or no, holds for exactly the set it was given for.
//!
//! What runs is an [`ApprovedConfig`], and there are three ways to one:
//! [`settle`] does all that a host needs with its store and its prompt; [`Config::approve`] and [`Config::withhold`] are
//! for hosts that run their own dialogue.
//!
//! ```
//! # async fn run() {
//! use haversack_mcp_client::config::Config;
//! use haversack_mcp_client::consent::{MemoryConsentStore, Settled, settle};
//!
//! let config = Config::new("/home/u/project")
//!     .with_repository_file(".mcp.json", br#"{"mcpServers": {"docs": {"command": "npx", "args": ["docs"]}}}"#);
//! let store = MemoryConsentStore::default();
//!
//! // Nobody there to ask, and nothing stored: the server is withheld.
//! let Settled { approved, .. } = settle(config, "/home/u/project", &store, None).await;
//! assert_eq!(approved.withheld().collect::<Vec<_>>(), ["docs"]);
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run());
//! ```

mod decision;
mod question;
mod store;
mod file_store;

use std::sync::Arc;

use async_trait::async_trait;

use crate::config::{Config, ConfiguredServer};
use crate::fingerprint::Fingerprint;

pub use decision::Decision;
pub use file_store::FileConsentStore;
pub use question::{AskedHeader, AskedServer, ConsentQuestion};
pub use store::{ConsentStore, ConsentStoreError, MAX_DECISIONS, MemoryConsentStore};

/// Asks a person.
///
/// # Contract
///
/// The answer must be a person's who saw the question: [`ConsentQuestion`] implements `Display` for hosts without a
/// dialogue of their own, and gives the parts to others. `None` means that there was no answer (the dialogue was closed,
/// nobody was there): nothing is stored, nothing runs, and the question comes again. The prompt may take as long as a
/// person does; nothing waits for it but [`settle`]. A panic passes through to the caller of [`settle`] and approves
/// nothing. A prompt that is dropped while it asks should take its dialogue away.
#[async_trait]
pub trait ConsentPrompt: Send + Sync {
    /// Asks whether the servers may run.
    async fn ask(&self, question: &ConsentQuestion) -> Option<Decision>;
}

impl Config {
    /// The repository's servers that would start and so need consent, sorted by name.
    pub fn needing_consent(&self) -> impl Iterator<Item = &ConfiguredServer> {
        self.startable().filter(|server| server.origin().is_repository())
    }

    /// What has to be asked before this configuration may run; `None` when the repository starts nothing.
    ///
    /// One question covers the whole set.
    #[must_use]
    pub fn consent_question(&self) -> Option<ConsentQuestion> {
        ConsentQuestion::about(self.needing_consent())
    }

    /// This configuration, with the repository's servers approved by a person who saw the question of `fingerprint`.
    ///
    /// # Errors
    ///
    /// [`FingerprintMismatch`] when that question was about another set: it has to be asked anew.
    pub fn approve(&self, fingerprint: Fingerprint) -> Result<ApprovedConfig, FingerprintMismatch> {
        let current = Fingerprint::of(self.needing_consent());
        if current != fingerprint {
            return Err(FingerprintMismatch { approved: fingerprint, current });
        }
        Ok(ApprovedConfig { config: Arc::new(self.clone()), repository: true })
    }

    /// This configuration, with the host's servers only.
    #[must_use]
    pub fn withhold(&self) -> ApprovedConfig {
        ApprovedConfig { config: Arc::new(self.clone()), repository: false }
    }
}

/// The approval was given for another set of servers than the configuration has now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the servers have changed since they were approved (approved {approved}, now {current}); ask again")]
#[non_exhaustive]
pub struct FingerprintMismatch {
    /// What was approved.
    pub approved: Fingerprint,
    /// What there is now.
    pub current: Fingerprint,
}

/// A configuration together with the answer for its repository's servers: the only thing that a manager runs.
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApprovedConfig {
    config: Arc<Config>,
    repository: bool,
}

impl ApprovedConfig {
    /// The whole configuration, withheld servers included.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a server of this configuration may run.
    #[must_use]
    pub fn allows(&self, server: &ConfiguredServer) -> bool {
        server.is_startable() && (server.origin().is_host() || self.repository)
    }

    /// The servers that may run, sorted by name.
    pub fn startable(&self) -> impl Iterator<Item = &ConfiguredServer> {
        self.config.servers().filter(|server| self.allows(server))
    }

    /// The names of the servers that would run but for the missing approval.
    pub fn withheld(&self) -> impl Iterator<Item = &str> {
        self.config.needing_consent().filter(|_| !self.repository).map(ConfiguredServer::name)
    }
}

/// What [`settle`] came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settled {
    /// The configuration to run.
    pub approved: ApprovedConfig,
    /// How the answer came about.
    pub outcome: Outcome,
    /// A store that could not be read or written. The outcome stands all the same: an answer that could not be read was
    /// asked for, one that could not be written will be asked for again.
    pub store_error: Option<ConsentStoreError>,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The repository starts nothing, so there was nothing to ask.
    NotNeeded,
    /// The store had the answer for exactly this set.
    Remembered(Decision),
    /// A person answered now.
    Answered(Decision),
    /// There was no stored answer, and nobody to ask or no answer. The servers are withheld, and it will be asked again.
    Unanswered,
}

/// Looks for the stored answer, asks for a missing one, stores it, and gives the configuration that may run.
///
/// `workspace` identifies the project for the store, most often its canonical path. Without a `prompt` (a program that
/// runs unattended) nothing is asked and what has no stored approval is withheld.
///
/// # Cancel safety
///
/// Dropped while the prompt asks, nothing is stored. Dropped later, an answer may be stored or not; it is never stored
/// in part.
pub async fn settle(
    config: Config,
    workspace: &str,
    store: &dyn ConsentStore,
    prompt: Option<&dyn ConsentPrompt>,
) -> Settled {
    let Some(question) = config.consent_question() else {
        return Settled { approved: config.withhold(), outcome: Outcome::NotNeeded, store_error: None };
    };
    let (stored, mut store_error) = match store.decision(workspace, question.fingerprint()).await {
        Ok(stored) => (stored, None),
        Err(error) => (None, Some(error)),
    };
    let outcome = match (stored, prompt) {
        (Some(decision), _) => Outcome::Remembered(decision),
        (None, None) => Outcome::Unanswered,
        (None, Some(prompt)) => match prompt.ask(&question).await {
            None => Outcome::Unanswered,
            Some(decision) => {
                if let Err(error) = store.record(workspace, question.fingerprint(), decision).await {
                    store_error.get_or_insert(error);
                }
                Outcome::Answered(decision)
            }
        },
    };
    let allowed =
        matches!(outcome, Outcome::Remembered(Decision::Allow) | Outcome::Answered(Decision::Allow));
    let approved = ApprovedConfig { config: Arc::new(config), repository: allowed };
    Settled { approved, outcome, store_error }
}
