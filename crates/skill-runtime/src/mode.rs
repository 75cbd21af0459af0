//! Which of the three modes a skill is in.

use haversack_skills::node::{Fields, Node};

/// Keys whose mapping, if there is one, holds the fields of a mode; the first one that is there counts, and without
/// any the fields stand at the top. `metadata` is the place that the Agent Skills format keeps for extensions.
const SECTIONS: [&str; 4] = ["crabclaw", "pi-ai", "pi", "metadata"];

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
    /// The mode of a skill with this front matter: what `skill_mode` says, at the top or under `metadata`; else a
    /// tool, if there is a `tool_schema` with at least one step; else a prompt. An `agent_config` alone makes no agent:
    /// a program that runs by itself is asked for in so many words.
    pub fn of(fields: &Fields<'_>) -> Self {
        let nested =
            fields.get("metadata").and_then(Node::as_map).and_then(|metadata| metadata.text("skill_mode"));
        let word =
            [fields.text("skill_mode"), nested].into_iter().flatten().map(str::trim).find(|w| !w.is_empty());
        match word {
            Some("prompt") => Self::Prompt,
            Some("tool") => Self::Tool,
            Some("agent") => Self::Agent,
            Some(other) => Self::Unknown(other.to_owned()),
            None if has_steps(section(fields)) => Self::Tool,
            None => Self::Prompt,
        }
    }
}

fn section<'f, 'a>(fields: &'f Fields<'a>) -> &'f Fields<'a> {
    SECTIONS.iter().find_map(|key| fields.get(key).and_then(Node::as_map)).unwrap_or(fields)
}

fn has_steps(section: &Fields<'_>) -> bool {
    let steps = section.get("tool_schema").and_then(Node::as_map).and_then(|schema| schema.get("steps"));
    steps.and_then(Node::as_list).is_some_and(|steps| steps.iter().any(|step| step.as_map().is_some()))
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
            ("pi: {emoji: x}\ntool_schema: {steps: [{tool: a}]}", SkillMode::Prompt),
            ("agent_config: {role_title: Reviewer}", SkillMode::Prompt),
        ] {
            let text = format!("---\n{front_matter}\n---\n");
            let document = Document::parse(text.as_bytes(), &ParseOptions::default());
            assert_eq!(SkillMode::of(document.fields().unwrap()), mode, "{front_matter}");
        }
    }
}
