//! Profiles for models and programs: five actions, JSON in and JSON out, and never a value.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::redact::find_token;
use crate::reply::{Arguments, Reply, payload};
use crate::secrets::{Profile, ProfileKind, SecretError, SecretProvider};
use crate::state_file::{StateError, StateFile};

/// The name of the file of profiles in a folder of state.
pub const PROFILE_FILE: &str = "secret_profiles.json";

const ACTIONS: &str = "register, list, get, remove, test";

/// Profiles with their store, for the tool `secret_profile_manage`. Clones share the profiles.
///
/// ```
/// use std::sync::Arc;
/// use haversack_skill_runtime::secrets::{EnvSource, ProfileManager, SecretProvider};
/// use serde_json::json;
/// # use futures_util::FutureExt as _;
///
/// let env = EnvSource::new(|name: &str| (name == "TOKEN").then(|| "t0p-secret".to_owned()));
/// let manager = ProfileManager::new(SecretProvider::new().with_source("env", Arc::new(env)));
/// # async fn run(manager: &ProfileManager) {
/// let wanted = json!({"action": "register", "name": "api", "type": "bearer", "source": "env:TOKEN"});
/// assert!(manager.call(&wanted).await.ok);
/// let tested = manager.call(&json!({"action": "test", "name": "api"})).await;
/// assert_eq!(tested.value["data"], json!({"kind": "bearer", "ok": true}));
/// # }
/// # run(&manager).now_or_never().unwrap();
/// ```
#[derive(Clone)]
pub struct ProfileManager(Arc<Inner>);

struct Inner {
    provider: Mutex<SecretProvider>,
    file: Option<StateFile>,
    now: Box<dyn Fn() -> String + Send + Sync>,
}

impl fmt::Debug for ProfileManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileManager").field("provider", &*self.lock()).finish_non_exhaustive()
    }
}

impl ProfileManager {
    /// Profiles are kept in memory.
    pub fn new(provider: SecretProvider) -> Self {
        Self(Arc::new(Inner { provider: Mutex::new(provider), file: None, now: Box::new(String::new) }))
    }

