//! Which template suits a request: by whole words, so that a word inside another one does not count.

use std::fmt::Write as _;

use serde::Serialize;

/// Characters of a request that are looked at; the sense of one is in its first page.
const MAX_REQUEST_CHARS: usize = 20_000;

/// A template for a new skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TemplateKind {
    /// A sub-agent.
    Agent,
    /// A text that other prompts share.
    Internal,
    /// A procedure for the model to follow.
    Operations,
    /// What there is to know of a part of a system.
    Subsystem,
    /// A pipeline of tools.
    Tool,
}

impl TemplateKind {
    /// All of them, by name.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Internal, Self::Operations, Self::Subsystem, Self::Tool];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Internal => "internal",
            Self::Operations => "operations",
            Self::Subsystem => "subsystem",
            Self::Tool => "tool",
        }
    }

    /// The template of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The template that comes with this crate: a skill with `<…>` where its author writes.
    pub const fn body(self) -> &'static str {
        match self {
            Self::Agent => include_str!("templates/agent.md"),
            Self::Internal => include_str!("templates/internal.md"),
            Self::Operations => include_str!("templates/operations.md"),
            Self::Subsystem => include_str!("templates/subsystem.md"),
            Self::Tool => include_str!("templates/tool.md"),
        }
    }

    const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Agent => AGENT,
            Self::Internal => INTERNAL,
            Self::Operations => OPERATIONS,
            Self::Subsystem => SUBSYSTEM,
            Self::Tool => TOOL,
        }
    }
}

const AGENT: &[&str] = &[
    "agent",
    "sub-agent",
    "subagent",
    "specialist",
    "delegate",
    "assistant",
    "researcher",
    "coder",
    "media",
    "spawn",
    "role",
    "persona",
    "long-running",
    "autonomous",
];
const INTERNAL: &[&str] = &[
    "internal",
    "fragment",
    "snippet",
    "scaffold",
    "shared prompt",
    "building block",
    "boilerplate",
    "include",
    "header",
    "system prompt fragment",
];
const OPERATIONS: &[&str] = &[
    "playbook",
    "procedure",
    "runbook",
    "deploy",
    "release",
    "incident",
    "rollback",
    "checklist",
    "sop",
    "manual",
    "guidance",
    "walk through",
    "step-by-step",
];
const SUBSYSTEM: &[&str] = &[
    "subsystem",
    "bundle",
    "module",
    "package",
    "ecosystem",
    "documentation",
    "reference",
    "overview",
    "capability set",
];
const TOOL: &[&str] = &[
    "deterministic",
    "pipeline",
    "chain",
    "compose",
    "composed",
    "step",
    "steps",
    "sequence",
    "callable",
    "json schema",
    "input schema",
    "transform",
    "convert",
    "fetch",
    "query",
    "lookup",
];

/// Which template to start from, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Suggestion {
    /// The template.
    pub recommended_template: TemplateKind,
    /// Others that came near; two at most.
    pub alternative_templates: Vec<TemplateKind>,
    /// Why this one.
    pub rationale: String,
    /// Its text.
    pub template_body: String,
    /// What to do with it.
    pub customization_hints: Vec<String>,
}

/// The template for what somebody wants, by the words of the request and by capabilities that the skill should have;
/// `None` for a blank request.
///
/// ```
/// use haversack_skill_runtime::authoring::{TemplateKind, suggest};
///
/// let found = suggest("deploy runbook with rollback checklist", &[]).unwrap();
/// assert_eq!(found.recommended_template, TemplateKind::Operations);
/// assert!(suggest("  ", &[]).is_none());
/// ```
pub fn suggest(request: &str, capabilities: &[&str]) -> Option<Suggestion> {
    if request.trim().is_empty() {
        return None;
    }
    let request: String = request.chars().take(MAX_REQUEST_CHARS).collect();
    let request = Words::of(&request);
    let mut scored: Vec<(usize, TemplateKind, Vec<String>)> = TemplateKind::ALL
        .into_iter()
        .map(|kind| {
            let (score, hits) = score(kind, &request, capabilities);
            (score, kind, hits)
        })
        .filter(|(score, ..)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, kind, _)| (usize::MAX - score, *kind));
    let mut scored = scored.into_iter();
    let (recommended, rationale) = match scored.next() {
        Some((score, kind, hits)) => {
            let shown: Vec<String> = hits.iter().take(5).map(|hit| format!("`{hit}`")).collect();
            (kind, format!("the request speaks of {} (score {score})", shown.join(", ")))
        }
        None => {
            let why = "no word of the request points to a template, so this is the one to fall back on";
            (TemplateKind::Tool, why.to_owned())
        }
    };
    Some(Suggestion {
        recommended_template: recommended,
        alternative_templates: scored.map(|(_, kind, _)| kind).take(2).collect(),
        rationale,
        template_body: recommended.body().to_owned(),
        customization_hints: hints(recommended, capabilities),
    })
}

fn score(kind: TemplateKind, request: &Words, capabilities: &[&str]) -> (usize, Vec<String>) {
    let (mut score, mut hits) = (0, Vec::new());
    for keyword in kind.keywords().iter().filter(|keyword| request.has(keyword)) {
        score += keyword.split(' ').count();
        hits.push((*keyword).to_owned());
    }
    for capability in capabilities {
        let words = Words::of(capability);
        if kind.keywords().iter().any(|keyword| words.has(keyword)) {
            score += 1;
            hits.push(format!("cap:{}", capability.to_lowercase()));
        }
    }
    (score, hits)
}

fn hints(kind: TemplateKind, capabilities: &[&str]) -> Vec<String> {
    let mut hints = vec!["Replace every `<…>`; a skill that still holds one is not finished.".to_owned()];
    if matches!(kind, TemplateKind::Tool | TemplateKind::Agent) {
        hints.push(
            "Keep only the tools that it needs: each one more is one more thing that can go wrong."
                .to_owned(),
        );
    }
    if kind == TemplateKind::Agent {
        hints.push("`runtime_kind` is `skill` unless the host runs `coder` or `media` agents.".to_owned());
    }
    if !capabilities.is_empty() {
        let mut hint = String::from("See to it that it can use what was asked for:");
        for capability in capabilities {
            // Writing to a string does not fail.
            let _ = write!(hint, " {capability}");
        }
        hints.push(hint);
    }
    hints
}

/// A text in lower case, its words apart, each with a blank before and behind it.
struct Words(String);

impl Words {
    fn of(text: &str) -> Self {
        let text = text.to_lowercase();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        Self(format!(" {} ", words.join(" ")))
    }

    /// Whether these words are in it, in this order; the last one also with the ending of a plural.
    fn has(&self, keyword: &str) -> bool {
        let keyword = Self::of(keyword).0;
        let plural = format!("{}s ", keyword.trim_end());
        self.0.contains(&keyword) || self.0.contains(&plural)
    }
}

#[cfg(test)]
mod tests;
