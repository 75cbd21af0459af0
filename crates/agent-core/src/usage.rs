//! What a model call cost and why it stopped.

use serde::{Deserialize, Serialize};

/// Tokens of one model call, as far as the provider told them. Absent is not zero.
///
/// The counts are normalised so that sums over providers mean something: [`input`](Self::input) holds the
/// whole prompt, the cached part included, whichever way the provider counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the whole prompt, those read from and written to a cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written by the model, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The part of [`input`](Self::input) that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The part of [`input`](Self::input) that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// The part of [`output`](Self::output) that was reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Usage with the two counts that every provider gives.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input: Some(input), output: Some(output), ..Self::default() }
    }

    /// Whether the provider told nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The field-wise sum; a count stays absent only when it is absent on both sides. Saturates.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cached: sum(self.cached, other.cached),
            cache_write: sum(self.cache_write, other.cache_write),
            reasoning: sum(self.reasoning, other.reasoning),
        }
    }

    /// Takes over every count that `later` gives: providers repeat cumulative numbers, the last one is right.
    pub fn merge(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cached = later.cached.or(self.cached);
        self.cache_write = later.cache_write.or(self.cache_write);
        self.reasoning = later.reasoning.or(self.reasoning);
    }

    /// Input and output together, absent ones counted as zero.
    pub fn total(&self) -> u64 {
        self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0))
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

/// Why the model stopped, in one vocabulary for all providers.
///
/// Tools run only after [`EndTurn`](Self::EndTurn) and [`ToolUse`](Self::ToolUse); everything else means that
/// the answer may be cut off, and nothing is executed from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// The model wants its tool calls run.
    ToolUse,
    /// The output limit was reached: the answer is cut off.
    MaxTokens,
    /// One of the request's stop sequences was written.
    StopSequence,
    /// The provider withheld or cut the answer (content filter, refusal).
    Filtered,
    /// The provider paused a long turn and wants the same history again.
    Pause,
    /// The context window was full before the answer was complete.
    ContextWindow,
    /// Anything else, in the provider's word.
    Other(String),
}

impl StopReason {
    /// Whether the answer is whole, so that its tool calls may be executed.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::EndTurn | Self::ToolUse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_counts_stay_absent_in_sums_and_are_not_zero() {
        let a = Usage { input: Some(3), ..Usage::default() };
        let b = Usage { input: Some(4), output: Some(1), ..Usage::default() };
        assert_eq!(a.plus(b), Usage { input: Some(7), output: Some(1), ..Usage::default() });
        assert_eq!(Usage::new(u64::MAX, 0).plus(Usage::new(1, 1)).input, Some(u64::MAX));
    }

    #[test]
    fn later_cumulative_counts_replace_earlier_ones_and_gaps_do_not() {
        let mut u = Usage::new(10, 1);
        u.merge(Usage { output: Some(5), ..Usage::default() });
        assert_eq!(u, Usage::new(10, 5));
    }
}
