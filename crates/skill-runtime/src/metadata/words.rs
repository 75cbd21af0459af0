//! The closed vocabularies of the format: each word is a value, and a word that is not listed is never let through.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A closed set of words that a field may hold.
///
/// What a field becomes whose word is not in the set is [`strictest`](Self::strictest), together with a finding: an
/// unknown word is most likely one that a newer host understands, and must not open what its author meant to close.
pub trait Word: Copy + Eq + fmt::Debug + 'static {
    /// The words, in order; where they have a rank, rising.
    const WORDS: &'static [&'static str];

    /// The value that this word means, exactly as written.
    fn from_word(word: &str) -> Option<Self>;

    /// The word of the value.
    fn word(self) -> &'static str;

    /// The value that allows least.
    fn strictest() -> Self;
}

/// Declares a vocabulary once, so that values, words and their list cannot drift apart.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident, strictest $strictest:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
        }

        impl Word for $name {
            const WORDS: &'static [&'static str] = &[$($word,)+];

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            fn strictest() -> Self {
                Self::$strictest
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// How much a request asks of the program, rising; what a node of the capability tree is offered from.
    Tier, strictest TaskMultimodal {
        /// A greeting.
        Greeting = "greeting",
        /// A question.
        Question = "question",
        /// Light work: looking things up.
        TaskLight = "task_light",
        /// Work that writes.
        TaskWrite = "task_write",
        /// Work that deletes.
        TaskDelete = "task_delete",
        /// Work with images, sound or video.
        TaskMultimodal = "task_multimodal",
    }
}

words! {
    /// What a person has to agree to before a step runs, rising.
    Approval, strictest ExecEscalation {
        /// Nothing.
        None = "none",
        /// The plan.
        PlanConfirm = "plan_confirm",
        /// That data leaves.
        DataExport = "data_export",
        /// That a folder is opened.
        MountAccess = "mount_access",
        /// That something is executed.
        ExecEscalation = "exec_escalation",
    }
}

words! {
    /// How far execution is trusted, rising.
    SecurityLevel, strictest Deny {
        /// Nothing is executed.
        Deny = "deny",
        /// Only what is listed.
        Allowlist = "allowlist",
        /// Anything, in a sandbox.
        Sandboxed = "sandboxed",
        /// Anything.
        Full = "full",
    }
}

words! {
    /// What a capability reaches of the file system, rising.
    FileAccess, strictest None {
        /// Nothing.
        None = "none",
        /// Reading inside the scope.
        ScopedRead = "scoped_read",
        /// Reading in the workspace.
        Read = "read",
        /// Reading anywhere.
        GlobalRead = "global_read",
        /// Writing inside the scope.
        ScopedWrite = "scoped_write",
    }
}

words! {
    /// Which check of paths is made, rising in strictness.
    ScopeCheck, strictest MountRequired {
        /// None.
        None = "none",
        /// Inside the workspace.
        Workspace = "workspace",
        /// Inside a folder that was opened for it.
        MountRequired = "mount_required",
    }
}

words! {
    /// What kind of sub-agent runs.
    RuntimeKind, strictest Skill {
        /// A general one.
        Skill = "skill",
        /// One that writes programs.
        Coder = "coder",
        /// One that works with media.
        Media = "media",
    }
}

words! {
    /// Which tools of its parent a sub-agent starts with, rising.
    Inherit, strictest None {
        /// None.
        None = "none",
        /// The basic ones: `bash`, `read_file`, `write_file`, `list_dir`.
        Minimal = "minimal",
        /// All.
        Full = "full",
    }
}

words! {
    /// How long a model thinks, rising.
    ThinkLevel, strictest Low {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

words! {
    /// How far the memory of a sub-agent reaches, rising.
    MemoryScope, strictest Session {
        /// One session.
        Session = "session",
        /// All sessions of this agent.
        Persistent = "persistent",
        /// All agents.
        Shared = "shared",
    }
}

words! {
    /// Who reviews a result.
    Reviewer, strictest Human {
        /// A model.
        Llm = "llm",
        /// Rules of the host.
        Rule = "rule",
        /// A person.
        Human = "human",
    }
}

words! {
    /// Whom a stuck agent turns to.
    Escalation, strictest Human {
        /// Itself: another try.
        Own = "self",
        /// The agent that started it.
        Parent = "parent",
        /// A person.
        Human = "human",
    }
}

words! {
    /// What becomes of a pipeline when a step fails.
    OnError, strictest Abort {
        /// It ends.
        Abort = "abort",
        /// The step is recorded as failed, and the next one runs.
        Skip = "skip",
        /// The step is tried again, and then as `abort`.
        Retry = "retry",
    }
}

words! {
    /// What a step makes of the text that its tool gives back.
    OutputFormat, strictest Text {
        /// Text. Structured output of the tool is kept as a value all the same.
        Text = "text",
        /// JSON: the text is parsed, and the step fails where that is not possible.
        Json = "json",
    }
}
