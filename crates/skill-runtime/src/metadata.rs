//! What a front matter says about the modes: every field typed, and everything that could not be read named.
//!
//! ```
//! use haversack_skill_runtime::SkillMode;
//! use haversack_skill_runtime::metadata::{Inherit, Metadata};
//! use haversack_skills::document::{Document, ParseOptions};
//!
//! let file = b"---
//! name: reviewer
//! description: Reviews changes.
//! metadata:
//!   skill_mode: agent
//!   agent_config:
//!     role_title: Reviewer
//!     inherit: minimal
//!     no_network: 'true'
//! ---
//! ";
//! let document = Document::parse(file, &ParseOptions::new());
//! let reading = Metadata::read(document.fields().unwrap());
//! assert_eq!(reading.metadata.mode, SkillMode::Agent);
//!
//! // A mistake in a field that takes rights away never leaves them open.
//! let config = reading.metadata.agent_config.unwrap();
//! assert_eq!(config.inherit, Inherit::Minimal);
//! assert!(config.no_network);
//! assert_eq!(
//!     reading.findings[0].to_string(),
//!     "9:17: error: `agent_config.no_network`: expected `true` or `false` without quotes, found a text [wrong_type]"
//! );
//! ```
//!
//! # Where a field stands
//!
//! Fields may stand at the top of the front matter or in one of the mappings [`SECTIONS`], of which `metadata` is the
//! place that the Agent Skills format keeps for extensions. All places are read, field by field. Where a field stands
//! in several, the first counts and the others are reported: for the fields that say what the skill is and where it
//! belongs ([`Group::Placement`]) the top comes first and then the sections in their order; for all others
//! ([`Group::Section`]) the sections come first and the top last.

mod words;
mod finding;
mod rules;
mod read;
mod places;
mod mode;
mod agent;
mod steps;
mod json;

use std::collections::BTreeMap;

use haversack_skills::node::Fields;
use serde::Serialize;
use serde_json::Value;

pub use agent::{
    AgentConfig, CronTrigger, EventTrigger, MAX_ENTRIES, MessageTrigger, ReviewGate, SopStep, Triggers,
};
pub use finding::{Finding, FindingCode};
pub use mode::SkillMode;
use places::Places;
pub use read::MAX_FINDINGS;
use read::{Field, Notes};
pub use rules::{FIELDS, FieldRule, Group, Kind, SECTIONS, fields_of};
pub use steps::{MAX_STEPS, Step, ToolSchema};
pub use words::{
    Approval, Escalation, FileAccess, Inherit, MemoryScope, OnError, OutputFormat, Reviewer, RuntimeKind,
    ScopeCheck, SecurityLevel, ThinkLevel, Tier, Word,
};

/// Related tools that are kept.
pub const MAX_RELATED_TOOLS: usize = 5;

/// The fields of one skill that concern its mode and its place in the capability tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the format, and `FIELDS` describes each")]
pub struct Metadata {
    #[serde(serialize_with = "json::as_text")]
    pub mode: SkillMode,
    pub tree_id: Option<String>,
    pub tree_group: Option<String>,
    pub category: Option<String>,
    pub min_tier: Option<Tier>,
    pub approval_type: Option<Approval>,
    pub enabled_when: Option<String>,
    pub security_level: Option<SecurityLevel>,
    pub intent_priority: Option<i64>,
    pub secret_refs: Vec<String>,
    pub summary: Option<String>,
    pub usage_guide: Option<String>,
    pub title: Option<String>,
    pub label: Option<String>,
    pub verb: Option<String>,
    pub detail_keys: Vec<String>,
    pub emoji: Option<String>,
    pub homepage: Option<String>,
    pub skill_key: Option<String>,
    pub primary_env: Option<String>,
    pub os: Vec<String>,
    pub tools: Vec<String>,
    pub tool_schema: Option<ToolSchema>,
    pub tool_input_schema: Option<Value>,
    pub tool_description: Option<String>,
    pub agent_config: Option<AgentConfig>,
    pub agent_input_schema: Option<Value>,
    pub agent_output_schema: Option<Value>,
    pub intent_keywords: Keywords,
    pub intent_patterns: Vec<String>,
    pub intent_hints: BTreeMap<String, String>,
    pub related_tools: Vec<String>,
    pub scene_hint: Option<String>,
    pub file_access: Option<FileAccess>,
    pub scope_check: Option<ScopeCheck>,
    pub exclude_from: Vec<Tier>,
    pub policy_groups: Vec<String>,
    pub profiles: Vec<String>,
    pub wizard_group: Option<String>,
    pub sort_order: Option<i64>,
    pub escalation_hints: Option<EscalationHints>,
}

