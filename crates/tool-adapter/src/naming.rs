//! Public names for the tools of MCP servers, and the table back. The only place where the two are translated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// The longest tool name that every model API takes, in characters (all of them ASCII).
pub const MAX_NAME_LEN: usize = 64;

/// How many hex digits of the hash a suffix has at first; doubled in the unlikely case that it is taken too.
const SUFFIX_LEN: usize = 8;

/// A tool by the names that its server knows: (server, tool).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Original {
    /// The server's name, as configured.
    pub server: Arc<str>,
    /// The tool's name, as the server writes it.
    pub tool: Arc<str>,
}

impl Original {
    /// A tool by its two names.
    pub fn new(server: impl Into<Arc<str>>, tool: impl Into<Arc<str>>) -> Self {
        Self { server: server.into(), tool: tool.into() }
    }
}

/// A table from public names to original ones and back.
///
/// A public name is `mcp__<server>__<tool>` with every character outside `[A-Za-z0-9_-]` written as `_`. A name of
/// more than 64 characters, and **every** name of a clash, becomes its first 55 characters, `_` and 8 hex digits of
/// SHA-256 over server, NUL, tool, in the original spelling.
///
/// Once given, a name stays with its tool for the life of the table, whatever servers come and go; it is not given
/// to another tool either. Parts are never recovered by splitting: server and tool names may hold `__` themselves.
///
/// ```
/// use haversack_tool_adapter::naming::{NameTable, Original};
///
/// let mut names = NameTable::new();
/// names.assign([Original::new("my server", "get.component"), Original::new("docs", "search")]);
/// assert_eq!(names.original("mcp__my_server__get_component"), Some(&Original::new("my server", "get.component")));
/// assert_eq!(names.public(&Original::new("docs", "search")), Some("mcp__docs__search"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    public: HashMap<Original, Arc<str>>,
    original: HashMap<Arc<str>, Original>,
    reserved: BTreeSet<Arc<str>>,
}

impl NameTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a name from being given to a server's tool, because the host has a tool of that name.
    pub fn reserve(&mut self, name: impl Into<Arc<str>>) {
        self.reserved.insert(name.into());
    }

    /// Names all these tools. Those that have a name keep it; the others are named together, so that the outcome
    /// does not depend on their order.
    pub fn assign(&mut self, tools: impl IntoIterator<Item = Original>) {
        let new: BTreeSet<Original> = tools.into_iter().filter(|t| !self.public.contains_key(t)).collect();
        let mut wanted: BTreeMap<String, Vec<Original>> = BTreeMap::new();
        for tool in new {
            wanted.entry(plain_name(&tool)).or_default().push(tool);
        }
        let contested: BTreeSet<String> = wanted.keys().cloned().collect();
        for (plain, tools) in wanted {
            let fits = plain.len() <= MAX_NAME_LEN && tools.len() == 1 && !self.is_taken(&plain);
            for tool in tools {
                let name = if fits { plain.clone() } else { self.suffixed(&plain, &tool, &contested) };
                self.insert(tool, name.into());
            }
        }
    }

    /// The public name of a tool that was named.
    pub fn public(&self, tool: &Original) -> Option<&str> {
        self.public.get(tool).map(|name| &**name)
    }

    /// The tool behind a public name.
    pub fn original(&self, name: &str) -> Option<&Original> {
        self.original.get(name)
    }

    /// All pairs, sorted by public name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Original)> {
        let sorted: BTreeMap<&str, &Original> = self.original.iter().map(|(n, o)| (&**n, o)).collect();
        sorted.into_iter()
    }

    fn suffixed(&self, plain: &str, tool: &Original, contested: &BTreeSet<String>) -> String {
        let hash = hash(tool);
        let mut digits = SUFFIX_LEN;
        loop {
            let suffix: String = hash.chars().take(digits).collect();
            let head: String = plain.chars().take(MAX_NAME_LEN - 1 - suffix.len()).collect();
            let name = format!("{head}_{suffix}");
            // A server may offer a tool whose plain name is another one's suffixed name: that counts as taken.
            let free = !self.is_taken(&name) && !contested.contains(&name);
            if free || digits >= MAX_NAME_LEN / 2 {
                return name;
            }
            digits += SUFFIX_LEN;
        }
    }

    fn is_taken(&self, name: &str) -> bool {
        self.original.contains_key(name) || self.reserved.contains(name)
    }

    fn insert(&mut self, tool: Original, name: Arc<str>) {
        self.original.insert(Arc::clone(&name), tool.clone());
        self.public.insert(tool, name);
    }
}

fn plain_name(tool: &Original) -> String {
    format!("mcp__{}__{}", cleaned(&tool.server), cleaned(&tool.tool))
}

fn cleaned(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn hash(tool: &Original) -> String {
    let digest =
        Sha256::new().chain_update(&*tool.server).chain_update([0]).chain_update(&*tool.tool).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
