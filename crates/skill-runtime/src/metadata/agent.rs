//! `agent_config`: the sub-agent of an agent-mode skill, as its author describes it.

use std::fmt::Write as _;

use serde::Serialize;

use crate::metadata::read::{Field, Mapping, Notes};
use crate::metadata::rules::Group;
use crate::metadata::words::{
    Escalation, Inherit, MemoryScope, Reviewer, RuntimeKind, ThinkLevel, Tier, Word as _,
};

/// Entries of one list of mappings in an agent's configuration at most; people write fewer than ten.
pub const MAX_ENTRIES: usize = 100;

/// The sub-agent of an agent-mode skill. Every field that limits it fails closed: what cannot be read is an error of
/// the skill, and holds the value that allows least.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentConfig {
    /// Who it is; an agent needs one.
    pub role_title: String,
    /// What it is after.
    pub role_goal: String,
    /// Where it comes from.
    pub role_backstory: String,
    /// What kind of sub-agent.
    pub runtime_kind: RuntimeKind,
    /// Which tools of its parent it starts with; all by default.
    pub inherit: Inherit,
    /// Tools of its parent added to those.
    pub allow: Vec<String>,
    /// Tools taken away from those.
    pub deny: Vec<String>,
    /// No network.
    pub no_network: bool,
    /// No sub-agents of its own.
    pub no_spawn: bool,
    /// Only in a sandbox.
    pub sandbox_required: bool,
    /// The only commands it may run; `None` is any, an empty list none.
    pub allowed_commands: Option<Vec<String>>,
    /// Commands it may run at most; 0 is none.
    pub max_bash_calls: Option<u64>,
    /// The model it asks for.
    pub model: Option<String>,
    /// How long the model thinks.
    pub think_level: Option<ThinkLevel>,
    /// Tokens of one session at most; 0 is none.
    pub max_tokens_per_session: Option<u64>,
    /// Sessions of one day at most; 0 is none.
    pub max_sessions_per_day: Option<u64>,
    /// Sessions at the same time at most; 0 is none.
    pub max_concurrent: Option<u64>,
    /// Tokens of one day at most; 0 is none.
    pub max_tokens_per_day: Option<u64>,
    /// How far its memory reaches.
    pub memory_scope: Option<MemoryScope>,
    /// Who shares its memory.
    pub memory_isolation: Option<MemoryScope>,
    /// Shared memories that it reads.
    pub shared_read: Vec<String>,
    /// Shared memories that it writes.
    pub shared_write: Vec<String>,
    /// Agents that it may start; `*` is any, none by default.
    pub can_dispatch_to: Vec<String>,
    /// Whom it answers.
    pub respond_to: Vec<String>,
    /// Whom it only hears.
    pub listen_only: Vec<String>,
    /// Pipelines that it has as tools.
    pub composed_tools: Vec<String>,
    /// What starts it without being asked.
    pub triggers: Triggers,
    /// Its standard procedure.
    pub sop: Vec<SopStep>,
    /// Who looks at its result.
    pub review_gate: Option<ReviewGate>,
    /// Milliseconds without any sign after which it counts as stalled.
    pub stall_threshold_ms: Option<u64>,
    /// Further tries when it fails.
    pub max_retry: Option<u64>,
    /// Whom it turns to when it is stuck, in order.
    pub escalation_chain: Vec<Escalation>,
    /// Whether the host restores what was there when it fails.
    pub snapshot_rollback: bool,
}

/// What starts an agent without being asked. Data for hosts: nothing in this crate watches clocks or messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Triggers {
    /// By time.
    pub cron: Vec<CronTrigger>,
    /// By event.
    pub event: Vec<EventTrigger>,
    /// By message.
    pub message_match: Vec<MessageTrigger>,
}

/// A start by time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CronTrigger {
    /// When, as the host's scheduler writes it.
    pub schedule: String,
    /// What to do.
    pub task: String,
    /// Where to tell of it.
    pub channels: Vec<String>,
}

/// A start by event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventTrigger {
    /// Which event.
    pub event: String,
    /// Where from.
    pub source: Option<String>,
    /// Where to tell of it.
    pub channels: Vec<String>,
}

/// A start by message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MessageTrigger {
    /// Which messages.
    pub pattern: String,
    /// What to do.
    pub task: String,
    /// Where to listen.
    pub channels: Vec<String>,
}

/// One step of a standard procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SopStep {
    /// What to do.
    pub step: String,
    /// How.
    pub prompt: Option<String>,
    /// With what.
    pub tools: Vec<String>,
    /// When.
    pub condition: Option<String>,
}

