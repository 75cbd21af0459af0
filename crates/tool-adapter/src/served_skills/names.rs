//! What the skills of one server are called.

use std::collections::HashMap;

use haversack_mcp_client::protocol::ServedSkill;

/// Why a skill is left out whose name is taken: its address differs in the scheme only, or a server's name has a colon.
pub(super) const CLASH: &str = "another skill has the same name";

/// The skills under their public names, sorted by them: `server:name`, or `server:folder` for all that share a name.
pub(super) fn named(server: &str, listed: Vec<ServedSkill>) -> Vec<(String, ServedSkill)> {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for skill in &listed {
        *uses.entry(skill.name().to_owned()).or_default() += 1;
    }
    let mut named: Vec<_> = listed
        .into_iter()
        .map(|skill| {
            let is_alone = uses.get(skill.name()) == Some(&1);
            let own = if is_alone { skill.name() } else { without_scheme(skill.folder()) };
            (format!("{server}:{own}"), skill)
        })
        .collect();
    named.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.uri.cmp(&other.uri)));
    named
}

fn without_scheme(folder: &str) -> &str {
    folder.split_once("://").map_or(folder, |(_, path)| path)
}
