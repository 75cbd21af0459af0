//! The MCP client.

pub mod visible;
pub mod environment;
pub mod config;
pub mod fingerprint;
pub mod consent;
pub mod process;

/// Handles cross threads; a host must be able to rely on it.
const _: () = {
    const fn crosses_threads<T: Send + Sync + 'static>() {}
    crosses_threads::<config::Config>();
    crosses_threads::<consent::ApprovedConfig>();
    crosses_threads::<consent::FileConsentStore>();
    crosses_threads::<consent::ConsentStoreError>();
    crosses_threads::<environment::Environment>();
};
