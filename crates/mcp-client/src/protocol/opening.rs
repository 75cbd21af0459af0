//! How a connection opens: which message comes first, and what each answer to it leads to.
//!
//! Decisions only; [`super::client`] sends and receives. The rules, in the order in which they are tried with
//! [`EraChoice::Auto`]:
//!
//! 1. `server/discover` with modern metadata and a text as id, with a time limit of its own.
//! 2. A result that lists versions: our best common modern one, else `initialize` with the best common legacy one,
//!    else an error that names both sides' versions.
//! 3. Error -32022: as 2, with the versions it lists; the same version is asked for twice at most.
//!    Errors -32020 and -32021: a modern server that will not have us; the error is shown.
//! 4. Anything else (any other error, a result without versions, silence): `initialize` on the same process.
//! 5. The peer closed after the question or after the `initialize` that followed it: to be started again, without the
//!    question. Old servers die of any request before `initialize`.
//! 6. `initialize` refused, but known by now to be modern: `server/discover` again.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::answer::AnswerError;
use super::failure::Failure;
use super::in_words::in_words;
use super::json::Object;
use super::message::{RpcError, code};
use super::revision::{Era, EraChoice, Revision};
use super::schema::ServerInfo;

/// The messages that open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpeningStep {
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
}

impl OpeningStep {
    /// The method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
        }
    }
}

impl fmt::Display for OpeningStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a connection did not open.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OpeningError {
    /// No answer within the time for starting.
    TimedOut {
        /// What was not answered.
        step: OpeningStep,
        /// The time for starting.
        after: Duration,
    },
    /// The server answered with an error.
    Refused {
        /// What it answered.
        step: OpeningStep,
        /// The error.
        error: RpcError,
    },
    /// The two sides have no revision in common.
    NoCommonRevision {
        /// What the server speaks.
        theirs: Vec<String>,
    },
    /// The answer is not what it should be.
    Invalid {
        /// What was answered.
        step: OpeningStep,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The transport could not bring an answer.
    Failed {
        /// What was not answered.
        step: OpeningStep,
        /// Why.
        failure: Failure,
    },
    /// The peer closed the connection.
    Closed {
        /// What it did not answer.
        step: OpeningStep,
    },
}

impl fmt::Display for OpeningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { step, after } => write!(f, "no answer to {step} within {}", in_words(*after)),
            Self::Refused { step, error } => write!(f, "{step} was refused: {error}"),
            Self::NoCommonRevision { theirs } => {
                let theirs = if theirs.is_empty() { "none".to_owned() } else { theirs.join(", ") };
                write!(
                    f,
                    "no protocol version in common: the server speaks {theirs}, this client {}",
                    Revision::spoken()
                )
            }
            Self::Invalid { step, reason } => write!(f, "the answer to {step} is not valid: {reason}"),
            Self::Failed { step, failure } => write!(f, "{step} brought no answer: {failure}"),
            Self::Closed { step } => {
                write!(f, "the server closed the connection instead of answering {step}")
            }
        }
    }
}

/// What an answer leads to.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// The connection is open.
    Ready(Box<ServerInfo>),
    /// Ask `server/discover`.
    Discover,
    /// Send `initialize` with that revision.
    Initialize(Revision),
    /// Give up.
    Fail(OpeningError),
}

/// What is known while a connection opens.
#[derive(Debug)]
pub(crate) struct Opening {
    choice: EraChoice,
    /// How often `server/discover` was sent.
    discovered: u8,
    /// A valid answer to `server/discover` that came after its time was up.
    late: Option<Object>,
    /// The answer to `server/discover` came in a way that only modern servers refuse in.
    refused_as_modern_servers_do: bool,
}

impl Opening {
    pub(crate) fn new(choice: EraChoice) -> Self {
        Self { choice, discovered: 0, late: None, refused_as_modern_servers_do: false }
    }

    pub(crate) fn first(&mut self) -> Next {
        match self.choice {
            EraChoice::Auto | EraChoice::Modern => self.discover(),
            EraChoice::AutoLegacyFirst | EraChoice::Legacy => Next::Initialize(Revision::NEWEST_LEGACY),
        }
    }

    /// Whether the peer may have died of the question it was asked, so that it is worth starting it again.
    pub(crate) fn may_have_died_of_the_question(&self) -> bool {
        self.discovered > 0 && self.choice == EraChoice::Auto
    }

    fn discover(&mut self) -> Next {
        self.discovered = self.discovered.saturating_add(1);
        Next::Discover
    }

    /// No answer to `server/discover` within its own time.
    pub(crate) fn discover_timed_out(&self, after: Duration) -> Next {
        match self.choice {
            EraChoice::Modern => Next::Fail(OpeningError::TimedOut { step: OpeningStep::Discover, after }),
            _ => Next::Initialize(Revision::NEWEST_LEGACY),
        }
    }

    /// Keeps a late answer to `server/discover`, for when `initialize` is refused.
    pub(crate) fn discovered_late(&mut self, answer: Result<Object, AnswerError>) {
        self.late = answer.ok().filter(|object| object.contains_key("supportedVersions"));
    }

