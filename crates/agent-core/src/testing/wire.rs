//! The rules by which each provider's API accepts or refuses a conversation.
//!
//! Sources: the API references of OpenAI (Chat Completions, Responses), Anthropic (Messages) and Google (Gemini,
//! `generateContent`), and the texts of the errors that they answer with. Only rules about the conversation are here:
//! order, pairing, ids, empty parts. Limits of sizes and of models are not.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::Message;

mod walk;
mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

/// A provider's API, as far as its rules about conversations go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// OpenAI Chat Completions, and what copies it.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini `generateContent`.
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// What the API would refuse in the body of a request.
    pub fn check_body(self, body: &Value) -> Vec<Violation> {
        match self {
            Self::OpenAiChat => openai_chat::check(body),
            Self::OpenAiResponses => openai_responses::check(body),
            Self::Anthropic => anthropic::check(body),
            Self::Gemini => gemini::check(body),
        }
    }

    /// What the API would refuse in a history that is sent as it stands: block by block, nothing repaired, nothing
    /// left out but what the API has no place for. A provider may be cleverer; a history that passes here needs no
    /// cleverness.
    pub fn check_history(self, messages: &[Arc<Message>]) -> Vec<Violation> {
        self.check_body(&match self {
            Self::OpenAiChat => json!({"messages": openai_chat::project(messages)}),
            Self::OpenAiResponses => json!({"input": openai_responses::project(messages)}),
            Self::Anthropic => json!({"messages": anthropic::project(messages)}),
            Self::Gemini => json!({"contents": gemini::project(messages)}),
        })
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAiChat => "OpenAI Chat",
            Self::OpenAiResponses => "OpenAI Responses",
            Self::Anthropic => "Anthropic",
            Self::Gemini => "Gemini",
        })
    }
}

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Where in the body, for example `messages[3].content[0]`.
    pub at: String,
    /// What is wrong.
    pub problem: String,
}

impl Violation {
    fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { at: at.into(), problem: problem.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.problem)
    }
}

/// Panics unless every API would take the history as it stands.
///
/// # Panics
///
/// With all violations and the history, when there is any.
#[track_caller]
#[expect(clippy::panic, reason = "an assertion for tests")]
pub fn assert_valid(messages: &[Arc<Message>]) {
    let mut report = String::new();
    for wire in Wire::ALL {
        for violation in wire.check_history(messages) {
            report.push_str(&format!("\n{wire}: {violation}"));
        }
    }
    if !report.is_empty() {
        let history = serde_json::to_string_pretty(messages).unwrap_or_default();
        panic!("the history is not valid:{report}\n{history}");
    }
}

#[cfg(test)]
mod tests;
