//! Which of the three modes a skill is in.

use haversack_skills::node::{Fields, Node};

use crate::metadata::places::Places;
use crate::metadata::rules::Group;

/// What a skill is to the program that loads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillMode {
    /// Text for the model.
    Prompt,
    /// A pipeline of tool calls.
    Tool,
    /// A sub-agent.
    Agent,
    /// A word that this version does not know, as written: such a skill is not run.
    Unknown(String),
}

impl SkillMode {
    /// The mode of a skill with this front matter: what `skill_mode` says, at the top or in a section; else a
    /// tool, if there is a `tool_schema` with at least one step; else a prompt. An `agent_config` alone makes no agent:
    /// a program that runs by itself is asked for in so many words.
    pub fn of(fields: &Fields<'_>) -> Self {
        let places = Places::of(fields);
        let word = places.find(Group::Placement, "skill_mode");
        match word.map(|node| node.as_text().map_or("", str::trim)) {
            Some("prompt") => Self::Prompt,
            Some("tool") => Self::Tool,
            Some("agent") => Self::Agent,
            Some(other) => Self::Unknown(other.to_owned()),
            None if has_steps(&places) => Self::Tool,
            None => Self::Prompt,
        }
    }
}

impl std::fmt::Display for SkillMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prompt => "prompt",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Unknown(word) => word,
        })
    }
}

fn has_steps(places: &Places<'_, '_>) -> bool {
    let schema = places.find(Group::Section, "tool_schema").and_then(Node::as_map);
    let steps = schema.and_then(|schema| schema.get("steps")).and_then(Node::as_list);
    steps.is_some_and(|steps| steps.iter().any(|step| step.as_map().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haversack_skills::Document;
    use haversack_skills::document::ParseOptions;

    #[test]
    fn the_word_decides_then_the_steps_and_a_prompt_is_what_is_left() {
        for (front_matter, mode) in [
            ("description: a", SkillMode::Prompt),
            ("skill_mode: agent", SkillMode::Agent),
            ("skill_mode: ' tool '", SkillMode::Tool),
            ("metadata:\n  skill_mode: agent", SkillMode::Agent),
            (
                "skill_mode: ''\nmetadata:\n  skill_mode: prompt\n  tool_schema: {steps: [{tool: a}]}",
                SkillMode::Prompt,
            ),
            ("skill_mode: robot", SkillMode::Unknown("robot".to_owned())),
            ("tool_schema:\n  steps:\n  - tool: a", SkillMode::Tool),
            ("pi:\n  tool_schema: {steps: [{tool: a}]}", SkillMode::Tool),
            ("tool_schema: {steps: []}", SkillMode::Prompt),
            ("tool_schema: {steps: [a, 1]}", SkillMode::Prompt),
            ("tool_schema: {steps: {tool: a}}", SkillMode::Prompt),
            ("pi: {emoji: x}\ntool_schema: {steps: [{tool: a}]}", SkillMode::Tool),
            ("skill_mode: [tool]", SkillMode::Unknown(String::new())),
            ("agent_config: {role_title: Reviewer}", SkillMode::Prompt),
        ] {
            let text = format!("---\n{front_matter}\n---\n");
            let document = Document::parse(text.as_bytes(), &ParseOptions::default());
            assert_eq!(SkillMode::of(document.fields().unwrap()), mode, "{front_matter}");
        }
    }
}
