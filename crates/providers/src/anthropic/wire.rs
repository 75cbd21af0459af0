//! What Anthropic sends.

use std::borrow::Cow;

use haversack_agent_core::usage::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One event of the stream. Fields of all kinds in one struct, since the kind may come last.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) content_block: Option<Map<String, Value>>,
    pub(super) message: Option<Head>,
    pub(super) usage: Option<Counts>,
}

/// `content_block_delta.delta` and `message_delta.delta`.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
    pub(super) citation: Option<Value>,
    pub(super) stop_reason: Option<String>,
}

/// serde borrows a bare `Cow`, but never one inside an `Option`: hence the wrapper.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
}

/// The head of a message, or a whole one.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Counts>,
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) content: Option<Vec<Map<String, Value>>>,
}

/// Cumulative counts: the last one given of each is right.
#[derive(Clone, Copy, Default, Debug, Deserialize)]
pub(super) struct Counts {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Default, Debug, Deserialize)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

impl Counts {
    pub(super) fn merge(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// Anthropic counts the cached parts apart; a [`Usage`] holds the whole prompt.
    pub(super) fn normalised(self) -> Usage {
        let parts = [self.cache_read_input_tokens, self.cache_creation_input_tokens];
        let cached: u64 = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let mut usage = Usage::default();
        usage.input = self.input_tokens.map(|input| input.saturating_add(cached));
        usage.output = self.output_tokens;
        usage.cached = self.cache_read_input_tokens;
        usage.cache_write = self.cache_creation_input_tokens;
        usage.reasoning = self.output_tokens_details.and_then(|details| details.thinking_tokens);
        usage
    }
}
