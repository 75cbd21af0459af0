//! Combining sources by precedence: a later one wins by name, and the host's names are out of a repository's reach.
//!
//! Merging comes before anything is dropped: an entry that is broken, disabled or unsupported still takes its name.
//! Otherwise a typing error in the user's settings would let a repository's server answer under the name that the
//! user trusts.

use std::collections::BTreeMap;

use crate::config::entry::{ConfiguredServer, Origin, ServerConfig};
use crate::config::problem::{Problem, ProblemKind};

/// All names that any source uses, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    origin: Origin,
    /// `None`: the name is taken by an entry that cannot be used.
    server: Option<ConfiguredServer>,
}

impl Merged {
    pub(crate) fn merge(
        &mut self,
        origin: &Origin,
        entries: Vec<(String, Option<ServerConfig>)>,
        problems: &mut Vec<Problem>,
    ) {
        for (name, config) in entries {
            if origin.is_repository()
                && let Some(taken) = self.host_name_like(&name)
            {
                problems.push(name_taken(origin, &name, taken));
                continue;
            }
            if origin.is_host() {
                self.drop_lookalikes(&name, problems);
            }
            let server = config.map(|config| ConfiguredServer::new(&name, origin.clone(), config));
            let replaced = self.entries.insert(name.clone(), Entry { origin: origin.clone(), server });
            if let Some(replaced) = replaced {
                if origin.is_host() && replaced.origin.is_repository() {
                    problems.push(name_taken(&replaced.origin, &name, &name));
                    continue;
                }
                let message = format!("does not count, since {origin} defines the same name");
                problems.push(Problem::of_server(&replaced.origin, &name, ProblemKind::Replaced, message));
            }
        }
    }

    fn host_name_like(&self, name: &str) -> Option<&str> {
        let look = look_of(name);
        self.entries
            .iter()
            .find(|(taken, entry)| entry.origin.is_host() && look_of(taken) == look)
            .map(|(taken, _)| taken.as_str())
    }

    /// Takes out the repository's entries that look like a host's name which comes later.
    fn drop_lookalikes(&mut self, host_name: &str, problems: &mut Vec<Problem>) {
        let look = look_of(host_name);
        self.entries.retain(|name, entry| {
            let stays = entry.origin.is_host() || name == host_name || look_of(name) != look;
            if !stays {
                problems.push(name_taken(&entry.origin, name, host_name));
            }
            stays
        });
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &ConfiguredServer> {
        self.entries.values().filter_map(|entry| entry.server.as_ref())
    }

    pub(crate) fn servers_mut(&mut self) -> impl Iterator<Item = &mut ConfiguredServer> {
        self.entries.values_mut().filter_map(|entry| entry.server.as_mut())
    }

    pub(crate) fn server(&self, name: &str) -> Option<&ConfiguredServer> {
        self.entries.get(name).and_then(|entry| entry.server.as_ref())
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&ConfiguredServer) -> bool) {
        self.entries.retain(|_, entry| entry.server.as_ref().is_none_or(&mut keep));
    }
}

fn name_taken(origin: &Origin, name: &str, taken: &str) -> Problem {
    let message = if name == taken {
        "does not count, since the settings use the same name".to_owned()
    } else {
        format!("does not count, since its name is too like `{taken}` of the settings; rename it")
    };
    Problem::of_server(origin, name, ProblemKind::NameTaken, message)
}

/// What is left of a name in the name of a tool, without regard to case: `My Server` and `my_server` look alike, and a
/// person or a model cannot be asked to tell them apart.
fn look_of(name: &str) -> String {
    let look: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    // A name without any such character would look like every other of its length.
    if look.bytes().all(|byte| byte == b'_') { name.to_owned() } else { look }
}
