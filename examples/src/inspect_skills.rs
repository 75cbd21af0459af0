//! The subcommands of `inspect-skills`, a file each.

pub mod parse;