    pub(crate) fn discovered(&mut self, answer: Result<Object, AnswerError>) -> Next {
        let step = OpeningStep::Discover;
        let error = match answer {
            Ok(object) => match supported_versions(object.get("supportedVersions")) {
                Some(versions) => return self.choose(&versions, object),
                None => {
                    return self.fall_back(OpeningError::Invalid {
                        step,
                        reason: "it lists no supported versions".to_owned(),
                    });
                }
            },
            Err(AnswerError::Invalid(reason)) => {
                return self.fall_back(OpeningError::Invalid { step, reason });
            }
            Err(AnswerError::Rpc(error)) => error,
        };
        match error.code {
            Some(code::UNSUPPORTED_VERSION) => {
                let listed = error.data.as_ref().and_then(|data| data.get("supported"));
                let versions = supported_versions(listed).unwrap_or_default();
                if best(&versions, Era::Modern).is_some() && self.discovered < 2 {
                    return self.discover();
                }
                match best(&versions, Era::Legacy) {
                    Some(revision) if self.choice != EraChoice::Modern => Next::Initialize(revision),
                    _ if versions.is_empty() => Next::Fail(OpeningError::Refused { step, error }),
                    _ => Next::Fail(OpeningError::NoCommonRevision { theirs: versions }),
                }
            }
            Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY) => {
                Next::Fail(OpeningError::Refused { step, error })
            }
            _ => self.fall_back(OpeningError::Refused { step, error }),
        }
    }

    /// The transport saw that `server/discover` was refused the way only modern servers refuse a method.
    #[cfg(feature = "http")]
    pub(crate) fn note_modern_refusal(&mut self) {
        self.refused_as_modern_servers_do = true;
    }

    /// The transport could not bring an answer.
    pub(crate) fn failed(&mut self, step: OpeningStep, failure: Failure) -> Next {
        let another_era = failure.may_be_of_another_era();
        let error = OpeningError::Failed { step, failure };
        match step {
            OpeningStep::Discover if another_era => self.fall_back(error),
            OpeningStep::Initialize
                if another_era && self.discovered == 0 && self.choice != EraChoice::Legacy =>
            {
                self.discover()
            }
            _ => Next::Fail(error),
        }
    }

    fn choose(&self, versions: &[String], object: Object) -> Next {
        if let Some(revision) = best(versions, Era::Modern) {
            return Next::Ready(Box::new(ServerInfo::from_object(object, revision)));
        }
        match best(versions, Era::Legacy) {
            Some(revision) if self.choice != EraChoice::Modern => Next::Initialize(revision),
            _ => Next::Fail(OpeningError::NoCommonRevision { theirs: versions.to_vec() }),
        }
    }

    fn fall_back(&self, error: OpeningError) -> Next {
        match self.choice {
            EraChoice::Modern => Next::Fail(error),
            _ => Next::Initialize(Revision::NEWEST_LEGACY),
        }
    }

    pub(crate) fn initialized(&mut self, answer: Result<Object, AnswerError>) -> Next {
        let step = OpeningStep::Initialize;
        let error = match answer {
            Ok(object) => return accept(object),
            Err(AnswerError::Invalid(reason)) => return Next::Fail(OpeningError::Invalid { step, reason }),
            Err(AnswerError::Rpc(error)) => error,
        };
        let listed = error.data.as_ref().and_then(|data| data.get("supported"));
        let versions = supported_versions(listed).unwrap_or_default();
        if self.choice == EraChoice::Legacy {
            return Next::Fail(match error.code {
                Some(code::UNSUPPORTED_VERSION) if !versions.is_empty() => {
                    OpeningError::NoCommonRevision { theirs: versions }
                }
                _ => OpeningError::Refused { step, error },
            });
        }
        if let Some(object) = self.late.take() {
            return self.discovered(Ok(object));
        }
        let says_modern =
            error.code == Some(code::UNSUPPORTED_VERSION) && best(&versions, Era::Modern).is_some();
        if self.refused_as_modern_servers_do && error.code == Some(code::METHOD_NOT_FOUND) {
            return Next::Ready(Box::new(silent_modern_server()));
        }
        let unasked = self.discovered == 0;
        if (says_modern && self.discovered < 2) || unasked {
            return self.discover();
        }
        Next::Fail(OpeningError::Refused { step, error })
    }
}

/// A modern server that has no `server/discover`, which the revision allows: what it has can only be found out by asking.
fn silent_modern_server() -> ServerInfo {
    let lists = ["tools", "resources", "prompts"].map(|list| (list.to_owned(), Value::Object(Object::new())));
    let capabilities: Object = lists.into_iter().collect();
    let object = std::iter::once(("capabilities".to_owned(), Value::Object(capabilities))).collect();
    ServerInfo::from_object(object, Revision::NEWEST_MODERN)
}

fn accept(object: Object) -> Next {
    let step = OpeningStep::Initialize;
    let Some(version) = object.get("protocolVersion").and_then(Value::as_str) else {
        let reason = "it names no protocol version".to_owned();
        return Next::Fail(OpeningError::Invalid { step, reason });
    };
    match Revision::parse(version) {
        Some(revision) if revision.era() == Era::Legacy => {
            Next::Ready(Box::new(ServerInfo::from_object(object, revision)))
        }
        _ => Next::Fail(OpeningError::NoCommonRevision { theirs: vec![version.to_owned()] }),
    }
}

fn best(versions: &[String], era: Era) -> Option<Revision> {
    Revision::best_of(versions.iter().map(String::as_str), era)
}

/// The versions in a list, at most 64 of them; `None` if it is no list.
fn supported_versions(list: Option<&Value>) -> Option<Vec<String>> {
    const MOST: usize = 64;
    let versions = list?.as_array()?.iter().filter_map(Value::as_str);
    Some(versions.take(MOST).map(str::to_owned).collect())
}
