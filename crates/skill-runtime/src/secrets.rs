//! Secrets by name: where they are is written down, what they are is not.
//!
//! A [`Profile`] says which source to ask and how the value is shaped. A [`SecretProvider`] resolves profiles for tools
//! of the host; every value that it resolves is known to its [`Redactor`] from then on. Nothing is read that the host
//! has not given: the environment is a function of the host's, files lie under a folder of its choice.
//!
//! ```
//! use std::sync::Arc;
//! use haversack_skill_runtime::secrets::{EnvSource, Profile, ProfileKind, SecretProvider};
//! # use futures_util::FutureExt as _;
//!
//! let env = EnvSource::new(|name: &str| (name == "TOKEN").then(|| "t0p-secret".to_owned()));
//! let mut secrets = SecretProvider::new().with_source("env", Arc::new(env));
//! secrets.register(Profile::new("api", ProfileKind::Bearer, "env:TOKEN"))?;
//!
//! # async fn resolve(secrets: &SecretProvider) -> Result<(), haversack_skill_runtime::secrets::SecretError> {
//! let resolved = secrets.resolve("api").await?;
//! assert_eq!(resolved.header().unwrap().expose(), "Bearer t0p-secret");
//! assert_eq!(format!("{resolved:?}"), "Resolved { kind: Bearer, value: Secret(***) }");
//! assert_eq!(secrets.redactor().text("it was t0p-secret"), "it was ***");
//! # Ok(())
//! # }
//! # resolve(&secrets).now_or_never().unwrap()?;
//! # Ok::<(), haversack_skill_runtime::secrets::SecretError>(())
//! ```

mod source;
mod front;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::redact::{MIN_SECRET_BYTES, Redactor, find_token};
pub use front::{PROFILE_FILE, ProfileManager};
pub use source::{EnvSource, FileSource, MAX_SECRET_BYTES, SecretSource};

/// Letters of a profile's name at most.
pub const MAX_PROFILE_NAME: usize = 64;

/// A value that shows itself only to those who ask for it by name: `Debug` masks it, and it cannot be serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret of this value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one who sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// How a secret is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProfileKind {
    /// As a bearer token.
    Bearer,
    /// As a password of basic authentication.
    Basic,
    /// As it is.
    Raw,
}

/// Where a secret is, and how it is used. Holds no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Profile {
    /// Its name: 1 to 64 letters, digits, `_` and `-`.
    pub name: String,
    /// How the value is used.
    #[serde(rename = "type")]
    pub kind: ProfileKind,
    /// `source:place`, such as `env:NAME` or `file:name`.
    pub source: String,
    /// The user, for basic authentication; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// When it was registered, in the host's writing.
    #[serde(default)]
    pub created_at: String,
}

impl Profile {
    /// A profile of this name, kind and source.
    pub fn new(name: impl Into<String>, kind: ProfileKind, source: impl Into<String>) -> Self {
        let (name, source) = (name.into(), source.into());
        Self { name, kind, source, username: None, created_at: String::new() }
    }

    /// Sets the user.
    #[must_use]
    pub fn with_username(mut self, username: impl Into<String>) -> Self {
        self.username = Some(username.into());
        self
    }

    /// The source's name and the place in it.
    fn parts(&self) -> Result<(&str, &str), SecretError> {
        let parts =
            self.source.split_once(':').filter(|(source, place)| !source.is_empty() && !place.is_empty());
        parts.ok_or(SecretError::InvalidSource { length: self.source.len() })
    }

    fn check(&self) -> Result<(), SecretError> {
        let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if self.name.is_empty() || self.name.len() > MAX_PROFILE_NAME || !self.name.bytes().all(letter) {
            return Err(SecretError::InvalidName);
        }
        if find_token(&self.source).is_some() {
            return Err(SecretError::LiteralRejected);
        }
        match self.parts()? {
            ("literal", _) => Err(SecretError::LiteralRejected),
            _ => Ok(()),
        }
    }
}

/// Why a secret cannot be had. No message holds a value, or what might be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// There is no profile of this name, or it is out of reach here.
    #[error("there is no secret profile `{0}` here")]
    ProfileNotFound(String),
    /// The name is not 1 to 64 of `[A-Za-z0-9_-]`.
    #[error("the name of a secret profile is 1 to 64 letters, digits, `_` and `-`")]
    InvalidName,
    /// The source is not of the form `source:place`.
    #[error("the source is not of the form `source:place` (it has {length} characters)")]
    InvalidSource {
        /// How long it is; the text itself might be a secret.
        length: usize,
    },
    /// The source holds the secret itself.
    #[error("a secret must not be written down; give a source such as `env:NAME` or `file:name`")]
    LiteralRejected,
    /// Nobody reads sources of this name.
    #[error("nothing reads secrets from `{0}:`")]
    SourceUnsupported(String),
    /// The source has no value there.
    #[error("{0}")]
    SourceReadFailed(String),
    /// Others than the owner may read the file.
    #[error("{0}")]
    FileModeInsecure(String),
    /// The value is so short that it could not be kept out of texts.
    #[error("the secret of `{0}` is shorter than {MIN_SECRET_BYTES} bytes, so that it could not be masked")]
    TooShort(String),
}

