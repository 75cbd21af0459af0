//! The MCP client.

pub mod visible;
pub mod environment;
pub mod protocol;
pub mod config;
pub mod fingerprint;
pub mod consent;
pub mod process;
mod error;
mod events;
mod transport;
mod driver;
mod handlers;
mod options;
mod call;
mod cache;
mod client;
mod lists;
mod calls;
mod listen;
pub mod manager;

pub use call::{ProgressStream, ToolCall};
pub use client::Client;
pub use error::{Ending, Error};
pub use events::{Event, Events};
pub use handlers::{
    Elicitation, ElicitationAnswer, ElicitationForm, ElicitationHandler, Root, RootsHandler, SamplingHandler,
};
pub use listen::{Listen, Subscription};
pub use options::ClientOptions;
#[doc(inline)]
pub use process::{Exit, ExitHow, ExitStatus, ServerCommand};

/// Handles cross threads; a host must be able to rely on it.
const _: () = {
    const fn crosses_threads<T: Send + Sync + 'static>() {}
    crosses_threads::<config::Config>();
    crosses_threads::<consent::ApprovedConfig>();
    crosses_threads::<consent::FileConsentStore>();
    crosses_threads::<consent::ConsentStoreError>();
    crosses_threads::<environment::Environment>();
    crosses_threads::<Client>();
    crosses_threads::<Error>();
    crosses_threads::<Events>();
    crosses_threads::<manager::Manager>();
};
