//! Shared parts of the example hosts.

pub mod field_notes;
pub mod rehearsal;
pub mod terminal;
pub mod quickstart;
pub mod chat;
pub mod web_host;

pub mod inspect_skills;
pub mod inspect_model;
pub mod inspect_mcp;