/// Who looks at a result before it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReviewGate {
    /// Whether there is a review.
    pub enabled: bool,
    /// Who reviews.
    pub reviewer: Option<Reviewer>,
    /// Rounds at most.
    pub max_rounds: Option<u64>,
    /// Tiers that pass without a review.
    pub auto_approve_tiers: Vec<Tier>,
}

impl AgentConfig {
    /// An agent of this role with all tools of its parent and no limits of its own.
    pub fn new(role_title: impl Into<String>) -> Self {
        Self {
            role_title: role_title.into(),
            role_goal: String::new(),
            role_backstory: String::new(),
            runtime_kind: RuntimeKind::Skill,
            inherit: Inherit::Full,
            allow: Vec::new(),
            deny: Vec::new(),
            no_network: false,
            no_spawn: false,
            sandbox_required: false,
            allowed_commands: None,
            max_bash_calls: None,
            model: None,
            think_level: None,
            max_tokens_per_session: None,
            max_sessions_per_day: None,
            max_concurrent: None,
            max_tokens_per_day: None,
            memory_scope: None,
            memory_isolation: None,
            shared_read: Vec::new(),
            shared_write: Vec::new(),
            can_dispatch_to: Vec::new(),
            respond_to: Vec::new(),
            listen_only: Vec::new(),
            composed_tools: Vec::new(),
            triggers: Triggers::default(),
            sop: Vec::new(),
            review_gate: None,
            stall_threshold_ms: None,
            max_retry: None,
            escalation_chain: Vec::new(),
            snapshot_rollback: false,
        }
    }

    /// The standard procedure as a numbered section of Markdown; empty without one.
    ///
    /// ```
    /// use haversack_skill_runtime::metadata::Metadata;
    /// use haversack_skills::document::{Document, ParseOptions};
    ///
    /// let file = b"---\nagent_config:\n  role_title: Tester\n  sop:\n  - {step: Run the tests, prompt: All of them}\n  - {step: Report}\n---\n";
    /// let document = Document::parse(file, &ParseOptions::new());
    /// let metadata = Metadata::read(document.fields().unwrap()).metadata;
    /// let config = metadata.agent_config.unwrap();
    /// assert_eq!(
    ///     config.sop_section(),
    ///     "## Standard Operating Procedure\n\n1. Run the tests\n   Guidance: All of them\n2. Report\n"
    /// );
    /// ```
    pub fn sop_section(&self) -> String {
        let mut section = String::new();
        for (number, step) in self.sop.iter().enumerate() {
            if number == 0 {
                section.push_str("## Standard Operating Procedure\n\n");
            }
            // Writing to a string does not fail.
            let _ = writeln!(section, "{}. {}", number + 1, step.step);
            if let Some(prompt) = &step.prompt {
                let _ = writeln!(section, "   Guidance: {prompt}");
            }
        }
        section
    }

    pub(crate) fn read(field: Field<'_, '_>, notes: &mut Notes) -> Option<Self> {
        let map = field.strictly().mapping(Group::Agent, notes)?;
        let mut config = Self::new(map.text("role_title", notes));
        config.role_goal = map.text("role_goal", notes);
        config.role_backstory = map.text("role_backstory", notes);
        config.model = map.some_text("model", notes);
        config.read_rights(&map, notes);
        config.read_caps(&map, notes);
        config.read_memory(&map, notes);
        config.read_procedure(&map, notes);
        Some(config)
    }

    fn read_rights(&mut self, map: &Mapping<'_, '_>, notes: &mut Notes) {
        if let Some(field) = map.field("runtime_kind") {
            self.runtime_kind = field.word(notes);
        }
        if let Some(field) = map.field("inherit") {
            self.inherit = field.word(notes);
        }
        self.allow = strict_list(map, "allow", notes);
        if let Some(field) = map.field("deny") {
            match field.strict_list(notes) {
                Some(deny) => self.deny = deny,
                // What was to be taken away is not known, so nothing is given.
                None => self.inherit = Inherit::strictest(),
            }
        }
        self.no_network = flag(map, "no_network", notes);
        self.no_spawn = flag(map, "no_spawn", notes);
        self.sandbox_required = flag(map, "sandbox_required", notes);
        self.allowed_commands =
            map.field("allowed_commands").map(|field| field.strict_list(notes).unwrap_or_default());
        self.can_dispatch_to = strict_list(map, "can_dispatch_to", notes);
        self.respond_to = strict_list(map, "respond_to", notes);
        self.listen_only = strict_list(map, "listen_only", notes);
        self.composed_tools = strict_list(map, "composed_tools", notes);
    }

