//! What was found, used and left out for a run, and what it costs.

use std::fmt;
use std::sync::Arc;

use haversack_agent_core::model::PromptSection;

/// Characters that make about one token, for estimates: there is no tokenizer here.
const CHARS_PER_TOKEN: f32 = 3.5;

/// All that the host may want to show about a run before it starts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Every skill that was found, sorted by name.
    pub skills: Vec<SkillReport>,
    /// Every server of the configuration, sorted by name.
    pub servers: Vec<ServerReport>,
    /// The public names of all tools, in the order in which the model sees them.
    pub tools: Vec<Arc<str>>,
    /// The sections of the system prompt, in their order.
    pub sections: Vec<SectionCost>,
    /// What went wrong or was left out, each in one line that says where and what to do.
    pub notes: Vec<Note>,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillReport {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub origin: String,
    /// Whether the model hears of it.
    pub state: SkillState,
}

/// Whether the model hears of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillState {
    /// It has a line in the prompt.
    Offered,
    /// It has no line for want of room; a search finds it.
    Omitted,
    /// It is not used, for this reason.
    Withheld(String),
    /// It cannot be used, for this reason.
    Invalid(String),
    /// Another skill of the same name comes first.
    Shadowed,
    /// It is a pipeline, behind the tool of this name.
    Pipeline(Arc<str>),
    /// It is a sub-agent, behind the tool of this name.
    Agent(Arc<str>),
}

impl fmt::Display for SkillState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offered => f.write_str("offered"),
            Self::Omitted => f.write_str("found by search only"),
            Self::Withheld(why) => write!(f, "withheld: {why}"),
            Self::Invalid(why) => write!(f, "invalid: {why}"),
            Self::Pipeline(tool) => write!(f, "the tool {tool}, a pipeline"),
            Self::Agent(tool) => write!(f, "the tool {tool}, a sub-agent"),
            Self::Shadowed => f.write_str("another skill of this name comes first"),
        }
    }
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// Its name.
    pub name: Arc<str>,
    /// How it is, in a word or two: `ready`, `failed`, `not approved`. For lists and colours.
    pub short: &'static str,
    /// How it is, in words, with what lies behind a failure.
    pub state: String,
    /// Whether it is connected.
    pub is_ready: bool,
    /// How many of its tools are offered.
    pub tools: usize,
}

/// What a section of the system prompt costs in every request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionCost {
    /// The section.
    pub name: Arc<str>,
    /// Its characters.
    pub chars: usize,
    /// Its tokens, estimated.
    pub tokens: usize,
}

impl SectionCost {
    pub(crate) fn of(section: &PromptSection) -> Self {
        let chars = section.text.chars().count();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate of a length"
        )]
        let tokens = (chars as f32 / CHARS_PER_TOKEN).ceil() as usize;
        Self { name: Arc::clone(&section.name), chars, tokens }
    }
}

/// One line for the user or the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The file, skill or server that it is about.
    pub about: String,
    /// What happened and what to do.
    pub message: String,
}

impl Note {
    #[cfg(any(feature = "skills", feature = "mcp"))]
    pub(crate) fn new(about: impl Into<String>, message: impl Into<String>) -> Self {
        Self { about: about.into(), message: message.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.message)
    }
}
