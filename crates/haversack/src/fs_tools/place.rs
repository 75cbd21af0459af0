//! What all file tools share: the root, and how a path in the arguments is judged.

use std::io;
use std::path::Path;

use haversack_agent_core::policy::ApprovalKey;
use haversack_agent_core::tool::{Claim, Effects, ToolError};
use serde_json::Value;

use super::jail::Jail;
use super::sensitive::Sensitive;

/// An open root and what is sensitive in it.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) jail: Jail,
    pub(super) sensitive: Sensitive,
}

impl Root {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self { jail: Jail::open(root)?, sensitive: Sensitive::new() })
    }

    /// The path of a call, taken apart; what is wrong with it is said to the model.
    pub(super) fn written(&self, path: &str) -> Result<String, ToolError> {
        self.jail.written(path).map_err(|error| error.about(path))
    }

    /// The path of a call as a key for rules and people. One that leads out is shown as it was written, and the call
    /// will fail.
    pub(super) fn keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        let path = text(arguments, "path");
        vec![ApprovalKey::path(self.jail.written(path).unwrap_or_else(|_| path.to_owned()))]
    }

    /// Effects of reading a path: nobody vouches for reading credentials, so it is asked about.
    pub(super) fn reading(&self, arguments: &Value, mut effects: Effects) -> Effects {
        if self.jail.written(text(arguments, "path")).is_ok_and(|path| self.sensitive.is_read(&path)) {
            effects.claimed_by = Claim::Server;
        }
        effects
    }

    /// Effects of writing a path: a sensitive one may do harm.
    pub(super) fn writing(&self, arguments: &Value) -> Effects {
        let path = self.jail.written(text(arguments, "path"));
        let mut effects = Effects::default();
        effects.read_only = Some(false);
        effects.destructive = Some(path.is_ok_and(|path| self.sensitive.is_write(&path)));
        effects.claimed_by = Claim::Host;
        effects
    }
}

/// A text of the arguments, empty when there is none.
pub(super) fn text<'a>(arguments: &'a Value, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number of the arguments from 1, if it is given.
pub(super) fn number(arguments: &Value, key: &str) -> Result<Option<usize>, ToolError> {
    match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(ToolError::invalid_arguments(format!("`{key}` has to be a whole number, 1 or more"))),
        },
    }
}