/// Words of a request that point to a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Keywords {
    /// Chinese words.
    pub zh: Vec<String>,
    /// English words.
    pub en: Vec<String>,
}

/// What to ask for when more rights are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EscalationHints {
    /// The level to ask for.
    pub default_requested_level: String,
    /// For how many minutes.
    pub default_ttl_minutes: i64,
    /// How to open folders.
    pub default_mount_mode: String,
    /// Whether it has to be known who asked.
    pub needs_originator: bool,
    /// Whether it needs a running session.
    pub needs_run_session: bool,
}

/// A front matter, read for its modes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// The fields.
    pub metadata: Metadata,
    /// What was wrong with them, in the order in which they are read.
    pub findings: Vec<Finding>,
    /// Findings beyond [`MAX_FINDINGS`].
    pub omitted: usize,
}

impl Reading {
    /// Whether something is wrong that keeps the skill from running.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }
}

impl Metadata {
    /// Reads the fields. Never fails: what cannot be read is absent, or holds the value that allows least, and a
    /// finding says so.
    pub fn read(fields: &Fields<'_>) -> Reading {
        let places = Places::of(fields);
        let mut notes = Notes::default();
        let mut reader = Reader { places: &places, notes: &mut notes, group: Group::Placement };
        let metadata = reader.metadata(SkillMode::of(fields));
        places.note_unknown(&mut notes);
        Reading { metadata, findings: notes.kept, omitted: notes.omitted }
    }

    /// A skill of this mode of which nothing else is known.
    pub fn in_mode(mode: SkillMode) -> Self {
        Self {
            mode,
            tree_id: None,
            tree_group: None,
            category: None,
            min_tier: None,
            approval_type: None,
            enabled_when: None,
            security_level: None,
            intent_priority: None,
            secret_refs: Vec::new(),
            summary: None,
            usage_guide: None,
            title: None,
            label: None,
            verb: None,
            detail_keys: Vec::new(),
            emoji: None,
            homepage: None,
            skill_key: None,
            primary_env: None,
            os: Vec::new(),
            tools: Vec::new(),
            tool_schema: None,
            tool_input_schema: None,
            tool_description: None,
            agent_config: None,
            agent_input_schema: None,
            agent_output_schema: None,
            intent_keywords: Keywords::default(),
            intent_patterns: Vec::new(),
            intent_hints: BTreeMap::new(),
            related_tools: Vec::new(),
            scene_hint: None,
            file_access: None,
            scope_check: None,
            exclude_from: Vec::new(),
            policy_groups: Vec::new(),
            profiles: Vec::new(),
            wizard_group: None,
            sort_order: None,
            escalation_hints: None,
        }
    }

    /// The tools that the skill stands for: `tools`, or the last part of `tree_id`.
    pub fn tool_names(&self) -> Vec<String> {
        if !self.tools.is_empty() {
            return self.tools.clone();
        }
        let last = self.tree_id.as_deref().and_then(|id| id.rsplit('/').next());
        last.filter(|name| !name.is_empty()).map(str::to_owned).into_iter().collect()
    }
}

/// Reads fields of one group.
struct Reader<'r, 'f, 'a> {
    places: &'r Places<'f, 'a>,
    notes: &'r mut Notes,
    group: Group,
}

