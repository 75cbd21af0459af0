//! Keys, in a type that does not show them.

use std::fmt;
use std::sync::Arc;

/// A key. Its `Debug` text hides it, it has no `Display`, and it cannot be serialised: to write it somewhere, a
/// program has to ask for it by name.
///
/// ```
/// use haversack_http::Secret;
///
/// let key = Secret::new("sk-very-secret");
/// assert_eq!(format!("{key:?}"), "Secret(..)");
/// assert_eq!(key.expose(), "sk-very-secret");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// Shorter texts than this, in bytes, are not searched for in error texts: they would be found in ordinary words.
const MIN_REDACTED_BYTES: usize = 6;

impl Secret {
    /// A secret from its text. Blanks and line ends around it are taken off, since they come with keys that were read
    /// from files, and no header may hold them.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Puts `[key]` in the place of this secret wherever the text quotes it, since servers like to quote the key that
    /// they refuse. A secret of fewer than six bytes is not looked for.
    pub fn redact(&self, text: &mut String) {
        if self.0.len() >= MIN_REDACTED_BYTES && text.contains(&*self.0) {
            *text = text.replace(&*self.0, "[key]");
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
