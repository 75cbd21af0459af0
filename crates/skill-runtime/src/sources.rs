//! Skills of several sources, brought together: which one counts where two are for the same place or the same tool.

use std::collections::BTreeMap;

use crate::metadata::Metadata;

/// Where a skill comes from, rising in precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkillSource {
    /// Comes with the program.
    Bundled,
    /// Folders that the host adds.
    Extra,
    /// Installed by an administrator.
    Managed,
    /// The user's own.
    User,
    /// The workspace's.
    Workspace,
}

impl SkillSource {
    fn priority(self) -> u32 {
        match self {
            Self::Bundled => 1,
            Self::Extra => 2,
            Self::Managed => 3,
            Self::User => 4,
            Self::Workspace => 5,
        }
    }
}

/// A skill of one source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourcedSkill {
    /// Where it comes from.
    pub source: SkillSource,
    /// What it says.
    pub metadata: Metadata,
    /// Its description, which stands in for a summary.
    pub description: String,
}

impl SourcedSkill {
    /// A skill of a source.
    pub fn new(source: SkillSource, metadata: Metadata, description: impl Into<String>) -> Self {
        Self { source, metadata, description: description.into() }
    }

    fn id(&self) -> Option<&str> {
        let in_tools =
            self.metadata.category.as_deref().is_some_and(|c| c == "tools" || c.starts_with("tools/"));
        self.metadata.tree_id.as_deref().filter(|id| in_tools && !id.is_empty())
    }

    /// The name of its tool.
    fn tool(&self) -> String {
        self.metadata.tool_names().into_iter().next().unwrap_or_default()
    }

    /// The source counts most, then how well the skill describes its tool.
    fn rank(&self, id: &str) -> u32 {
        let named = id.rsplit('/').next() == Some(self.tool().as_str());
        let schema = self.metadata.tool_input_schema.as_ref().and_then(|schema| schema.as_object());
        self.source.priority() * 10
            + 2 * u32::from(named)
            + u32::from(schema.is_some_and(|schema| !schema.is_empty()))
            + u32::from(self.metadata.tool_description.is_some())
    }
}

/// The skills that count, by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Aggregation {
    /// The skills that count.
    pub skills: BTreeMap<String, SourcedSkill>,
    /// Ids of skills for the same tool that do not count, and the id that counts in their place.
    pub aliases: BTreeMap<String, String>,
    /// Ids that a skill of the same id and higher rank took, and from which source the one was that lost.
    pub shadowed: Vec<(String, SkillSource)>,
    /// Skills that are no tools of the tree.
    pub ignored: usize,
}

impl Aggregation {
    /// Brings skills together. The result does not depend on the order in which they are given.
    ///
    /// Only skills with a `tree_id` whose category is `tools`, or begins with `tools/`, take part.
    pub fn of(skills: impl IntoIterator<Item = SourcedSkill>) -> Self {
        let mut out = Self::default();
        let mut open: Vec<(String, u32, SourcedSkill)> = Vec::new();
        for skill in skills {
            match skill.id().map(str::to_owned) {
                Some(id) => open.push((id.clone(), skill.rank(&id), skill)),
                None => out.ignored += 1,
            }
        }
        // Highest rank first, so that whoever comes later never replaces anybody.
        open.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut by_tool: BTreeMap<String, String> = BTreeMap::new();
        for (id, _, skill) in open {
            if out.skills.contains_key(&id) || out.aliases.contains_key(&id) {
                out.shadowed.push((id, skill.source));
                continue;
            }
            match by_tool.get(&skill.tool()) {
                Some(canonical) => drop(out.aliases.insert(id, canonical.clone())),
                None => {
                    by_tool.insert(skill.tool(), id.clone());
                    out.skills.insert(id, skill);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::SkillMode;

    fn skill(source: SkillSource, id: &str, category: &str, tools: &[&str]) -> SourcedSkill {
        let mut metadata = Metadata::in_mode(SkillMode::Prompt);
        (metadata.tree_id, metadata.category) = (Some(id.to_owned()), Some(category.to_owned()));
        metadata.tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        SourcedSkill::new(source, metadata, "d")
    }

    #[test]
    fn the_higher_source_counts_and_the_other_id_leads_to_it() {
        use SkillSource::{Bundled, User};
        let both =
            Aggregation::of([skill(Bundled, "t/echo", "tools", &[]), skill(User, "t/echo", "tools", &[])]);
        assert_eq!(both.skills["t/echo"].source, User);
        assert_eq!(both.shadowed, [("t/echo".to_owned(), Bundled)]);

        for swap in [false, true] {
            let mut skills =
                vec![skill(Bundled, "t/a/echo", "tools", &[]), skill(User, "t/b/echo", "tools", &[])];
            if swap {
                skills.reverse();
            }
            let found = Aggregation::of(skills);
            assert_eq!(found.skills.keys().collect::<Vec<_>>(), ["t/b/echo"]);
            assert_eq!(found.aliases["t/a/echo"], "t/b/echo");
        }
        let named =
            Aggregation::of([skill(User, "t/x", "tools", &["echo"]), skill(User, "t/y/echo", "tools", &[])]);
        assert_eq!(named.skills.keys().collect::<Vec<_>>(), ["t/y/echo"]);
        assert_eq!(named.aliases["t/x"], "t/y/echo");
    }

    #[test]
    fn only_tools_take_part() {
        let ids = [("a", "agents"), ("b", "toolsx"), ("c", ""), ("d", "tools/sub"), ("e", "tools")];
        let found = Aggregation::of(ids.map(|(id, category)| skill(SkillSource::Extra, id, category, &[])));
        assert_eq!(found.skills.keys().collect::<Vec<_>>(), ["d", "e"]);
        assert_eq!(found.ignored, 3);
    }
}
