//! The facade, with a scripted model and real folders.

#![expect(clippy::unwrap_used, reason = "tests")]

mod project;

mod skills;
mod modes;
mod servers;
#[cfg(feature = "http")]
mod servers_over_http;
#[cfg(feature = "http")]
mod served_skills;
mod fs_files;
mod fs_jail;
mod fs_policy;
#[cfg(unix)]
mod fs_commands;