impl SecretError {
    /// The word that reports use.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::ProfileNotFound(_) => "profile_not_found",
            Self::InvalidName => "invalid_profile_name",
            Self::InvalidSource { .. } => "invalid_source_uri",
            Self::LiteralRejected => "literal_secret_rejected",
            Self::SourceUnsupported(_) => "source_unsupported",
            Self::SourceReadFailed(_) => "source_read_failed",
            Self::FileModeInsecure(_) => "file_mode_insecure",
            Self::TooShort(_) => "secret_too_short",
        }
    }
}

/// A secret, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// How it is used.
    pub kind: ProfileKind,
    /// The value: of basic authentication `user:password` in base64.
    pub value: Secret,
}

impl Resolved {
    /// The value of an `Authorization` header; `None` for a raw secret.
    pub fn header(&self) -> Option<Secret> {
        let scheme = match self.kind {
            ProfileKind::Bearer => "Bearer",
            ProfileKind::Basic => "Basic",
            ProfileKind::Raw => return None,
        };
        Some(Secret::new(format!("{scheme} {}", self.value.expose())))
    }
}

/// Profiles, and the sources that they may name. A view for one skill sees only the profiles that it declares.
#[derive(Clone, Default)]
pub struct SecretProvider {
    profiles: BTreeMap<String, Profile>,
    sources: BTreeMap<String, Arc<dyn SecretSource>>,
    redactor: Redactor,
}

impl SecretProvider {
    /// Without profiles and sources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source under this name, the part before the colon; another one of the same name goes.
    #[must_use]
    pub fn with_source(mut self, name: impl Into<String>, source: Arc<dyn SecretSource>) -> Self {
        self.sources.insert(name.into(), source);
        self
    }

    /// Sets what masks the values that are resolved.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// What masks the values that were resolved here.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Adds a profile, or replaces that of the same name, which is given back.
    ///
    /// # Errors
    ///
    /// When its name or source is not of the right form, the source is or looks like the secret itself, or nothing
    /// reads it.
    pub fn register(&mut self, profile: Profile) -> Result<Option<Profile>, SecretError> {
        profile.check()?;
        let (source, _) = profile.parts()?;
        if !self.sources.contains_key(source) {
            return Err(SecretError::SourceUnsupported(source.to_owned()));
        }
        Ok(self.profiles.insert(profile.name.clone(), profile))
    }

    /// Removes a profile.
    pub fn remove(&mut self, name: &str) -> Option<Profile> {
        self.profiles.remove(name)
    }

    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// All profiles, by name.
    pub fn profiles(&self) -> impl ExactSizeIterator<Item = &Profile> {
        self.profiles.values()
    }

    /// The same with only these profiles: what a skill gets that declares them in `secret_refs`.
    #[must_use]
    pub fn limited_to<S: AsRef<str>>(&self, names: &[S]) -> Self {
        let declared = |name: &str| names.iter().any(|declared| declared.as_ref() == name);
        let profiles = self.profiles.iter().filter(|(name, _)| declared(name));
        Self {
            profiles: profiles.map(|(name, profile)| (name.clone(), profile.clone())).collect(),
            sources: self.sources.clone(),
            redactor: self.redactor.clone(),
        }
    }

    /// The secret of a profile, read anew each time, and masked by the redactor from then on.
    ///
    /// # Errors
    ///
    /// When there is no such profile, or its source has no usable value.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the reading of the source; nothing is kept.
    pub async fn resolve(&self, name: &str) -> Result<Resolved, SecretError> {
        let profile = self.profiles.get(name).ok_or_else(|| SecretError::ProfileNotFound(name.to_owned()))?;
        let (source, place) = profile.parts()?;
        let reader = self.sources.get(source);
        let reader = reader.ok_or_else(|| SecretError::SourceUnsupported(source.to_owned()))?;
        let value = reader.read(place).await?;
        if !self.redactor.learn(value.expose()) {
            return Err(SecretError::TooShort(name.to_owned()));
        }
        let value = if profile.kind == ProfileKind::Basic {
            let user = profile.username.as_deref().unwrap_or_default();
            let pair = format!("{user}:{}", value.expose());
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            self.redactor.learn(&encoded);
            Secret::new(encoded)
        } else {
            value
        };
        Ok(Resolved { kind: profile.kind, value })
    }
}

impl fmt::Debug for SecretProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretProvider")
            .field("profiles", &self.profiles.keys().collect::<Vec<_>>())
            .field("sources", &self.sources.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
