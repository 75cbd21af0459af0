//! The fields of the format as one table: what the reader knows, what the schema says and what the guide lists come
//! from here.

use crate::metadata::words::{
    Approval, Escalation, FileAccess, Inherit, MemoryScope, OnError, OutputFormat, Reviewer, RuntimeKind,
    ScopeCheck, ThinkLevel, Tier, Word as _,
};

/// The mapping that a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Group {
    /// Where the skill stands in the tree and what it is: the top of the file first, then the sections.
    Placement,
    /// All other fields: the sections first, then the top of the file.
    Section,
    /// `intent_keywords`.
    Keywords,
    /// `escalation_hints`.
    EscalationHints,
    /// `tool_schema`.
    ToolSchema,
    /// A step in `tool_schema.steps`.
    Step,
    /// `agent_config`.
    Agent,
    /// `agent_config.triggers`.
    Triggers,
    /// An entry of `triggers.cron`.
    Cron,
    /// An entry of `triggers.event`.
    Event,
    /// An entry of `triggers.message_match`.
    MessageMatch,
    /// An entry of `agent_config.sop`.
    Sop,
    /// `agent_config.review_gate`.
    ReviewGate,
}

/// What a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Text; a number is taken as it is written.
    Text,
    /// A list of texts, or one text with commas.
    List,
    /// A list of texts and nothing else: a mistake here would open what was meant to be closed.
    StrictList,
    /// A list of words from a set.
    WordList(&'static [&'static str]),
    /// A whole number, also below 0.
    Integer,
    /// A whole number from 0.
    Whole,
    /// `true` or `false`, and nothing that only looks like it.
    Flag,
    /// One word of a set.
    Word(&'static [&'static str]),
    /// A word that is customarily one of these; others are kept.
    Customary(&'static [&'static str]),
    /// A mapping with the fields of a group.
    Mapping(Group),
    /// A list of such mappings.
    Mappings(Group),
    /// A mapping from names to texts.
    TextMap,
    /// A mapping from names to any values.
    AnyMap,
    /// A JSON Schema.
    Schema,
}

/// One field of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldRule {
    /// The key.
    pub name: &'static str,
    /// The mapping it belongs to.
    pub group: Group,
    /// What it takes.
    pub kind: Kind,
    /// What it is for, in one line.
    pub about: &'static str,
}

/// The keys of mappings that may hold the fields, in the order in which they are looked at. `metadata` is the place
/// that the Agent Skills format keeps for extensions.
pub const SECTIONS: [&str; 4] = ["crabclaw", "pi-ai", "pi", "metadata"];

/// Fields at the top of a file that belong to the Agent Skills format, to its common extensions, or to the layers
/// above this one; they are no concern of the modes.
pub(crate) const NEIGHBOURS: &[&str] = &[
    "name",
    "description",
    "license",
    "compatibility",
    "allowed-tools",
    "allowedTools",
    "metadata",
    "version",
    "author",
    "tags",
    "when_to_use",
    "argument-hint",
    "arguments",
    "autoAttach",
    "paths",
    "requires",
    "disable-model-invocation",
    "disableModelInvocation",
    "user-invocable",
    "userInvocable",
    "model",
    "effort",
    "context",
    "agent",
    "hooks",
    "crabclaw",
    "pi-ai",
    "pi",
];

/// Declares the table with one line a field.
macro_rules! fields {
    ($($group:ident { $($name:literal: $kind:expr, $about:literal;)+ })+) => {
        /// Every field of the format, in the order of the guide.
        pub const FIELDS: &[FieldRule] =
            &[$($(FieldRule { name: $name, group: Group::$group, kind: $kind, about: $about },)+)+];
    };
}