    /// Profiles are kept in this folder. Gives back what of them could not be used. `now` is the time for the record, in
    /// the host's writing.
    ///
    /// # Errors
    ///
    /// When the file is there and cannot be read.
    pub fn open(
        provider: SecretProvider,
        folder: impl Into<PathBuf>,
        now: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<(Self, Vec<String>), StateError> {
        let file = StateFile::new(folder.into().join(PROFILE_FILE), "profiles");
        let mut provider = provider;
        let loaded = file.load()?;
        let mut problems: Vec<String> = loaded.corrupt.into_iter().collect();
        for (name, value) in loaded.entries {
            let registered = match serde_json::from_value::<Profile>(value) {
                Ok(profile) if profile.name == name => {
                    provider.register(profile).map_err(|error| error.to_string())
                }
                Ok(_) => Err("it says another name".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = registered {
                problems.push(format!("the profile `{name}` cannot be used: {why}"));
            }
        }
        let inner = Inner { provider: Mutex::new(provider), file: Some(file), now: Box::new(now) };
        Ok((Self(Arc::new(inner)), problems))
    }

    /// The provider with the profiles of now; a copy.
    pub fn provider(&self) -> SecretProvider {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, SecretProvider> {
        self.0.provider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call of `secret_profile_manage`: an object with `action`, or `{payload}` with the same as a text, to
    /// `{action, success, data?, error?}`. No reply holds a value.
    ///
    /// # Cancel safety
    ///
    /// Dropped while a source is read, nothing is kept.
    pub async fn call(&self, arguments: &Value) -> Reply {
        let payload = match payload(arguments) {
            Ok(payload) => payload,
            Err(error) => return Reply::of_action("", Err(error)),
        };
        let action = payload.get("action").and_then(Value::as_str).unwrap_or_default();
        let Some(arguments) = Arguments::of(&payload) else {
            return Reply::of_action(action, Err("the payload has to be an object".to_owned()));
        };
        if action == "test" {
            return self.test(arguments).await;
        }
        let result = match action {
            "register" => self.register(arguments),
            "list" => Ok(json!({"profiles": self.lock().profiles().collect::<Vec<_>>()})),
            "get" => self.get(arguments),
            "remove" => self.remove(arguments),
            _ => Err(format!("`action` is none of {ACTIONS}")),
        };
        // A name or source may be a secret that somebody put in the wrong place.
        let redactor = self.lock().redactor().clone();
        Reply::of_action(action, result.map_err(|error| redactor.text(&error).into_owned()))
    }

    fn register(&self, arguments: Arguments<'_>) -> Result<Value, String> {
        let name = arguments.required("name")?;
        let kind = arguments.required("type")?;
        let kind = serde_json::from_value::<ProfileKind>(kind.into())
            .map_err(|_| "`type` is none of bearer, basic, raw".to_owned())?;
        let source = arguments.required("source")?;
        let mut profile = Profile::new(name, kind, source);
        profile.created_at = (self.0.now)();
        match (arguments.text("username")?, kind) {
            (Some(user), ProfileKind::Basic) if find_token(user).is_none() => {
                profile.username = Some(user.to_owned());
            }
            (Some(_), ProfileKind::Basic) => return Err("`username` looks like a token".to_owned()),
            (Some(_), _) => return Err("`username` is for profiles of the type basic".to_owned()),
            (None, _) => {}
        }
        let mut provider = self.lock();
        let mut changed = provider.clone();
        changed.register(profile.clone()).map_err(|error| error.to_string())?;
        let value = serde_json::to_value(&profile).map_err(|error| error.to_string())?;
        let note = self.store(|entries| {
            entries.insert(profile.name.clone(), value.clone());
        })?;
        *provider = changed;
        Ok(with_note(json!({"profile": value}), note))
    }

    fn get(&self, arguments: Arguments<'_>) -> Result<Value, String> {
        let name = arguments.required("name")?;
        let provider = self.lock();
        let profile = provider
            .profile(name)
            .ok_or_else(|| SecretError::ProfileNotFound(name.to_owned()).to_string())?;
        Ok(json!({"profile": profile}))
    }

    fn remove(&self, arguments: Arguments<'_>) -> Result<Value, String> {
        let name = arguments.required("name")?;
        let mut provider = self.lock();
        if provider.profile(name).is_none() {
            return Err(SecretError::ProfileNotFound(name.to_owned()).to_string());
        }
        let note = self.store(|entries| drop(entries.remove(name)))?;
        provider.remove(name);
        Ok(with_note(json!({"removed": name}), note))
    }

    fn store(
        &self,
        change: impl FnOnce(&mut serde_json::Map<String, Value>),
    ) -> Result<Option<String>, String> {
        let Some(file) = &self.0.file else { return Ok(None) };
        let changed = file.change(&(self.0.now)(), change).map_err(|error| {
            let cause =
                std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{cause}")
        })?;
        Ok(changed.set_aside.map(|(kept, why)| {
            format!("the file of profiles could not be read ({why}) and is kept as {}", kept.display())
        }))
    }

    async fn test(&self, arguments: Arguments<'_>) -> Reply {
        let name = match arguments.required("name") {
            Ok(name) => name,
            Err(error) => return Reply::of_action("test", Err(error)),
        };
        let provider = self.provider();
        match provider.resolve(name).await {
            Ok(resolved) => Reply::of_action("test", Ok(json!({"kind": resolved.kind, "ok": true}))),
            Err(error) => {
                let said = provider.redactor().text(&error.to_string()).into_owned();
                let mut reply = Reply::of_action("test", Err(said));
                if let Some(fields) = reply.value.as_object_mut() {
                    fields.insert("data".to_owned(), json!({"ok": false, "code": error.code()}));
                }
                reply
            }
        }
    }
}

fn with_note(mut data: Value, note: Option<String>) -> Value {
    if let (Some(note), Some(fields)) = (note, data.as_object_mut()) {
        fields.insert("storeWarning".to_owned(), note.into());
    }
    data
}