    fn read_caps(&mut self, map: &Mapping<'_, '_>, notes: &mut Notes) {
        let mut cap = |key: &str| map.field(key).map(|field| field.cap(notes));
        self.max_bash_calls = cap("max_bash_calls");
        self.max_tokens_per_session = cap("max_tokens_per_session");
        self.max_sessions_per_day = cap("max_sessions_per_day");
        self.max_concurrent = cap("max_concurrent");
        self.max_tokens_per_day = cap("max_tokens_per_day");
        self.stall_threshold_ms = cap("stall_threshold_ms");
        self.max_retry = cap("max_retry");
    }

    fn read_memory(&mut self, map: &Mapping<'_, '_>, notes: &mut Notes) {
        self.think_level = map.field("think_level").map(|field| field.word(notes));
        self.memory_scope = map.field("memory_scope").map(|field| field.word(notes));
        self.memory_isolation = map.field("memory_isolation").map(|field| field.word(notes));
        self.shared_read = strict_list(map, "shared_read", notes);
        self.shared_write = strict_list(map, "shared_write", notes);
    }

    fn read_procedure(&mut self, map: &Mapping<'_, '_>, notes: &mut Notes) {
        if let Some(triggers) = map.field("triggers").and_then(|field| field.mapping(Group::Triggers, notes))
        {
            self.triggers = Triggers::read(&triggers, notes);
        }
        let sop = map.field("sop").map(|field| field.mappings(Group::Sop, MAX_ENTRIES, notes));
        let sop = sop.unwrap_or_default().into_iter().filter_map(|entry| SopStep::read(&entry, notes));
        self.sop = sop.collect();
        self.review_gate = map
            .field("review_gate")
            .and_then(|field| field.mapping(Group::ReviewGate, notes))
            .map(|gate| ReviewGate::read(&gate, notes));
        if let Some(field) = map.field("escalation_chain") {
            self.escalation_chain = field.words(notes);
            let written = field.node().as_list().is_none_or(|list| !list.is_empty());
            if self.escalation_chain.is_empty() && written {
                self.escalation_chain = vec![Escalation::strictest()];
            }
        }
        self.snapshot_rollback = flag(map, "snapshot_rollback", notes);
    }
}

impl Triggers {
    fn read(map: &Mapping<'_, '_>, notes: &mut Notes) -> Self {
        let entries = |key: &str, group, notes: &mut Notes| {
            map.field(key).map(|field| field.mappings(group, MAX_ENTRIES, notes)).unwrap_or_default()
        };
        let mut triggers = Self::default();
        for entry in entries("cron", Group::Cron, notes) {
            if let (Some(schedule), Some(task)) =
                (entry.required("schedule", notes), entry.required("task", notes))
            {
                triggers.cron.push(CronTrigger { schedule, task, channels: entry.list("channels", notes) });
            }
        }
        for entry in entries("event", Group::Event, notes) {
            if let Some(event) = entry.required("event", notes) {
                let source = entry.some_text("source", notes);
                triggers.event.push(EventTrigger { event, source, channels: entry.list("channels", notes) });
            }
        }
        for entry in entries("message_match", Group::MessageMatch, notes) {
            if let (Some(pattern), Some(task)) =
                (entry.required("pattern", notes), entry.required("task", notes))
            {
                let channels = entry.list("channels", notes);
                triggers.message_match.push(MessageTrigger { pattern, task, channels });
            }
        }
        triggers
    }
}

impl SopStep {
    fn read(map: &Mapping<'_, '_>, notes: &mut Notes) -> Option<Self> {
        Some(Self {
            step: map.required("step", notes)?,
            prompt: map.some_text("prompt", notes),
            tools: map.list("tools", notes),
            condition: map.some_text("condition", notes),
        })
    }
}

impl ReviewGate {
    fn read(map: &Mapping<'_, '_>, notes: &mut Notes) -> Self {
        Self {
            enabled: flag(map, "enabled", notes),
            reviewer: map.field("reviewer").map(|field| field.word(notes)),
            max_rounds: map.field("max_rounds").map(|field| field.cap(notes)),
            auto_approve_tiers: map
                .field("auto_approve_tiers")
                .map(|field| field.words(notes))
                .unwrap_or_default(),
        }
    }
}

fn flag(map: &Mapping<'_, '_>, key: &str, notes: &mut Notes) -> bool {
    map.field(key).is_some_and(|field| field.flag(notes))
}

/// A list that gives rights: one that cannot be read gives none.
fn strict_list(map: &Mapping<'_, '_>, key: &str, notes: &mut Notes) -> Vec<String> {
    map.field(key).and_then(|field| field.strict_list(notes)).unwrap_or_default()
}
