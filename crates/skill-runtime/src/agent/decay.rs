//! Permission decay: what a sub-agent gets is never more than what its parent has.

use std::collections::BTreeSet;
use std::fmt;

use crate::agent::contract::{Contract, Permission, ScopeEntry};
use crate::metadata::{AgentConfig, Inherit, SecurityLevel};

/// The basic tools that `inherit: minimal` starts with, where the parent has them.
pub const MINIMAL_TOOLS: [&str; 4] = ["bash", "list_dir", "read_file", "write_file"];

/// The tools of a sub-agent: what it inherits, and what is allowed on top, without what is denied; always explicit,
/// always a subset of the parent's, in alphabetical order.
///
/// ```
/// use haversack_skill_runtime::agent::tools_for;
/// use haversack_skill_runtime::metadata::{AgentConfig, Inherit};
///
/// let mut config = AgentConfig::new("Reviewer");
/// config.inherit = Inherit::None;
/// config.allow = vec!["read_file".into(), "not_the_parents".into()];
/// assert_eq!(tools_for(&config, ["bash", "read_file"]), ["read_file"]);
/// ```
pub fn tools_for<'t>(config: &AgentConfig, parent: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let parent: BTreeSet<&str> = parent.into_iter().collect();
    let starts_with = |name: &str| match config.inherit {
        Inherit::Full => true,
        Inherit::Minimal => MINIMAL_TOOLS.contains(&name),
        Inherit::None => false,
    };
    let listed = |list: &[String], name: &str| list.iter().any(|entry| entry == name);
    let kept = parent
        .into_iter()
        .filter(|name| (starts_with(name) || listed(&config.allow, name)) && !listed(&config.deny, name));
    kept.map(str::to_owned).collect()
}

/// What an agent can do at most, apart from its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapabilitySet {
    /// Writing files.
    pub allow_write: bool,
    /// Executing programs.
    pub allow_exec: bool,
    /// The network.
    pub allow_network: bool,
    /// How far execution is trusted.
    pub max_security_level: SecurityLevel,
    /// Where it may work; empty is anywhere.
    pub scope_paths: Vec<String>,
}

impl CapabilitySet {
    /// Nothing at all, anywhere.
    pub fn nothing() -> Self {
        Self {
            allow_write: false,
            allow_exec: false,
            allow_network: false,
            max_security_level: SecurityLevel::Deny,
            scope_paths: Vec::new(),
        }
    }

    /// Everything, anywhere.
    pub fn everything() -> Self {
        Self {
            allow_write: true,
            allow_exec: true,
            allow_network: true,
            max_security_level: SecurityLevel::Full,
            scope_paths: Vec::new(),
        }
    }

    /// Sets where.
    #[must_use]
    pub fn with_scope(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scope_paths = paths.into_iter().map(Into::into).collect();
        self
    }

    /// What a contract leaves.
    pub fn of(contract: &Contract) -> Self {
        let may = |wanted| contract.scope.iter().any(|entry| entry.permissions.contains(&wanted));
        let constraints = &contract.constraints;
        let allow_exec = may(Permission::Execute) && !constraints.no_spawn;
        let max_security_level = match (allow_exec, constraints.sandbox_required) {
            (false, _) => SecurityLevel::Deny,
            (true, true) => SecurityLevel::Sandboxed,
            (true, false) => SecurityLevel::Full,
        };
        Self {
            allow_write: may(Permission::Write),
            allow_exec,
            allow_network: !constraints.no_network,
            max_security_level,
            scope_paths: contract.scope.iter().map(|entry| entry.path.clone()).collect(),
        }
    }

    /// Everything in which this set goes beyond the one above; none, if it is a subset.
    pub fn violations(&self, above: &Self) -> Vec<Violation> {
        let mut found = Vec::new();
        let flags = [
            (self.allow_write, above.allow_write, Violation::Write),
            (self.allow_exec, above.allow_exec, Violation::Exec),
            (self.allow_network, above.allow_network, Violation::Network),
        ];
        found.extend(flags.into_iter().filter(|(own, parent, _)| *own && !parent).map(|(.., v)| v));
        if self.max_security_level > above.max_security_level {
            found.push(Violation::Level(self.max_security_level, above.max_security_level));
        }
        if !above.scope_paths.is_empty() {
            if self.scope_paths.is_empty() {
                found.push(Violation::Unscoped);
            }
            let outside = self.scope_paths.iter().filter(|path| !is_under_any(path, &above.scope_paths));
            found.extend(outside.map(|path| Violation::Path(path.clone())));
        }
        found
    }

