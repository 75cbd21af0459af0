//! What Chat Completions servers send. Every leaf takes every value: see [`lenient`](crate::lenient).

use serde::Deserialize;
use serde_json::Value;

use crate::lenient::{Count, List, Object, Text, TextOr};

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) choices: List<Object<Choice<'a>>>,
    pub(super) usage: Object<Counts>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    /// In an answer that is not streamed.
    #[serde(borrow)]
    pub(super) message: Object<Delta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
}

/// New parts of the message, or all of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: TextOr<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_details: List<Value>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: List<Object<Call<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Object<Function<'a>>,
    /// Where Gemini's imitation puts its thought signature.
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: TextOr<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    pub(super) prompt_tokens_details: Object<PromptDetails>,
    pub(super) completion_tokens_details: Object<CompletionDetails>,
    pub(super) prompt_cache_hit_tokens: Count,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Count,
    pub(super) cache_write_tokens: Count,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Count,
}
