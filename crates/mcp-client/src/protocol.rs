//! The protocol apart from all input and output: bytes, lines and time in, bytes and outputs out.
//!
//! Nothing here knows a runtime, a clock, a process or a socket; time is an argument. [`LineBuffer`] cuts bytes into
//! lines, [`ClientMachine`] is the client's side of a connection, [`ServerInfo`] and its neighbours are what servers
//! say, as data. [`Client`](crate::Client) drives them over a real child process; drive them yourself to speak MCP over
//! something else.

mod in_words;
mod json;
mod revision;
mod line;
mod message;
mod schema;
mod answer;
mod pending;
mod notice;
mod outgoing;
mod paging;
mod rounds;
mod challenge;
mod failure;
mod opening;
mod output;
mod client;
#[cfg(any(test, feature = "testing"))]
mod server;

pub use answer::{Answer, AnswerError};
pub use challenge::Challenge;
pub use client::ClientMachine;
pub use failure::Failure;
pub use line::{Line, LineBuffer, LineCounts, LineText};
pub use message::{PeerId, RequestId, RpcError, code};
pub use notice::{ListKind, Notice, Progress};
pub use opening::{OpeningError, OpeningStep};
pub use outgoing::{Members, RequestParams};
pub use output::{ClientConfig, MachineCounts, Outcome, Output, Refusal};
pub use paging::ListLimits;
pub use pending::Timing;
pub use revision::{Era, EraChoice, Revision};
pub use schema::{
    ClientInfo, Completion, Content, EmbeddedResource, Listing, LogLevel, Media, Problem, ProblemCode,
    PromptArgument, PromptInfo, PromptMessage, PromptResult, ResourceContents, ResourceInfo, ResourceLink,
    ResourceResult, ResourceTemplate, ServedFile, ServedFiles, ServedSkill, ServerCapabilities, ServerInfo,
    TextContent, ToolAnnotations, ToolInfo, ToolResult,
};
#[cfg(any(test, feature = "testing"))]
pub use server::{ServerMachine, ServerOutput};

pub(crate) use answer::PageSeed;
#[cfg(feature = "http")]
pub(crate) use challenge::is_token_byte;
pub(crate) use in_words::in_words;
pub(crate) use json::Object;
pub(crate) use paging::Paging;
pub(crate) use rounds::{InputRequired, MAX_ROUNDS, input_required, next_round};
pub(crate) use schema::{Item, Page, ToolResultSeed};

#[cfg(test)]
mod conversation_tests;
