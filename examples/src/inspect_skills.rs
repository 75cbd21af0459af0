//! The subcommands of `inspect-skills`, a file each.

pub mod parse;
pub mod place;
pub mod scan;
pub mod disclose;
pub mod lint;
