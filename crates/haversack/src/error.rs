//! What a host has to mend before an agent can be put together.

use std::path::PathBuf;

/// Why a [`Haversack`](crate::Haversack) or its agent could not be made.
///
/// A broken skill, file or server is none of these: it is in the [`Report`](crate::Report), and the rest works.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The project is no folder.
    #[error("the project {} is no folder", path.display())]
    NoProject {
        /// What was given.
        path: PathBuf,
    },
    /// The root of the file tools cannot be opened.
    #[cfg(feature = "fs-tools")]
    #[error("the root of the file tools, {}, cannot be opened: {error}", path.display())]
    NoRoot {
        /// What was given.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// The agent's own parts do not fit together: two tools of one name, a bad schema, a limit of cost without prices.
    #[error("the agent cannot be put together: {0}")]
    Agent(haversack_agent_core::agent::BuildError),
    /// A server that is marked as required is not there.
    #[error("the required MCP server `{server}` is not there: {state}")]
    MissingServer {
        /// The server.
        server: String,
        /// How it is.
        state: String,
    },
}