    /// This set, cut down until it is a subset of the one above.
    #[must_use]
    pub fn under(mut self, above: &Self) -> Self {
        self.allow_write &= above.allow_write;
        self.allow_exec &= above.allow_exec;
        self.allow_network &= above.allow_network;
        self.max_security_level = self.max_security_level.min(above.max_security_level);
        if above.scope_paths.is_empty() {
            return self;
        }
        if self.scope_paths.is_empty() {
            self.scope_paths.clone_from(&above.scope_paths);
            return self;
        }
        self.scope_paths.retain(|path| is_under_any(path, &above.scope_paths));
        if self.scope_paths.is_empty() {
            // An empty scope would mean anywhere: nowhere in common means nothing at all, in the parent's scope.
            return Self::nothing().with_scope(above.scope_paths.iter().cloned());
        }
        self
    }
}

/// Everything in which a scope goes beyond the one above: each entry has to lie below an entry there that permits as
/// much. An empty scope above is anywhere; an empty one below it is not.
pub fn scope_violations(own: &[ScopeEntry], above: &[ScopeEntry]) -> Vec<Violation> {
    if above.is_empty() {
        return Vec::new();
    }
    if own.is_empty() {
        return vec![Violation::Unscoped];
    }
    let covered = |entry: &ScopeEntry, wanted: Option<&Permission>| {
        let permits =
            above.iter().filter(|above| wanted.is_none_or(|wanted| above.permissions.contains(wanted)));
        let folders: Vec<&str> = permits.map(|above| above.path.as_str()).collect();
        is_under_any(&entry.path, &folders)
    };
    let beyond = |entry: &&ScopeEntry| {
        !covered(entry, None) || !entry.permissions.iter().all(|wanted| covered(entry, Some(wanted)))
    };
    own.iter().filter(beyond).map(|entry| Violation::Path(entry.path.clone())).collect()
}

/// One thing in which a set goes beyond the one above.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// It writes.
    Write,
    /// It executes.
    Exec,
    /// It uses the network.
    Network,
    /// It is trusted further: its level, and that of the set above.
    Level(SecurityLevel, SecurityLevel),
    /// It works in a folder that is not below one of the set above.
    Path(String),
    /// It works anywhere, and the set above does not.
    Unscoped,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write => f.write_str("writes, which the parent may not"),
            Self::Exec => f.write_str("executes, which the parent may not"),
            Self::Network => f.write_str("uses the network, which the parent may not"),
            Self::Level(own, parent) => write!(f, "has level {own} above the parent's {parent}"),
            Self::Path(path) => {
                write!(f, "works in `{path}`, outside the parent's scope or with more rights there")
            }
            Self::Unscoped => f.write_str("works anywhere, where the parent has a scope"),
        }
    }
}

/// Whether a path is one of these folders or below one, judged by its words alone: links are judged where files are
/// opened. Backslashes and drive letters count as they do on Windows, on every system, so that a verdict does not
/// depend on where it is made. A relative path is not below an absolute folder, and `..` beyond the start is below
/// nothing.
pub fn is_under_any<S: AsRef<str>>(path: &str, folders: &[S]) -> bool {
    let Some(path) = Parts::of(path) else { return false };
    folders.iter().filter_map(|folder| Parts::of(folder.as_ref())).any(|folder| path.is_under(&folder))
}

struct Parts {
    absolute: bool,
    parts: Vec<String>,
}

impl Parts {
    fn of(path: &str) -> Option<Self> {
        if path.is_empty() || path.contains('\0') {
            return None;
        }
        let posix = path.starts_with('/');
        let separators: &[char] = if posix { &['/'] } else { &['/', '\\'] };
        let drive = !posix && path.as_bytes().get(1) == Some(&b':');
        let absolute = posix || drive || path.starts_with('\\');
        let mut parts: Vec<String> = Vec::new();
        for part in path.split(separators) {
            match part {
                "" | "." => {}
                ".." => {
                    let floor = usize::from(drive);
                    if parts.len() > floor {
                        parts.pop();
                    } else if !absolute {
                        return None;
                    }
                }
                part => parts.push(if drive { part.to_ascii_lowercase() } else { part.to_owned() }),
            }
        }
        Some(Self { absolute, parts })
    }

    fn is_under(&self, folder: &Self) -> bool {
        self.absolute == folder.absolute && self.parts.starts_with(&folder.parts)
    }
}

#[cfg(test)]
mod tests;
