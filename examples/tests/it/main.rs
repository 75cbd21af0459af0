//! The hosts, run whole: in this process and as the built programs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod stage;

mod bad_input;
mod byte_identity;
mod chat;
mod facade_hosts;
mod inspect_model;
mod quickstart_binary;
mod quickstart_in_process;
mod small_hosts;
mod web_host;