impl<'f, 'a> Reader<'_, 'f, 'a> {
    fn field(&mut self, key: &'static str) -> Option<Field<'f, 'a>> {
        self.places.field(self.group, key, self.notes)
    }

    fn text(&mut self, key: &'static str) -> Option<String> {
        self.field(key)?.text(self.notes)
    }

    /// Text without the blanks around it, as for names and ids.
    fn trimmed(&mut self, key: &'static str) -> Option<String> {
        self.text(key).map(|text| text.trim().to_owned())
    }

    fn list(&mut self, key: &'static str) -> Vec<String> {
        self.field(key).map(|field| field.list(self.notes)).unwrap_or_default()
    }

    fn integer(&mut self, key: &'static str) -> Option<i64> {
        self.field(key)?.integer(self.notes)
    }

    /// A word that says what the skill may do, so that an unknown one is an error.
    fn word<W: Word>(&mut self, key: &'static str) -> Option<W> {
        Some(self.field(key)?.strictly().word(self.notes))
    }

    fn json(&mut self, key: &'static str) -> Option<Value> {
        Some(self.field(key)?.json())
    }

    fn metadata(&mut self, mode: SkillMode) -> Metadata {
        let mut metadata = Metadata::in_mode(mode);
        self.group = Group::Placement;
        self.placement(&mut metadata);
        self.group = Group::Section;
        self.display(&mut metadata);
        self.modes(&mut metadata);
        self.routing(&mut metadata);
        metadata
    }

    fn placement(&mut self, out: &mut Metadata) {
        out.tree_id = self.trimmed("tree_id");
        out.tree_group = self.trimmed("tree_group");
        out.category = self.trimmed("category");
        out.min_tier = self.word("min_tier");
        let (approval_type, approval) = (self.word("approval_type"), self.word("approval"));
        out.approval_type = approval_type.or(approval);
        out.enabled_when = self.trimmed("enabled_when");
        out.security_level = self.field("security_level").map(|field| field.word(self.notes));
        out.intent_priority = self.integer("intent_priority");
        out.secret_refs = self.list("secret_refs");
    }

    fn display(&mut self, out: &mut Metadata) {
        out.summary = self.text("summary");
        out.usage_guide = self.text("usage_guide");
        out.title = self.text("title");
        out.label = self.text("label");
        out.verb = self.text("verb");
        out.detail_keys = self.list("detail_keys");
        out.emoji = self.text("emoji");
        out.homepage = self.text("homepage");
        out.skill_key = self.text("skillKey");
        out.primary_env = self.text("primaryEnv");
        out.os = self.list("os");
        out.wizard_group = self.text("wizard_group");
        out.sort_order = self.integer("sort_order");
    }

    fn modes(&mut self, out: &mut Metadata) {
        out.tools = self.list("tools");
        out.tool_schema = self.field("tool_schema").and_then(|field| ToolSchema::read(&field, self.notes));
        out.tool_input_schema = self.json("tool_input_schema");
        out.tool_description = self.text("tool_description");
        out.agent_config = self.field("agent_config").and_then(|field| AgentConfig::read(field, self.notes));
        out.agent_input_schema = self.json("agent_input_schema");
        out.agent_output_schema = self.json("agent_output_schema");
    }

    fn routing(&mut self, out: &mut Metadata) {
        out.intent_keywords = self.keywords();
        out.intent_patterns = self.list("intent_patterns");
        out.intent_hints = self.field("intent_hints").map(|f| f.text_map(self.notes)).unwrap_or_default();
        out.related_tools = self.related_tools();
        out.scene_hint = self.text("scene_hint");
        out.file_access = self.word("file_access");
        out.scope_check = self.word("scope_check");
        out.exclude_from = self.field("exclude_from").map(|f| f.words(self.notes)).unwrap_or_default();
        out.policy_groups = self.list("policy_groups");
        out.profiles = self.list("profiles");
        out.escalation_hints = self.escalation_hints();
    }

    fn keywords(&mut self) -> Keywords {
        let field = self.field("intent_keywords");
        let Some(map) = field.and_then(|field| field.mapping(Group::Keywords, self.notes)) else {
            return Keywords::default();
        };
        Keywords { zh: map.list("zh", self.notes), en: map.list("en", self.notes) }
    }

    fn related_tools(&mut self) -> Vec<String> {
        let Some(field) = self.field("related_tools") else { return Vec::new() };
        let mut tools = field.list(self.notes);
        if tools.len() > MAX_RELATED_TOOLS {
            let message = format!("only the first {MAX_RELATED_TOOLS} of {} are kept", tools.len());
            field.note(self.notes, FindingCode::TooMany, message);
            tools.truncate(MAX_RELATED_TOOLS);
        }
        tools
    }

    fn escalation_hints(&mut self) -> Option<EscalationHints> {
        let map = self.field("escalation_hints")?.mapping(Group::EscalationHints, self.notes)?;
        let flag = |key: &str, notes: &mut Notes| map.field(key).is_some_and(|field| field.flag(notes));
        let ttl = map.field("default_ttl_minutes").and_then(|field| field.integer(self.notes));
        Some(EscalationHints {
            default_requested_level: map.text("default_requested_level", self.notes),
            default_ttl_minutes: ttl.unwrap_or(0),
            default_mount_mode: map.text("default_mount_mode", self.notes),
            needs_originator: flag("needs_originator", self.notes),
            needs_run_session: flag("needs_run_session", self.notes),
        })
    }
}

#[cfg(test)]
mod tests;
