//! A node of the capability tree and its seven dimensions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metadata::{Approval, FileAccess, ScopeCheck, SecurityLevel, Tier};

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// Holds others.
    Group,
    /// A tool.
    #[default]
    Tool,
    /// A sub-agent.
    Subagent,
}

macro_rules! dimension {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }
    };
}

dimension! {
    /// Who runs it and when it is there.
    Runtime {
        /// What runs it.
        owner: String,
        /// When it is there; `always` and `deny` are customary.
        enabled_when: String,
        /// A group whose tools are found at run time.
        dynamic: bool,
        /// What the names of its dynamic tools begin with.
        name_prefix: String,
        /// Where dynamic tools are found.
        discovery_source: String,
        /// Who offers dynamic tools.
        provider_id: String,
        /// How dynamic tools are listed.
        list_method: String,
        /// The kind of sub-agent that alone has the tool.
        subagent_scope: String,
    }
}

dimension! {
    /// What prompts say of it.
    Prompt {
        /// One line.
        summary: String,
        /// Its place among others; 0 is not set.
        sort_order: i64,
        /// How it is used.
        usage_guide: String,
        /// What is delegated to it.
        delegation: String,
        /// What introduces a group.
        group_intro: String,
        /// A paragraph of the prompt.
        segment: String,
        /// The paragraph's place; 0 is no paragraph.
        segment_order: i64,
        /// Who reads the paragraph: `main`, `subagent` or `both`.
        segment_scope: String,
        /// `identity` paragraphs are always there, others only with their tools.
        segment_kind: String,
        /// Hints by tier; `*` is any.
        intent_hints: BTreeMap<String, String>,
    }
}

dimension! {
    /// Words that point to it.
    IntentKeywords {
        /// Chinese words.
        zh: Vec<String>,
        /// English words.
        en: Vec<String>,
        /// Patterns with `{name}` places.
        patterns: Vec<String>,
    }
}

dimension! {
    /// For which requests it is offered.
    Routing {
        /// From which tier on; not set is the highest.
        min_tier: Option<Tier>,
        /// Tiers for which it is not offered.
        exclude_from: Vec<Tier>,
        /// Words that point to it.
        intent_keywords: IntentKeywords,
        /// 30, 20 and 10 classify requests; 0 is not set.
        intent_priority: i64,
    }
}

dimension! {
    /// What to ask for when more rights are needed.
    NodeEscalation {
        /// The level.
        default_requested_level: String,
        /// For how many minutes.
        default_ttl_minutes: i64,
        /// How folders are opened.
        default_mount_mode: String,
        /// Whether it has to be known who asked.
        needs_originator: bool,
        /// Whether it needs a running session.
        needs_run_session: bool,
    }
}

dimension! {
    /// What it may do.
    Perms {
        /// How far execution has to be trusted.
        min_security_level: Option<SecurityLevel>,
        /// What it reaches of the file system.
        file_access: Option<FileAccess>,
        /// What a person has to agree to.
        approval_type: Option<Approval>,
        /// Which paths are checked.
        scope_check: Option<ScopeCheck>,
        /// What to ask for when more is needed.
        escalation_hints: Option<NodeEscalation>,
    }
}

dimension! {
    /// How skills bind to it.
    Skills {
        /// Whether they may.
        bindable: bool,
        /// Those that do.
        bound_skills: Vec<String>,
        /// Whether their guidance is shown.
        guidance: bool,
    }
}

dimension! {
    /// How people see it.
    Display {
        /// An emoji.
        icon: String,
        /// Its title.
        title: String,
        /// Its label.
        label: String,
        /// What it does, as a verb.
        verb: String,
        /// Arguments that are shown.
        detail_keys: String,
    }
}

dimension! {
    /// Which policies it belongs to.
    GroupPolicy {
        /// Groups; their names begin with `group:`.
        policy_groups: Vec<String>,
        /// Profiles.
        profiles: Vec<String>,
        /// The group of set-up wizards.
        wizard_group: String,
    }
}

/// A node: one capability, or a group of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CapabilityNode {
    /// Its id, a path such as `fs/read_file`.
    pub id: String,
    /// The name, of a tool that of the tool.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// The id of the group that it is in; empty at the top.
    pub parent: String,
    /// The ids of what is in it, kept by the tree.
    pub children: Vec<String>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// What prompts say of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// For which requests it is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// What it may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perms: Option<Perms>,
    /// How skills bind to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Skills>,
    /// How people see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    /// Which policies it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<GroupPolicy>,
}

impl CapabilityNode {
    /// A node with nothing but its place.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        kind: NodeKind,
        parent: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), kind, parent: parent.into(), ..Self::default() }
    }

    /// Sets from which tier on it is offered.
    #[must_use]
    pub fn with_min_tier(mut self, tier: Tier) -> Self {
        self.routing.get_or_insert_default().min_tier = Some(tier);
        self
    }

    /// Sets its one line.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.prompt.get_or_insert_default().summary = summary.into();
        self
    }

    /// Its one line; empty if there is none.
    pub fn summary(&self) -> &str {
        self.prompt.as_ref().map_or("", |prompt| &prompt.summary)
    }

    /// Whether its tools are found at run time.
    pub fn is_dynamic(&self) -> bool {
        self.runtime.as_ref().is_some_and(|runtime| runtime.dynamic)
    }

    /// The kind of sub-agent that alone has it; empty if everybody does.
    pub fn scope(&self) -> &str {
        self.runtime.as_ref().map_or("", |runtime| &runtime.subagent_scope)
    }

    /// Its place in sorted lists; those without one come last.
    pub fn sort_order(&self) -> i64 {
        self.prompt.as_ref().map_or(0, |prompt| prompt.sort_order)
    }

    /// Whether it is offered for requests of this tier.
    pub fn is_for(&self, tier: Tier) -> bool {
        let routing = self.routing.as_ref();
        let min = routing.and_then(|routing| routing.min_tier).unwrap_or(Tier::TaskMultimodal);
        min <= tier && !routing.is_some_and(|routing| routing.exclude_from.contains(&tier))
    }
}