fields! {
    Placement {
        "skill_mode": Kind::Word(&["prompt", "tool", "agent"]), "What the skill is: text for the model, a pipeline of tools, or a sub-agent";
        "tree_id": Kind::Text, "Its place in the capability tree, as a path: `group/tool`";
        "tree_group": Kind::Text, "The group it belongs under, where that is not the path above it";
        "category": Kind::Customary(&["tools", "operations", "subsystems", "agents", "meta"]), "What kind of skill; only `tools` and `tools/…` become nodes of the tree";
        "min_tier": Kind::Word(Tier::WORDS), "The lowest tier of request that it is offered for";
        "approval_type": Kind::Word(Approval::WORDS), "What a person agrees to before it runs";
        "approval": Kind::Word(Approval::WORDS), "The same as `approval_type`, which wins";
        "enabled_when": Kind::Text, "When it is there, in free words; `always` and `deny` are customary";
        "security_level": Kind::Customary(&["allowlist", "sandboxed", "full"]), "How far execution has to be trusted; any other word is the level `deny`";
        "intent_priority": Kind::Integer, "0 to 30; 10, 20 and 30 classify requests as writing, multimodal and deleting";
        "secret_refs": Kind::List, "The secret profiles that its tools may use; others are out of its reach";
    }
    Section {
        "summary": Kind::Text, "One line for lists; without it the description";
        "usage_guide": Kind::Text, "How to use it, for prompts";
        "title": Kind::Text, "A title for people";
        "label": Kind::Text, "A short label for people";
        "verb": Kind::Text, "What it does, as a verb, for people";
        "detail_keys": Kind::List, "Arguments to show beside the label";
        "emoji": Kind::Text, "An icon";
        "homepage": Kind::Text, "Where it comes from";
        "skillKey": Kind::Text, "A key for hosts that file skills by keys";
        "primaryEnv": Kind::Text, "The environment that it is written for";
        "os": Kind::List, "The operating systems that it runs on";
        "tools": Kind::List, "The tools that it stands for; without it, the last part of `tree_id`";
        "tool_schema": Kind::Mapping(Group::ToolSchema), "The pipeline of a tool-mode skill";
        "tool_input_schema": Kind::Schema, "The arguments of the tool that it describes";
        "tool_description": Kind::Text, "The description of that tool";
        "agent_config": Kind::Mapping(Group::Agent), "The sub-agent of an agent-mode skill";
        "agent_input_schema": Kind::Schema, "What the sub-agent takes";
        "agent_output_schema": Kind::Schema, "What the sub-agent gives back";
        "intent_keywords": Kind::Mapping(Group::Keywords), "Words of a request that point here";
        "intent_patterns": Kind::List, "Patterns of a request that point here, with `{placeholders}`";
        "intent_hints": Kind::TextMap, "Hints for prompts, by tier or `*`";
        "related_tools": Kind::List, "Tools that go with it; the first five are kept";
        "scene_hint": Kind::Text, "When it fits, for prompts; at most 150 bytes are advised";
        "file_access": Kind::Word(FileAccess::WORDS), "What it reaches of the file system";
        "scope_check": Kind::Word(ScopeCheck::WORDS), "Which check of paths is made";
        "exclude_from": Kind::WordList(Tier::WORDS), "Tiers that it is not offered for";
        "policy_groups": Kind::List, "Policy groups, named `group:…`";
        "profiles": Kind::List, "Tool profiles: `minimal`, `coding`, `messaging`, `full`";
        "wizard_group": Kind::Text, "The page of a setup wizard that it is on";
        "sort_order": Kind::Integer, "Its place in lists, rising";
        "escalation_hints": Kind::Mapping(Group::EscalationHints), "What to ask for when more rights are needed";
    }
    Keywords {
        "zh": Kind::List, "Chinese words";
        "en": Kind::List, "English words";
    }
    EscalationHints {
        "default_requested_level": Kind::Text, "The level to ask for";
        "default_ttl_minutes": Kind::Integer, "For how many minutes";
        "default_mount_mode": Kind::Text, "How to open folders";
        "needs_originator": Kind::Flag, "Whether it has to be known who asked";
        "needs_run_session": Kind::Flag, "Whether it needs a running session";
    }
    ToolSchema {
        "input": Kind::Schema, "JSON Schema of the input; checked before the first step";
        "output": Kind::Schema, "JSON Schema of the output";
        "steps": Kind::Mappings(Group::Step), "The steps, in order; at most 100";
    }
    Step {
        "action": Kind::Text, "The name of the step in reports";
        "description": Kind::Text, "What it does, for people";
        "tool": Kind::Text, "The tool to call; names that begin with `mcp_` or `remote_` need not be known when the pipeline is compiled";
        "input_map": Kind::AnyMap, "The arguments: any values, with templates in their texts";
        "output_as": Kind::Text, "The variable that receives the output";
        "output_format": Kind::Word(OutputFormat::WORDS), "What the text of the tool is: `text`, or `json` to be parsed";
        "approval": Kind::Word(Approval::WORDS), "What a person agrees to before the step runs; without it, what the tool's node says";
        "on_error": Kind::Word(OnError::WORDS), "What becomes of the pipeline when the step fails; `abort` by default";
        "retries": Kind::Whole, "Further tries under `on_error: retry`; 2 by default, at most 10";
        "retry_delay_ms": Kind::Whole, "Pause before the second try in milliseconds, doubled for each further one; 500 by default, at most one minute each";
        "timeout_ms": Kind::Whole, "How long one call of the tool may take in milliseconds; the host's limit by default";
        "loop_over": Kind::Text, "A template that gives a list: the step runs once for each element, which is `item`";
        "parallel": Kind::Whole, "How many elements of a loop run at a time; 1 by default, at most 16";
    }
    Agent {
        "role_title": Kind::Text, "Who the sub-agent is; required";
        "role_goal": Kind::Text, "What it is after";
        "role_backstory": Kind::Text, "Where it comes from";
        "runtime_kind": Kind::Word(RuntimeKind::WORDS), "What kind of sub-agent; `skill` by default";
        "inherit": Kind::Word(Inherit::WORDS), "Which tools of its parent it starts with; all by default";
        "allow": Kind::StrictList, "Tools of its parent added to those";
        "deny": Kind::StrictList, "Tools taken away from those";
        "no_network": Kind::Flag, "No network";
        "no_spawn": Kind::Flag, "No sub-agents of its own";
        "sandbox_required": Kind::Flag, "Only in a sandbox";
        "allowed_commands": Kind::StrictList, "The only commands it may run, at most 50; without it, any";
        "max_bash_calls": Kind::Whole, "Commands it may run at most; 0 is none";
        "model": Kind::Text, "The model it asks for";
        "think_level": Kind::Word(ThinkLevel::WORDS), "How long the model thinks";
        "max_tokens_per_session": Kind::Whole, "Tokens of one session at most; 0 is none";
        "max_sessions_per_day": Kind::Whole, "Sessions of one day at most; 0 is none";
        "max_concurrent": Kind::Whole, "Sessions at the same time at most; 0 is none";
        "max_tokens_per_day": Kind::Whole, "Tokens of one day at most; 0 is none";
        "memory_scope": Kind::Word(MemoryScope::WORDS), "How far its memory reaches";
        "memory_isolation": Kind::Word(MemoryScope::WORDS), "Who shares its memory";
        "shared_read": Kind::StrictList, "Shared memories that it reads";
        "shared_write": Kind::StrictList, "Shared memories that it writes";
        "can_dispatch_to": Kind::StrictList, "Agents that it may start, at most 20; `*` is any";
        "respond_to": Kind::StrictList, "Whom it answers";
        "listen_only": Kind::StrictList, "Whom it only hears";
        "composed_tools": Kind::StrictList, "Pipelines that it has as tools";
        "triggers": Kind::Mapping(Group::Triggers), "What starts it without being asked, for hosts that have that";
        "sop": Kind::Mappings(Group::Sop), "Its standard procedure";
        "review_gate": Kind::Mapping(Group::ReviewGate), "Who looks at its result";
        "stall_threshold_ms": Kind::Whole, "Milliseconds without any sign after which it counts as stalled";
        "max_retry": Kind::Whole, "Further tries when it fails";
        "escalation_chain": Kind::WordList(Escalation::WORDS), "Whom it turns to when it is stuck, in order";
        "snapshot_rollback": Kind::Flag, "Whether the host restores what was there when it fails";
    }
    Triggers {
        "cron": Kind::Mappings(Group::Cron), "By time";
        "event": Kind::Mappings(Group::Event), "By event";
        "message_match": Kind::Mappings(Group::MessageMatch), "By message";
    }
    Cron {
        "schedule": Kind::Text, "When; required";
        "task": Kind::Text, "What to do; required";
        "channels": Kind::List, "Where to tell of it";
    }
    Event {
        "event": Kind::Text, "Which event; required";
        "source": Kind::Text, "Where from";
        "channels": Kind::List, "Where to tell of it";
    }
    MessageMatch {
        "pattern": Kind::Text, "Which messages; required";
        "task": Kind::Text, "What to do; required";
        "channels": Kind::List, "Where to listen";
    }
    Sop {
        "step": Kind::Text, "What to do; required";
        "prompt": Kind::Text, "How";
        "tools": Kind::List, "With what";
        "condition": Kind::Text, "When";
    }
    ReviewGate {
        "enabled": Kind::Flag, "Whether there is a review";
        "reviewer": Kind::Word(Reviewer::WORDS), "Who reviews";
        "max_rounds": Kind::Whole, "Rounds at most";
        "auto_approve_tiers": Kind::WordList(Tier::WORDS), "Tiers that pass without a review";
    }
}

/// The fields of one group.
pub fn fields_of(group: Group) -> impl Iterator<Item = &'static FieldRule> {
    FIELDS.iter().filter(move |field| field.group == group)
}

pub(crate) fn is_known(group: Group, name: &str) -> bool {
    fields_of(group).any(|field| field.name == name)
}
