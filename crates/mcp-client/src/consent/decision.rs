//! Yes or no.

use serde::{Deserialize, Serialize};

/// The answer to a [`ConsentQuestion`](crate::consent::ConsentQuestion).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The servers may run as shown.
    Allow,
    /// They may not. Not asked again while the set stays as it is.
    Refuse,
}
